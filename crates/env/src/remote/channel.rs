//! The channel to the remote supervisor: lifeline, heartbeat, and control of remote processes.

mod driver;

use std::{
    process::ExitStatus,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    process::Child,
    sync::{mpsc, oneshot, watch},
    time::sleep,
};

use self::driver::Driver;
use super::{
    nonce::nonce,
    slots::Slot,
    streams::{ErrorStream, SharedStdout},
    transport::Transport,
};
use crate::{error::EnvError, process::TERMINATE_GRACE};

/// Time of the search for a command that was abandoned before it reported its process, since it may
/// be about to start; in tenths of a second.
const LINGER: u32 = 30;

/// Time that killed processes may take to exit; the supervisor itself waits five seconds.
const ENDING_LIMIT: Duration = Duration::from_secs(15).saturating_add(TERMINATE_GRACE);

/// Time-out for an answer of the supervisor.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A remote command as its supervisor knows it.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The tag in the environment of its processes.
    pub(super) tag: String,
    /// Its first process, leader of the group; `None` until known.
    pub(super) leader: Option<ProcessIdentity>,
}

/// Identity of a remote process: the first one of a command, or the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessIdentity {
    pub(super) id: u32,
    /// Start time in ticks of the remote kernel; 0 if unknown.
    pub(super) started: u64,
}

/// Number of live processes of a command, as counted by the supervisor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Members {
    pub(super) leader: usize,
    pub(super) jobs: usize,
}

impl Members {
    pub(super) fn is_empty(self) -> bool {
        self.leader + self.jobs == 0
    }
}

/// A connection to a supervisor. Permanently lost once the supervisor is.
#[derive(Debug)]
pub(super) struct Channel {
    /// Unbounded because a drop cannot wait; there are only a few messages per command.
    messages: mpsc::UnboundedSender<Message>,
    lost: watch::Receiver<Option<Loss>>,
    /// Held while joining the thread, so that a concurrent caller waits for it too.
    thread: Mutex<Option<JoinHandle<()>>>,
    transport: Arc<dyn Transport>,
    /// Tag of the channel; the tag of a command appends a number.
    tag: String,
    commands: AtomicU64,
    supervisor: ProcessIdentity,
    /// Number of commands that may be about to start.
    starting: Arc<AtomicUsize>,
}

/// Guard for a command that may be about to start.
#[derive(Debug)]
pub(super) struct StartingCommand(Arc<AtomicUsize>);

impl Drop for StartingCommand {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Cause of a lost channel.
#[derive(Clone, Debug)]
enum Loss {
    /// The client exited; the transport interprets its status.
    ClientExited { status: ExitStatus, stderr_tail: String },
    /// Another failure was detected.
    Detected(String),
}

/// Message to the thread of a channel.
#[derive(Debug)]
enum Message {
    /// Sends a request and returns the answer without its id.
    Ask { request: String, reply: oneshot::Sender<String> },
    /// Sends a request without an answer.
    Tell(String),
    /// Terminates the remains of a dropped process.
    Release(DroppedProcess),
    /// Terminates everything. Waits for commands that may be about to start; in tenths of a second.
    Finish { linger: u32 },
}

/// Remains of a dropped process.
#[derive(Debug)]
struct DroppedProcess {
    client: Option<RetainedClient>,
    /// Kept until all processes are gone, since they count against the limit until then.
    slot: Option<Slot>,
    /// Request that terminates the command, if it may still be running.
    request: Option<String>,
    /// The command has started, and may write output while it is terminated.
    has_started: bool,
}

/// A local client with its streams kept open, so that a closed pipe does not kill its command.
#[derive(Debug)]
pub(super) struct RetainedClient {
    pub(super) child: Box<Child>,
    pub(super) _stdout: SharedStdout,
    pub(super) _stderr: Arc<ErrorStream>,
}

impl Channel {
    /// Starts a supervisor and waits until it answers.
    pub(super) async fn open<T: Transport>(transport: Arc<T>) -> Result<Self, EnvError> {
        transport.open().await?;
        let tag = nonce();
        let (messages, receiver) = mpsc::unbounded_channel();
        let (lost_sender, lost) = watch::channel(None);
        let (opened_sender, opened) = oneshot::channel();
        let driver = Driver::new(Arc::clone(&transport), tag.clone(), receiver, lost_sender);
        let thread = thread::Builder::new()
            .name("pintle-remote".to_owned())
            .spawn(move || driver.run(opened_sender))
            .map_err(|error| lost_error(transport.name(), error))?;
        let thread = Mutex::new(Some(thread));
        let supervisor = opened.await.unwrap_or_else(|closed| Err(lost_error(transport.name(), closed)))?;
        let (commands, starting) = (AtomicU64::new(0), Arc::default());
        Ok(Self { messages, lost, thread, transport, tag, commands, supervisor, starting })
    }

