//! The driver: performs what the turn machine wants done and tells it what came of it. It decides nothing.

mod approval;
mod begin;
mod context;
mod model;
mod output;
mod room;
mod subagents;
mod tool;
mod trace;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use pintle_env::ExecutionEnvironment;
use pintle_llm::{Client, Fingerprint, ReasoningEffort};
use pintle_tools::ToolRegistry;
use pintle_tools::builtin::BackgroundCommands;
use pintle_tools::pipeline::{Gate, PreparedCall};
use tokio::sync::{OnceCell, mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use self::approval::Asking;
pub(crate) use self::begin::SharedFacts;
use self::trace::Trace;
use crate::approval::{ApprovalRequest, Approver};
use crate::config::{SessionConfig, TurnLimits};
use crate::event::EventKind;
use crate::event_log::EventLog;
use crate::id::{CallKey, RunId, SegmentId};
use crate::profile::ProviderProfile;
use crate::prompt::EnvironmentContext;
use crate::record::{Recorder, request_of};
use crate::run::Finished;
use crate::session::{Decision, Owner, SessionBuilder, Shared};
use crate::subagent::{Lineage, Subagents};
use crate::timestamp::{Clock, Timestamp};
use crate::turn::{Action, Change, Input, InputKind, Machine, Outcome, Preparation, SessionState, Timer};

/// Reports of tasks that may wait for the driver; a task that has more waits itself.
const MAX_REPORTS: usize = 256;

/// What a host wants of a session.
#[derive(Debug)]
pub(crate) enum Command {
    Submit {
        run: RunId,
        text: String,
        owner: Owner,
    },
    Steer(String),
    FollowUp(String),
    Interrupt,
    Abort,
    Close,
    SetReasoningEffort(Option<ReasoningEffort>),
    SetModel(String),
    SetProfile(Box<ProviderProfile>),
    SetTools(ToolRegistry),
    SetEnvironment(Arc<dyn ExecutionEnvironment>),
    SetLimits(TurnLimits),
    Decide {
        call_id: String,
        exactly: Fingerprint,
        decision: Decision,
    },
    /// A builder of the fork, or how many entries the history has.
    Fork {
        turns: usize,
        reply: oneshot::Sender<Result<Box<SessionBuilder>, usize>>,
    },
}

/// What a task tells the driver.
#[derive(Debug)]
pub(crate) enum Report {
    /// Something that the machine must know.
    Input(InputKind),
    /// More text of an open segment.
    Text { segment: SegmentId, delta: String },
    /// A call's preparation is over.
    Prepared {
        call: CallKey,
        preparation: Preparation,
        prepared: Option<Box<PreparedCall>>,
        /// What a person is asked, if one is to be asked.
        request: Option<Arc<ApprovalRequest>>,
    },
    /// The approver has decided on this exact call.
    Decided { call_id: String, exactly: Fingerprint, decision: Decision },
}

pub(crate) struct Driver {
    machine: Machine,
    client: Client,
    /// With the tools for subagents.
    profile: ProviderProfile,
    /// As the host gave it.
    given: ProviderProfile,
    subagents: Subagents,
    lineage: Lineage,
    env: Arc<dyn ExecutionEnvironment>,
    /// The place that the newest request speaks of, and its calls run in.
    place: Arc<dyn ExecutionEnvironment>,
    /// The place that is this session's to initialise and to clean up.
    home: Arc<dyn ExecutionEnvironment>,
    initialized: Arc<OnceCell<()>>,
    /// Gathered once, so that the prompt stays the same over the session.
    environment: Arc<OnceCell<EnvironmentContext>>,
    /// The tools that the newest request offers, whatever the profile has become since.
    tools: ToolRegistry,
    config: SessionConfig,
    gates: Arc<[Arc<dyn Gate>]>,
    approver: Option<Arc<dyn Approver>>,
    clock: Arc<dyn Clock>,
    keep_environment: bool,
    /// Whether the place where tools run is this session's to initialise.
    initialize: bool,
    recorder: Option<Arc<Recorder>>,
    /// Why an input is not in the journal, until the machine knows.
    unrecorded: Option<io::Error>,
    /// The journal has failed.
    off_record: bool,
    /// What a session that goes on from a record is told first.
    to_resume: Vec<InputKind>,
    log: Arc<EventLog>,
    trace: Trace,
    shared: watch::Sender<Shared>,
    reports: mpsc::Sender<Report>,
    inbox: mpsc::Receiver<Report>,
    /// Every task that the session has started. Dropping the driver ends them.
    tasks: JoinSet<()>,
    /// Runs without an outcome. One is served; others are refused as soon as they come.
    runs: HashMap<RunId, Owner>,
    model: Option<CancellationToken>,
    /// Draws the ids of segments.
    segments_drawn: Arc<AtomicU64>,
    /// Open segments and the number of the event that began each.
    segments: HashMap<SegmentId, u64>,
    prepared: HashMap<CallKey, PreparedCall>,
    running: HashMap<CallKey, CancellationToken>,
    /// What is asked about calls that are prepared and not yet being asked about.
    requests: HashMap<CallKey, Arc<ApprovalRequest>>,
    /// Calls that wait for a decision, by the model's id.
    asking: HashMap<String, Asking>,
    /// Calls that may run once because somebody agreed to exactly this.
    approved: HashMap<CallKey, Fingerprint>,
    timers: HashMap<Timer, CancellationToken>,
    /// Calls that have begun and not ended: the number of the start event by call id.
    open_calls: HashMap<String, u64>,
    /// Commands that outlive their calls, and not the session.
    background: BackgroundCommands,
    _closing: CloseOnDrop,
}

impl Driver {
    #[expect(clippy::too_many_arguments, reason = "one caller, which hands over what the builder collected")]
    pub(crate) fn new(
        client: Client,
        profile: ProviderProfile,
        env: Arc<dyn ExecutionEnvironment>,
        config: SessionConfig,
        gates: Vec<Arc<dyn Gate>>,
        approver: Option<Arc<dyn Approver>>,
        clock: Arc<dyn Clock>,
        keep_environment: bool,
        lineage: Lineage,
        log: Arc<EventLog>,
        shared: watch::Sender<Shared>,
    ) -> Self {
        let subagents = Subagents::new(log.session_id().clone(), lineage.clone(), config.subagents);
        let (reports, inbox) = mpsc::channel(MAX_REPORTS);
        let background = BackgroundCommands::with_max_running(config.background_commands.0);
        Self {
            machine: Machine::new(config.limits.clone(), config.reasoning_effort.clone()),
            client,
            profile: subagents.equip(&profile),
            given: profile,
            subagents,
            lineage,
            place: Arc::clone(&env),
            home: Arc::clone(&env),
            initialized: Arc::default(),
            env,
            environment: Arc::default(),
            tools: ToolRegistry::new(),
            config,
            gates: gates.into(),
            approver,
            clock,
            keep_environment,
            initialize: !keep_environment,
            recorder: None,
            unrecorded: None,
            off_record: false,
            to_resume: Vec::new(),
            _closing: CloseOnDrop(Arc::clone(&log)),
            trace: Trace::new(log.identity()),
            log,
            shared,
            reports,
            inbox,
            tasks: JoinSet::new(),
            runs: HashMap::new(),
            model: None,
            segments_drawn: Arc::new(AtomicU64::new(0)),
            segments: HashMap::new(),
            prepared: HashMap::new(),
            running: HashMap::new(),
            requests: HashMap::new(),
            asking: HashMap::new(),
            approved: HashMap::new(),
            timers: HashMap::new(),
            open_calls: HashMap::new(),
            background,
        }
    }

    /// The first input, which asks for nothing but events: the session has begun before anyone can submit to it.
    fn open(&mut self) {
        let at = self.clock.now();
        let kind = InputKind::Opened {
            provider: self.profile.provider.clone(),
            model: self.profile.model.clone(),
            working_directory: self.env.working_directory().display().to_string(),
        };
        for action in self.advance(at, kind) {
            if let Action::Emit(event) = action {
                self.emit(at, *event, None, None);
            }
        }
    }

    /// Tells the machine, and the record before anything follows from it.
    fn advance(&mut self, at: Timestamp, kind: InputKind) -> Vec<Action> {
        let input = Input::new(at, kind);
        let Some(recorder) = &self.recorder else { return self.machine.step(input) };
        let actions = self.machine.step(input.clone());
        if let Err(error) = recorder.push(input, request_of(&actions)) {
            tracing::error!(%error, "the journal of the session cannot be written");
            self.unrecorded = Some(error);
            self.off_record = true;
        }
        actions
    }

    /// Drives the session until it is closed, or until nobody can reach it any more.
    pub(crate) async fn run(self, commands: mpsc::Receiver<Command>) {
        let span = self.trace.session();
        self.drive(commands).instrument(span).await;
    }

    async fn drive(mut self, mut commands: mpsc::Receiver<Command>) {
        self.resume().await;
        while self.machine.state() != SessionState::Closed {
            tokio::select! {
                // Who drops a run and submits another has dropped the first one first.
                biased;
                run = abandoned(&self.runs) => self.interrupt(run).await,
                command = commands.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return,
                },
                () = self.subagents.changed() => self.follow_subagents().await,
                Some(report) = self.inbox.recv() => self.report(report).await,
                // Ended tasks have reported what they had; this only frees them.
                Some(_) = self.tasks.join_next() => {}
            }
        }
        // Inputs that were sent before the end was seen are told that it has come.
        commands.close();
        while let Some(command) = commands.recv().await {
            self.command(command).await;
        }
        self.tasks.shutdown().await;
    }

    /// Interrupts a run that has lost its owner, once.
    async fn interrupt(&mut self, run: RunId) {
        if let Some(owner) = self.runs.get_mut(&run) {
            owner.abandoned = None;
            self.step(InputKind::Interrupt).await;
        }
    }

    async fn command(&mut self, command: Command) {
        self.follow_subagents().await;
        let kind = match command {
            Command::Submit { run, text, owner } => {
                self.runs.insert(run, owner);
                InputKind::Submit { run, text }
            }
            Command::Steer(text) => InputKind::Steer { text },
            Command::FollowUp(text) => InputKind::FollowUp { text },
            Command::Interrupt => InputKind::Interrupt,
            Command::Abort => InputKind::Abort,
            Command::Close => InputKind::Close,
            Command::SetReasoningEffort(effort) => {
                InputKind::Configure { change: Change::ReasoningEffort(effort) }
            }
            Command::SetTools(tools) => {
                let mut profile = self.given.clone();
                profile.tool_registry = tools;
                self.set_profile(profile);
                InputKind::Configure { change: Change::Context }
            }
            Command::SetEnvironment(env) => {
                self.move_to(env);
                InputKind::Configure { change: Change::Context }
            }
            Command::SetLimits(limits) => InputKind::Configure { change: Change::Limits(limits) },
            Command::SetModel(model) => {
                self.set_profile(self.given.clone().with_model(model));
                InputKind::Configure { change: Change::Context }
            }
            Command::SetProfile(profile) => {
                self.set_profile(*profile);
                InputKind::Configure { change: Change::Context }
            }
            Command::Decide { call_id, exactly, decision } => {
                let Some(decided) = self.decided(&call_id, exactly, decision) else { return };
                decided
            }
            Command::Fork { turns, reply } => {
                let forked = self.fork(turns).map(Box::new).ok_or(self.machine.history().len());
                // Who does not wait any more wants no fork.
                let _ = reply.send(forked);
                return;
            }
        };
        self.step(kind).await;
    }

    async fn report(&mut self, report: Report) {
        // What a tool did to subagents is known before what came of it.
        self.follow_subagents().await;
        match report {
            Report::Input(kind) => self.step(kind).await,
            Report::Text { segment, delta } => {
                if let Some(start) = self.segments.get(&segment) {
                    self.log.delta(self.clock.now(), *start, &delta);
                }
            }
            Report::Prepared { call, preparation, prepared, request } => {
                if let Some(prepared) = prepared {
                    self.prepared.insert(call, *prepared);
                }
                if let Some(request) = request {
                    self.requests.insert(call, request);
                }
                self.step(InputKind::CallPrepared { call, preparation }).await;
            }
            Report::Decided { call_id, exactly, decision } => {
                if let Some(decided) = self.decided(&call_id, exactly, decision) {
                    self.step(decided).await;
                }
            }
        }
    }

    /// Feeds one input and performs what follows, and what follows from that.
    async fn step(&mut self, kind: InputKind) {
        let mut inputs = VecDeque::from([kind]);
        while let Some(kind) = inputs.pop_front() {
            let at = self.clock.now();
            self.forget(&kind);
            let opened = opened_segment(&kind);
            let closed = closed_segment(&kind);
            let started = started_call(&kind);
            self.trace.count(&kind);
            let spent = self.machine.spent();
            let actions = self.advance(at, kind);
            self.tell_spent(spent);
            // Who reads an event must find the session in the state that it tells of.
            self.show();
            self.trace.serve(self.machine.served(), &self.profile);
            for action in actions {
                if let Action::Emit(event) = action {
                    self.emit(at, *event, opened, closed);
                } else {
                    inputs.extend(self.perform(action).await);
                }
            }
            // The start is in the log before the effect, and its number is known for the deltas.
            match started {
                // What is not on record must not happen.
                Some(call) if self.off_record => inputs.push_back(InputKind::ToolLost { call }),
                Some(call) => self.start_tool(call),
                None => {}
            }
            if let Some(unrecorded) = self.unrecorded() {
                inputs.push_front(unrecorded);
            }
        }
    }

    /// Does what an action asks for. Some actions are answered at once.
    async fn perform(&mut self, action: Action) -> Vec<InputKind> {
        match action {
            Action::LoadContext { load } => self.load_context(load),
            Action::CallModel { model_call, request } => self.call_model(model_call, *request),
            Action::CancelModel => {
                if let Some(cancel) = &self.model {
                    cancel.cancel();
                }
            }
            Action::SetTimer { timer, after } => self.set_timer(timer, after),
            Action::PrepareCall { call, tool_call } => self.prepare_call(call, *tool_call),
            Action::AskApproval { call, call_id } => return self.ask(call, call_id).into_iter().collect(),
            Action::WithdrawApproval { call } => {
                self.forget_approval(call);
                self.show();
            }
            Action::RunTool { call } => return vec![InputKind::ToolStarted { call }],
            Action::CancelTool { call } => {
                if let Some(cancel) = self.running.get(&call) {
                    cancel.cancel();
                }
            }
            Action::CleanUp => {
                let mut ended = self.clean_up().await;
                ended.push(InputKind::CleanedUp);
                return ended;
            }
            Action::Finish { run, outcome } => self.finish(run, *outcome),
            Action::StopSubagents => self.subagents.interrupt(),
            Action::Emit(_) => {}
        }
        Vec::new()
    }

    fn emit(
        &mut self,
        at: Timestamp,
        event: EventKind,
        opened: Option<SegmentId>,
        closed: Option<SegmentId>,
    ) {
        if let EventKind::ToolCallStart { call_id, .. } = &event {
            let call_id = call_id.clone();
            let start = self.log.append(at, event);
            self.open_calls.insert(call_id, start);
        } else if let EventKind::ToolCallEnd { call_id, .. } = &event {
            match self.open_calls.remove(call_id) {
                Some(start) => self.log.append_end(at, start, event),
                None => self.log.append(at, event),
            };
        } else if let Some(start) = closed.and_then(|segment| self.segments.remove(&segment)) {
            self.log.append_end(at, start, event);
        } else {
            let start = self.log.append(at, event);
            if let Some(segment) = opened {
                self.segments.insert(segment, start);
            }
        }
    }

    fn finish(&mut self, run: RunId, outcome: Outcome) {
        // Between runs no call is prepared; one whose preparation ended too late to run is not kept.
        if self.machine.state() != SessionState::Processing {
            self.prepared.clear();
            self.requests.clear();
            self.approved.clear();
        }
        self.forget_timer(Timer::Run(run));
        self.trace.finish(run, &outcome);
        if let Some(owner) = self.runs.remove(&run) {
            // Nobody waits for a detached run.
            let _ = owner.finished.send(Some(Finished { outcome, end: self.log.next_seq() }));
        }
    }

    fn set_timer(&mut self, timer: Timer, after: Duration) {
        let cancel = CancellationToken::new();
        if let Some(earlier) = self.timers.insert(timer, cancel.clone()) {
            earlier.cancel();
        }
        let reports = self.reports.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = cancel.cancelled() => {}
                () = tokio::time::sleep(after) => {
                    // Without a driver there is nothing to time.
                    let _ = reports.send(Report::Input(InputKind::TimerFired { timer })).await;
                }
            }
        });
    }

    fn forget_timer(&mut self, timer: Timer) {
        if let Some(cancel) = self.timers.remove(&timer) {
            cancel.cancel();
        }
    }

    fn forget_approval(&mut self, call: CallKey) {
        self.asking.retain(|_, asking| asking.call != call);
        self.forget_timer(Timer::Approval(call));
    }

    /// Drops what an input makes superfluous.
    fn forget(&mut self, kind: &InputKind) {
        match kind {
            InputKind::ModelReplied { .. } | InputKind::ModelFailed { .. } => self.model = None,
            InputKind::ApprovalDecided { call, .. } => self.forget_approval(*call),
            InputKind::TimerFired { timer: Timer::Approval(call) } => {
                self.forget_approval(*call);
                self.prepared.remove(call);
                self.requests.remove(call);
            }
            InputKind::TimerFired { timer: timer @ Timer::Run(_) } => self.forget_timer(*timer),
            InputKind::ToolFinished { call, .. } | InputKind::ToolLost { call } => {
                self.running.remove(call);
            }
            InputKind::Interrupt | InputKind::Abort | InputKind::Close => self.forget_waiting_calls(),
            InputKind::Opened { .. }
            | InputKind::Submit { .. }
            | InputKind::Steer { .. }
            | InputKind::FollowUp { .. }
            | InputKind::Configure { .. }
            | InputKind::ContextLoaded { .. }
            | InputKind::ContextFailed { .. }
            | InputKind::SegmentOpened { .. }
            | InputKind::SegmentClosed { .. }
            | InputKind::ModelRetrying { .. }
            | InputKind::CallPrepared { .. }
            | InputKind::ToolStarted { .. }
            | InputKind::ChildSpawned { .. }
            | InputKind::ChildSpent { .. }
            | InputKind::ChildEnded { .. }
            | InputKind::CleanedUp
            | InputKind::Unrecorded { .. }
            | InputKind::Resumed => {}
        }
    }

    /// Drops what is kept for calls that have not started and will not.
    fn forget_waiting_calls(&mut self) {
        self.prepared.clear();
        self.requests.clear();
        self.asking.clear();
        self.approved.clear();
        self.timers.retain(|timer, cancel| {
            let is_of_run = matches!(timer, Timer::Run(_));
            if !is_of_run {
                cancel.cancel();
            }
            is_of_run
        });
    }

    /// Ends every task, then every process, then every subagent, and waits for them (appendix B, steps 1 to 6). What
    /// became of the subagents is still to be told.
    async fn clean_up(&mut self) -> Vec<InputKind> {
        if let Some(model) = self.model.take() {
            model.cancel();
        }
        self.tasks.shutdown().await;
        self.running.clear();
        self.forget_waiting_calls();
        self.background.close().await;
        self.subagents.close().await;
        if !self.keep_environment
            && let Err(error) = self.home.cleanup().await
        {
            tracing::warn!(%error, "the environment could not be cleaned up");
        }
        self.subagents.news().into()
    }

    fn show(&self) {
        let state = self.machine.state();
        let turns = self.machine.history().len();
        let repairs = self.machine.repairs();
        self.shared.send_if_modified(|shared| {
            if shared.repairs != repairs {
                shared.history.clear();
                shared.repairs = repairs;
            }
            let changed = shared.state != state
                || shared.history.len() != turns
                || shared.asking.len() != self.asking.len()
                || !shared.asking.iter().all(|request| self.asking.contains_key(&request.call_id));
            if changed {
                shared.state = state;
                shared
                    .history
                    .extend_from_slice(self.machine.history().get(shared.history.len()..).unwrap_or(&[]));
                shared.asking = self.asking.values().map(|asking| Arc::clone(&asking.request)).collect();
            }
            changed
        });
    }
}

/// The run that is served, when its owner has dropped it.
async fn abandoned(runs: &HashMap<RunId, Owner>) -> RunId {
    let served = runs.iter().find_map(|(run, owner)| Some((*run, owner.abandoned.as_ref()?)));
    match served {
        Some((run, abandoned)) => {
            abandoned.cancelled().await;
            run
        }
        None => std::future::pending().await,
    }
}

fn opened_segment(kind: &InputKind) -> Option<SegmentId> {
    if let InputKind::SegmentOpened { segment, .. } = kind { Some(*segment) } else { None }
}

fn closed_segment(kind: &InputKind) -> Option<SegmentId> {
    if let InputKind::SegmentClosed { segment, .. } = kind { Some(*segment) } else { None }
}

fn started_call(kind: &InputKind) -> Option<CallKey> {
    if let InputKind::ToolStarted { call } = kind { Some(*call) } else { None }
}

/// Closes the log however the driver ends, so that no subscriber waits for ever.
struct CloseOnDrop(Arc<EventLog>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}
