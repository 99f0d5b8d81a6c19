//! The calls of one answer: which may run when, and what each of them gave.

use std::time::Duration;

use pintle_env::Output;
use pintle_llm::{Error, ErrorKind, Retry, ToolCall, ToolResult};
use pintle_tools::{Effect, ToolErrorKind};
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::input::{CallPlan, FinishedCall, Preparation, Timer};
use super::{Machine, Phase, Turn};
use crate::event::EventKind;
use crate::id::{CallKey, ModelCallId};
use crate::timestamp::Timestamp;

/// The calls of one answer, in the model's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Round {
    model_call: ModelCallId,
    calls: Vec<CallState>,
    at_once: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CallState {
    call: ToolCall,
    stage: Stage,
    /// Subscribers know that it has begun; a call that is made again does not begin again.
    #[serde(default)]
    told: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Preparing,
    Asking(CallPlan),
    Ready(CallPlan),
    /// Told to run; `since` from the moment at which it did.
    Running {
        plan: CallPlan,
        since: Option<Timestamp>,
    },
    Done(ToolResult),
}

/// What became of calls whose host is gone.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    /// The ids of those that had begun and are not made again.
    pub(super) interrupted: Vec<String>,
    /// The ids of those that had begun and are made again.
    pub(super) repeated: Vec<String>,
    /// How many had been told to run and are not done: they count when they are told so again.
    pub(super) not_made: u64,
}

/// Why a call gets a result although it never ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRun {
    /// The output limit cut the answer.
    CutOff,
    /// A filter blocked the answer.
    Blocked,
    /// The turn was stopped.
    Stopped,
    /// A limit of the budget is met.
    OverBudget,
}

impl NotRun {
    fn for_model(self) -> &'static str {
        match self {
            Self::CutOff => {
                "Not run: the answer was cut off by the output limit, so this call may be incomplete. Make it again, in smaller pieces if it is long."
            }
            Self::Blocked => "Not run: the answer was blocked by a content filter.",
            Self::Stopped => "Not run: the turn was stopped before this call started.",
            Self::OverBudget => {
                "Not run: the session has reached a limit on what it may spend, and is paused until the user raises it."
            }
        }
    }
}

const LOST: &str =
    "Interrupted: the turn was stopped while this call ran. It may have had part of its effect.";

const HOST_GONE: &str = "Interrupted: the program that ran this call ended in the middle of it. Nobody knows whether it had its effect, all of it or part of it. It was not run again.";

impl FinishedCall {
    /// That of a call whose tool was not called, since the turn was stopped before. The machine puts in which call.
    pub(crate) fn unmade() -> Self {
        let message = NotRun::Stopped.for_model();
        Self {
            result: ToolResult::new("", message, true),
            output: Output::from(message),
            error: Some(ToolErrorKind::Cancelled),
            timed_out: None,
            changes: Vec::new(),
            question: None,
        }
    }
}

impl Round {
    pub(super) fn new(model_call: ModelCallId, calls: Vec<ToolCall>, at_once: usize) -> Self {
        let calls =
            calls.into_iter().map(|call| CallState { call, stage: Stage::Preparing, told: false }).collect();
        Self { model_call, calls, at_once }
    }

    pub(super) fn prepare_all(&self, out: &mut Vec<Action>) {
        for (index, state) in self.calls.iter().enumerate() {
            out.push(Action::PrepareCall { call: self.key(index), tool_call: Box::new(state.call.clone()) });
        }
    }

