//! Driver: performs the actions of the turn machine and feeds the results back. It decides nothing.

mod approval;
mod budget;
mod call_slots;
mod checkpointer;
mod command;
mod compaction_callers;
mod context;
mod environment;
mod hooks;
mod inbox;
mod input_owners;
mod model;
mod open_runs;
mod output;
mod parts;
mod posted;
mod publish;
mod reconciling;
mod recording;
mod redacting;
mod report;
mod response_size;
mod segments;
mod shutdown;
mod staged_call;
mod start;
mod subagents;
mod timers;
mod tool;
mod trace;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pintle_llm::{Client, ErrorInfo};
use pintle_tools::builtin::BackgroundCommands;
use pintle_tools::pipeline::Gate;
use pintle_tools::{KnownFiles, ToolRegistry};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::Instrument as _;

use self::budget::BudgetPoint;
use self::call_slots::CallSlots;
use self::checkpointer::Checkpointer;
pub(crate) use self::command::{Command, ConfigChange, MessageQueue, SentCommand};
use self::compaction_callers::CompactionCallers;
use self::environment::SessionEnvironment;
pub(crate) use self::environment::{EnvironmentLifecycle, SharedEnvironment};
use self::hooks::HookPoint;
use self::inbox::{Inbox, Message};
pub(crate) use self::input_owners::InputOwner;
use self::input_owners::InputOwners;
use self::open_runs::OpenRuns;
pub(crate) use self::parts::Parts;
use self::posted::PostedState;
pub(crate) use self::recording::Recording;
use self::recording::Step;
pub(crate) use self::report::ExactDecision;
use self::report::{MAX_REPORTS, Report};
use self::segments::{OpenSegments, SegmentBoundary};
use self::shutdown::CloseOnDrop;
use self::timers::Timers;
use self::trace::Trace;
use crate::approval::Approver;
use crate::clock::SteadyClock;
use crate::config::SessionConfig;
use crate::event_log::EventLog;
use crate::hooks::HookSession;
use crate::profile::ProviderProfile;
use crate::protocol::{
    Action, EventKind, InputKind, Outcome, OutcomeStatus, Principal, RunId, SessionState, Timer,
};
use crate::record::SessionStatus;
use crate::run::RunEnd;
use crate::session::PublishedState;
use crate::subagent::{Lineage, Shutdown, Subagents};
use crate::turn::Machine;

pub(crate) struct Driver {
    machine: Machine,
    client: Client,
    /// Profile with the tools for subagents.
    profile: ProviderProfile,
    /// Profile as the embedding application set it.
    base_profile: ProviderProfile,
    subagents: Subagents,
    lineage: Lineage,
    environment: SessionEnvironment,
    /// Tools of the newest request, regardless of later changes of the profile.
    tools: ToolRegistry,
    config: SessionConfig,
    gates: Arc<[Arc<dyn Gate>]>,
    approver: Option<Arc<dyn Approver>>,
    hooks: Option<HookPoint>,
    /// Stops the hooks that run for inputs.
    hooked_inputs: CancellationToken,
    /// Principal that submitted the next input to record.
    author: Option<Principal>,
    checkpoints: Checkpointer,
    budget: BudgetPoint,
    clock: Arc<SteadyClock>,
    /// How this process ends the session. After `Abandon`, it adds no entry to the record.
    shutdown: Shutdown,
    /// Whether this process resumes a session of another process.
    is_resuming: bool,
    recording: Recording,
    /// First inputs, before any command.
    first_inputs: Vec<InputKind>,
    /// Whether the first inputs are recorded.
    has_begun: bool,
    log: Arc<EventLog>,
    trace: Trace,
    shared: watch::Sender<PublishedState>,
    reports: mpsc::Sender<Report>,
    report_receiver: mpsc::Receiver<Report>,
    /// All tasks of the session. Dropping the driver ends them.
    tasks: JoinSet<()>,
    runs: OpenRuns,
    /// Callers that wait for the outcomes of follow-ups.
    inputs: InputOwners,
    /// Cancels the current model call.
    model: Option<CancellationToken>,
    /// Cancels the current load of the context.
    loading: Option<DropGuard>,
    /// Counter for segment ids.
    segment_counter: Arc<AtomicU64>,
    calls: CallSlots,
    posted: PostedState,
    timers: Timers,
    segments: OpenSegments,
    /// Commands that outlive their calls, but not the session.
    background: BackgroundCommands,
    /// States of files that calls have seen.
    files: KnownFiles,
    compaction_callers: CompactionCallers,
    _close_log: CloseOnDrop,
}

