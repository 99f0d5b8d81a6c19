//! The control master: the single connection that all lines share.
//!
//! It is an `ssh` without a session, started by a shell that holds the reading end of a pipe. The
//! pipe is the lifeline: when its other end closes, because the master is dropped or because this
//! process is killed, the shell terminates ssh and removes the socket directory.
#![expect(
    clippy::disallowed_methods,
    reason = "the local client of the connection is a process of this module"
)]

use std::{
    fmt,
    fs::Permissions,
    io::{self, Read},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    thread::{self, JoinHandle},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{sync::watch, time::timeout};

use super::{
    Connection,
    failure::{SshError, SshErrorKind},
};
use crate::{blocking::blocking, error::EnvError};

/// Runs the arguments after the first, and removes the directory named by the first once they exit.
///
/// ssh gets its own session where possible: without a terminal it cannot prompt, and neither can
/// the ssh of a jump host, which does not receive our options. The terminate signal is repeated
/// until ssh exits: a signal that arrives just before it goes to sleep is handled only when it
/// wakes up, possibly seconds later.
const SCRIPT: &str = r#"
directory=$1
shift
if command -v setsid >/dev/null 2>&1; then set -- setsid "$@"; fi
exec 3<&0 </dev/null
"$@" 3<&- 2>&1 &
master=$!
{
    while read -r _; do :; done
    while kill "$master"; do sleep 0.1 || sleep 1; done
} <&3 >/dev/null 2>&1 &
lifeline=$!
exec 3<&-
wait "$master"
status=$?
kill "$lifeline"
rm -rf -- "$directory"
echo pintle-ended
exit "$status"
"#;

/// Command that ssh runs locally once the connection is established and the socket is listening.
pub(super) const PRINT_CONNECTED: &str = "echo pintle-connected";

/// Lines printed by that command and by the script.
const CONNECTED: &[u8] = b"pintle-connected\n";
const ENDED: &[u8] = b"pintle-ended\n";

/// Bytes of the client's messages kept, from the end.
const MAX_MESSAGES: usize = 8 << 10;

/// Time-out for the client's exit.
const END_LIMIT: Duration = Duration::from_secs(5);

/// Exit status of a shell that cannot find a program.
const NOT_FOUND: i32 = 127;

/// A connection, established or in progress. Dropping it closes it.
pub(super) struct Master {
    state: watch::Receiver<MasterState>,
    /// Writing end of the lifeline pipe.
    lifeline: Option<ChildStdin>,
    /// Reads the client's output and waits for it.
    thread: Option<JoinHandle<()>>,
    socket: PathBuf,
    id: u32,
}

#[derive(Clone, Debug)]
enum MasterState {
    Connecting,
    Connected,
    Exited { status: Option<i32>, messages: Vec<u8> },
}

impl Master {
    /// Connects, within `connection.connect_timeout`.
    pub(super) async fn connect(connection: &Connection) -> Result<Self, EnvError> {
        let mut master = Self::start(connection)?;
        let limit = connection.connect_timeout;
        let reached = {
            let known = master.state.wait_for(|state| !matches!(state, MasterState::Connecting));
            timeout(limit, known).await.is_ok_and(|state| state.is_ok())
        };
        if !reached {
            master.close().await?;
            return Err(connection.unreachable(SshError::new(SshErrorKind::TimedOut)));
        }
        if let Some(error) = master.failure(connection) {
            master.close().await?;
            return Err(error);
        }
        tracing::debug!(host = connection.host, id = master.id, "connected");
        Ok(master)
    }

    /// Returns the path of the control socket.
    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the client's last messages if the connection ended, else `None`.
    pub(super) fn last_messages(&self) -> Option<Vec<u8>> {
        match &*self.state.borrow() {
            MasterState::Connecting | MasterState::Connected => None,
            MasterState::Exited { messages, .. } => Some(messages.clone()),
        }
    }

    /// Returns a future that ends once the client has exited. It borrows nothing.
    pub(super) fn exited(&self) -> impl Future<Output = ()> + use<> {
        let mut state = self.state.clone();
        async move {
            // The thread that sends is gone only after the client.
            let _ = state.wait_for(|state| matches!(state, MasterState::Exited { .. })).await;
        }
    }

    /// Closes the connection and waits until the client has exited.
    pub(super) async fn close(&mut self) -> Result<(), EnvError> {
        self.lifeline = None;
        let ended = self.state.wait_for(|state| matches!(state, MasterState::Exited { .. }));
        if timeout(END_LIMIT, ended).await.is_err() {
            return Err(EnvError::Stuck { id: self.id });
        }
        if let Some(thread) = self.thread.take()
            && blocking(move || thread.join()).await?.is_err()
        {
            tracing::error!("the thread that reads messages of ssh panicked");
        }
        Ok(())
    }

    /// Returns the error of a failed connection.
    fn failure(&self, connection: &Connection) -> Option<EnvError> {
        let state = self.state.borrow();
        match &*state {
            MasterState::Connecting | MasterState::Connected => None,
            MasterState::Exited { status: Some(NOT_FOUND), .. } => {
                let program = connection.program.display().to_string();
                Some(EnvError::Spawn { program, source: io::ErrorKind::NotFound.into() })
            }
            MasterState::Exited { messages, .. } => {
                Some(connection.unreachable(SshError::of_connecting(messages)))
            }
        }
    }

    fn start(connection: &Connection) -> Result<Self, EnvError> {
        let program = || connection.program.display().to_string();
        let failed = |source| EnvError::Spawn { program: program(), source };
        let directory = tempfile::Builder::new()
            .prefix("pintle-ssh-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(&connection.socket_directory)
            .map_err(|source| {
                EnvError::from_io("create a directory in", &connection.socket_directory, source)
            })?;
        let socket = directory.path().join("master");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "pintle-ssh"]).arg(directory.path()).arg(&connection.program);
        shell.args(connection.master_options(&socket)).arg("--").arg(&connection.host);
        let mut child = shell
            .env("LC_ALL", "C")
            // Also for the clients of jump hosts: suppresses graphical password prompts.
            .env("SSH_ASKPASS_REQUIRE", "never")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let (id, lifeline) = (child.id(), child.stdin.take());
        let (sender, state) = watch::channel(MasterState::Connecting);
        let reader = thread::Builder::new().name("pintle-ssh".to_owned());
        let thread = reader.spawn(move || read_until_exit(&mut child, directory, &sender)).map_err(failed)?;
        Ok(Self { state, lifeline, thread: Some(thread), socket, id })
    }
}