    /// Goes on after the host that ran the calls is gone, of which `last` is the last known moment.
    pub(super) fn resume(&mut self, stopping: bool, last: Timestamp, out: &mut Vec<Action>) -> Resumption {
        let mut resumption = Resumption::default();
        for index in 0..self.calls.len() {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index) else { continue };
            match &state.stage {
                Stage::Done(_) => continue,
                Stage::Running { plan, since: Some(since) } if stopping || !plan.repeatable => {
                    resumption.interrupted.push(state.call.id.clone());
                    let ran = last.since(*since);
                    state.lose(HOST_GONE, ran, out);
                    continue;
                }
                Stage::Running { .. } => resumption.not_made += 1,
                Stage::Preparing | Stage::Asking(_) | Stage::Ready(_) => {}
            }
            if state.told {
                let ids = if stopping { &mut resumption.interrupted } else { &mut resumption.repeated };
                ids.push(state.call.id.clone());
            }
            if stopping {
                state.leave(NotRun::Stopped, out);
                continue;
            }
            // What was prepared is gone with the host, and what was decided was decided about that.
            state.stage = Stage::Preparing;
            out.push(Action::PrepareCall { call: key, tool_call: Box::new(state.call.clone()) });
        }
        resumption
    }

    fn key(&self, index: usize) -> CallKey {
        CallKey { model_call: self.model_call, index }
    }

    fn get_mut(&mut self, key: CallKey) -> Option<&mut CallState> {
        if key.model_call == self.model_call { self.calls.get_mut(key.index) } else { None }
    }

    /// Starts every call that may start now, `most` of them at most. Gives how many.
    fn start(&mut self, most: usize, out: &mut Vec<Action>) -> u64 {
        let mut started = 0;
        for index in self.startable().into_iter().take(most) {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index) else { continue };
            if let Stage::Ready(plan) = &state.stage {
                state.stage = Stage::Running { plan: plan.clone(), since: None };
                out.push(Action::RunTool { call: key });
                started += 1;
            }
        }
        started
    }

    /// Answers what has not started, since nothing more may be spent. Says whether there was any.
    pub(super) fn hold(&mut self, out: &mut Vec<Action>) -> bool {
        let waiting = self.calls.iter().any(CallState::is_waiting);
        self.answer_waiting(NotRun::OverBudget, out);
        waiting
    }

    fn answer_waiting(&mut self, why: NotRun, out: &mut Vec<Action>) {
        for index in 0..self.calls.len() {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index).filter(|state| state.is_waiting()) else { continue };
            if matches!(state.stage, Stage::Asking(_)) {
                out.push(Action::WithdrawApproval { call: key });
            }
            state.leave(why, out);
        }
    }

    /// The calls that may start now, in the model's order.
    fn startable(&self) -> Vec<usize> {
        let mut free = self.at_once.saturating_sub(self.running());
        let mut unfinished: Vec<&CallPlan> = Vec::new();
        let mut startable = Vec::new();
        for (index, state) in self.calls.iter().enumerate() {
            let plan = match &state.stage {
                Stage::Done(_) => continue,
                // What an unprepared call does is not known yet.
                Stage::Preparing => break,
                Stage::Asking(plan) | Stage::Running { plan, .. } => plan,
                Stage::Ready(plan) => {
                    // One at a time means in the model's order.
                    if free == 0 || (self.at_once == 1 && !unfinished.is_empty()) {
                        break;
                    }
                    if !unfinished.iter().any(|earlier| keep_order(earlier, plan)) {
                        startable.push(index);
                        free -= 1;
                    }
                    plan
                }
            };
            unfinished.push(plan);
        }
        startable
    }

    /// How far each call is.
    #[cfg(test)]
    pub(super) fn stages(&self) -> Vec<&'static str> {
        let stage = |state: &CallState| match &state.stage {
            Stage::Preparing => "preparing",
            Stage::Asking(_) => "asking",
            Stage::Ready(_) => "ready",
            Stage::Running { since: None, .. } => "told to run",
            Stage::Running { .. } => "running",
            Stage::Done(_) => "done",
        };
        self.calls.iter().map(stage).collect()
    }

    #[cfg(test)]
    pub(super) fn at_once(&self) -> usize {
        self.at_once
    }

    pub(super) fn running(&self) -> usize {
        self.calls.iter().filter(|state| matches!(state.stage, Stage::Running { .. })).count()
    }

    fn is_done(&self) -> bool {
        self.calls.iter().all(|state| matches!(state.stage, Stage::Done(_)))
    }

    fn results(&self) -> Vec<ToolResult> {
        let result = |state: &CallState| match &state.stage {
            Stage::Done(result) => Some(result.clone()),
            Stage::Preparing | Stage::Asking(_) | Stage::Ready(_) | Stage::Running { .. } => None,
        };
        self.calls.iter().filter_map(result).collect()
    }

    /// Cancels what runs and answers what has not started.
    pub(super) fn stop(&mut self, out: &mut Vec<Action>) {
        for (index, state) in self.calls.iter().enumerate() {
            if matches!(state.stage, Stage::Running { .. }) {
                out.push(Action::CancelTool { call: self.key(index) });
            }
        }
        self.answer_waiting(NotRun::Stopped, out);
    }
}