impl Driver {
    /// Creates an idle driver.
    pub(crate) fn new(
        parts: Parts,
        lineage: Lineage,
        lifecycle: EnvironmentLifecycle,
        log: Arc<EventLog>,
        shared: watch::Sender<PublishedState>,
    ) -> Self {
        let Parts {
            client,
            profile,
            env,
            config,
            gates,
            approver,
            hooks,
            clock,
            checkpoints,
            budget,
            subagent_types,
        } = parts;
        let hooks = hooks.map(|hooks| {
            let directory = env.working_directory().to_path_buf();
            let session = HookSession::new(log.session_id().clone(), directory, lineage.origin.clone());
            HookPoint::new(hooks, session)
        });
        let subagents =
            Subagents::new(log.session_id().clone(), lineage.clone(), config.subagents, subagent_types);
        let (reports, report_receiver) = mpsc::channel(MAX_REPORTS);
        let background = BackgroundCommands::with_max_running(config.background_commands.0);
        Self {
            machine: Machine::new(config.limits.clone(), config.reasoning_effort.clone()),
            client,
            profile: context::in_session(&profile, &subagents, env.as_ref()),
            base_profile: profile,
            subagents,
            lineage,
            environment: SessionEnvironment::new(env, lifecycle),
            tools: ToolRegistry::new(),
            config,
            gates: gates.into(),
            approver,
            hooks,
            hooked_inputs: CancellationToken::new(),
            author: None,
            checkpoints: Checkpointer::new(checkpoints),
            budget: BudgetPoint::new(budget),
            clock: Arc::new(SteadyClock::new(clock)),
            shutdown: Shutdown::Close,
            is_resuming: false,
            recording: Recording::default(),
            first_inputs: Vec::new(),
            has_begun: false,
            _close_log: CloseOnDrop(Arc::clone(&log)),
            trace: Trace::new(log.identity()),
            log,
            shared,
            reports,
            report_receiver,
            tasks: JoinSet::new(),
            runs: OpenRuns::default(),
            inputs: InputOwners::default(),
            model: None,
            loading: None,
            segment_counter: Arc::new(AtomicU64::new(0)),
            calls: CallSlots::default(),
            posted: PostedState::default(),
            timers: Timers::default(),
            segments: OpenSegments::default(),
            background,
            files: KnownFiles::new(),
            compaction_callers: CompactionCallers::default(),
        }
    }

    /// Drives the session until it is closed, or until all of its handles are dropped.
    ///
    /// The driver is boxed, since a future stores both its arguments and the variables that they are moved into.
    pub(crate) async fn run(self: Box<Self>, commands: mpsc::Receiver<SentCommand>) {
        let span = self.trace.session();
        self.drive(commands).instrument(span).await;
    }

    async fn drive(mut self: Box<Self>, mut commands: mpsc::Receiver<SentCommand>) {
        self.begin().await;
        let mut inbox = Inbox::default();
        while !self.has_ended() {
            if self.shutdown == Shutdown::Suspend {
                inbox.ignore_commands();
            }
            tokio::select! {
                // Handle a dropped run before newer commands.
                biased;
                run = self.runs.next_dropped() => self.interrupt_dropped(run).await,
                message = inbox.next(&mut commands, &mut self.report_receiver) => match message {
                    Message::Command(Some(command)) => {
                        // The run may have been dropped after the select polled it.
                        while let Some(run) = self.runs.dropped() {
                            self.interrupt_dropped(run).await;
                        }
                        self.command(command).await;
                    }
                    Message::Command(None) => return,
                    Message::Report(report) => {
                        self.report(report).await;
                        // The reporting task has usually ended; free it without another turn of the loop.
                        while self.tasks.try_join_next().is_some() {}
                    }
                },
                () = self.subagents.changed() => self.follow_subagents().await,
                granted = self.lineage.grants.next() => self.step(granted).await,
                // Tasks have reported before they end; this only frees them.
                Some(_) = self.tasks.join_next() => {}
            }
        }
        if self.machine.state() != SessionState::Closed {
            let inputs = self.clean_up().await;
            let recorded = if self.shutdown == Shutdown::Abandon { Vec::new() } else { inputs };
            for kind in recorded {
                self.step(kind).await;
            }
        }
        // Commands sent before the end was visible are answered.
        commands.close();
        while let Some(command) = commands.recv().await {
            // A suspended session is resumed later, so it accepts no more commands here.
            if self.shutdown == Shutdown::Close {
                self.command(command).await;
            }
        }
        self.tasks.shutdown().await;
        self.recording.close().await;
    }

