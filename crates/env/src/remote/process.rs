//! A process on the far side.

use std::{fmt, io, sync::Arc, time::Duration};

use async_trait::async_trait;
use tokio::{
    io::{AsyncWrite, AsyncWriteExt},
    process::{Child, ChildStdin},
    sync::Mutex,
    time::{Instant, sleep, timeout},
};

use super::{
    channel::{Channel, Held, Leader, Members, Scope, lost_error},
    client::Client,
    launch::{Launch, program_name},
    nonce::nonce,
    places::Place,
    records::Mark,
    streams::{ErrorStream, RemoteOutput, SharedStdout},
    transport::Transport,
};
use crate::{
    command::Stdin,
    error::EnvError,
    process::{ExitStatus, Process, ProcessOutput, Signal},
};

/// How often it is looked whether processes have gone.
const POLL: Duration = Duration::from_millis(50);

/// How long killed processes may take to go.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// How long a far side may take to begin a command: it may sleep, or its file system may hang.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long after its client has ended a record may come.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Shells tell the signal that killed a program as its number and one of these: most of them, the Korn shell, yash.
const SIGNALED: [i32; 3] = [128, 256, 384];

/// The numbers of the plain signals.
const SIGNALS: std::ops::RangeInclusive<i32> = 1..=31;

/// What a far side needs for a process.
#[derive(Debug)]
pub(super) struct Setting<T> {
    pub(super) transport: Arc<T>,
    pub(super) channel: Arc<Channel>,
    pub(super) place: Place,
}

/// Starts a process and waits until the far side says that it runs.
pub(super) async fn spawn<T: Transport>(
    launch: &Launch<'_>,
    setting: Setting<T>,
) -> Result<RemoteProcess<T>, EnvError> {
    let Setting { transport, channel, place } = setting;
    let scope = Scope { tag: channel.next_tag(), leader: None };
    let mark = Mark::new(&nonce());
    let _starting = channel.starting();
    let script = launch
        .script(&scope.tag, &mark, channel.supervisor())
        .map_err(|source| not_started(launch, source))?;
    let Client { child, mut stdin, stdout, stderr } = Client::start(&*transport)?;
    let (stdout, stderr) = (Arc::new(Mutex::new(stdout)), Arc::new(ErrorStream::new(stderr, &mark)));
    let mut output = RemoteOutput::new(Arc::clone(&stdout), Arc::clone(&stderr), &mark, Arc::clone(&channel));
    let mut process = RemoteProcess {
        output: None,
        transport,
        channel,
        place: Some(place),
        client: Some(child),
        stdin: None,
        stdout,
        stderr,
        scope,
        status: None,
        is_settled: false,
    };
    // From here on a drop ends what may be about to start.
    let started = timeout(START_LIMIT, async {
        process.write_script(&mut stdin, &script).await?;
        tokio::select! {
            record = process.record() => record,
            record = output.announcement() => Ok(record),
        }
    });
    let record = started.await.map_err(|elapsed| lost_error(process.channel.name(), elapsed))??;
    let Some(leader) = parse_start(&record) else {
        process.is_settled = true;
        return Err(refusal(launch, &record, process.channel.name()));
    };
    process.scope.leader = Some(leader);
    process.channel.note(&process.scope);
    process.output = Some(output);
    process.stdin = (launch.stdin == Stdin::Piped).then_some(stdin);
    Ok(process)
}

/// A process on the far side.
pub(super) struct RemoteProcess<T> {
    transport: Arc<T>,
    channel: Arc<Channel>,
    scope: Scope,
    /// The local client; given away when the process is dropped, and not before.
    client: Option<Child>,
    place: Option<Place>,
    stdin: Option<ChildStdin>,
    output: Option<RemoteOutput>,
    stdout: SharedStdout,
    stderr: Arc<ErrorStream>,
    status: Option<ExitStatus>,
    /// Nothing of it is left.
    is_settled: bool,
}

impl<T: Transport> RemoteProcess<T> {
    async fn write_script(&self, stdin: &mut ChildStdin, script: &[u8]) -> Result<(), EnvError> {
        tokio::select! {
            written = stdin.write_all(script) => {
                if let Err(error) = written {
                    // The client is gone, and its end says more.
                    tracing::debug!(%error, "a client took no script");
                }
                Ok(())
            }
            lost = self.channel.lost() => Err(lost),
        }
    }