impl CallState {
    /// Whether it has not been told to run.
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Preparing | Stage::Asking(_) | Stage::Ready(_))
    }

    /// Says once that it has begun.
    fn tell_start(&mut self, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.told, true) {
            out.push(started(&self.call));
        }
    }

    /// Answers a call that is not made, or not made again.
    fn leave(&mut self, why: NotRun, out: &mut Vec<Action>) {
        if self.told {
            // The host before has run it.
            self.lose(HOST_GONE, Duration::ZERO, out);
        } else {
            refuse(self, ToolErrorKind::Cancelled, why.for_model().to_owned(), out);
        }
    }

    /// Answers a call of which nobody knows how far it came.
    fn lose(&mut self, message: &str, ran: Duration, out: &mut Vec<Action>) {
        self.tell_start(out);
        out.push(ended(&self.call, message, ToolErrorKind::Cancelled, ran.as_millis()));
        self.stage = Stage::Done(ToolResult::new(self.call.id.clone(), message, true));
    }
}

/// Calls that write the same file, and writing beside a command, which may read or write anything.
fn keep_order(a: &CallPlan, b: &CallPlan) -> bool {
    match (a.effect, b.effect) {
        (Effect::Write, Effect::Write) => a.writes.iter().any(|path| b.writes.contains(path)),
        (Effect::Execute, Effect::Write) | (Effect::Write, Effect::Execute) => true,
        (Effect::Read | Effect::Network, _) | (_, Effect::Read | Effect::Network) => false,
        (Effect::Execute, Effect::Execute) => false,
    }
}

impl Machine {
    pub(super) fn call_prepared(&mut self, key: CallKey, preparation: Preparation, out: &mut Vec<Action>) {
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        if !matches!(state.stage, Stage::Preparing) {
            return;
        }
        match preparation {
            Preparation::Ready(plan) => {
                tell_repairs(&state.call, &plan, out);
                state.stage = Stage::Ready(plan);
            }
            Preparation::Ask { plan, arguments, reason, fingerprint } => {
                tell_repairs(&state.call, &plan, out);
                state.stage = Stage::Asking(plan);
                let call_id = state.call.id.clone();
                if let Some(after) = self.limits.approval_timeout {
                    out.push(Action::SetTimer { timer: Timer::Approval(key), after });
                }
                // Whoever reads the event may decide at once.
                out.push(Action::AskApproval { call: key, call_id: call_id.clone() });
                out.push(Action::emit(EventKind::ApprovalRequested {
                    call_id,
                    tool_name: state.call.name.clone(),
                    arguments,
                    reason,
                    fingerprint,
                }));
            }
            Preparation::Refused { error, message } => {
                if error == ToolErrorKind::EnvironmentLost {
                    self.environment_lost = true;
                }
                refuse(state, error, message, out);
            }
        }
        self.go_on(out);
    }

    pub(super) fn approval_decided(
        &mut self,
        key: CallKey,
        approved: bool,
        reason: Option<String>,
        out: &mut Vec<Action>,
    ) {
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        let Stage::Asking(plan) = &state.stage else { return };
        let plan = plan.clone();
        out.push(Action::emit(EventKind::ApprovalDecided { call_id: state.call.id.clone(), approved }));
        if approved {
            state.stage = Stage::Ready(plan);
        } else {
            let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let message = format!("The call of {} was denied{why}", state.call.name);
            refuse(state, ToolErrorKind::Denied, message, out);
        }
        self.go_on(out);
    }

    pub(super) fn tool_started(&mut self, key: CallKey, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        if let Stage::Running { since: since @ None, .. } = &mut state.stage {
            *since = Some(now);
            state.tell_start(out);
        }
    }

