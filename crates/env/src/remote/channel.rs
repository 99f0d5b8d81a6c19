//! The channel to the supervisor on the far side: lifeline, heartbeat, and the way to end what runs there.

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
    places::Place,
    streams::{ErrorStream, SharedStdout},
    transport::Transport,
};
use crate::{error::EnvError, process::TERMINATE_GRACE};

/// How long a command that was given up before it told its process is looked for, since it may be about to start: in
/// tenths of a second.
const LINGER: u32 = 30;

/// How long a killed process may take to go; the supervisor waits five seconds.
const ENDING_LIMIT: Duration = Duration::from_secs(15).saturating_add(TERMINATE_GRACE);

/// How long an answer may take; a supervisor that is busy for so long is of no use.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);

/// A command on the far side as its supervisor knows it.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// The mark in the environment of its processes.
    pub(super) tag: String,
    /// Its first process, which leads its group; `None` until it is known.
    pub(super) leader: Option<Leader>,
}

/// The first process of a command, or the supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Leader {
    pub(super) id: u32,
    /// When it started, in the ticks of the far side's kernel; 0 if that is not known.
    pub(super) started: u64,
}

/// Who of a command was running when the supervisor looked.
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

/// A connection to a supervisor. It is lost for good when the supervisor is.
#[derive(Debug)]
pub(super) struct Channel {
    /// Unbounded since a drop cannot wait; there are a few messages for each command.
    messages: mpsc::UnboundedSender<Message>,
    lost: watch::Receiver<Option<Loss>>,
    /// Held by who waits for the thread, so that the next one waits for it, too.
    thread: Mutex<Option<JoinHandle<()>>>,
    transport: Arc<dyn Transport>,
    /// Marks the channel; a command adds its number.
    tag: String,
    commands: AtomicU64,
    supervisor: Leader,
    /// The number of commands that may be about to start.
    starting: Arc<AtomicUsize>,
}

/// A command that may be about to start, until it is known whether it did.
#[derive(Debug)]
pub(super) struct Starting(Arc<AtomicUsize>);

impl Drop for Starting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// How a channel was lost.
#[derive(Clone, Debug)]
enum Loss {
    /// The client has ended: the transport knows what that means.
    Client { status: ExitStatus, said: String },
    /// Something else was noticed.
    Noticed(String),
}

/// What the thread of a channel is asked to do.
#[derive(Debug)]
enum Message {
    /// Sends a request and passes on what is behind the id of its answer.
    Ask { request: String, reply: oneshot::Sender<String> },
    /// Sends a request that has no answer.
    Tell(String),
    /// Ends what a dropped process left.
    Release(Released),
    /// Ends everything. Commands that may be about to start are waited for, in tenths of a second.
    Finish { linger: u32 },
}

/// What a dropped process leaves.
#[derive(Debug)]
struct Released {
    client: Option<Held>,
    /// Kept until nothing is left: the far side counts it as running.
    place: Option<Place>,
    /// How the supervisor is asked to end the command, if it still may run.
    request: Option<String>,
    /// The command has begun, and may have something to say or to write when it is ended.
    has_begun: bool,
}

/// A local client with its streams open: a command that says goodbye is not ended by a closed pipe.
#[derive(Debug)]
pub(super) struct Held {
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

    /// The supervisor's own process.
    pub(super) fn supervisor(&self) -> Leader {
        self.supervisor
    }

    /// Announces a command: [`finish`](Self::finish) waits for it until the guard is dropped.
    pub(super) fn starting(&self) -> Starting {
        self.starting.fetch_add(1, Ordering::Relaxed);
        Starting(Arc::clone(&self.starting))
    }

    /// A mark that no other command has. No mark begins another.
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
            None => lost_error(self.name(), "the supervisor has ended"),
        }
    }

    /// Takes note of a command that has started, to be ended when the lifeline is cut.
    pub(super) fn note(&self, scope: &Scope) {
        self.tell(scope.request("note", ""));
    }

    /// Takes note that nothing is left of a command.
    pub(super) fn done(&self, scope: &Scope) {
        self.tell(scope.request("done", ""));
    }

    /// Looks who of a command is running.
    pub(super) async fn look(&self, scope: &Scope) -> Result<Members, EnvError> {
        self.ask(scope.request("look", "")).await
    }

    /// Sends a signal, named without `SIG`, to all of a command; says who was running.
    pub(super) async fn send(&self, scope: &Scope, signal: &str) -> Result<Members, EnvError> {
        self.ask(scope.request("send", signal)).await
    }

    /// Takes what a dropped process leaves: its local client, and its command if that is not at its end. Does not
    /// wait.
    pub(super) fn release(&self, client: Option<Held>, place: Option<Place>, unsettled: Option<&Scope>) {
        let request = unsettled.map(|scope| {
            let linger = if scope.leader.is_some() { 0 } else { LINGER };
            scope.request("drop", &linger.to_string())
        });
        // If nobody listens any more the client is killed by its own drop, and its command has been ended.
        let has_begun = unsettled.is_some_and(|scope| scope.leader.is_some());
        let _ = self.messages.send(Message::Release(Released { client, place, request, has_begun }));
    }

    /// Ends everything and waits until it is gone; blocks.
    pub(super) fn finish(&self) {
        let linger = if self.starting.load(Ordering::Relaxed) == 0 { 0 } else { LINGER };
        let _ = self.messages.send(Message::Finish { linger });
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread of a remote environment has panicked");
        }
    }

    fn tell(&self, request: String) {
        // A channel that is lost has nothing to take note of.
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
            Self::Client { status, said } => transport.lost(*status, said),
            Self::Noticed(what) => lost_error(transport.name(), what.as_str()),
        }
    }
}

impl Scope {
    fn request(&self, verb: &str, more: &str) -> String {
        let Leader { id, started } = self.leader.unwrap_or(Leader { id: 0, started: 0 });
        format!("{verb} {} {id} {started} {more}", self.tag)
    }
}

/// The error of a side that does not answer any more.
pub(super) fn lost_error(name: &str, source: impl Into<crate::error::BoxError>) -> EnvError {
    EnvError::EnvironmentLost { environment: name.to_owned(), source: Some(source.into()) }
}

fn parse_members(answer: &str) -> Option<Members> {
    let (leader, jobs) = answer.split_once(' ')?;
    Some(Members { leader: leader.parse().ok()?, jobs: jobs.parse().ok()? })
}
