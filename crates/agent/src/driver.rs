//! The driver: performs what the turn machine wants done and tells it what came of it. It decides nothing.

mod approval;
mod begin;
mod calls;
mod closing;
mod command;
mod context;
mod hearing;
mod model;
mod output;
mod parts;
mod recording;
mod report;
mod room;
mod showing;
mod subagents;
mod timers;
mod tool;
mod trace;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pintle_env::ExecutionEnvironment;
use pintle_llm::Client;
use pintle_tools::builtin::BackgroundCommands;
use pintle_tools::pipeline::Gate;
use pintle_tools::{KnownFiles, ToolRegistry};
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

pub(crate) use self::begin::SharedFacts;
use self::calls::Calls;
use self::closing::CloseOnDrop;
pub(crate) use self::command::Command;
use self::command::abandoned;
use self::hearing::{Heard, Hearing};
pub(crate) use self::parts::Parts;
use self::recording::Recording;
pub(crate) use self::report::Decided;
use self::report::{MAX_REPORTS, Report};
use self::showing::{Begun, Border};
use self::timers::Timers;
use self::trace::Trace;
use crate::approval::Approver;
use crate::config::SessionConfig;
use crate::event_log::EventLog;
use crate::id::{CallKey, RunId};
use crate::profile::ProviderProfile;
use crate::prompt::EnvironmentContext;
use crate::run::Finished;
use crate::session::{Owner, Shared};
use crate::subagent::{Lineage, Subagents};
use crate::timestamp::SteadyClock;
use crate::turn::{Action, InputKind, Machine, Outcome, SessionState, Timer};

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
    /// The place that is this session's to initialise and to clean up; in a fork that of the session it was made from.
    home: Arc<dyn ExecutionEnvironment>,
    initialized: Arc<OnceCell<()>>,
    /// Gathered once, so that the prompt stays the same over the session.
    environment: Arc<OnceCell<EnvironmentContext>>,
    /// The tools that the newest request offers, whatever the profile has become since.
    tools: ToolRegistry,
    config: SessionConfig,
    gates: Arc<[Arc<dyn Gate>]>,
    approver: Option<Arc<dyn Approver>>,
    clock: Arc<SteadyClock>,
    keep_environment: bool,
    /// Whether the place where tools run is this session's to initialise.
    initialize: bool,
    recording: Recording,
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
    /// What ends the gathering of the prompt's facts.
    loading: Option<DropGuard>,
    /// Draws the ids of segments.
    segments_drawn: Arc<AtomicU64>,
    calls: Calls,
    timers: Timers,
    begun: Begun,
    /// Commands that outlive their calls, and not the session.
    background: BackgroundCommands,
    /// The state in which calls have seen files.
    files: KnownFiles,
    _closing: CloseOnDrop,
}

impl Driver {
    /// A driver that has nothing to do yet.
    pub(crate) fn new(parts: Parts, log: Arc<EventLog>, shared: watch::Sender<Shared>) -> Self {
        let Parts { client, profile, env, config, gates, approver, clock, keep_environment, lineage } = parts;
        let subagents = Subagents::new(log.session_id().clone(), lineage.clone(), config.subagents);
        let (reports, inbox) = mpsc::channel(MAX_REPORTS);
        let background = BackgroundCommands::with_max_running(config.background_commands.0);
        Self {
            machine: Machine::new(config.limits.clone(), config.reasoning_effort.clone()),
            client,
            profile: subagents.add_tools(&profile),
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
            clock: Arc::new(SteadyClock::new(clock)),
            keep_environment,
            initialize: !keep_environment,
            recording: Recording::default(),
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
            loading: None,
            segments_drawn: Arc::new(AtomicU64::new(0)),
            calls: Calls::default(),
            timers: Timers::default(),
            begun: Begun::default(),
            background,
            files: KnownFiles::new(),
        }
    }

    /// Drives the session until it is closed, or until nobody can reach it any more.
    ///
    /// Boxed, since a future holds what it was given and what it made of that, each in a place of its own.
    pub(crate) async fn run(self: Box<Self>, commands: mpsc::Receiver<Command>) {
        let span = self.trace.session();
        self.drive(commands).instrument(span).await;
    }

    async fn drive(mut self: Box<Self>, mut commands: mpsc::Receiver<Command>) {
        self.resume().await;
        let mut hearing = Hearing::default();
        while self.machine.state() != SessionState::Closed {
            tokio::select! {
                // Who drops a run and submits another has dropped the first one first.
                biased;
                run = abandoned(&self.runs) => self.interrupt(run).await,
                heard = hearing.next(&mut commands, &mut self.inbox) => match heard {
                    Heard::Command(Some(command)) => self.command(command).await,
                    Heard::Command(None) => return,
                    Heard::Report(report) => {
                        self.report(report).await;
                        // Who has reported has most often ended, and need not be looked at in a turn of its own.
                        while self.tasks.try_join_next().is_some() {}
                    }
                },
                () = self.subagents.changed() => self.follow_subagents().await,
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

    /// Feeds one input and performs what follows, and what follows from that.
    async fn step(&mut self, kind: InputKind) {
        let mut inputs = VecDeque::from([kind]);
        while let Some(kind) = inputs.pop_front() {
            let at = self.clock.now();
            self.forget(&kind);
            let border = Border::of(&kind);
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
                    self.emit(at, *event, border);
                } else {
                    inputs.extend(self.perform(action).await);
                }
            }
            // The start is in the log before the effect, and its number is known for the deltas.
            match started {
                // What is not on record must not happen.
                Some(call) if self.recording.has_failed() => inputs.push_back(tool::unmade(call)),
                Some(call) => self.start_tool(call),
                None => {}
            }
            if let Some(unrecorded) = self.recording.unrecorded() {
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
            Action::PrepareCall { call, tool_call } => {
                return self.prepare_call(call, *tool_call).await.into_iter().collect();
            }
            Action::AskApproval { call, call_id } => return self.ask(call, call_id).into_iter().collect(),
            Action::WithdrawApproval { call } => {
                self.forget_approval(call);
                self.show();
            }
            Action::RunTool { call } => return vec![InputKind::ToolStarted { call }],
            Action::CancelTool { call } => self.calls.stop(call),
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

    /// Starts a task of the session.
    ///
    /// Boxed, since a runtime moves what it is given a dozen times before and after it runs, and these are large.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(Box::pin(task));
    }

    fn finish(&mut self, run: RunId, outcome: Outcome) {
        // Between runs no call is prepared, and nobody waits for the prompt's facts.
        if self.machine.state() != SessionState::Processing {
            self.calls.forget_prepared();
            self.loading = None;
        }
        self.timers.forget(Timer::Run(run));
        self.trace.finish(run, &outcome);
        let end = self.log.next_seq();
        if let Some(owner) = self.runs.remove(&run) {
            owner.finished(Finished { outcome, end });
        }
        // One that waited for this end begins with it.
        if let Some(owner) = self.machine.served().and_then(|next| self.runs.get(&next)) {
            owner.begins(end);
        }
    }
}

fn started_call(kind: &InputKind) -> Option<CallKey> {
    if let InputKind::ToolStarted { call } = kind { Some(*call) } else { None }
}
