//! The session: what a host holds (loop specification, section 2.1; design, section 4).

mod beginning;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use pintle_env::ExecutionEnvironment;
use pintle_llm::{Client, Fingerprint, ReasoningEffort};
use pintle_tools::ToolRegistry;
use pintle_tools::pipeline::Gate;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::beginning::{Beginning, Resumed};
use crate::approval::{ApprovalRequest, Approver};
use crate::config::{SessionConfig, TurnLimits};
use crate::driver::{Command, Driver, SharedFacts};
use crate::error::SessionError;
use crate::event_log::{Cursor, EventLog, Identity};
use crate::id::{RunId, SessionId};
use crate::profile::ProviderProfile;
use crate::record::{Journal, Record, Recorder, Replay, ReplayError};
use crate::run::{Events, Finished, Run};
use crate::subagent::{Blueprint, Lineage, Member, Tree, TreeEvents};
use crate::timestamp::{Clock, SystemClock};
use crate::turn::{SessionState, Start, Turn};

/// Commands that may wait before the session takes no more.
const MAX_COMMANDS: usize = 1_024;

/// A coding agent at work: submit to it, watch it, steer it, stop it.
///
/// One task drives it; dropping the session ends that task and everything that it started.
/// [`Session::close`] does the same in order and waits for it.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    handle: SessionHandle,
    runs: AtomicU64,
    log: Arc<EventLog>,
    /// The run that a record left unfinished.
    resumed: Mutex<Option<Run>>,
    driver: JoinSet<()>,
}

impl Session {
    /// Begins a session of this profile, whose models `client` reaches and whose tools run in `env`.
    #[must_use]
    pub fn builder(
        client: Client,
        profile: ProviderProfile,
        env: Arc<dyn ExecutionEnvironment>,
    ) -> SessionBuilder {
        SessionBuilder {
            client,
            profile,
            env,
            config: SessionConfig::default(),
            gates: Vec::new(),
            approver: None,
            id: None,
            clock: Arc::new(SystemClock),
            keep_environment: false,
            beginning: Beginning::default(),
            lineage: Lineage::root(),
        }
    }

    /// Has the agent handle this input.
    ///
    /// One input at a time: while a run goes on, another one ends at once as failed; steer, or queue a follow-up. One
    /// input that comes while a run is being interrupted waits for its end.
    pub fn submit(&self, text: impl Into<String>) -> Run {
        let run = RunId(self.runs.fetch_add(1, Ordering::Relaxed));
        let (owner, run_of) = Owner::of_run(&self.log);
        let refused = self.handle.send(Command::Submit { run, text: text.into(), owner }).err();
        run_of(refused)
    }

    /// Every event from `seq` on, those of the past first. Any number of subscribers may read at their own pace.
    #[must_use]
    pub fn events_from(&self, seq: u64) -> Events {
        Events::of_session(Cursor::new(Arc::clone(&self.log), seq))
    }

