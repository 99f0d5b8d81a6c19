//! Session: the interface of the embedding application (loop specification, section 2.1; design, section 4).

mod builder;
mod handle;
mod owner;
mod queued_input;
mod start;
mod typed;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pintle_env::IntoEnvironment;
use pintle_llm::Client;
use pintle_tools::builtin::{BackgroundCommands, BackgroundStatus};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use self::builder::SessionBuilder;
pub use self::handle::SessionHandle;
pub(crate) use self::handle::{PublishedState, SessionLink};
pub(crate) use self::owner::RunOwner;
pub use self::queued_input::QueuedInput;
pub use self::typed::TypedOutcome;
use crate::driver::Command;
use crate::error::SessionError;
use crate::event_log::{Cursor, EventLog};
use crate::profile::ProviderProfile;
use crate::protocol::{RunId, SessionId, SessionState, Turn, UserMessage};
use crate::record::{Record, Replay, ReplayError};
use crate::run::{Events, Run};
use crate::subagent::TreeEvents;

/// Capacity of the command queue.
const MAX_COMMANDS: usize = 1_024;

/// A coding agent session: submit inputs to it, watch it, steer it, stop it.
///
/// One task drives it.
///
/// # Ends
///
/// | | [`stop_turn`](SessionHandle::stop_turn) | [`close`](Session::close) | [`detach`](Session::detach) |
/// |---|---|---|---|
/// | the session | stays usable | is closed for good | stays open, for a process that [resumes](SessionBuilder::resume) it |
/// | running commands | end, except for those in the background | end | end |
/// | the record | has the interrupted turn, with a result for each call | has the end of the session | ends: a running turn continues when the session is resumed, and a call that waits for approval still waits |
/// | the run | [`Interrupted`](crate::OutcomeStatus::Interrupted) | [`RunError::Closed`](crate::RunError::Closed) | [`RunError::Closed`](crate::RunError::Closed) |
/// | queued messages | stay queued | are discarded | stay queued |
/// | subagents | stop their turns and stay usable | are closed | are detached as well |
/// | the environment | stays | is cleaned up | is cleaned up |
///
/// To leave no unfinished turn behind, stop the turn before detaching. Dropping a [`Run`] stops its turn. Dropping the session
/// ends it like a process that dies: all work ends, and nothing more is recorded.
///
/// # Example
///
/// ```
/// use pintle_agent::{OutcomeStatus, ProviderProfile, Session};
/// # use pintle_llm::{Client, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let adapter = FakeAdapter::new("anthropic").answer("Three.").answer("main.rs.");
/// # let client = Client::builder().provider(adapter).build()?;
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// // `client` calls the models, and the tools run in `env`.
/// let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build()?;
/// let outcome = session.submit("How many files are here?").await?;
/// assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Three."));
///
/// // The next input continues the conversation.
/// assert_eq!(session.submit("Which of them is the largest?").await?.text, "main.rs.");
/// session.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    pub(crate) handle: SessionHandle,
    runs: Arc<AtomicU64>,
    log: Arc<EventLog>,
    /// Commands that tools have started in the background.
    background: BackgroundCommands,
    /// Number of events that repeat the record of a resumed session.
    replayed: u64,
    /// Run that the record left unfinished.
    resumed: Mutex<Option<Run>>,
    driver: JoinSet<()>,
}

impl Session {
    /// Returns a builder of a session with this profile. The session calls models through `client`, and its tools run in
    /// `env`: an environment, or an `Arc` of one.
    #[must_use]
    pub fn builder(client: Client, profile: ProviderProfile, env: impl IntoEnvironment) -> SessionBuilder {
        SessionBuilder::new(client, profile, env.into_environment())
    }

    /// Submits an input.
    ///
    /// Inputs are handled sequentially: while a run is in progress, another submission fails at once with
    /// [`RunError::Busy`](crate::RunError::Busy); steer the run, or queue a follow-up instead. One input that is submitted
    /// while a run is being interrupted waits for the end of the run.
    pub fn submit(&self, message: impl Into<UserMessage>) -> Run {
        let run = RunId(self.runs.fetch_add(1, Ordering::Relaxed));
        let (owner, run_of) = RunOwner::new(&self.log);
        let rejected =
            self.handle.send(Command::Submit { run, message: Box::new(message.into()), owner }).err();
        run_of(rejected)
    }

    /// Returns all events from `seq` on, starting with past ones. Any number of subscribers can read, each at its own pace.
    #[must_use]
    pub fn events_from(&self, seq: u64) -> Events {
        Events::of_session(Cursor::new(Arc::clone(&self.log), seq))
    }

