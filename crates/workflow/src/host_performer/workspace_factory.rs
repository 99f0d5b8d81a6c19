//! Environments of a task, each with separate caches and temporary files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_host::env_spec::EnvironmentChoice;
use pintle_host::environment::{Confinement, EnvSession, EnvTarget, SandboxRequirements};
use pintle_host::failure::Failure;
use pintle_host::policy::grant;
use pintle_host::sessions::RememberedSettings;
use pintle_host::{Host, SessionSpec};

use super::clone_containers::{CloneContainers, select_container};
use crate::session_runner::{OpenWorkspace, WorkError, Workspace, WorkspaceFactory};

/// Opens environments with the settings of a session.
#[derive(Clone, Debug)]
pub(super) struct HostWorkspaceFactory {
    pub(super) host: Host,
    /// The settings, without the grant of the file.
    pub(super) spec: SessionSpec,
    /// File of the grant, which is read for each session.
    pub(super) grant: Option<PathBuf>,
    /// Settings that a session remembers.
    pub(super) remembered: RememberedSettings,
    /// Containers of the clones; `None` on this machine.
    pub(super) containers: Option<Arc<CloneContainers>>,
}

impl HostWorkspaceFactory {
    /// Returns the settings for a workspace, and a host with its variables.
    pub(super) fn settings_for(&self, workspace: &Workspace) -> (SessionSpec, Host) {
        let mut spec = self.spec.clone();
        spec.environment.dir = Some(workspace.working_directory());
        let process_env = self.host.process_env().with_variables(&workspace.variables);
        (spec, Host::new(process_env.with_workspace(Some(&workspace.root))))
    }

    /// Adds the grant of the file, if there is one.
    pub(super) fn add_grant(&self, spec: &mut SessionSpec) -> Result<(), Failure> {
        if let Some(file) = &self.grant {
            spec.policy.grant = Some(grant::read_file(file, self.host.process_env())?);
        }
        Ok(())
    }

    /// Selects the container of a workspace in the settings, if the clones have containers. Starts it unless it runs. Returns
    /// whether there is one.
    pub(super) async fn enter_container(
        &self,
        spec: &mut SessionSpec,
        workspace: &Workspace,
    ) -> Result<bool, Failure> {
        let Some(containers) = &self.containers else { return Ok(false) };
        select_container(spec, &containers.ensure_running(workspace).await?);
        Ok(true)
    }

    /// Opens the environment of a workspace.
    async fn connect(&self, workspace: &Workspace) -> Result<EnvSession, Failure> {
        let (mut spec, host) = self.settings_for(workspace);
        let is_contained = self.enter_container(&mut spec, workspace).await?;
        let spec = &spec;
        let choice = EnvironmentChoice::try_from(spec)?;
        let target = EnvTarget::new(choice, Confinement::from(spec), host.process_env())?;
        let used = SandboxRequirements {
            is_disposable: true,
            readable: workspace.readable_directories(),
            is_contained,
            ..SandboxRequirements::default()
        };
        let target = target.with_denials(&spec.policy.deny).with_hidden(&spec.policy.hidden);
        let target = target.with_hosts(spec.environment.hosts());
        target.with_requirements(used).connect().await
    }
}

#[async_trait]
impl WorkspaceFactory for HostWorkspaceFactory {
    async fn open(&self, workspace: &Workspace) -> Result<OpenWorkspace, WorkError> {
        let session = self.connect(workspace).await.map_err(|failure| work_error(&failure))?;
        Ok(OpenWorkspace::new(session.environment(), session))
    }

    async fn is_lost(&self, workspace: &Workspace) -> bool {
        match &self.containers {
            Some(containers) => !containers.is_running(workspace).await,
            None => false,
        }
    }

    async fn end(&self, directory: &Path) -> Result<(), WorkError> {
        match &self.containers {
            Some(containers) => {
                containers.remove_below(directory).await.map_err(|error| WorkError(error.to_string()))
            }
            None => Ok(()),
        }
    }
}

pub(super) fn work_error(failure: &Failure) -> WorkError {
    WorkError(failure.message())
}
