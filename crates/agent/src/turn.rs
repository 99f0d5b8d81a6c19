//! The turn machine: every decision of the loop, without I/O, clock or chance (design, section 3).
//!
//! [`Machine::step`] takes one [`Input`] and gives the [`Action`]s that follow. The same inputs give the same
//! actions, so a session can be tested as a table, replayed from its record, and run inside a workflow engine.

mod action;
mod budget;
mod children;
mod cycle;
mod ending;
mod history;
mod input;
mod loops;
mod repair;
mod round;
mod start;
#[cfg(test)]
mod tests;
mod window;

use std::collections::{BTreeSet, VecDeque};

use pintle_llm::{HistoryItem, MessageList, PrefixChain, ReasoningEffort};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use action::{Action, Outcome, OutcomeStatus};
pub use budget::{Budget, BudgetKind, Spent};
pub use history::{Turn, TurnKind};
pub use input::{
    CallPlan, Change, FinishedCall, Input, InputKind, Preparation, SegmentKind, Timer, TurnContext,
};

pub use start::Start;

use crate::config::TurnLimits;
use crate::event::{EventKind, ForkedFrom};
use crate::id::{LoadId, ModelCallId, RunId};
use crate::timestamp::Timestamp;
use budget::Met;
use children::Children;
use cycle::Progress;
use ending::Ending;
use loops::LoopWindow;
use round::Round;
use window::CountedPrompt;

/// The states of a session (loop specification, section 2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SessionState {
    /// Waiting for input.
    #[default]
    Idle,
    /// Running the loop.
    Processing,
    /// The model asked something; the next input answers it.
    AwaitingInput,
    /// Over.
    Closed,
}

/// The state machine of one session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    limits: TurnLimits,
    reasoning_effort: Option<ReasoningEffort>,
    state: SessionState,
    phase: Phase,
    /// The run that is served, and what it has come to.
    progress: Option<Progress>,
    /// Set while what runs is being stopped.
    ending: Option<Ending>,
    /// An input that came while a turn was being interrupted; it begins when the turn has ended.
    waiting: Option<(RunId, String)>,
    history: Vec<Turn>,
    context: Option<TurnContext>,
    /// Nothing that the context is made of has changed since it was loaded.
    context_is_current: bool,
    /// The system prompt as a history item, so that it is encoded once.
    system: Option<HistoryItem>,
    /// The system prompt and the beginning of the history, as the newest request had them.
    #[serde(skip)]
    messages: MessageList,
    /// The size of the system prompt in that list, in characters.
    #[serde(skip)]
    system_chars: u64,
    steering: VecDeque<String>,
    follow_ups: VecDeque<String>,
    /// The first entries of the history, which the model has accepted: an answer has followed them.
    #[serde(default)]
    accepted: usize,
    /// How often entries of the history were replaced.
    #[serde(default)]
    repairs: u64,
    /// Assistant turns of the session.
    turns: u64,
    model_calls: u64,
    /// Draws the ids of loadings.
    #[serde(default)]
    loads: u64,
    /// Every call id that the history has, since two calls of one id cannot both be answered.
    call_ids: BTreeSet<String>,
    calls: LoopWindow,
    /// The size of the history, in characters.
    chars: u64,
    /// The newest request as its provider counted it.
    #[serde(default)]
    counted_prompt: Option<CountedPrompt>,
    context_warned: bool,
    last_chain: Option<PrefixChain>,
    /// What is chained is as it was; the history has only grown.
    #[serde(default)]
    chain_goes_on: bool,
    /// A call of this round found the place where tools run gone.
    environment_lost: bool,
    /// A call of this round asks the user something.
    #[serde(default)]
    question: Option<String>,
    /// A call of this round did not run because of this limit.
    #[serde(default)]
    over_budget: Option<Met>,
    /// What was spent, in this session and below it.
    #[serde(default)]
    spent: Spent,
    /// Where the history that it began with comes from.
    #[serde(default)]
    forked_from: Option<ForkedFrom>,
    /// The subagents that are open.
    #[serde(default)]
    children: Children,
    now: Timestamp,
}