    /// Every event from the first on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.events_from(0)
    }

    /// The events of this session and of every subagent below it in one stream, from the first on. Those of a
    /// subagent carry its session's id, its depth and its parent, and their own numbers.
    #[must_use]
    pub fn tree_events(&self) -> TreeEvents {
        TreeEvents::new(Arc::clone(&self.handle.tree), self.id.clone(), Arc::clone(&self.log))
    }

    /// Frees the memory of the events before `before`, for a host that keeps them elsewhere or needs them no more.
    ///
    /// What a subscriber has still to read stays, and so does what is open; subscribers that come later begin with the
    /// first event that is kept, whose number is given back. Nothing is freed otherwise: a session keeps its events,
    /// as it keeps its history, until it is dropped.
    pub fn forget_events(&self, before: u64) -> u64 {
        self.log.forget(before)
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// A handle for other tasks.
    #[must_use]
    pub fn handle(&self) -> SessionHandle {
        self.handle.clone()
    }

    /// The state that the session is in.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.handle.shared.borrow().state
    }

    /// The conversation as of the last change of state or of the history.
    #[must_use]
    pub fn history(&self) -> Vec<Turn> {
        self.handle.shared.borrow().history.clone()
    }

    /// The run that was going on when the record ended that this session goes on from, once. Its events are those from
    /// there on. Dropping it interrupts it; while nobody takes it, it goes on.
    pub fn resumed(&mut self) -> Option<Run> {
        self.resumed.get_mut().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What has happened so far, in the middle of a turn as well. Also to be had from a
    /// [handle](SessionHandle::record), after the end.
    ///
    /// # Errors
    ///
    /// [`SessionError::NotRecorded`] unless the session was built with [`SessionBuilder::record`].
    pub fn record(&self) -> Result<Record, SessionError> {
        self.handle.record()
    }

    /// Has the events, requests and outcomes of a record come about once more, without a model and without a place
    /// where tools run.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Diverged`] at the first input that leads to another request than it did.
    pub fn replay(record: &Record) -> Result<Replay, ReplayError> {
        record.replay()
    }

    /// A session of its own that goes on from the first `turns` entries of the [history](Session::history), with the
    /// same configuration as this one has now: its requests begin with the same bytes, so that the provider's cache
    /// serves both. This session goes on, in the middle of a turn as well; what waits in its queues stays with it.
    ///
    /// Tools run in the same place. It stays this session's to clean up, so that the fork has to be closed first.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchTurn`] if the history has fewer entries, else as for [`SessionHandle::steer`]. A session
    /// that is closed can be forked from its [record](Record::fork).
    pub async fn fork(&self, turns: usize) -> Result<SessionBuilder, SessionError> {
        let (reply, forked) = oneshot::channel();
        self.handle.send(Command::Fork { turns, reply })?;
        match forked.await.map_err(|_| SessionError::Closed)? {
            Ok(builder) => Ok(*builder),
            Err(there_are) => Err(SessionError::NoSuchTurn { asked: turns, turns: there_are }),
        }
    }

    /// Stops what runs, cleans up and waits for the end. [`EventKind::SessionEnd`](crate::EventKind::SessionEnd) is
    /// the last event.
    pub async fn close(mut self) {
        // A session that takes no command any more is at its end already. One that has many waiting is waited for.
        let _ = self.handle.commands.send(Command::Close).await;
        while self.driver.join_next().await.is_some() {}
    }
}

const _: fn() = || {
    fn is_shared_between_tasks<T: Send + Sync>() {}
    is_shared_between_tasks::<Session>();
};

/// Reaches a session from anywhere. Cheap to clone.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    pub(crate) commands: mpsc::Sender<Command>,
    pub(crate) shared: watch::Receiver<Shared>,
    pub(crate) client: Client,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) tree: Arc<Tree>,
}

/// What the driver shows of itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    pub(crate) state: SessionState,
    pub(crate) history: Vec<Turn>,
    /// How often entries of it were replaced.
    pub(crate) repairs: u64,
    /// The calls that wait for a decision.
    pub(crate) asking: Vec<Arc<ApprovalRequest>>,
}

/// A person's word on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may run, once.
    Approve,
    /// It may not; the reason goes to the model.
    Deny {
        /// Why.
        reason: Option<String>,
    },
}