impl fmt::Debug for Master {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Master").field("id", &self.id).field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// Reads the client's output until it exits, reports the connection, and waits for the client.
fn read_until_exit(child: &mut Child, directory: TempDir, state: &watch::Sender<MasterState>) {
    let mut messages = Vec::new();
    let mut block = [0; 1 << 10];
    let mut is_connected = false;
    while let Some(stdout) = &mut child.stdout {
        let read = match stdout.read(&mut block) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        messages.extend_from_slice(block.get(..read).unwrap_or_default());
        if !is_connected && take_line(&mut messages, CONNECTED) {
            is_connected = true;
            state.send_replace(MasterState::Connected);
        }
        // A child of the client may hold the pipe open for longer.
        if take_line(&mut messages, ENDED) {
            break;
        }
        messages.drain(..messages.len().saturating_sub(MAX_MESSAGES));
    }
    let status = child.wait().ok().and_then(|status| status.code());
    drop(directory);
    state.send_replace(MasterState::Exited { status, messages });
}

/// Removes a line from the messages; returns true if it was there.
fn take_line(messages: &mut Vec<u8>, line: &[u8]) -> bool {
    let found = messages.windows(line.len()).position(|part| part == line);
    if let Some(start) = found {
        messages.drain(start..start + line.len());
    }
    found.is_some()
}
