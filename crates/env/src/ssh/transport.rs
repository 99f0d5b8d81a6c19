//! Runs lines over the control master.
#![expect(clippy::disallowed_methods, reason = "this module describes local clients; others start them")]

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use tokio::time::timeout;

use super::{
    Connection,
    failure::{SshError, SshErrorKind},
    master::Master,
};
use crate::{error::EnvError, remote::transport::Transport};

/// Time-out for checking an existing connection.
const CHECK_LIMIT: Duration = Duration::from_secs(2);

/// Time for the client to exit after a line was lost. It answers checks until it has noticed that its connection is gone.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// Runs lines on a remote host, over one established connection.
#[derive(Debug)]
pub(super) struct SshTransport {
    connection: Connection,
    name: String,
    /// `None` before the first connection and after it was closed. A lost connection remains, with
    /// its last messages.
    master: Mutex<Option<Master>>,
    /// A line was lost since the connection was last checked.
    needs_check: AtomicBool,
    /// Held while the connection is opened or closed.
    exclusive: tokio::sync::Mutex<()>,
}

impl SshTransport {
    pub(super) fn new(connection: Connection) -> Self {
        let (name, exclusive) = (connection.name(), tokio::sync::Mutex::default());
        Self { connection, name, exclusive, needs_check: AtomicBool::new(false), master: Mutex::new(None) }
    }

    /// Returns true if the connection is established. After a lost line it is checked, since the
    /// client may be exiting.
    async fn is_connected(&self) -> bool {
        let running = self.lock().as_ref().filter(|master| master.last_messages().is_none()).is_some();
        if !running || !self.needs_check.swap(false, Ordering::Relaxed) {
            return running;
        }
        let exited = self.lock().as_ref().map(Master::exited);
        if let Some(exited) = exited
            && timeout(EXIT_GRACE, exited).await.is_ok()
        {
            return false;
        }
        let mut check = tokio::process::Command::from(self.client(&["-O", "check"]));
        check.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let answer = timeout(CHECK_LIMIT, check.status()).await;
        answer.is_ok_and(|status| status.is_ok_and(|status| status.success()))
    }

    /// Returns a local client that uses only the socket and `options`.
    ///
    /// No configuration is read: the master applied it already, and commands or variables set there
    /// would interfere. Without a connection the client fails, since its own attempt to connect
    /// goes through `false` as a proxy.
    fn client(&self, options: &[&str]) -> Command {
        let mut command = Command::new(&self.connection.program);
        let socket = self.lock().as_ref().map(|master| escape_percent(master.socket()));
        command.args(["-F", "none", "-T", "-a", "-x", "-S"]).arg(socket.unwrap_or_else(|| "none".into()));
        for option in ["ControlMaster=no", "ProxyCommand=false", "BatchMode=yes", "LogLevel=ERROR"] {
            command.arg("-o").arg(option);
        }
        command.args(options).arg("--").arg(&self.connection.host).env("LC_ALL", "C");
        command
    }

    fn lock(&self) -> MutexGuard<'_, Option<Master>> {
        self.master.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Transport for SshTransport {
    /// Connects unless a connection is established. A lost one is replaced.
    async fn open(&self) -> Result<(), EnvError> {
        let _guard = self.exclusive.lock().await;
        if !self.is_connected().await {
            let master = Master::connect(&self.connection).await?;
            *self.lock() = Some(master);
        }
        Ok(())
    }

    /// Closes the connection and waits until the local client has exited.
    async fn close(&self) -> Result<(), EnvError> {
        let _guard = self.exclusive.lock().await;
        let master = self.lock().take();
        match master {
            Some(mut master) => master.close().await,
            None => Ok(()),
        }
    }

    fn command(&self, line: &str) -> Command {
        let mut command = self.client(&[]);
        command.arg(format!("exec /bin/sh -c {}", quoted(line)));
        command
    }

    fn exit_error(&self, _status: ExitStatus, stderr_tail: &str) -> EnvError {
        self.needs_check.store(true, Ordering::Relaxed);
        let error = match &*self.lock() {
            None => SshError::new(SshErrorKind::NotConnected),
            Some(master) => match master.last_messages() {
                Some(messages) if !messages.is_empty() => SshError::of_connection(&messages),
                Some(_) | None => SshError::of_connection(stderr_tail.as_bytes()),
            },
        };
        EnvError::EnvironmentLost { environment: self.name.clone(), source: Some(error.into()) }
    }

    fn concurrency(&self) -> usize {
        self.connection.commands
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Escapes percent signs, which start a token in the path of a socket.
pub(super) fn escape_percent(path: &Path) -> OsString {
    let parts: Vec<_> = path.as_os_str().as_bytes().split(|byte| *byte == b'%').collect();
    OsString::from_vec(parts.join(b"%%".as_slice()))
}

/// Quotes one word for the user's login shell, which need not be POSIX: quotes and backslashes are
/// placed outside the single quotes, where fish parses them like a POSIX shell.
fn quoted(line: &str) -> String {
    let mut word = String::with_capacity(line.len() + 2);
    word.push('\'');
    for character in line.chars() {
        match character {
            '\'' => word.push_str(r"'\''"),
            '\\' => word.push_str(r"'\\'"),
            other => word.push(other),
        }
    }
    word.push('\'');
    word
}
