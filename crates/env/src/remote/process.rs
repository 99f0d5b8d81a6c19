//! Remote processes.

use std::{fmt, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    process::{Child, ChildStdin},
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use super::{
    channel::{Channel, Members, ProcessIdentity, RetainedClient, Scope, lost_error},
    client::Client,
    launch::{Launch, program_name},
    nonce::nonce,
    records::RecordMarker,
    slots::Slot,
    streams::{ErrorStream, RemoteOutput, SharedStdout},
    transport::Transport,
};
use crate::{
    command::Stdin,
    error::EnvError,
    process::{ExitStatus, Process, ProcessOutput, Signal},
};

/// Poll interval for exited processes.
const POLL: Duration = Duration::from_millis(50);

/// Time that killed processes may take to exit.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Time-out for the start of a command: the remote system may be suspended, or its file system may
/// hang.
const START_LIMIT: Duration = Duration::from_secs(30);

/// Time after the client's exit during which a record may still arrive.
const RECORD_GRACE: Duration = Duration::from_millis(500);

/// Offsets that shells add to the number of the signal that killed a program: most shells, the Korn
/// shell, yash.
const SIGNALED: [i32; 3] = [128, 256, 384];

/// The numbers of the standard signals.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=31;

/// Everything needed to spawn a remote process.
#[derive(Debug)]
pub(super) struct SpawnContext<T> {
    pub(super) transport: Arc<T>,
    pub(super) channel: Arc<Channel>,
    pub(super) slot: Slot,
}

/// Starts a process and waits until the remote side reports that it runs.
pub(super) async fn spawn<T: Transport>(
    launch: &Launch<'_>,
    context: SpawnContext<T>,
) -> Result<RemoteProcess<T>, EnvError> {
    let SpawnContext { transport, channel, slot } = context;
    let scope = Scope { tag: channel.next_tag(), leader: None };
    let marker = RecordMarker::new(&nonce());
    let _starting = channel.starting();
    let script = launch
        .script(&scope.tag, &marker, channel.supervisor())
        .map_err(|source| not_started(launch, source))?;
    let Client { child, mut stdin, stdout, stderr } = Client::start(&*transport)?;
    let (stdout, stderr) = (Arc::new(Mutex::new(stdout)), Arc::new(ErrorStream::new(stderr, &marker)));
    let mut output =
        RemoteOutput::new(Arc::clone(&stdout), Arc::clone(&stderr), &marker, Arc::clone(&channel));
    let mut process = RemoteProcess {
        output: None,
        transport,
        channel,
        slot: Some(slot),
        client: Some(child),
        stdin: None,
        stdout,
        stderr,
        scope,
        status: None,
        is_settled: false,
    };
    // From here on, a drop terminates a command that may be about to start.
    let started = timeout(START_LIMIT, async {
        process.write_script(&mut stdin, &script).await?;
        tokio::select! {
            record = process.record() => record,
            record = output.first_record() => Ok(record),
        }
    });
    let record = started.await.map_err(|elapsed| lost_error(process.channel.name(), elapsed))??;
    let Some(leader) = parse_start(&record) else {
        process.is_settled = true;
        return Err(refusal(launch, &record, process.channel.name()));
    };
    process.scope.leader = Some(leader);
    process.channel.register(&process.scope);
    process.output = Some(output);
    process.stdin = (launch.stdin == Stdin::Piped).then_some(stdin);
    Ok(process)
}

/// A remote process.
pub(super) struct RemoteProcess<T> {
    transport: Arc<T>,
    channel: Arc<Channel>,
    scope: Scope,
    /// The local client; taken when the process is dropped, and not before.
    client: Option<Child>,
    slot: Option<Slot>,
    stdin: Option<ChildStdin>,
    output: Option<RemoteOutput>,
    stdout: SharedStdout,
    stderr: Arc<ErrorStream>,
    status: Option<ExitStatus>,
    /// All its processes are gone.
    is_settled: bool,
}

impl<T: Transport> RemoteProcess<T> {
    async fn write_script(&self, stdin: &mut ChildStdin, script: &[u8]) -> Result<(), EnvError> {
        tokio::select! {
            written = stdin.write_all(script) => {
                if let Err(error) = written {
                    // The client is gone; its exit is more informative.
                    tracing::debug!(%error, "cannot send the script to the client");
                }
                Ok(())
            }
            lost = self.channel.lost() => Err(lost),
        }
    }

    /// Returns the next record from the remote side. Cancel safe.
    async fn record(&mut self) -> Result<String, EnvError> {
        let record = tokio::select! {
            record = self.stderr.record() => record,
            lost = self.channel.lost() => return Err(lost),
            // Another process may hold the stream of an exited client.
            () = client_exited(self.client.as_mut()) => None,
        };
        match record {
            Some(record) => Ok(record),
            None => Err(self.client_error().await),
        }
    }

    /// Returns the error for a client that exited without a record.
    async fn client_error(&mut self) -> EnvError {
        let status = match &mut self.client {
            Some(client) => client.wait().await,
            None => Err(io::Error::other("the client was released")),
        };
        match status {
            Ok(status) => self.transport.exit_error(status, &self.stderr.tail()),
            Err(error) => lost_error(self.channel.name(), error),
        }
    }

    async fn look(&mut self) -> Result<Members, EnvError> {
        if self.is_settled {
            return Ok(Members::default());
        }
        let members = self.channel.look(&self.scope).await?;
        if self.status.is_some() && members.is_empty() {
            self.settle();
        }
        Ok(members)
    }

    async fn send(&mut self, signal: &str) -> Result<Members, EnvError> {
        if self.is_settled {
            return Ok(Members::default());
        }
        self.channel.send(&self.scope, signal).await
    }

    /// Waits until all processes are gone. Cancel safe.
    async fn gone(&mut self) -> Result<(), EnvError> {
        self.wait().await?;
        while !self.look().await?.is_empty() {
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Repeats the kill signal until none is left, since a killed process may just have started
    /// another.
    async fn kill(&mut self) -> Result<(), EnvError> {
        let deadline = Instant::now() + KILL_LIMIT;
        while Instant::now() < deadline {
            self.send("KILL").await?;
            if let Ok(gone) = timeout(POLL, self.gone()).await {
                return gone;
            }
        }
        Err(EnvError::Stuck { id: self.scope.leader.map_or(0, |leader| leader.id) })
    }

    /// Call when all its processes are gone or none can exist.
    pub(super) fn settle(&mut self) {
        self.is_settled = true;
        self.channel.unregister(&self.scope);
    }
}

#[async_trait]
impl<T: Transport> Process for RemoteProcess<T> {
    fn id(&self) -> Option<u32> {
        self.scope.leader.map(|leader| leader.id)
    }

    fn take_stdin(&mut self) -> Option<Box<dyn AsyncWrite + Send + Unpin>> {
        let stdin = self.stdin.take()?;
        Some(Box::new(stdin))
    }

    fn take_output(&mut self) -> Option<Box<dyn ProcessOutput>> {
        let output = self.output.take()?;
        Some(Box::new(output))
    }

    async fn wait(&mut self) -> Result<ExitStatus, EnvError> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let mut record = self.record().await?;
        // The start is reported on both streams and may have been read from the other one.
        if parse_start(&record).is_some() {
            record = self.record().await?;
        }
        let status = parse_exit(&record).ok_or_else(|| {
            lost_error(self.channel.name(), format!("unexpected record {record:?}, expected an exit"))
        })?;
        self.status = Some(status);
        Ok(status)
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), EnvError> {
        let signal = match signal {
            Signal::Interrupt => "INT",
            Signal::Terminate => "TERM",
            Signal::Kill => "KILL",
        };
        self.send(signal).await.map(drop)
    }

    async fn jobs(&mut self) -> Result<usize, EnvError> {
        Ok(self.look().await?.jobs)
    }

    async fn terminate(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let members = self.send("TERM").await?;
        // A stopped process handles no signal until it continues.
        self.send("CONT").await?;
        match timeout(grace, self.gone()).await {
            Ok(gone) => gone?,
            Err(_elapsed) => self.kill().await?,
        }
        Ok(members.jobs)
    }
}

impl<T> fmt::Debug for RemoteProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteProcess")
            .field("environment", &self.channel.name())
            .field("scope", &self.scope)
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

impl<T> Drop for RemoteProcess<T> {
    fn drop(&mut self) {
        let client = self.client.take().map(|child| RetainedClient {
            child: Box::new(child),
            _stdout: Arc::clone(&self.stdout),
            _stderr: Arc::clone(&self.stderr),
        });
        self.channel.release(client, self.slot.take(), (!self.is_settled).then_some(&self.scope));
    }
}

/// Waits until the client has exited, and a little longer for late records. Cancel safe.
async fn client_exited(client: Option<&mut Child>) {
    match client {
        Some(client) => {
            // An error means that the client was reaped elsewhere.
            let _ = client.wait().await;
            sleep(RECORD_GRACE).await;
        }
        None => std::future::pending().await,
    }
}

/// Parses `start ID`, followed by the process's line in the kernel's table if there is one.
fn parse_start(record: &str) -> Option<ProcessIdentity> {
    let (id, row) =
        record.strip_prefix("start ")?.split_once(' ').unwrap_or((record.strip_prefix("start ")?, ""));
    // Fields after the name, which may contain anything, start with the third; the start time is
    // the 22nd.
    let started = row.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(19));
    Some(ProcessIdentity {
        id: id.parse().ok()?,
        started: started.and_then(|ticks| ticks.parse().ok()).unwrap_or(0),
    })
}

fn parse_exit(record: &str) -> Option<ExitStatus> {
    let code: i32 = record.strip_prefix("exit ")?.parse().ok()?;
    let signal = SIGNALED.iter().map(|base| code - base).find(|signal| SIGNALS.contains(signal));
    Some(signal.map_or(ExitStatus::Exited(code), ExitStatus::Signaled))
}

/// Returns the error for a command that the remote side did not start.
fn refusal(launch: &Launch<'_>, record: &str, name: &str) -> EnvError {
    let directory = launch.directory.to_path_buf();
    match record {
        "directory missing" => EnvError::not_found(launch.directory),
        "directory file" => EnvError::NotADirectory { path: directory },
        "directory denied" => {
            EnvError::PermissionDenied { path: directory, source: io::ErrorKind::PermissionDenied.into() }
        }
        "program missing" => not_started(launch, io::ErrorKind::NotFound.into()),
        "program denied" => not_started(launch, io::ErrorKind::PermissionDenied.into()),
        other => lost_error(name, format!("unexpected record {other:?}, expected a start")),
    }
}

fn not_started(launch: &Launch<'_>, source: io::Error) -> EnvError {
    EnvError::Spawn { program: program_name(launch.program), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_records() {
        let row = "7 (a) b) S 1 7 7 0 -1 4194304 56 0 0 0 0 0 0 0 20 0 1 0 1569361 2387968";
        for (record, leader) in [
            (format!("start 7 {row}"), Some(ProcessIdentity { id: 7, started: 1_569_361 })),
            ("start 7".to_owned(), Some(ProcessIdentity { id: 7, started: 0 })),
            ("start x".to_owned(), None),
            ("exit 0".to_owned(), None),
        ] {
            assert_eq!(parse_start(&record), leader, "{record}");
        }
        for (record, status) in [
            ("exit 0", Some(ExitStatus::Exited(0))),
            ("exit 128", Some(ExitStatus::Exited(128))),
            ("exit 137", Some(ExitStatus::Signaled(9))),
            ("exit 265", Some(ExitStatus::Signaled(9))),
            ("exit 393", Some(ExitStatus::Signaled(9))),
            ("exit 255", Some(ExitStatus::Exited(255))),
            ("start 1", None),
        ] {
            assert_eq!(parse_exit(record), status, "{record}");
        }
    }
}