impl SessionHandle {
    /// Gives the model a message after the current round of tool calls; with the next input if the session is idle.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn steer(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::Steer(text.into()))
    }

    /// Queues an input for after the current one.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn follow_up(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::FollowUp(text.into()))
    }

    /// Stops the current turn; the session goes on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn interrupt(&self) -> Result<(), SessionError> {
        self.send(Command::Interrupt)
    }

    /// Stops everything and closes the session (loop specification, appendix B).
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn abort(&self) -> Result<(), SessionError> {
        self.send(Command::Abort)
    }

    /// Changes how much the model reasons, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_reasoning_effort(&self, effort: Option<ReasoningEffort>) -> Result<(), SessionError> {
        self.send(Command::SetReasoningEffort(effort))
    }

    /// Changes the model within the profile, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_model(&self, model: impl Into<String>) -> Result<(), SessionError> {
        self.send(Command::SetModel(model.into()))
    }

    /// Changes the profile, and with it model, tools and prompt, from the next request on.
    ///
    /// # Errors
    ///
    /// [`SessionError::Profile`] if the client has no provider of the profile's name, else as for the others.
    pub fn set_profile(&self, profile: ProviderProfile) -> Result<(), SessionError> {
        self.client.adapter(Some(&profile.provider)).map_err(SessionError::Profile)?;
        self.send(Command::SetProfile(Box::new(profile)))
    }

    /// Changes the tools within the profile, from the next request on. Calls of an answer that was asked for before mean
    /// the tools that it was offered.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_tools(&self, tools: ToolRegistry) -> Result<(), SessionError> {
        self.send(Command::SetTools(tools))
    }

    /// Has tools run behind other wrappers of the place, from the next request on. What the prompt says of the place is
    /// gathered anew if the working directory is another one.
    ///
    /// The session takes care of the place that it was built with and of no other: one that is not around it is the
    /// host's to initialise and to clean up. Commands in the background go on where they run.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_environment(&self, env: Arc<dyn ExecutionEnvironment>) -> Result<(), SessionError> {
        self.send(Command::SetEnvironment(env))
    }

    /// Changes the limits, from now on. A run that a limit has paused goes on with the next input.
    ///
    /// # Errors
    ///
    /// [`SessionError::Closed`] or [`SessionError::Full`].
    pub fn set_limits(&self, limits: TurnLimits) -> Result<(), SessionError> {
        self.send(Command::SetLimits(limits))
    }

    /// The calls that wait for a decision, in no order.
    #[must_use]
    pub fn approvals(&self) -> Vec<Arc<ApprovalRequest>> {
        self.shared.borrow().asking.clone()
    }

    /// Decides on a call that waits for it. The first decision counts, and it counts once.
    ///
    /// # Errors
    ///
    /// [`SessionError::NoSuchApproval`] if none of this id waits, else as for the others.
    pub fn decide(&self, call_id: &str, decision: Decision) -> Result<(), SessionError> {
        let waiting = self.approvals().into_iter().find(|request| request.call_id == call_id);
        let request = waiting.ok_or_else(|| SessionError::NoSuchApproval(call_id.to_owned()))?;
        self.send(Command::Decide {
            call_id: request.call_id.clone(),
            exactly: request.fingerprint,
            decision,
        })
    }

    /// As [`SessionHandle::decide`], for whoever has seen the arguments elsewhere: it counts only for a call with this
    /// very [fingerprint](ApprovalRequest::fingerprint).
    ///
    /// # Errors
    ///
    /// As for [`SessionHandle::decide`].
    pub fn decide_exactly(
        &self,
        call_id: &str,
        fingerprint: Fingerprint,
        decision: Decision,
    ) -> Result<(), SessionError> {
        let is_this =
            |request: &Arc<ApprovalRequest>| request.call_id == call_id && request.fingerprint == fingerprint;
        if !self.approvals().iter().any(is_this) {
            return Err(SessionError::NoSuchApproval(call_id.to_owned()));
        }
        self.send(Command::Decide { call_id: call_id.to_owned(), exactly: fingerprint, decision })
    }

    /// A handle of a session in the same tree: of a subagent, whose session's id an event has told. `None` once it
    /// takes no commands any more. With it a host decides on the calls of a subagent, and steers or stops it.
    #[must_use]
    pub fn of_session(&self, id: &SessionId) -> Option<Self> {
        self.tree.handle(id)
    }

    /// As [`Session::record`].
    ///
    /// # Errors
    ///
    /// As for [`Session::record`].
    pub fn record(&self) -> Result<Record, SessionError> {
        self.recorder.as_ref().and_then(|recorder| recorder.record()).ok_or(SessionError::NotRecorded)
    }

    pub(crate) fn send(&self, command: Command) -> Result<(), SessionError> {
        self.commands.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SessionError::Full(MAX_COMMANDS),
            mpsc::error::TrySendError::Closed(_) => SessionError::Closed,
        })
    }
}

