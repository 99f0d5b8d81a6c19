//! Turn machine: every decision of the loop, without I/O, clock or randomness (design, section 3).
//!
//! [`Machine::step`] takes one [`Input`] and returns the [`Action`]s that follow. The same inputs lead to the same
//! actions, so a session can be tested as a table, replayed from its record, and run inside a workflow engine.

mod approval;
mod budget;
mod children;
mod compaction;
mod cycle;
mod end_reasons;
mod ending;
mod final_question;
mod folding;
mod loop_detection;
mod progress;
mod queued_messages;
mod reconciling;
mod repair;
mod request_prefix;
mod request_size;
mod reservation;
mod response;
mod rewind;
mod round;
mod start;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{BTreeMap, BTreeSet};

use pintle_llm::{HistoryItem, ReasoningEffort};
use serde::{Deserialize, Serialize};

use self::approval::{ApprovalResult, Denials};
use self::children::Children;
use self::compaction::Compactions;
use self::end_reasons::EndReasons;
use self::ending::Ending;
use self::loop_detection::LoopWindow;
use self::progress::{InputStart, Progress};
use self::queued_messages::QueuedMessages;
use self::request_prefix::RequestPrefix;
use self::request_size::RequestSize;
use self::reservation::{Reservations, Slice};
use self::rewind::RewoundHistory;
pub(crate) use self::round::not_run;
use self::round::{Judged, Round};
use crate::protocol::{
    Action, BudgetUsage, CallKind, Change, EventKind, ForkedFrom, Input, InputKind, LoadId, ModelCallId,
    Rejection, RunId, SessionState, Timer, Timestamp, Turn, TurnContext, TurnLimits, UserMessage,
};

/// State machine of one session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    limits: TurnLimits,
    reasoning_effort: Option<ReasoningEffort>,
    state: SessionState,
    phase: Phase,
    /// The current run and its totals.
    progress: Option<Progress>,
    /// Set while everything that runs is being stopped.
    ending: Option<Ending>,
    #[serde(flatten)]
    queued: QueuedMessages,
    history: Vec<Turn>,
    /// Conversation before a rewind, until the next entry of the history.
    #[serde(default)]
    rewound: Option<RewoundHistory>,
    context: Option<TurnContext>,
    /// Whether the dependencies of the context are unchanged since it was loaded.
    context_is_current: bool,
    /// System prompt as a history item, so that it is encoded once.
    system: Option<HistoryItem>,
    #[serde(flatten)]
    prefix: RequestPrefix,
    /// Number of leading history entries that the model has accepted: a response followed them.
    #[serde(default)]
    accepted: usize,
    /// Number of times that entries of the history were replaced.
    #[serde(default)]
    repairs: u64,
    /// Assistant turns of the session.
    turns: u64,
    model_calls: u64,
    /// Counter for load ids.
    #[serde(default)]
    loads: u64,
    /// All call ids in the history. Two calls with the same id cannot both be answered.
    call_ids: BTreeSet<String>,
    calls: LoopWindow,
    #[serde(flatten)]
    size: RequestSize,
    #[serde(flatten)]
    end_reasons: EndReasons,
    /// Amounts spent by this session and its subagents.
    #[serde(default)]
    spent: BudgetUsage,
    /// Amounts spent by the session's own model calls, by model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    spent_by_model: BTreeMap<String, BudgetUsage>,
    #[serde(default)]
    reservations: Reservations,
    /// Slice of a wider budget, if the session can ask for more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slice: Option<Slice>,
    /// Origin of the initial history.
    #[serde(default)]
    forked_from: Option<ForkedFrom>,
    /// Calls that were denied since the user's last message.
    #[serde(default, skip_serializing_if = "Denials::is_empty")]
    denials: Denials,
    /// Open subagents.
    #[serde(default)]
    children: Children,
    #[serde(default)]
    compactions: Compactions,
    now: Timestamp,
}

