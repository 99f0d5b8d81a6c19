//! The ssh environment and its builder.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use super::{Connection, transport::SshTransport};
use crate::{
    error::EnvError,
    output::OutputLimits,
    remote::{Remote, RemoteSettings, forward_to_remote},
    setters::setters,
    variables::EnvPolicy,
};

/// Runs tools on a remote host that the system's `ssh` can reach.
///
/// The user's configuration, agent and jump hosts are used, without any prompt: a host with an
/// unknown key, or one that requires a password, is an error. The remote host needs a POSIX shell
/// at `/bin/sh`, and `rg` is used if present. Any login shell works, and its start-up files may
/// print: none of that reaches an output.
///
/// One connection carries everything: a control master owned by the environment, with its socket in
/// a private directory. It is opened by [`initialize`](crate::ExecutionEnvironment::initialize) or
/// the first call, and closed by [`cleanup`](crate::ExecutionEnvironment::cleanup). Agent, X11 and
/// ports are not forwarded, regardless of the configuration. Commands beyond the limit wait for a
/// slot.
///
/// ```no_run
/// use pintle_env::{ExecRequest, ExecutionEnvironment, SshEnvironment};
///
/// # async fn run() -> Result<(), pintle_env::EnvError> {
/// let env = SshEnvironment::builder("build.example").with_working_directory("/srv/project").build()?;
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
/// A call in progress when the connection is lost fails with [`EnvError::EnvironmentLost`]: at once
/// if the connection was closed, within 15 seconds if the remote host became silent. It is never
/// repeated. A later call reconnects, and fails with [`EnvError::Unreachable`] if that is not
/// possible.
///
/// A supervisor on the remote host terminates what runs there: at once when it sees the connection
/// closed, otherwise after 30 seconds without a heartbeat. Commands then have two seconds before
/// they are killed. The same happens when the embedding application is killed.
#[derive(Debug)]
pub struct SshEnvironment {
    remote: Remote<SshTransport>,
}

/// Builds an [`SshEnvironment`].
#[derive(Debug)]
#[must_use]
pub struct SshEnvironmentBuilder {
    pub(super) connection: Connection,
    settings: RemoteSettings,
}

impl SshEnvironment {
    /// Creates a builder for an environment on `host`: a name, `USER@NAME`, or a host of the ssh
    /// configuration.
    pub fn builder(host: impl Into<String>) -> SshEnvironmentBuilder {
        SshEnvironmentBuilder {
            connection: Connection::new(host.into()),
            settings: RemoteSettings::default(),
        }
    }
}

impl SshEnvironmentBuilder {
    setters! {
        /// Sets the remote directory in which commands start and relative paths begin, absolute;
        /// default the login directory.
        pub fn with_working_directory(directory: impl Into<PathBuf>) => settings.working_directory = Some(directory.into());
        /// Sets the port; default from the ssh configuration, else 22.
        pub fn with_port(port: u16) => connection.port = Some(port);
        /// Sets the ssh configuration file to use instead of the user's and the system's.
        pub fn with_config_file(file: impl Into<PathBuf>) => connection.config_file = Some(file.into());
        /// Sets the ssh client, OpenSSH or a compatible one; default `ssh` from `PATH`.
        pub fn with_program(program: impl Into<PathBuf>) => connection.program = program.into();
        /// Sets the time-out for connecting, jump hosts included; default 15 seconds.
        pub fn with_connect_timeout(timeout: Duration) => connection.connect_timeout = timeout;
        /// Sets the time of silence after which the remote host is probed, in whole seconds; default 5.
        /// Two probes may remain unanswered: the connection is lost after three times this interval.
        pub fn with_alive_interval(interval: Duration) => connection.alive_interval = interval;
        /// Sets the maximum number of concurrent commands, at least one; default 8. Together with the
        /// supervisor and one line for helper scripts per eight commands, that uses the ten sessions
        /// that servers allow by default.
        pub fn with_max_commands(commands: usize) => connection.commands = commands.max(1);
        /// Sets the local parent of the private socket directory; default `/tmp`. Socket paths are
        /// limited to some 100 bytes.
        pub fn with_socket_directory(directory: impl Into<PathBuf>) => connection.socket_directory = directory.into();
        /// Sets which variables of the remote login reach commands; default
        /// [`EnvPolicy::InheritFiltered`]. Local variables are not passed on.
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

    /// Builds the environment without connecting.
    ///
    /// # Errors
    ///
    /// [`EnvError::InvalidPath`] if the working directory is not absolute.
    pub fn build(self) -> Result<SshEnvironment, EnvError> {
        let remote = Remote::new(SshTransport::new(self.connection), self.settings)?;
        Ok(SshEnvironment { remote })
    }
}

forward_to_remote!(SshEnvironment);