/// Collects what a [`Session`] is made of.
#[derive(Debug)]
pub struct SessionBuilder {
    client: Client,
    profile: ProviderProfile,
    env: Arc<dyn ExecutionEnvironment>,
    config: SessionConfig,
    gates: Vec<Arc<dyn Gate>>,
    approver: Option<Arc<dyn Approver>>,
    id: Option<SessionId>,
    clock: Arc<dyn Clock>,
    keep_environment: bool,
    beginning: Beginning,
    lineage: Lineage,
}

impl SessionBuilder {
    /// With this configuration.
    #[must_use]
    pub fn config(mut self, config: SessionConfig) -> Self {
        self.config = config;
        self
    }

    /// With someone who decides on the calls that a gate asks about. Without one, [`SessionHandle::decide`] is the
    /// only way to decide.
    #[must_use]
    pub fn approver(mut self, approver: impl Approver + 'static) -> Self {
        self.approver = Some(Arc::new(approver));
        self
    }

    /// With one more gate, asked after those added before.
    #[must_use]
    pub fn gate(mut self, gate: impl Gate + 'static) -> Self {
        self.gates.push(Arc::new(gate));
        self
    }

    /// With an id that the host chose.
    #[must_use]
    pub fn id(mut self, id: SessionId) -> Self {
        self.id = Some(id);
        self
    }

    /// With another clock.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Leaves `initialize` and `cleanup` of the environment to the host, which shares it with others.
    #[must_use]
    pub fn shared_environment(mut self) -> Self {
        self.keep_environment = true;
        self
    }

    /// Keeps a [record](Session::record) of the session. Default false: it holds a second copy of each answer, of what
    /// the model reads of each result, and of the prompt whenever it is loaded; whole outputs are shared.
    #[must_use]
    pub fn record(mut self, record: bool) -> Self {
        self.beginning.record = record;
        self
    }

    /// Writes the [record](Session::record) to `journal`, each line before anything follows from its input, so that
    /// another host can [go on](SessionBuilder::resume) from it when this one dies. A session that goes on from a record
    /// writes what is new.
    ///
    /// Lines are written on the task that drives the session, and flushed; they should not be waited for long. When one
    /// cannot be written, the session ends as failed, and no tool runs of which the journal does not know.
    #[must_use]
    pub fn journal(mut self, journal: impl std::io::Write + Send + 'static) -> Self {
        self.beginning.journal = Some(Journal(Box::new(journal)));
        self
    }

