//! Calls of one response: their scheduling and their results.

use std::time::Duration;

use pintle_env::Output;
use pintle_llm::{Error, ErrorKind, Retry, ToolCall, ToolResult};
use pintle_tools::pipeline::Execution;
use pintle_tools::{Effect, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};

use super::{Machine, Phase};
use crate::protocol::{
    Action, CallKey, CallKind, CallPlan, EventKind, ModelCallId, Preparation, Timer, Timestamp, Turn,
};

/// Calls of one response, in the model's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Round {
    model_call: ModelCallId,
    calls: Vec<CallState>,
    at_once: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CallState {
    call: ToolCall,
    #[serde(default)]
    kind: CallKind,
    stage: Stage,
    /// Whether its start event was emitted. A repeated call does not start again.
    #[serde(default, rename = "told")]
    start_emitted: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Stage {
    Preparing,
    Asking(CallPlan),
    Ready(CallPlan),
    /// Asked to start; `since` is set once its start is on record.
    Running {
        plan: CallPlan,
        since: Option<Timestamp>,
    },
    Done(ToolResult),
}

/// Calls that the driving process left open.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    /// Ids of calls that had started and are not repeated.
    pub(super) interrupted: Vec<String>,
    /// Ids of calls that had started and are repeated.
    pub(super) repeated: Vec<String>,
    /// Number of unfinished calls that were counted as spent; they count again when they start again.
    pub(super) not_finished: u64,
}

/// Reason why a call is answered without having run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRun {
    /// The response was cut off by the output limit.
    CutOff,
    /// The response was blocked by a content filter.
    Blocked,
    /// The turn was stopped.
    Stopped,
    /// A spending limit was reached.
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

/// Returns the result of a call that was stopped before its tool ran. The machine fills in the id of the call.
pub(crate) fn not_run() -> Execution {
    Execution::failed("", &ToolError::new(ToolErrorKind::Cancelled, NotRun::Stopped.for_model()))
}

impl Round {
    pub(super) fn new(
        model_call: ModelCallId,
        calls: Vec<ToolCall>,
        kinds: Vec<CallKind>,
        at_once: usize,
    ) -> Self {
        let calls = calls.into_iter().zip(kinds).map(|(call, kind)| CallState::new(call, kind)).collect();
        Self { model_call, calls, at_once }
    }

    pub(super) fn prepare_all(&self, out: &mut Vec<Action>) {
        for (index, state) in self.calls.iter().enumerate() {
            out.push(Action::PrepareCall { call: self.key(index), tool_call: Box::new(state.call.clone()) });
        }
    }