/// Event that the machine waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
enum Phase {
    /// An input.
    #[default]
    Resting,
    /// The context; `stale` if it has changed again since the load started.
    LoadingContext { load: LoadId, stale: bool },
    /// More of the budget, from the parent session.
    AwaitingBudget,
    /// The end of this model call.
    AwaitingModel(ModelCallId),
    /// The end of this model call, which summarises the first `through` entries of the history.
    Compacting { model_call: ModelCallId, through: usize },
    /// The results of a round's calls.
    RunningTools(Round),
    /// The end of everything that the session started.
    CleaningUp,
}

impl Machine {
    /// Creates a machine that waits for [`InputKind::Opened`].
    #[must_use]
    pub fn new(limits: TurnLimits, reasoning_effort: Option<ReasoningEffort>) -> Self {
        Self { limits, reasoning_effort, ..Self::default() }
    }

    /// Returns the conversation so far.
    #[must_use]
    pub fn history(&self) -> &[Turn] {
        &self.history
    }

    /// Returns the number of times that entries of the history were replaced. Otherwise it only grows.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    /// Returns whether everything that runs is being stopped.
    pub(crate) fn is_stopping(&self) -> bool {
        self.ending.is_some()
    }

    /// Returns the current run.
    pub(crate) fn current_run(&self) -> Option<RunId> {
        self.progress.as_ref().map(|progress| progress.run)
    }

    /// Returns the state of the session.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Returns the texts of the steering messages that wait, the oldest first.
    pub fn steering(&self) -> impl ExactSizeIterator<Item = &str> {
        self.queued.steering()
    }

    /// Returns the texts of the follow-ups that wait, the oldest first.
    pub fn follow_ups(&self) -> impl ExactSizeIterator<Item = &str> {
        self.queued.follow_ups()
    }