    /// Begins with a history. Limits and effort become those of `start`; its prompt is kept if its model and tools are
    /// the profile's, so that the provider's cache is.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.config.limits.clone_from(&start.limits);
        self.config.reasoning_effort.clone_from(&start.reasoning_effort);
        self.beginning.start = start;
        self
    }

    /// Goes on with the session of this record, whose host is gone: under its id, with its limits, and recorded. What it
    /// was in the middle of is taken up at once, see [`Session::resumed`].
    ///
    /// A call that has ended is not made again. One that had begun is answered as interrupted, or made again if its tool
    /// is [repeatable](pintle_tools::Tool::repeatable). One that had not begun is made, and one that waited for a
    /// decision, or had it, is asked about again. The model is asked again for an answer that was cut off.
    #[must_use]
    pub fn resume(mut self, record: Record) -> Self {
        self.beginning.resume = Some(record);
        self
    }

    /// A session below another one, in the environment of that one.
    pub(crate) fn subagent(blueprint: Blueprint, lineage: Lineage) -> Self {
        let Blueprint { client, profile, env, config, gates, approver, clock, span: _ } = blueprint;
        let id = lineage.origin.as_ref().map(|origin| origin.session_id.clone());
        let builder = Session::builder(client, profile, env).config(config).clock(clock);
        Self { gates, approver, id, lineage, ..builder.shared_environment() }
    }

    pub(crate) fn share(
        &mut self,
        gates: Vec<Arc<dyn Gate>>,
        approver: Option<Arc<dyn Approver>>,
        facts: SharedFacts,
    ) {
        self.gates = gates;
        self.approver = approver;
        self.beginning.facts = Some(facts);
    }

    /// The session. Call it from within a tokio runtime, which will drive it.
    ///
    /// # Errors
    ///
    /// [`SessionError::Build`] if the client has no provider of the profile's name; [`SessionError::Resume`] or
    /// [`SessionError::Ended`] if the record cannot be gone on with; [`SessionError::Journal`] if its first line cannot be
    /// written.
    pub fn build(self) -> Result<Session, SessionError> {
        let (mut session, driver, commands) = self.assemble()?;
        session.driver.spawn(driver.run(commands));
        Ok(session)
    }

    /// The session, and what is to drive it with these commands.
    fn assemble(self) -> Result<(Session, Driver, mpsc::Receiver<Command>), SessionError> {
        self.client.adapter(Some(&self.profile.provider)).map_err(SessionError::Build)?;
        let resumed_id = self.beginning.resume.as_ref().map(|record| record.header.session_id.clone());
        let id = resumed_id.or(self.id).unwrap_or_else(SessionId::generate);
        let lineage = self.lineage;
        let identity = Identity { session_id: id.clone(), depth: lineage.depth(), parent: lineage.parent() };
        let log = Arc::new(EventLog::new(identity));
        let (sender, commands) = mpsc::channel(MAX_COMMANDS);
        let (shared, shown) = watch::channel(Shared::default());
        let mut beginning = self.beginning;
        beginning.start.limits.clone_from(&self.config.limits);
        beginning.start.reasoning_effort.clone_from(&self.config.reasoning_effort);
        let client = self.client.clone();
        let mut driver = Driver::new(
            self.client,
            self.profile,
            self.env,
            self.config,
            self.gates,
            self.approver,
            self.clock,
            self.keep_environment,
            lineage.clone(),
            Arc::clone(&log),
            shared,
        );
        let Resumed { runs, run } = beginning.of(&mut driver, &log)?;
        let recorder = driver.recorder();
        let tree = lineage.tree;
        let handle = SessionHandle { commands: sender, shared: shown, client, recorder, tree };
        handle.tree.join(Member::new(id.clone(), Arc::clone(&log), &handle));
        let (runs, resumed) = (AtomicU64::new(runs), Mutex::new(run));
        Ok((Session { id, handle, runs, log, resumed, driver: JoinSet::new() }, driver, commands))
    }
}

/// The driver's side of a [`Run`].
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) finished: watch::Sender<Option<Finished>>,
    /// Fires when the run is dropped; `None` once that has been acted upon.
    pub(crate) abandoned: Option<CancellationToken>,
}

impl Owner {
    /// The two sides of a run whose events begin now. The host's is to be told why the input was refused, if it was.
    fn of_run(log: &Arc<EventLog>) -> (Self, impl FnOnce(Option<SessionError>) -> Run + use<>) {
        let (sender, finished) = watch::channel(None);
        let abandoned = CancellationToken::new();
        let owner = Self { finished: sender, abandoned: Some(abandoned.clone()) };
        let (log, from) = (Arc::clone(log), log.next_seq());
        (owner, move |refused| Run::new(log, from, finished, abandoned.drop_guard(), refused))
    }
}

#[cfg(test)]
mod tests;
