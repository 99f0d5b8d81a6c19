//! The environment on a host, and how it is built.

use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

use super::{Connection, transport::SshTransport};
use crate::{
    error::EnvError,
    local::EnvPolicy,
    output::OutputLimits,
    remote::{Remote, Settings, delegate_to_remote},
};

/// Runs tools on a host that the system's `ssh` reaches.
///
/// The user's configuration, agent and jump hosts are honoured, and nobody is ever asked: a host whose key is not
/// known, or that wants a password, is an error. The other side needs a POSIX shell at `/bin/sh`, and uses `rg` if it
/// has one. The login shell may be any, and its start-up files may print: nothing of that reaches an output.
///
/// One connection carries everything: a control master of the environment's own, with its socket in a private
/// directory. It is made by [`initialize`](crate::ExecutionEnvironment::initialize), or by the first call, and ended by
/// [`cleanup`](crate::ExecutionEnvironment::cleanup). Agent, windows and ports are not forwarded, whatever the
/// configuration says. Commands that are one too many for the host's limit of sessions wait for their turn.
///
/// ```no_run
/// use pintle_env::{ExecRequest, ExecutionEnvironment, SshEnvironment};
///
/// # async fn run() -> Result<(), pintle_env::EnvError> {
/// let env = SshEnvironment::builder("build.example").working_directory("/srv/project").build()?;
/// env.initialize().await?;
/// let result = env.exec_command(ExecRequest::new("make test")).await?;
/// println!("{}", result.exit_code);
/// env.cleanup().await?;
/// # Ok(())
/// # }
/// ```
///
/// # A lost connection
///
/// A call that is running when the connection goes fails with [`EnvError::EnvironmentLost`]: at once if the connection
/// was closed, within 15 seconds if the host just fell silent. It is never repeated. A later call connects again, and
/// fails with [`EnvError::Unreachable`] if that does not work.
///
/// What runs on the host is ended by a supervisor there, not by us: at once when it sees that the connection is
/// closed, and after 30 seconds without a sign of life otherwise; then commands have two seconds before they are
/// killed. The same happens when the host of this library is killed.
pub struct SshEnvironment {
    remote: Remote<SshTransport>,
}

/// Builds an [`SshEnvironment`].
#[derive(Debug)]
#[must_use]
pub struct SshEnvironmentBuilder {
    pub(super) connection: Connection,
    settings: Settings,
}

impl SshEnvironment {
    /// Starts to build an environment on `host`: a name, `USER@NAME`, or a host of the ssh configuration.
    pub fn builder(host: impl Into<String>) -> SshEnvironmentBuilder {
        SshEnvironmentBuilder { connection: Connection::new(host.into()), settings: Settings::default() }
    }
}

impl SshEnvironmentBuilder {
    /// Where commands start and relative paths begin on the host, absolute; default where it puts who logs in.
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings.working_directory = Some(directory.into());
        self
    }

    /// The port of the host; default what the configuration says, else 22.
    pub fn port(mut self, port: u16) -> Self {
        self.connection.port = Some(port);
        self
    }

    /// The ssh configuration to read instead of the user's and the system's.
    pub fn config_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.connection.config_file = Some(file.into());
        self
    }

    /// The ssh client, OpenSSH or one that takes its options; default `ssh`, looked up in the path.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Self {
        self.connection.program = program.into();
        self
    }

    /// How long connecting may take, with all jump hosts; default 15 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connection.connect_timeout = timeout;
        self
    }

    /// How long the host may be silent before it is asked whether it is there, in whole seconds; default 5. Two
    /// questions may stay without an answer: the connection is lost after three times as long.
    pub fn alive_interval(mut self, interval: Duration) -> Self {
        self.connection.alive_interval = interval;
        self
    }

    /// How many commands run at the same time, at least one; default 8. With the supervisor, and one line for files
    /// per eight commands, that makes the ten sessions that a server allows by default.
    pub fn max_commands(mut self, commands: usize) -> Self {
        self.connection.commands = commands.max(1);
        self
    }

    /// The local directory in which the private one for the socket is made; default `/tmp`. The system allows sockets
    /// some 100 bytes for their path.
    pub fn socket_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.connection.socket_directory = directory.into();
        self
    }

    /// Which of the variables that the host gives who logs in reach commands; default
    /// [`EnvPolicy::InheritFiltered`]. The variables of this side reach none.
    pub fn env_policy(mut self, policy: EnvPolicy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// A variable for every command, whatever the policy.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.settings.variables.insert(name.into(), value.into());
        self
    }

    /// How much output is kept and where on this side; default [`OutputLimits::default`].
    pub fn output_limits(mut self, limits: OutputLimits) -> Self {
        self.settings.output_limits = limits;
        self
    }

    /// Makes the environment. Nothing is connected yet.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the working directory is not absolute.
    pub fn build(self) -> Result<SshEnvironment, EnvError> {
        let remote = Remote::new(SshTransport::new(self.connection), self.settings)?;
        Ok(SshEnvironment { remote })
    }
}

delegate_to_remote!(SshEnvironment);

impl fmt::Debug for SshEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshEnvironment").field("remote", &self.remote).finish()
    }
}