/// What the machine waits for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
enum Phase {
    /// Input.
    #[default]
    Resting,
    /// The prompt's facts; `stale` if they changed again meanwhile.
    LoadingContext { load: LoadId, stale: bool },
    /// This model call.
    AwaitingModel(ModelCallId),
    /// The calls of a round.
    RunningTools(Round),
    /// The end of everything that the session started.
    CleaningUp,
}

impl Machine {
    /// A machine that waits for [`InputKind::Opened`].
    #[must_use]
    pub fn new(limits: TurnLimits, reasoning_effort: Option<ReasoningEffort>) -> Self {
        Self {
            limits,
            reasoning_effort,
            state: SessionState::Idle,
            phase: Phase::Resting,
            progress: None,
            ending: None,
            waiting: None,
            history: Vec::new(),
            context: None,
            context_is_current: false,
            system: None,
            messages: MessageList::default(),
            system_chars: 0,
            steering: VecDeque::new(),
            follow_ups: VecDeque::new(),
            accepted: 0,
            repairs: 0,
            turns: 0,
            model_calls: 0,
            loads: 0,
            call_ids: BTreeSet::new(),
            calls: LoopWindow::default(),
            chars: 0,
            context_warned: false,
            last_chain: None,
            chain_goes_on: false,
            environment_lost: false,
            question: None,
            over_budget: None,
            counted_prompt: None,
            spent: Spent::default(),
            forked_from: None,
            children: Children::default(),
            now: Timestamp::from_millis(0),
        }
    }

    /// The conversation so far.
    #[must_use]
    pub fn history(&self) -> &[Turn] {
        &self.history
    }

    /// How often entries of the history were replaced by others; it grows otherwise.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    /// The run that is served.
    pub(crate) fn served(&self) -> Option<RunId> {
        self.progress.as_ref().map(|progress| progress.run)
    }

    /// The state that the host sees.
    #[must_use]
    pub fn state(&self) -> SessionState {
        self.state
    }

    /// Takes one input and says what follows, in order. Inputs that come too late change nothing.
    pub fn step(&mut self, input: Input) -> Vec<Action> {
        let mut out = Vec::new();
        // A clock that jumps back must not make a history that runs backwards.
        let last = self.now;
        self.now = last.max(input.at);
        match input.kind {
            InputKind::Opened { provider, model, working_directory } => {
                let forked_from = self.forked_from.clone();
                out.push(Action::emit(EventKind::SessionStart {
                    provider,
                    model,
                    working_directory,
                    forked_from,
                }));
                self.opened(&mut out);
            }
            InputKind::Submit { run, text } => self.submit(run, text, &mut out),
            InputKind::Steer { text } => self.steer(text, &mut out),
            InputKind::FollowUp { text } => self.follow_up(text, &mut out),
            InputKind::Interrupt => self.stop(Ending::Interrupt, &mut out),
            InputKind::Abort => self.stop(Ending::Abort, &mut out),
            InputKind::Close => self.stop(Ending::Close, &mut out),
            InputKind::Configure { change } => self.configure(change, &mut out),
            InputKind::ApprovalDecided { call, approved, reason } => {
                self.approval_decided(call, approved, reason, &mut out);
            }
            InputKind::ContextLoaded { load, context } => {
                self.context_loaded(load, *context, &mut out);
            }
            InputKind::ContextFailed { load, error } => self.context_failed(load, error, &mut out),
            InputKind::SegmentOpened { kind, .. } => self.segment_opened(kind, &mut out),
            InputKind::SegmentClosed { kind, text, interrupted, .. } => {
                self.segment_closed(kind, text, interrupted, &mut out);
            }
            InputKind::ModelRetrying { model_call, attempt, delay, error } => {
                self.model_retrying(model_call, attempt, delay, &error, &mut out);
            }
            InputKind::ModelReplied { model_call, response } => self.replied(model_call, *response, &mut out),
            InputKind::ModelFailed { model_call, error, partial } => {
                self.model_failed(model_call, error, partial, &mut out);
            }
            InputKind::TimerFired { timer: Timer::Approval(call) } => {
                let reason = "nobody decided in time".to_owned();
                self.approval_decided(call, false, Some(reason), &mut out);
            }
            InputKind::TimerFired { timer: Timer::Run(run) } => self.run_timed_out(run, &mut out),
            InputKind::CallPrepared { call, preparation } => self.call_prepared(call, preparation, &mut out),
            InputKind::ToolStarted { call } => self.tool_started(call, &mut out),
            InputKind::ToolFinished { call, finished } => self.tool_finished(call, *finished, &mut out),
            InputKind::ToolLost { call } => self.tool_lost(call, &mut out),
            InputKind::ChildSpawned { agent, session, task } => {
                self.child_spawned(agent, session, task, &mut out);
            }
            InputKind::ChildSpent { agent, spent } => self.child_spent(&agent, spent, &mut out),
            InputKind::ChildEnded { agent, status, turns_used } => {
                self.child_ended(&agent, status, turns_used, &mut out);
            }
            InputKind::CleanedUp => self.cleaned_up(&mut out),
            InputKind::Unrecorded { error } => self.unrecorded(error, &mut out),
            InputKind::Resumed => self.resumed(last, &mut out),
        }
        out
    }

