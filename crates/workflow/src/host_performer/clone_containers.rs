//! Containers of tasks, one for each clone.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pintle_env::{
    ContainerImage, DockerEnvironment, EnvError, ExecRequest, ExecutionEnvironment as _, Mount,
};
use pintle_host::env_spec::{EnvSpec, EnvironmentChoice};
use pintle_host::environment::{Confinement, EnvTarget};
use pintle_host::failure::Failure;
use pintle_host::{Host, NetworkAccess, SandboxLevel, SessionSpec};
use tokio::sync::Mutex;

use crate::session_runner::Workspace;

/// Directory above the directories of tasks.
const WORKTREES: &str = "worktrees";

/// Superuser of a container, whose home directory exists.
const SUPERUSER: &str = "0:0";

/// Containers from one image. A container sees the clone and the temporary files of its workspace, and can read the objects of
/// the user's repository. It ends with this value, and when this process dies.
#[derive(Debug)]
pub(super) struct CloneContainers {
    image: ContainerImage,
    user: String,
    /// Running containers, by the directory of the workspace.
    running: Mutex<HashMap<PathBuf, DockerEnvironment>>,
}

impl CloneContainers {
    /// Returns the containers of the settings; `None` for this machine. Starts and removes a container, so that a missing
    /// engine or image is reported before a task starts.
    ///
    /// # Errors
    ///
    /// A remote host, limits that a container cannot enforce, and an image from which no container can be started.
    pub(super) async fn from_settings(spec: &SessionSpec, host: &Host) -> Result<Option<Self>, Failure> {
        let name = match EnvironmentChoice::try_from(spec)?.spec {
            EnvSpec::Local => return Ok(None),
            EnvSpec::Docker(name) | EnvSpec::Image(name) => name,
            EnvSpec::Ssh(_) => return Err(shared_host()),
        };
        let mut settings = spec.clone();
        select_container(&mut settings, "IMAGE");
        EnvTarget::new(
            EnvironmentChoice::try_from(&settings)?,
            Confinement::from(&settings),
            host.process_env(),
        )?;
        let mut image = ContainerImage::new(name);
        if !spec.environment.has_network() {
            image = image.with_network("none");
        }
        let started = Self::start_once(image.clone()).await;
        let user = started.map_err(|error| start_failure(&image.name, &error))?;
        Ok(Some(Self { image: image.with_user(user.clone()), user, running: Mutex::default() }))
    }

    /// Starts a container and removes it. Returns the user of later containers.
    async fn start_once(image: ContainerImage) -> Result<String, EnvError> {
        let user = DockerEnvironment::start(image.clone()).build()?.local_user().await?;
        let container = DockerEnvironment::start(image.with_user(user.clone())).build()?;
        let started = container.initialize().await;
        // The first error is the one to report.
        let removed = container.cleanup().await;
        started.and(removed)?;
        Ok(user)
    }

    /// Returns the name of the container of a workspace. Starts the container if it is missing or has died.
    pub(super) async fn ensure_running(&self, workspace: &Workspace) -> Result<String, Failure> {
        let directory = workspace.directory();
        let name = container_name(directory);
        let mut running = self.running.lock().await;
        if let Some(container) = running.get(directory)
            && is_alive(container).await
        {
            return Ok(name);
        }
        if let Some(dead) = running.remove(directory) {
            // A container of the same name is removed before the start.
            let _ = dead.cleanup().await;
        }
        let failed = |error: &EnvError| start_failure(&self.image.name, error);
        let container = DockerEnvironment::start(self.image_for(workspace, &name));
        let container =
            container.with_working_directory(&workspace.root).build().map_err(|error| failed(&error))?;
        if let Err(error) = container.initialize().await {
            // The first error is the one to report.
            let _ = container.cleanup().await;
            return Err(failed(&error));
        }
        running.insert(directory.to_owned(), container);
        Ok(name)
    }

    /// Returns whether the container of a workspace runs.
    pub(super) async fn is_running(&self, workspace: &Workspace) -> bool {
        match self.running.lock().await.get(workspace.directory()) {
            Some(container) => is_alive(container).await,
            None => false,
        }
    }

    /// Removes the containers of all workspaces below a directory.
    pub(super) async fn remove_below(&self, directory: &Path) -> Result<(), EnvError> {
        let mut running = self.running.lock().await;
        let ended: Vec<PathBuf> = running.keys().filter(|key| key.starts_with(directory)).cloned().collect();
        let mut removed = Ok(());
        for container in ended.iter().filter_map(|key| running.remove(key)) {
            removed = removed.and(container.cleanup().await);
        }
        removed
    }