    /// Returns whether nothing is left to do for this process.
    fn has_ended(&self) -> bool {
        let has_left = match self.shutdown {
            Shutdown::Close => false,
            Shutdown::Suspend => self.machine.current_run().is_none(),
            Shutdown::Abandon => true,
        };
        has_left || self.machine.state() == SessionState::Closed
    }

    /// Steps the machine with an input, performs the resulting actions, and handles the inputs that follow from them.
    async fn step(&mut self, kind: InputKind) {
        let mut inputs = VecDeque::from([kind]);
        let mut has_turn_ended = false;
        while !inputs.is_empty() {
            let account = self.account();
            let batch = self.advance(&mut inputs);
            self.compaction_callers.add_results(self.machine.take_compaction_results());
            if !self.recording.record(&batch).await {
                inputs.extend(
                    self.recording.failure().map(|error| InputKind::Unrecorded { error: error.clone() }),
                );
            }
            self.report_account(account);
            self.settle_budget().await;
            // A subscriber that reads an event must find the session in the state that the event reports.
            self.publish();
            self.trace.start_run(self.machine.current_run(), &self.profile);
            for Step { at, boundary, actions } in batch.steps {
                for action in actions {
                    if let Action::Emit(event) = action {
                        has_turn_ended |= allows_compaction(&event);
                        self.emit(at, *event, boundary);
                    } else {
                        inputs.extend(self.perform(action).await);
                    }
                }
            }
            let is_due = inputs.is_empty()
                && std::mem::take(&mut has_turn_ended)
                && self.shutdown != Shutdown::Suspend;
            if is_due && self.machine.can_start_requested_compaction() {
                inputs.push_back(InputKind::Compact);
            }
        }
        self.answer_compaction_callers();
        if self.recording.has_journal() {
            let status = self.status();
            self.recording.report_status(status).await;
        }
    }

    fn answer_compaction_callers(&mut self) {
        if self.machine.state() == SessionState::Closed {
            self.compaction_callers.clear();
        } else if self.machine.compaction_trigger().is_none() {
            self.compaction_callers.answer(self.machine.is_compaction_requested());
        }
    }

    fn status(&self) -> SessionStatus {
        SessionStatus {
            state: self.machine.state(),
            pending_approvals: self.calls.pending().count(),
            spent: self.machine.spent(),
            turns: self.machine.history().len(),
        }
    }