    /// Returns all events from the first on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.events_from(0)
    }

    /// Returns the events of this session and of all subagents below it in one stream, from the first on. Events of a
    /// subagent have the id of its session, its depth and its parent, and separate sequence numbers.
    #[must_use]
    pub fn tree_events(&self) -> TreeEvents {
        TreeEvents::new(Arc::clone(&self.handle.link().tree), self.id.clone(), Arc::clone(&self.log))
    }

    /// Frees the memory of the events before `before` and returns the sequence number of the first event that is kept.
    ///
    /// For embedding applications that store events elsewhere or no longer need them. Events that a subscriber has not read
    /// yet are kept, and so are open segments. Later subscribers start with the first event that is kept. The events of a
    /// subagent are freed together with the event of its end; at most the newest 64 ended subagents keep their events.
    /// Without this call, a session keeps all events, like its history, until it is dropped.
    pub fn forget_events(&self, before: u64) -> u64 {
        let (first, ended) = self.log.forget(before);
        self.handle.link().tree.forget(ended);
        first
    }

    /// Returns the sequence number of the first new event. Earlier events repeat the record of a resumed session; a session
    /// that was not resumed has none.
    #[must_use]
    pub fn first_new_event(&self) -> u64 {
        self.replayed
    }

    /// Lists the commands that this session's tools have started in the background, the oldest first, whether they run or
    /// have ended. Excludes the commands of subagents.
    #[must_use]
    pub fn background_commands(&self) -> Vec<BackgroundStatus> {
        self.background.list()
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns a handle for use from other tasks.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        self.handle.clone()
    }

    /// Returns the state of the session.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.handle.link().shared.borrow().state
    }

    /// Returns the conversation so far.
    #[must_use]
    pub fn history(&self) -> Vec<Turn> {
        self.handle.link().shared.borrow().history.clone()
    }

    /// Returns, once, the run that was unfinished at the end of the record from which this session resumed. Its events start
    /// at that point. Dropping the run interrupts it; until it is returned, it continues.
    pub fn resumed(&mut self) -> Option<Run> {
        self.resumed.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the record of the session so far, even in the middle of a turn. A [handle](SessionHandle::record) also
    /// returns it after the end.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRecorded`] unless the session was built with [`SessionBuilder::record`].
    pub fn record(&self) -> Result<Record, SessionError> {
        self.handle.record()
    }

    /// Returns the records of this session and of all its subagents so far, at any depth, in the order in which they
    /// started. Their replays have the events of [`Session::tree_events`].
    ///
    /// # Errors
    ///
    /// As for [`Session::record`].
    pub fn tree_records(&self) -> Result<Vec<Record>, SessionError> {
        self.handle.tree_records()
    }

    /// Reproduces the events, requests and outcomes of a record, without a model and without an execution environment.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Diverged`] at the first input that leads to a different request.
    pub fn replay(record: &Record) -> Result<Replay, ReplayError> {
        record.replay()
    }

    /// Forks the session after the first `entries` entries of the [history](Session::history), with its current
    /// configuration. Requests of the fork start with the same bytes, so that the provider's cache serves both sessions.
    /// This session continues, even in the middle of a turn, and keeps its queued messages.
    ///
    /// Tools of the fork run in the same environment. This session cleans it up, so the fork must be closed first.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchEntry`] if the history has fewer entries, otherwise as for [`SessionHandle::steer`]. A closed
    /// session can be forked from its [record](Record::fork).
    pub async fn fork(&self, entries: usize) -> Result<SessionBuilder, SessionError> {
        let (reply, forked) = oneshot::channel();
        self.handle.send(Command::Fork { turns: entries, reply })?;
        match forked.await.map_err(|_| SessionError::Closed)? {
            Ok(builder) => Ok(*builder),
            Err(count) => Err(SessionError::NoSuchEntry { asked: entries, entries: count }),
        }
    }

    /// Ends all work that the session started in this process, cleans up and waits for the end, but leaves the session open: it
    /// can be [resumed](SessionBuilder::resume) from its record or journal, even by another process. A running turn continues
    /// then, unless it is being stopped. The event streams end without
    /// [`EventKind::SessionEnd`](crate::EventKind::SessionEnd).
    pub async fn detach(self) {
        self.end_with(Command::Detach).await;
    }

    /// Like [`detach`](Self::detach), but interrupts a running turn first.
    pub(crate) async fn suspend(self) {
        self.end_with(Command::Suspend).await;
    }

    /// Stops all work, cleans up and waits for the end. [`EventKind::SessionEnd`](crate::EventKind::SessionEnd) is the last
    /// event.
    pub async fn close(self) {
        self.end_with(Command::Close).await;
    }

    async fn end_with(mut self, command: Command) {
        // A session that accepts no commands is already ending. If the queue is full, this waits for a free slot.
        let _ = self.handle.link().commands.send(self.handle.attribute(command)).await;
        while self.driver.join_next().await.is_some() {}
    }
}

const _: fn() = || {
    fn is_shared_between_tasks<T: Send + Sync>() {}
    is_shared_between_tasks::<Session>();
};

#[cfg(test)]
mod tests;