    /// Returns the supervisor's own process.
    pub(super) fn supervisor(&self) -> ProcessIdentity {
        self.supervisor
    }

    /// Announces a command: [`finish`](Self::finish) waits for it until the guard is dropped.
    pub(super) fn starting(&self) -> StartingCommand {
        self.starting.fetch_add(1, Ordering::Relaxed);
        StartingCommand(Arc::clone(&self.starting))
    }

    /// Returns a tag that no other command has and that is no prefix of another tag.
    pub(super) fn next_tag(&self) -> String {
        let number = self.commands.fetch_add(1, Ordering::Relaxed);
        format!("{}.{number:016x}", self.tag)
    }

    pub(super) fn name(&self) -> &str {
        self.transport.name()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.borrow().is_some() || self.messages.is_closed()
    }

    /// Waits until the channel is lost.
    pub(super) async fn lost(&self) -> EnvError {
        let mut lost = self.lost.clone();
        let loss = lost.wait_for(Option::is_some).await.ok().and_then(|loss| loss.clone());
        match loss {
            Some(loss) => loss.error(&*self.transport),
            None => lost_error(self.name(), "the supervisor exited"),
        }
    }

    /// Registers a started command, to be terminated when the lifeline is cut.
    pub(super) fn register(&self, scope: &Scope) {
        self.tell(scope.request("note", ""));
    }

    /// Unregisters a command whose processes are all gone.
    pub(super) fn unregister(&self, scope: &Scope) {
        self.tell(scope.request("done", ""));
    }

    /// Counts the live processes of a command.
    pub(super) async fn look(&self, scope: &Scope) -> Result<Members, EnvError> {
        self.ask(scope.request("look", "")).await
    }

    /// Sends a signal, named without `SIG`, to all processes of a command; returns their number
    /// before.
    pub(super) async fn send(&self, scope: &Scope, signal: &str) -> Result<Members, EnvError> {
        self.ask(scope.request("send", signal)).await
    }

    /// Takes over the remains of a dropped process: its local client, and its command unless that
    /// has finished. Does not wait.
    pub(super) fn release(
        &self,
        client: Option<RetainedClient>,
        slot: Option<Slot>,
        unsettled: Option<&Scope>,
    ) {
        let request = unsettled.map(|scope| {
            let linger = if scope.leader.is_some() { 0 } else { LINGER };
            scope.request("drop", &linger.to_string())
        });
        // Without a receiver the client is killed by its own drop, and its command is terminated
        // already.
        let has_started = unsettled.is_some_and(|scope| scope.leader.is_some());
        let _ = self.messages.send(Message::Release(DroppedProcess { client, slot, request, has_started }));
    }

    /// Terminates everything and waits until it is gone; blocks.
    pub(super) fn finish(&self) {
        let linger = if self.starting.load(Ordering::Relaxed) == 0 { 0 } else { LINGER };
        let _ = self.messages.send(Message::Finish { linger });
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of a remote environment panicked");
        }
    }

    fn tell(&self, request: String) {
        // A lost channel needs no bookkeeping.
        let _ = self.messages.send(Message::Tell(request));
    }

    async fn ask(&self, request: String) -> Result<Members, EnvError> {
        let (reply, answer) = oneshot::channel();
        let _ = self.messages.send(Message::Ask { request, reply });
        let answer = tokio::select! {
            answer = answer => answer,
            lost = self.lost() => return Err(lost),
            () = sleep(ANSWER_LIMIT) => return Err(lost_error(self.name(), "the supervisor does not answer")),
        };
        match answer {
            Ok(answer) => parse_members(&answer).ok_or_else(|| {
                lost_error(self.name(), format!("the supervisor answered {answer:?}, expected two numbers"))
            }),
            Err(_closed) => Err(self.lost().await),
        }
    }
}

impl Loss {
    fn error(&self, transport: &dyn Transport) -> EnvError {
        match self {
            Self::ClientExited { status, stderr_tail } => transport.exit_error(*status, stderr_tail),
            Self::Detected(failure) => lost_error(transport.name(), failure.as_str()),
        }
    }
}

impl Scope {
    fn request(&self, verb: &str, more: &str) -> String {
        let ProcessIdentity { id, started } = self.leader.unwrap_or(ProcessIdentity { id: 0, started: 0 });
        format!("{verb} {} {id} {started} {more}", self.tag)
    }
}

/// Creates the error for a remote system that no longer answers.
pub(super) fn lost_error(name: &str, source: impl Into<crate::error::BoxError>) -> EnvError {
    EnvError::EnvironmentLost { environment: name.to_owned(), source: Some(source.into()) }
}

fn parse_members(answer: &str) -> Option<Members> {
    let (leader, jobs) = answer.split_once(' ')?;
    Some(Members { leader: leader.parse().ok()?, jobs: jobs.parse().ok()? })
}
