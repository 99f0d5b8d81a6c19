//! Containers, controlled through the `docker` command or a compatible one.

mod engine;
mod image;
#[cfg(test)]
#[cfg(feature = "local")]
mod tests;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use self::engine::{Engine, Target};
pub use self::image::{ContainerImage, Mount};
use crate::{
    error::EnvError,
    output::OutputLimits,
    remote::{Remote, RemoteSettings, forward_to_remote},
    setters::setters,
    variables::EnvPolicy,
};

/// Runs tools in a container.
///
/// Driven by the `docker` command, else `podman`, so the user's contexts and settings apply. The
/// container needs a POSIX shell at `/bin/sh` and common utilities (busybox suffices); `rg` is used
/// for searches if present. Commands run in `/bin/bash` if present, else in `/bin/sh`.
///
/// In addition to the rules of all environments:
///
/// * Every operation is a `docker exec`. At most 16 commands run concurrently. Others wait for a
///   slot, and their time limit starts once they have it.
/// * A supervisor in the container terminates leftovers of commands, found by group and by a tag in
///   their variables. It exchanges a heartbeat every 3 seconds. After 20 seconds without a
///   heartbeat, or when the container stops, all operations in progress fail with
///   [`EnvError::EnvironmentLost`]. A later operation reconnects if the container runs.
/// * A container started for the environment stops with its supervisor, within 35 seconds if the
///   supervisor was killed. It is never replaced, since a new one would lack the state of the
///   first: operations fail with [`EnvError::Unreachable`] until
///   [`cleanup`](crate::ExecutionEnvironment::cleanup), after which a new one may be started.
/// * When the embedding application dies, the supervisor notices at once, or after 30 seconds at
///   the latest if the connection stays open without a heartbeat. It then terminates all commands:
///   terminate signal, 2 seconds, kill signal. A container started for the environment stops at
///   once: its first process reads a pipe that only the application holds.
/// * [`cleanup`](crate::ExecutionEnvironment::cleanup) terminates all commands and removes a
///   container that was started for the environment; a container it was attached to keeps running.
/// * A process that leaves its group *and* clears its variables *and* outlives its parent is not
///   found, and only the superuser of the container can terminate processes of another user.
/// * A shell reports a killing signal as 128 plus its number, so [`ExitStatus`] treats an exit with
///   129 to 159 as a signal.
///
/// [`ExitStatus`]: crate::ExitStatus
///
/// ```no_run
/// use pintle_env::{ContainerImage, DockerEnvironment, ExecRequest, ExecutionEnvironment, Mount};
///
/// # async fn example() -> Result<(), pintle_env::EnvError> {
/// let image = ContainerImage::new("debian:stable-slim")
///     .with_mount(Mount::new("/srv/project", "/project"))
///     .with_network("none")
///     .with_memory(512 << 20);
/// let env = DockerEnvironment::start(image).with_working_directory("/project").build()?;
/// env.initialize().await?;
/// let result = env.exec_command(ExecRequest::new("ls")).await?;
/// assert!(result.success());
/// env.cleanup().await
/// # }
/// ```
#[derive(Debug)]
pub struct DockerEnvironment {
    remote: Remote<Engine>,
}

/// Builds a [`DockerEnvironment`].
#[derive(Clone, Debug)]
#[must_use]
pub struct DockerEnvironmentBuilder {
    target: Target,
    program: Option<PathBuf>,
    user: Option<String>,
    settings: RemoteSettings,
}

impl DockerEnvironment {
    /// Creates a builder for an environment in a running container, given by its name or id.
    pub fn attach(container: impl Into<String>) -> DockerEnvironmentBuilder {
        DockerEnvironmentBuilder::new(Target::Container(container.into()))
    }

    /// Creates a builder for an environment in a new container. It is started by
    /// [`initialize`](crate::ExecutionEnvironment::initialize) and removed by
    /// [`cleanup`](crate::ExecutionEnvironment::cleanup), or when the environment is dropped.
    pub fn start(image: ContainerImage) -> DockerEnvironmentBuilder {
        DockerEnvironmentBuilder::new(Target::Image(Box::new(image)))
    }

    /// Returns the user of containers, in the engine's syntax, whose files in mounts belong to the user of this process.
    /// Starts no container.
    ///
    /// # Errors
    ///
    /// [`EnvError::Unreachable`] without an engine.
    pub async fn local_user(&self) -> Result<String, EnvError> {
        self.remote.transport().local_user().await
    }

    /// Returns the id or name of the container, if the container exists.
    #[must_use]
    pub fn container(&self) -> Option<String> {
        self.remote.transport().container()
    }
}

impl DockerEnvironmentBuilder {
    fn new(target: Target) -> Self {
        Self { target, program: None, user: None, settings: RemoteSettings::default() }
    }

    setters! {
        /// Sets the client program, as a path or a name in `PATH`; default `docker`, else `podman`.
        pub fn with_program(program: impl Into<PathBuf>) => program = Some(program.into());
        /// Sets the user that commands run as: name or number, optionally followed by `:` and a group;
        /// default the container's user.
        pub fn with_user(user: impl Into<String>) => user = Some(user.into());
        /// Sets the directory in which commands start and relative paths begin, absolute; default the
        /// container's working directory.
        pub fn with_working_directory(directory: impl AsRef<Path>)
            => settings.working_directory = Some(directory.as_ref().to_path_buf());
        /// Sets which of the container's variables commands inherit; default
        /// [`EnvPolicy::InheritFiltered`]. Variables of the embedding application are not passed on.
        pub fn with_env_policy(policy: EnvPolicy) => settings.policy = policy;
    }

    /// Adds a variable for every command, regardless of the policy.
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.settings.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the limits on captured output, which is stored locally; default
    /// [`OutputLimits::default`].
    pub fn with_output_limits(mut self, limits: OutputLimits) -> Self {
        self.settings.output_limits = limits;
        self
    }

    /// Builds the environment without connecting. The first operation connects, preferably
    /// [`initialize`](crate::ExecutionEnvironment::initialize).
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the working directory is not absolute,
    /// [`EnvError::Unreachable`] if the name of the container or image would be parsed as an
    /// option.
    pub fn build(self) -> Result<DockerEnvironment, EnvError> {
        let engine = Engine::new(self.target, self.program, self.user)?;
        Ok(DockerEnvironment { remote: Remote::new(engine, self.settings)? })
    }
}

forward_to_remote!(DockerEnvironment);