    /// The next thing that the far side says. Cancel safe.
    async fn record(&mut self) -> Result<String, EnvError> {
        let record = tokio::select! {
            record = self.stderr.record() => record,
            lost = self.channel.lost() => return Err(lost),
            // Somebody else may hold the stream of a client that is gone.
            () = gone_for_good(self.client.as_mut()) => None,
        };
        match record {
            Some(record) => Ok(record),
            None => Err(self.explain().await),
        }
    }

    /// Why the client has ended without a word of the far side.
    async fn explain(&mut self) -> EnvError {
        let status = match &mut self.client {
            Some(client) => client.wait().await,
            None => Err(io::Error::other("the client was given away")),
        };
        match status {
            Ok(status) => self.transport.lost(status, &self.stderr.tail()),
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

    /// Waits until everything is gone. Cancel safe.
    async fn gone(&mut self) -> Result<(), EnvError> {
        self.wait().await?;
        while !self.look().await?.is_empty() {
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Kills until nobody is left, since who is killed may just have started another.
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

    /// To be called when nothing of it is left, or can be left.
    pub(super) fn settle(&mut self) {
        self.is_settled = true;
        self.channel.done(&self.scope);
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
        // The start is told on both streams, and may have been taken from the other one.
        if parse_start(&record).is_some() {
            record = self.record().await?;
        }
        let status = parse_exit(&record).ok_or_else(|| {
            lost_error(self.channel.name(), format!("the far side said {record:?}, expected an exit"))
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

    async fn end(&mut self, grace: Duration) -> Result<usize, EnvError> {
        let members = self.send("TERM").await?;
        // One that is stopped hears nothing until it goes on.
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
        let client = self.client.take().map(|child| Held {
            child: Box::new(child),
            _stdout: Arc::clone(&self.stdout),
            _stderr: Arc::clone(&self.stderr),
        });
        self.channel.release(client, self.place.take(), (!self.is_settled).then_some(&self.scope));
    }
}

/// Waits until a client has ended, and a little longer for its last words. Cancel safe.
async fn gone_for_good(client: Option<&mut Child>) {
    match client {
        Some(client) => {
            // An error means that somebody else has waited for it.
            let _ = client.wait().await;
            sleep(LAST_WORDS).await;
        }
        None => std::future::pending().await,
    }
}

/// `start ID` and, where there is one, the line of the process in the kernel's table.
fn parse_start(record: &str) -> Option<Leader> {
    let (id, row) =
        record.strip_prefix("start ")?.split_once(' ').unwrap_or((record.strip_prefix("start ")?, ""));
    // The fields behind the name, which may hold anything, begin with the third; the start is the 22nd.
    let started = row.rsplit_once(')').and_then(|(_, fields)| fields.split_ascii_whitespace().nth(19));
    Some(Leader { id: id.parse().ok()?, started: started.and_then(|ticks| ticks.parse().ok()).unwrap_or(0) })
}

fn parse_exit(record: &str) -> Option<ExitStatus> {
    let code: i32 = record.strip_prefix("exit ")?.parse().ok()?;
    let signal = SIGNALED.iter().map(|base| code - base).find(|signal| SIGNALS.contains(signal));
    Some(signal.map_or(ExitStatus::Exited(code), ExitStatus::Signaled))
}

/// Why the far side has not started a command.
fn refusal(launch: &Launch<'_>, record: &str, name: &str) -> EnvError {
    let directory = launch.directory.to_path_buf();
    match record {
        "place missing" => EnvError::not_found(launch.directory),
        "place file" => EnvError::NotADirectory { path: directory },
        "place denied" => {
            EnvError::PermissionDenied { path: directory, source: io::ErrorKind::PermissionDenied.into() }
        }
        "program missing" => not_started(launch, io::ErrorKind::NotFound.into()),
        "program denied" => not_started(launch, io::ErrorKind::PermissionDenied.into()),
        other => lost_error(name, format!("the far side said {other:?}, expected a start")),
    }
}

fn not_started(launch: &Launch<'_>, source: io::Error) -> EnvError {
    EnvError::Spawn { program: program_name(launch.program), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read() {
        let row = "7 (a) b) S 1 7 7 0 -1 4194304 56 0 0 0 0 0 0 0 20 0 1 0 1569361 2387968";
        for (record, leader) in [
            (format!("start 7 {row}"), Some(Leader { id: 7, started: 1_569_361 })),
            ("start 7".to_owned(), Some(Leader { id: 7, started: 0 })),
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