    fn submit(&mut self, run: RunId, text: String, out: &mut Vec<Action>) {
        let is_pausing = matches!(self.ending, Some(Ending::Interrupt | Ending::Budget(_)));
        let is_free = self.waiting.is_none() && is_pausing;
        let refusal = if self.state == SessionState::Closed || matches!(self.phase, Phase::CleaningUp) {
            Some("the session is closed")
        } else if self.progress.is_some() && !is_free {
            Some("the session is processing: steer it, queue a follow-up, or wait for the run to end")
        } else if text.trim().is_empty() {
            Some("the input is empty: expected some text")
        } else {
            None
        };
        if let Some(message) = refusal {
            out.push(ending::refused(run, message));
            return;
        }
        if self.progress.is_some() {
            self.waiting = Some((run, text));
        } else {
            self.begin_run(run, text, out);
        }
    }

    fn begin_run(&mut self, run: RunId, text: String, out: &mut Vec<Action>) {
        self.progress = Some(Progress::new(run, self.now));
        self.state = SessionState::Processing;
        self.time_run(out);
        self.begin_input(text, out);
    }

    fn steer(&mut self, text: String, out: &mut Vec<Action>) {
        Self::queue(&mut self.steering, text, self.limits.max_queued, self.state, out);
    }

    fn follow_up(&mut self, text: String, out: &mut Vec<Action>) {
        Self::queue(&mut self.follow_ups, text, self.limits.max_queued, self.state, out);
    }

    fn queue(
        queue: &mut VecDeque<String>,
        text: String,
        max: usize,
        state: SessionState,
        out: &mut Vec<Action>,
    ) {
        let problem = if state == SessionState::Closed {
            "the session is closed".to_owned()
        } else if queue.len() >= max {
            format!("{max} messages wait already")
        } else if text.trim().is_empty() {
            "it is empty".to_owned()
        } else {
            queue.push_back(text);
            return;
        };
        // After the end no event may follow.
        if state != SessionState::Closed {
            out.push(Action::emit(EventKind::Warning {
                message: format!("a message was not queued: {problem}"),
            }));
        }
    }

    fn configure(&mut self, change: Change, out: &mut Vec<Action>) {
        match change {
            Change::ReasoningEffort(effort) => self.reasoning_effort = effort,
            Change::Limits(limits) => {
                self.limits = limits;
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

    fn record(&mut self, turn: Turn) {
        self.chars = self.chars.saturating_add(turn.chars());
        self.history.push(turn);
    }

    fn drain_steering(&mut self, out: &mut Vec<Action>) {
        while let Some(content) = self.steering.pop_front() {
            self.record(Turn::steering(content.clone(), self.now));
            out.push(Action::emit(EventKind::SteeringInjected { content }));
        }
    }
}
