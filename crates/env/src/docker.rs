//! A container that is reached by the `docker` command, or by one that takes the same words.

mod engine;
mod image;
#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use self::engine::{Engine, Target};
pub use self::image::{ContainerImage, Mount};
use crate::{
    error::EnvError,
    local::EnvPolicy,
    output::OutputLimits,
    remote::{Remote, Settings, delegate_to_remote},
};

/// Runs tools in a container.
///
/// It is driven by the `docker` command, else by `podman`, so that the user's contexts and settings hold. The
/// container needs a POSIX shell at `/bin/sh` and the usual small programs (those of busybox are enough); `rg` is
/// used for searches if it is there. Commands run in `/bin/bash` if there is one, else in `/bin/sh`.
///
/// The rules are those of every environment, and these:
///
/// * Everything is a `docker exec`. At most 16 commands run at the same time; others wait for their turn, and their
///   time-out begins when it comes.
/// * A supervisor in the container ends what commands leave, by group and by a mark in their variables. It is asked
///   for a sign of life every 3 seconds; after 20 without one, or when the container stops, everything under way
///   fails with [`EnvError::EnvironmentLost`]. A later operation connects anew if the container runs.
/// * A container that was started for the environment goes with its supervisor, within 35 seconds if that was killed.
///   None is ever started in its place, where nothing would be known of what was done in the first: operations fail
///   with [`EnvError::Unreachable`] until [`cleanup`](crate::ExecutionEnvironment::cleanup), after which there may be a
///   new one.
/// * When the host dies, the supervisor notices at once, or after 30 seconds at the latest if the connection stays
///   open without a sign of life, and ends all commands: terminate, 2 seconds, kill. A container that was started
///   for the environment goes at once: its first process reads a line that only the host holds.
/// * [`cleanup`](crate::ExecutionEnvironment::cleanup) ends all commands and removes a container that was started
///   for the environment; one that it was attached to goes on.
/// * A process that leaves its group *and* wipes its variables *and* outlives its parent is not found, and only the
///   superuser of the container can end the processes of another user.
/// * A shell tells the signal that killed a program as 128 plus its number; so does [`ExitStatus`], which therefore
///   takes an exit with 129 to 159 for a signal.
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
/// let env = DockerEnvironment::start(image).working_directory("/project").build()?;
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
    settings: Settings,
}

impl DockerEnvironment {
    /// Starts to build an environment in a container that runs already, given by its name or its id.
    pub fn attach(container: impl Into<String>) -> DockerEnvironmentBuilder {
        DockerEnvironmentBuilder::new(Target::Container(container.into()))
    }

    /// Starts to build an environment in a container of its own, which is started by
    /// [`initialize`](crate::ExecutionEnvironment::initialize) and removed by
    /// [`cleanup`](crate::ExecutionEnvironment::cleanup), or when the environment is dropped.
    pub fn start(image: ContainerImage) -> DockerEnvironmentBuilder {
        DockerEnvironmentBuilder::new(Target::Image(Box::new(image)))
    }

    /// The id or the name of the container, if there is one yet.
    #[must_use]
    pub fn container(&self) -> Option<String> {
        self.remote.transport().container()
    }
}

impl DockerEnvironmentBuilder {
    fn new(target: Target) -> Self {
        Self { target, program: None, user: None, settings: Settings::default() }
    }

    /// The program to drive, by its path or by its name in the host's `PATH`; default `docker`, else `podman`.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.program = Some(program.into());
        self
    }

    /// Who commands run as, by name or number, with `:` and a group if need be; default the container's own user.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Where commands start and relative paths begin, absolute; default the container's own working directory.
    pub fn working_directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.settings.working_directory = Some(directory.as_ref().to_path_buf());
        self
    }

    /// Which of the container's variables commands get; default [`EnvPolicy::InheritFiltered`]. The host's variables
    /// do not come in.
    pub fn env_policy(mut self, policy: EnvPolicy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// A variable for every command, whatever the policy.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.settings.variables.insert(name.into(), value.into());
        self
    }

    /// How much output is kept, and where on the host; default [`OutputLimits::default`].
    pub fn output_limits(mut self, limits: OutputLimits) -> Self {
        self.settings.output_limits = limits;
        self
    }

    /// Makes the environment. It touches nothing yet: the first operation does, best
    /// [`initialize`](crate::ExecutionEnvironment::initialize).
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the working directory is not absolute, [`EnvError::Unreachable`] if the name of
    /// the container or of the image would be an option.
    pub fn build(self) -> Result<DockerEnvironment, EnvError> {
        let engine = Engine::new(self.target, self.program, self.user)?;
        Ok(DockerEnvironment { remote: Remote::new(engine, self.settings)? })
    }
}

delegate_to_remote!(DockerEnvironment);