    /// Takes one input and returns the actions that follow, in order. Inputs that arrive too late change nothing.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        // The history must not run backwards when the clock jumps back.
        let last = self.now;
        self.now = last.max(input.at);
        let mut out = Vec::new();
        let mut kind = input.kind;
        if let InputKind::Submit { message, .. }
        | InputKind::Steer { message }
        | InputKind::FollowUp { message } = &mut kind
        {
            message.author = input.author;
        }
        self.handle(kind, last, &mut out);
        out
    }

    /// Handles an input; `last` is the time of the previous input.
    fn handle(&mut self, kind: InputKind, last: Timestamp, out: &mut Vec<Action>) {
        match kind {
            InputKind::Opened { provider, model, working_directory } => {
                self.opened(provider, model, working_directory, out);
            }
            InputKind::Submit { run, message } => self.submit(run, message, out),
            InputKind::Steer { message } => self.steer(message, out),
            InputKind::FollowUp { message } => self.follow_up(message, out),
            InputKind::InputRefused { run, reason } => self.input_refused(run, &reason, out),
            InputKind::SentOn { model_call, text } => self.sent_on(model_call, text, out),
            InputKind::EndStopped { model_call, reason } => self.end_stopped(model_call, reason),
            InputKind::Interrupt => self.stop(Ending::Interrupt, out),
            InputKind::Abort => self.stop(Ending::Abort, out),
            InputKind::Close => self.stop(Ending::Close, out),
            InputKind::Compact => self.compact(out),
            InputKind::Rewind { turns } => self.rewind(turns, out),
            InputKind::CheckpointTaken { reason, checkpoint } => {
                self.checkpoint_taken(reason, checkpoint, out);
            }
            InputKind::Configure { change } => self.configure(change, out),
            InputKind::ApprovalDecided { call, approved, reason, by } => {
                self.approval_decided(call, ApprovalResult::decided(approved, reason, by), out);
            }
            InputKind::CallChanged { call, arguments, by } => self.call_changed(call, arguments, by, out),
            InputKind::PolicyChanged { change } => self.policy_changed(change, out),
            InputKind::DecisionRefused { call_id, approved, reason } => {
                self.decision_refused(call_id, approved, reason, out);
            }
            InputKind::ContextLoaded { load, context } => self.context_loaded(load, *context, out),
            InputKind::ContextFailed { load, error } => self.context_failed(load, error, out),
            InputKind::SegmentOpened { kind, .. } => self.segment_opened(kind, out),
            InputKind::SegmentClosed { kind, text, interrupted, .. } => {
                self.segment_closed(kind, text, interrupted, out);
            }
            InputKind::ArgumentsOpened { call_id, tool_name, .. } => {
                self.arguments_opened(call_id, tool_name, out);
            }
            InputKind::ArgumentsClosed { call_id, interrupted, .. } => {
                self.arguments_closed(call_id, interrupted, out);
            }
            InputKind::ModelRetrying { model_call, attempt, delay, error } => {
                self.model_retrying(model_call, attempt, delay, &error, out);
            }
            InputKind::ModelReplied { model_call, response } => self.replied(model_call, *response, out),
            InputKind::ModelFailed { model_call, error, partial } => {
                self.model_failed(model_call, error, partial, out);
            }
            InputKind::TimerFired { timer } => self.timer_fired(timer, out),
            InputKind::CallPrepared { call, preparation, judgement, changed, additions } => {
                self.call_prepared(call, preparation, Judged { judgement, changed, additions }, out);
            }
            InputKind::CallJudged { call, judgement } => self.call_judged(call, judgement, out),
            InputKind::ToolStarted { call } => self.tool_started(call, out),
            InputKind::ChangesDeclared { call, files } => self.changes_declared(call, files),
            InputKind::Reconciled { call, result } => self.reconciled(call, result, out),
            InputKind::ToolFinished { call, finished } => self.tool_finished(call, *finished, out),
            InputKind::ToolLost { call } => self.tool_lost(call, out),
            InputKind::ChildSpawned { agent, session, task, call_id, settings } => {
                self.child_spawned(agent, (session, settings.limits), task, call_id, out);
            }
            InputKind::ChildSpent { agent, spent } => self.child_spent(&agent, spent, out),
            InputKind::ChildAccount { agent, account } => self.child_account(&agent, account, out),
            InputKind::ChildAsked { agent, ask, has, wants, unpriced } => {
                self.child_asked(agent, ask, has, wants, unpriced, out);
            }
            InputKind::BudgetGranted { ask, slice, short, failure } => {
                self.budget_granted(ask, slice, short.map(|short| *short), failure, out);
            }
            InputKind::ChildEnded { agent, status, turns_used, .. } => {
                self.child_ended(&agent, status, turns_used, out);
            }
            InputKind::CleanedUp => self.cleaned_up(out),
            InputKind::Unrecorded { error } => self.unrecorded(error, out),
            // The inputs after this one are stepped.
            InputKind::TakenUp { .. } => {}
            InputKind::Resumed { attached, asks } => {
                self.take_source(asks);
                self.resumed(last, &attached, out);
            }
        }
    }

    fn timer_fired(&mut self, timer: Timer, out: &mut Vec<Action>) {
        match timer {
            Timer::Approval(call) => {
                self.approval_decided(call, ApprovalResult::expired(), out);
            }
            Timer::Run(run) => self.run_timed_out(run, out),
        }
    }

    fn submit(&mut self, run: RunId, message: UserMessage, out: &mut Vec<Action>) {
        let is_pausing = matches!(self.ending, Some(Ending::Interrupt | Ending::Budget(_)));
        let is_free = !self.queued.has_next_run() && is_pausing;
        let rejection = if self.state == SessionState::Closed || matches!(self.phase, Phase::CleaningUp) {
            Some((Rejection::Closed, "the session is closed".to_owned()))
        } else if self.progress.is_some() && !is_free {
            let expected = "steer it, queue a follow-up, or wait for the run to end";
            Some((Rejection::Busy, format!("the session is processing: {expected}")))
        } else {
            message.problem().map(|problem| (Rejection::Input, format!("the input {problem}")))
        };
        if let Some((rejection, reason)) = rejection {
            out.push(ending::rejected(run, rejection, &reason));
            return;
        }
        if self.progress.is_some() {
            self.queued.set_next_run(run, message);
        } else {
            self.start_run(run, message, out);
        }
    }

    fn start_run(&mut self, run: RunId, message: UserMessage, out: &mut Vec<Action>) {
        self.progress = Some(Progress::new(run, self.now, self.charged(), self.spent));
        self.state = SessionState::Processing;
        self.time_run(out);
        self.start_input(message, out);
    }

    /// Returns the input that delivers a message soonest: a steering message during a run, otherwise the input of a new
    /// run. While a run is being stopped and another one waits, the message steers the waiting run.
    pub(crate) fn saying(&self, run: impl FnOnce() -> RunId, message: UserMessage) -> InputKind {
        let goes_on = self.progress.is_some() && self.ending.is_none();
        if goes_on || self.queued.has_next_run() {
            InputKind::Steer { message }
        } else {
            InputKind::Submit { run: run(), message }
        }
    }

    fn steer(&mut self, message: UserMessage, out: &mut Vec<Action>) {
        if self.admit_message(self.queued.steering_problem(&message, self.limits.max_queued), out) {
            self.queued.steer(message);
        }
    }

    fn follow_up(&mut self, message: UserMessage, out: &mut Vec<Action>) {
        if self.admit_message(self.queued.follow_up_problem(&message, self.limits.max_queued), out) {
            self.queued.follow_up(message);
        }
    }

    /// Returns why a message cannot be queued now; `None` if it can, and for other inputs.
    pub(crate) fn refusal(&self, kind: &InputKind) -> Option<String> {
        let max = self.limits.max_queued;
        let problem = if let InputKind::Steer { message } = kind {
            self.queued.steering_problem(message, max)
        } else if let InputKind::FollowUp { message } = kind {
            self.queued.follow_up_problem(message, max)
        } else {
            return None;
        };
        let is_closed = self.state == SessionState::Closed;
        if is_closed { Some("the session is closed".to_owned()) } else { problem }
    }

    /// Returns whether a message is queued, or emits a warning of the `problem` that prevents it.
    fn admit_message(&self, problem: Option<String>, out: &mut Vec<Action>) -> bool {
        // No event may follow the end of the session.
        if self.state == SessionState::Closed {
            return false;
        }
        let is_possible = problem.is_none();
        out.extend(problem.map(|problem| {
            Action::emit(EventKind::Warning { message: format!("a message was not queued: {problem}") })
        }));
        is_possible
    }

    fn configure(&mut self, change: Change, out: &mut Vec<Action>) {
        match change {
            Change::ReasoningEffort(effort) => self.reasoning_effort = effort,
            Change::Limits(limits) => {
                self.limits = limits;
                self.limit_slice();
                self.time_run(out);
            }
            Change::Context => {
                self.context_is_current = false;
                if let Phase::LoadingContext { stale, .. } = &mut self.phase {
                    *stale = true;
                }
            }
        }
    }

    /// Returns the kind of the calls of this tool.
    fn call_kind(&self, tool_name: &str) -> CallKind {
        self.context.as_ref().map_or_else(CallKind::default, |context| context.call_kind(tool_name))
    }

    fn record(&mut self, turn: Turn) {
        self.rewound = None;
        self.size.add(&turn);
        self.history.push(turn);
    }

    /// Adds a steering message to the history.
    fn inject(&mut self, message: UserMessage, out: &mut Vec<Action>) {
        let (content, images) = (message.text.clone(), message.image_summaries());
        let author = message.author.clone();
        self.record(Turn::steering(message, self.now));
        out.push(Action::emit(EventKind::SteeringInjected { content, images, author }));
    }

    /// Adds an input of the user to the history.
    fn begin_input(&mut self, mut message: UserMessage, out: &mut Vec<Action>) {
        if let Some(progress) = &mut self.progress {
            progress.input = InputStart {
                usage: progress.usage.clone(),
                model_calls: progress.model_calls,
                tool_calls: progress.tool_calls,
                spent: self.spent,
            };
        }
        if let Some(progress) = &mut self.progress {
            progress.rounds = 0;
            // A follow-up without a format keeps the format of the run.
            progress.response.format = message.format.take().or(progress.response.format.take());
        }
        self.reset_response();
        self.allow_compaction_after_refusal();
        let (content, images) = (message.text.clone(), message.image_summaries());
        let author = message.author.clone();
        self.record(Turn::user(message, self.now));
        out.push(Action::emit(EventKind::UserInput { content, images, author }));
    }

    fn drain_steering(&mut self, out: &mut Vec<Action>) {
        while let Some(message) = self.queued.take_steering() {
            self.denials.clear();
            self.inject(message, out);
        }
    }
}