    /// Returns the image with the files, the variables and the user of a workspace. Paths are the same as on this machine.
    fn image_for(&self, workspace: &Workspace, name: &str) -> ContainerImage {
        let temporary = workspace.directory().join("tmp");
        let mut image = self.image.clone().with_container(name);
        // Each is a mount, which commands cannot replace by a link. This machine would follow the link when it reads the change.
        for writable in [&workspace.root, &temporary] {
            image = image.with_mount(Mount::new(writable, writable));
        }
        for objects in &workspace.readable {
            image = image.with_mount(Mount::new(objects, objects).with_read_only(true));
        }
        if self.user != SUPERUSER {
            // The image does not know the user.
            image = image.with_variable("HOME", temporary.display().to_string());
        }
        workspace.variables.iter().fold(image, |image, (name, value)| image.with_variable(name, value))
    }
}

/// Changes settings to work in a container. Its network is turned off in the container, which needs no sandbox.
pub(super) fn select_container(spec: &mut SessionSpec, name: &str) {
    let environment = &mut spec.environment;
    environment.kind = EnvSpec::Docker(name.to_owned()).to_string();
    if environment.sandbox == SandboxLevel::Auto && environment.network == Some(NetworkAccess::Off) {
        environment.network = None;
    }
}

async fn is_alive(container: &DockerEnvironment) -> bool {
    container.exec_command(ExecRequest::new(":")).await.is_ok()
}

/// Returns the name of the container of a workspace, from the names below the directory of all tasks.
fn container_name(directory: &Path) -> String {
    let names = directory.components().map(|component| component.as_os_str().to_string_lossy());
    let names = names.skip_while(|name| name != WORKTREES).skip(1);
    let names = std::iter::once("pintle".into()).chain(names).collect::<Vec<_>>().join("-");
    let is_valid = |other: char| other.is_ascii_alphanumeric() || matches!(other, '_' | '.' | '-');
    names.chars().map(|other| if is_valid(other) { other } else { '-' }).collect()
}

/// Returns the failure of a task on a remote host.
pub(super) fn shared_host() -> Failure {
    Failure::usage(
        "a task works only with --env local or --env docker:IMAGE: on a remote host, a candidate would share the machine \
         with the commands that judge it",
    )
}

fn start_failure(image: &str, error: &EnvError) -> Failure {
    Failure::usage(format!("cannot start a container from the image {image}")).caused_by(error).with_hint(
        "a task starts a container for each clone, so --env names an image and not a running container",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn containers() -> CloneContainers {
        let image = ContainerImage::new("debian:12").with_network("none");
        CloneContainers { image, user: "1000:1000".to_owned(), running: Mutex::default() }
    }

    #[test]
    fn a_container_sees_its_workspace_and_reads_objects() {
        let variables = [("PORT".to_owned(), "1234".to_owned())].into();
        let workspace = Workspace::new("/s/worktrees/task-1/candidates/0/tree", variables)
            .with_readable(vec!["/p/.git/objects".into()]);
        let name = container_name(workspace.directory());
        assert_eq!(name, "pintle-task-1-candidates-0");
        let image = containers().image_for(&workspace, &name);
        let directory = "/s/worktrees/task-1/candidates/0";
        let objects = Mount::new("/p/.git/objects", "/p/.git/objects").with_read_only(true);
        let writable = ["tree", "tmp"].map(|name| format!("{directory}/{name}"));
        let [tree, temporary] = writable.map(|path| Mount::new(&path, &path));
        assert_eq!(image.mounts, [tree, temporary, objects]);
        assert_eq!(
            (image.container.as_deref(), image.network.as_deref()),
            (Some(name.as_str()), Some("none"))
        );
        assert_eq!(image.variables["PORT"], "1234");
        assert_eq!(image.variables["HOME"], format!("{directory}/tmp"));
    }

    #[test]
    fn the_name_of_a_container_is_valid_and_distinct() {
        for (directory, expected) in [
            ("/s/worktrees/task-1/clean/evidence-0-1", "pintle-task-1-clean-evidence-0-1"),
            ("/s/worktrees/task-1/a b", "pintle-task-1-a-b"),
        ] {
            assert_eq!(container_name(Path::new(directory)), expected);
            assert!(format!("docker:{expected}").parse::<EnvSpec>().is_ok());
        }
    }

    #[test]
    fn an_explicit_network_off_is_left_to_the_container() {
        for (network, expected) in [
            (None, None),
            (Some(NetworkAccess::Off), None),
            (Some(NetworkAccess::On), Some(NetworkAccess::On)),
        ] {
            let mut spec = SessionSpec::default();
            spec.environment.network = network;
            select_container(&mut spec, "c");
            assert_eq!(spec.environment.network, expected);
            assert_eq!(spec.environment.kind, "docker:c");
        }
    }

    #[tokio::test]
    async fn ending_without_containers_has_no_effect() {
        containers().remove_below(Path::new("/s/worktrees/task-1")).await.unwrap();
        assert!(!containers().is_running(&Workspace::new("/s/w/tree", [].into())).await);
    }
}
