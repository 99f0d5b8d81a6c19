//! Remote hosts, reached through the system's `ssh`.

mod environment;
mod failure;
mod master;
mod transport;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

pub use self::{
    environment::{SshEnvironment, SshEnvironmentBuilder},
    failure::{SshError, SshErrorKind},
};
use crate::error::EnvError;

/// Time-out for connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Time of silence after which the remote host is probed.
const ALIVE_INTERVAL: Duration = Duration::from_secs(5);

/// Number of unanswered probes; the connection is lost one interval later.
const ALIVE_PROBES: u32 = 2;

/// Maximum number of concurrent commands. Servers allow ten sessions per connection by default; one
/// is used by the supervisor and one by helper scripts.
const COMMANDS: usize = 8;

/// Directory of control sockets: their paths must be short.
const SOCKET_DIRECTORY: &str = "/tmp";

/// Connection settings.
#[derive(Clone, Debug)]
struct Connection {
    host: String,
    /// Default: from the ssh configuration.
    port: Option<u16>,
    program: PathBuf,
    config_file: Option<PathBuf>,
    connect_timeout: Duration,
    alive_interval: Duration,
    socket_directory: PathBuf,
    commands: usize,
}

impl Connection {
    fn new(host: String) -> Self {
        Self {
            host,
            port: None,
            program: PathBuf::from("ssh"),
            config_file: None,
            connect_timeout: CONNECT_TIMEOUT,
            alive_interval: ALIVE_INTERVAL,
            socket_directory: PathBuf::from(SOCKET_DIRECTORY),
            commands: COMMANDS,
        }
    }

    /// Returns the name of the host in errors.
    fn name(&self) -> String {
        match self.port {
            None => format!("ssh:{}", self.host),
            Some(port) => format!("ssh:{}:{port}", self.host),
        }
    }

    fn unreachable(&self, source: SshError) -> EnvError {
        EnvError::Unreachable { environment: self.name(), source: Some(source.into()) }
    }

    /// Returns the options of the master client. Of repeated options the first one counts, so the
    /// user's configuration applies except for these.
    fn master_options(&self, socket: &Path) -> Vec<OsString> {
        let mut options: Vec<OsString> = Vec::new();
        if let Some(file) = &self.config_file {
            options.extend(["-F".into(), file.into()]);
        }
        if let Some(port) = self.port {
            options.extend(["-p".into(), port.to_string().into()]);
        }
        // No session, terminal, agent or X11 forwarding on the remote side.
        options.extend(["-N", "-T", "-a", "-x", "-S"].map(Into::into));
        options.push(transport::escape_percent(socket));
        for option in [
            "ControlMaster=yes".to_owned(),
            "ControlPersist=no".to_owned(),
            "BatchMode=yes".to_owned(),
            "LogLevel=ERROR".to_owned(),
            format!("ConnectTimeout={}", whole_seconds(self.connect_timeout)),
            format!("ServerAliveInterval={}", whole_seconds(self.alive_interval)),
            format!("ServerAliveCountMax={ALIVE_PROBES}"),
            "PermitLocalCommand=yes".to_owned(),
            format!("LocalCommand={}", master::PRINT_CONNECTED),
            "RemoteCommand=none".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            "Tunnel=no".to_owned(),
        ] {
            options.extend(["-o".into(), option.into()]);
        }
        options
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    duration.as_millis().div_ceil(1000).max(1).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
#[cfg(feature = "local")]
mod tests;