    pub(super) fn tool_finished(&mut self, key: CallKey, finished: FinishedCall, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        let Stage::Running { since, .. } = state.stage else { return };
        // A start that was never told is told now, so that starts and ends pair.
        state.tell_start(out);
        let since = since.unwrap_or(now);
        let mut result = finished.result;
        if finished.error == Some(ToolErrorKind::EnvironmentLost) {
            self.environment_lost = true;
        }
        if let Some(question) = finished.question {
            // Two questions of one round are asked together.
            let asked = self.question.take().map(|asked| asked + "\n\n").unwrap_or_default();
            self.question = Some(asked + &question);
        }
        // The result answers this call, whatever the tool made of the id.
        result.tool_call_id.clone_from(&state.call.id);
        state.stage = Stage::Done(result);
        out.push(Action::emit(EventKind::ToolCallEnd {
            call_id: state.call.id.clone(),
            tool_name: state.call.name.clone(),
            output: finished.output,
            error: finished.error,
            timeout_ms: finished.timed_out.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            duration_ms: u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX),
            changes: finished.changes,
        }));
        self.go_on(out);
    }

    pub(super) fn tool_lost(&mut self, key: CallKey, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        let Stage::Running { since, .. } = &state.stage else { return };
        if let Some(since) = since {
            let ran = now.since(*since);
            state.lose(LOST, ran, out);
        } else {
            refuse(state, ToolErrorKind::Cancelled, NotRun::Stopped.for_model().to_owned(), out);
        }
        self.go_on(out);
    }

    fn go_on(&mut self, out: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.start_calls(out);
        }
        self.settle_round(out);
    }

    fn start_calls(&mut self, out: &mut Vec<Action>) {
        if self.met_before_tool().is_none() {
            let left = self.tool_calls_left();
            let Phase::RunningTools(round) = &mut self.phase else { return };
            self.spent.tool_calls += round.start(left, out);
        }
        self.hold_calls(out);
    }

    /// Ends the round if every call has its result.
    pub(super) fn settle_round(&mut self, out: &mut Vec<Action>) {
        let Phase::RunningTools(round) = &self.phase else { return };
        if !round.is_done() {
            return;
        }
        let results = round.results();
        self.record(Turn::tool_results(results, self.now));
        let lost = std::mem::take(&mut self.environment_lost);
        let question = self.question.take();
        if self.ending.is_some() || lost {
            // The run ends for another reason.
            self.over_budget = None;
        }
        if self.ending.is_some() {
            self.conclude(out);
        } else if lost {
            let error =
                Error::new(ErrorKind::Network, "the place where tools run is lost").with_retry(Retry::Never);
            self.fail(error.info().clone(), out);
        } else if let Some(question) =
            question.filter(|_| self.steering.is_empty() && self.over_budget.is_none())
        {
            self.asked(question, out);
        } else {
            // Who steers has said something new, which may be the answer.
            self.next_round(out);
        }
    }

    /// Answers calls that will not run, so that the history stays one that a provider accepts.
    pub(super) fn settle_unrun(&mut self, calls: Vec<ToolCall>, why: NotRun, out: &mut Vec<Action>) {
        if calls.is_empty() {
            return;
        }
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let message = why.for_model();
            out.push(started(&call));
            out.push(ended(&call, message, ToolErrorKind::Cancelled, 0));
            results.push(ToolResult::new(call.id, message, true));
        }
        self.record(Turn::tool_results(results, self.now));
    }
}

fn tell_repairs(call: &ToolCall, plan: &CallPlan, out: &mut Vec<Action>) {
    if !plan.repairs.is_empty() {
        out.push(Action::emit(EventKind::ToolCallRepaired {
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            repairs: plan.repairs.clone(),
        }));
    }
}

fn refuse(state: &mut CallState, error: ToolErrorKind, message: String, out: &mut Vec<Action>) {
    state.tell_start(out);
    out.push(ended(&state.call, &message, error, 0));
    state.stage = Stage::Done(ToolResult::new(state.call.id.clone(), message, true));
}

fn started(call: &ToolCall) -> Action {
    Action::emit(EventKind::ToolCallStart {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        arguments: call.arguments.clone(),
    })
}

fn ended(call: &ToolCall, text: &str, error: ToolErrorKind, duration_ms: u128) -> Action {
    Action::emit(EventKind::ToolCallEnd {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        output: Output::from(text.to_owned()),
        error: Some(error),
        timeout_ms: None,
        duration_ms: u64::try_from(duration_ms).unwrap_or(u64::MAX),
        changes: Vec::new(),
    })
}