    /// Performs an action. Returns the immediate replies to it.
    async fn perform(&mut self, action: Action) -> Vec<InputKind> {
        let action = match self.recording.failure() {
            Some(error) => match without_effect(action, error) {
                RemainingEffect::Action(action) => action,
                RemainingEffect::Reply(reply) => return vec![*reply],
                RemainingEffect::Nothing => return Vec::new(),
            },
            None => action,
        };
        match action {
            Action::LoadContext { load } => self.load_context(load),
            Action::CallModel { model_call, request, .. } => self.call_model(model_call, *request),
            Action::CancelModel => {
                if let Some(cancel) = &self.model {
                    cancel.cancel();
                }
            }
            Action::SetTimer { timer, after } => self.set_timer(timer, after),
            Action::PrepareCall { call, tool_call, changed } => {
                return self.prepare_call(call, *tool_call, changed).await.into_iter().collect();
            }
            Action::AskApproval { call, .. } => return self.ask(call).into_iter().collect(),
            Action::ConfirmApproval { call, by } => self.calls.confirm(call, by),
            Action::WithdrawApproval { call } => {
                self.withdraw_approval(call);
                self.publish();
            }
            Action::RunTool { call } => return self.run_tool(call).into_iter().collect(),
            Action::CancelTool { call } => self.calls.stop(call),
            Action::Reconcile { call, files } => self.reconcile(call, files),
            Action::CleanUp => {
                let mut inputs = self.clean_up().await;
                inputs.push(InputKind::CleanedUp);
                return inputs;
            }
            Action::Finish { run, outcome } => self.finish(run, *outcome),
            Action::FinishInput { run, outcome, is_last } => self.finish_input(run, *outcome, is_last),
            Action::StopSubagents => self.subagents.interrupt(),
            Action::AskBudget { ask, has, wants, unpriced } => {
                return self.ask_budget(ask, *has, *wants, unpriced).into_iter().collect();
            }
            Action::GrantBudget { agent, ask, slice } => self.subagents.grant(&agent, ask, *slice),
            // The start is an input of the same batch.
            Action::StartTool { .. } | Action::Emit(_) => {}
        }
        Vec::new()
    }

    /// Spawns a task of the session.
    ///
    /// The future is boxed, since a runtime moves it a dozen times before and after it runs, and these are large.
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(Box::pin(task));
    }

    fn finish(&mut self, run: RunId, outcome: Outcome) {
        // Between runs, no call is prepared and no context is needed.
        if self.machine.state() != SessionState::Processing {
            self.calls.keep_running();
            self.loading = None;
        }
        self.timers.cancel(Timer::Run(run));
        self.trace.finish(run, &outcome);
        let end = self.log.next_seq();
        self.runs.finish(run, RunEnd { outcome, end }, self.machine.current_run());
    }
}

/// Returns whether an event ends a turn after which a requested compaction starts. After an interrupt, an error or a
/// reached limit of the budget, the compaction waits for the next request.
fn allows_compaction(event: &EventKind) -> bool {
    let EventKind::ProcessingEnd { outcome: Some(status), .. } = event else { return false };
    !matches!(
        status,
        OutcomeStatus::Interrupted | OutcomeStatus::Aborted | OutcomeStatus::Failed | OutcomeStatus::Budget
    )
}

/// Effect that an action still has after a failed record.
enum RemainingEffect {
    Action(Action),
    /// The action is not performed, and this is the reply to it.
    Reply(Box<InputKind>),
    Nothing,
}

/// Returns the part of `action` that is still performed after a failed record. Unrecorded actions are neither performed
/// nor reported as done. Running work is still stopped and cleaned up.
fn without_effect(action: Action, error: &ErrorInfo) -> RemainingEffect {
    let reply = |kind| RemainingEffect::Reply(Box::new(kind));
    match action {
        Action::LoadContext { load } => reply(InputKind::ContextFailed { load, error: error.clone() }),
        Action::CallModel { model_call, .. } => {
            let partial = String::new();
            reply(InputKind::ModelFailed { model_call, error: error.clone(), partial })
        }
        Action::RunTool { call } => reply(tool::not_run(call)),
        Action::PrepareCall { .. }
        | Action::AskApproval { .. }
        | Action::Reconcile { .. }
        | Action::AskBudget { .. }
        | Action::GrantBudget { .. }
        | Action::SetTimer { .. } => RemainingEffect::Nothing,
        Action::Finish { run, mut outcome } => {
            outcome.status = OutcomeStatus::Failed;
            outcome.error = Some(error.clone());
            outcome.rejection = None;
            RemainingEffect::Action(Action::Finish { run, outcome })
        }
        Action::FinishInput { run, mut outcome, is_last } => {
            outcome.status = OutcomeStatus::Failed;
            outcome.error = Some(error.clone());
            RemainingEffect::Action(Action::FinishInput { run, outcome, is_last })
        }
        other @ (Action::CancelModel
        | Action::ConfirmApproval { .. }
        | Action::WithdrawApproval { .. }
        | Action::StartTool { .. }
        | Action::CancelTool { .. }
        | Action::StopSubagents
        | Action::Emit(_)
        | Action::CleanUp) => RemainingEffect::Action(other),
    }
}