    /// Continues after the driving process is gone. `last` is the time of the last input before.
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
                Stage::Running { .. } => resumption.not_finished += 1,
                Stage::Preparing | Stage::Asking(_) | Stage::Ready(_) => {}
            }
            if state.start_emitted {
                let ids = if stopping { &mut resumption.interrupted } else { &mut resumption.repeated };
                ids.push(state.call.id.clone());
            }
            if stopping {
                state.abandon(NotRun::Stopped, out);
                continue;
            }
            // The prepared call is gone with the process, and a decision applied to that call alone.
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

    /// Requests the start of the calls that may start now, up to `max`. Returns their number.
    fn start(&mut self, max: usize, out: &mut Vec<Action>) -> u64 {
        let mut started = 0;
        for index in self.startable().into_iter().take(max) {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index) else { continue };
            if let Stage::Ready(plan) = &state.stage {
                state.stage = Stage::Running { plan: plan.clone(), since: None };
                out.push(Action::StartTool { call: key });
                started += 1;
            }
        }
        started
    }

    /// Answers the calls that have not started, since nothing more may be spent. Returns whether there were any.
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
            state.abandon(why, out);
        }
    }

    /// Returns the indices of the calls that may start now, in the model's order.
    fn startable(&self) -> Vec<usize> {
        let mut free = self.at_once.saturating_sub(self.running());
        let mut unfinished: Vec<&CallPlan> = Vec::new();
        let mut startable = Vec::new();
        for (index, state) in self.calls.iter().enumerate() {
            let plan = match &state.stage {
                Stage::Done(_) => continue,
                // The effect of an unprepared call is unknown.
                Stage::Preparing => break,
                Stage::Asking(plan) | Stage::Running { plan, .. } => plan,
                Stage::Ready(plan) => {
                    // Sequential calls run in the model's order.
                    if free == 0 || (self.at_once == 1 && !unfinished.is_empty()) {
                        break;
                    }
                    if !unfinished.iter().any(|earlier| must_keep_order(earlier, plan)) {
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

    /// Returns the stage of each call.
    #[cfg(test)]
    pub(super) fn stages(&self) -> Vec<&'static str> {
        let stage = |state: &CallState| match &state.stage {
            Stage::Preparing => "preparing",
            Stage::Asking(_) => "asking",
            Stage::Ready(_) => "ready",
            Stage::Running { since: None, .. } => "starting",
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

    /// Cancels running calls and answers those that have not started.
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
    fn new(call: ToolCall, kind: CallKind) -> Self {
        Self { call, kind, stage: Stage::Preparing, start_emitted: false }
    }

    /// Returns whether its start has not been requested.
    fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Preparing | Stage::Asking(_) | Stage::Ready(_))
    }

    /// Emits the start event, once.
    fn emit_start(&mut self, out: &mut Vec<Action>) {
        if !std::mem::replace(&mut self.start_emitted, true) {
            out.push(start_event(&self.call, self.kind));
        }
    }

    /// Answers a call that is not run, or not repeated.
    fn abandon(&mut self, why: NotRun, out: &mut Vec<Action>) {
        if self.start_emitted {
            // The previous process ran it.
            self.lose(HOST_GONE, Duration::ZERO, out);
        } else {
            self.refuse(ToolErrorKind::Cancelled, why.for_model(), out);
        }
    }

    /// Answers a call whose effect is unknown.
    fn lose(&mut self, message: &str, ran: Duration, out: &mut Vec<Action>) {
        self.fail(message, ToolErrorKind::Cancelled, ran, out);
    }

    /// Answers a call that does not run.
    fn refuse(&mut self, error: ToolErrorKind, message: &str, out: &mut Vec<Action>) {
        self.fail(message, error, Duration::ZERO, out);
    }

    fn fail(&mut self, message: &str, error: ToolErrorKind, ran: Duration, out: &mut Vec<Action>) {
        self.emit_start(out);
        out.push(failure_event(&self.call, message, error, ran));
        self.stage = Stage::Done(ToolResult::new(self.call.id.clone(), message, true));
    }
}

/// Returns whether two calls must not run concurrently: they write the same file, or one writes and the other runs a
/// command, which may read or write anything.
fn must_keep_order(a: &CallPlan, b: &CallPlan) -> bool {
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
                emit_repairs(&state.call, &plan, out);
                state.stage = Stage::Ready(plan);
            }
            Preparation::Ask { plan, arguments, reason, fingerprint } => {
                emit_repairs(&state.call, &plan, out);
                state.stage = Stage::Asking(plan);
                let call_id = state.call.id.clone();
                if let Some(after) = self.limits.approval_timeout {
                    out.push(Action::SetTimer { timer: Timer::Approval(key), after });
                }
                // A subscriber may decide as soon as it reads the event.
                out.push(Action::AskApproval { call: key, call_id: call_id.clone() });
                out.push(Action::emit(EventKind::ApprovalRequested {
                    call_id,
                    tool_name: state.call.name.clone(),
                    call_kind: state.kind,
                    arguments,
                    reason,
                    fingerprint,
                }));
            }
            Preparation::Refused { error, message } => {
                if error == ToolErrorKind::EnvironmentLost {
                    self.environment_lost = true;
                }
                state.refuse(error, &message, out);
            }
        }
        self.advance_round(out);
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
            state.refuse(ToolErrorKind::Denied, &message, out);
        }
        self.advance_round(out);
    }

    pub(super) fn tool_started(&mut self, key: CallKey, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        if let Stage::Running { since: since @ None, .. } = &mut state.stage {
            *since = Some(now);
            state.emit_start(out);
            out.push(Action::RunTool { call: key });
        }
    }

    pub(super) fn tool_finished(&mut self, key: CallKey, finished: Execution, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        let Stage::Running { since, .. } = state.stage else { return };
        // Starts and ends pair, even if the start never came.
        state.emit_start(out);
        let since = since.unwrap_or(now);
        let mut result = finished.result;
        if finished.error == Some(ToolErrorKind::EnvironmentLost) {
            self.environment_lost = true;
        }
        if let Some(question) = finished.question {
            // Several questions of one round are asked together.
            let earlier = self.question.take().map(|earlier| earlier + "\n\n").unwrap_or_default();
            self.question = Some(earlier + &question);
        }
        // The result belongs to this call, whatever id the tool returned.
        result.tool_call_id.clone_from(&state.call.id);
        state.stage = Stage::Done(result);
        out.push(Action::emit(EventKind::ToolCallEnd {
            call_id: state.call.id.clone(),
            tool_name: state.call.name.clone(),
            output: finished.output,
            error: finished.error,
            timeout_ms: finished.timed_out.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
            exit_code: finished.exit_code,
            duration_ms: u64::try_from(now.since(since).as_millis()).unwrap_or(u64::MAX),
            changes: finished.changes,
        }));
        self.advance_round(out);
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
            state.refuse(ToolErrorKind::Cancelled, NotRun::Stopped.for_model(), out);
        }
        self.advance_round(out);
    }

    fn advance_round(&mut self, out: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.start_calls(out);
        }
        self.settle_round(out);
    }

    fn start_calls(&mut self, out: &mut Vec<Action>) {
        if self.limit_on_tool_call().is_none() {
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
                Error::new(ErrorKind::Network, "the execution environment is lost").with_retry(Retry::Never);
            self.fail(error.info().clone(), out);
        } else if let Some(question) =
            question.filter(|_| self.steering.is_empty() && self.over_budget.is_none())
        {
            self.await_answer(question, out);
        } else {
            // A steering message may be the answer.
            self.next_round(out);
        }
    }

    /// Answers calls that will not run, so that providers accept the history.
    pub(super) fn settle_unrun(&mut self, calls: Vec<ToolCall>, why: NotRun, out: &mut Vec<Action>) {
        if calls.is_empty() {
            return;
        }
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            let message = why.for_model();
            out.push(start_event(&call, self.call_kind(&call.name)));
            out.push(failure_event(&call, message, ToolErrorKind::Cancelled, Duration::ZERO));
            results.push(ToolResult::new(call.id, message, true));
        }
        self.record(Turn::tool_results(results, self.now));
    }
}

fn emit_repairs(call: &ToolCall, plan: &CallPlan, out: &mut Vec<Action>) {
    if !plan.repairs.is_empty() {
        out.push(Action::emit(EventKind::ToolCallRepaired {
            call_id: call.id.clone(),
            tool_name: call.name.clone(),
            repairs: plan.repairs.clone(),
        }));
    }
}

fn start_event(call: &ToolCall, call_kind: CallKind) -> Action {
    Action::emit(EventKind::ToolCallStart {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        call_kind,
        arguments: call.arguments.clone(),
    })
}

fn failure_event(call: &ToolCall, message: &str, error: ToolErrorKind, duration: Duration) -> Action {
    Action::emit(EventKind::ToolCallEnd {
        call_id: call.id.clone(),
        tool_name: call.name.clone(),
        output: Output::from(message.to_owned()),
        error: Some(error),
        timeout_ms: None,
        exit_code: None,
        duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
        changes: Vec::new(),
    })
}
