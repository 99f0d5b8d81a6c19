//! Calls of one response: their scheduling and their results.

mod calls;

use std::collections::BTreeSet;
use std::time::Duration;

use pintle_env::Output;
use pintle_llm::{Fingerprint, ToolCall, ToolCallKind, ToolResult};
use pintle_tools::gate::Judgement;
use pintle_tools::pipeline::Execution;
use pintle_tools::{Effect, FileIntent, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::approval;
use crate::protocol::{
    Action, ApprovalEnding, CallKey, CallKind, CallPlan, ChangedArguments, EventKind, HookAdditions,
    ModelCallId, Principal, Timestamp, add_context,
};

/// Calls of one response, in the model's order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Round {
    model_call: ModelCallId,
    pub(super) calls: Vec<CallState>,
    at_once: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CallState {
    pub(super) call: ToolCall,
    #[serde(default)]
    kind: CallKind,
    pub(super) stage: Stage,
    /// Whether its start event was emitted. A repeated call does not start again.
    #[serde(default, rename = "told")]
    start_emitted: bool,
    /// Ticket that waits for a decision, or that was approved.
    #[serde(default)]
    ticket: Option<Fingerprint>,
    /// Whether the ticket was approved and has not released a start.
    #[serde(default)]
    pub(super) approved: bool,
    /// Principal that approved it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approved_by: Option<Principal>,
    /// Fingerprint of the tool and the arguments in the request for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) asked: Option<Fingerprint>,
    /// Arguments that it runs with, if a user or a hook changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<ChangedArguments>,
    /// Text of hooks, which the model reads below the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    /// Whether a user changed the arguments, and so decided on the call. A hook does not decide.
    #[serde(default)]
    pub(super) decided: bool,
    /// Whether the call has spawned a subagent since its start.
    #[serde(default)]
    spawned: bool,
    /// Changes of files that the call has declared since its start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) declared: Vec<FileIntent>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Stage {
    Preparing,
    Asking(CallPlan),
    Ready(CallPlan),
    /// Its start is requested; `since` is set once the start is recorded.
    Running {
        plan: CallPlan,
        since: Option<Timestamp>,
    },
    /// Its process is gone, and its files are being compared with its declared changes.
    Reconciling {
        plan: CallPlan,
        /// Time from its start to the end of its process.
        ran: Duration,
    },
    Done(ToolResult),
}

/// Judgement of the gates, and the results of the hooks, for a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    pub(super) judgement: Judgement,
    /// Arguments that a hook changed.
    pub(super) changed: Option<ChangedArguments>,
    pub(super) additions: HookAdditions,
}

/// Calls that the driving process left open.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    /// Ids of calls that had started and are not repeated.
    pub(super) interrupted: Vec<String>,
    /// Ids of calls that had started and are repeated.
    pub(super) repeated: Vec<String>,
    /// Ids of calls that had declared changes of files, which are compared with the files.
    pub(super) reconciled: Vec<String>,
    /// Number of unfinished calls that were counted as spent; they count again when they start again.
    pub(super) not_finished: u64,
}

/// Reason why a call is answered without having run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotRunReason {
    /// The response was cut off by the output limit.
    CutOff,
    /// The response was blocked by a content filter.
    Blocked,
    /// The turn was stopped.
    Stopped,
    /// A spending limit was reached.
    OverBudget,
}

impl NotRunReason {
    pub(super) fn for_model(self) -> &'static str {
        match self {
            Self::CutOff => include_str!("../../prompts/calls/cut_off.md"),
            Self::Blocked => include_str!("../../prompts/calls/blocked.md"),
            Self::Stopped => include_str!("../../prompts/calls/stopped.md"),
            Self::OverBudget => include_str!("../../prompts/calls/over_budget.md"),
        }
        .trim_ascii_end()
    }
}

/// Result of a call whose process ended while it ran.
pub(super) const HOST_GONE: &str = include_str!("../../prompts/calls/host_gone.md").trim_ascii_end();

/// Result of a call that ran when the turn was stopped.
pub(super) const LOST: &str = include_str!("../../prompts/calls/interrupted.md").trim_ascii_end();

/// Returns the result of a call that was stopped before its tool ran. The machine fills in the id of the call.
pub(crate) fn not_run() -> Execution {
    Execution::failed("", &ToolError::new(ToolErrorKind::Cancelled, NotRunReason::Stopped.for_model()))
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
            out.push(state.prepare(self.key(index)));
        }
    }

    /// Continues after the driving process is gone. `last` is the time of the last input before that. `attached`
    /// contains the calls whose subagents continue: they run again, and find the subagent that they had spawned.
    pub(super) fn resume(
        &mut self,
        stopping: bool,
        last: Timestamp,
        attached: &BTreeSet<String>,
        out: &mut Vec<Action>,
    ) -> Resumption {
        let mut resumption = Resumption::default();
        for index in 0..self.calls.len() {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index) else { continue };
            match &state.stage {
                Stage::Done(_) => continue,
                Stage::Running { plan, since: Some(since) } if !state.declared.is_empty() => {
                    let ran = last.since(*since);
                    state.stage = Stage::Reconciling { plan: plan.clone(), ran };
                }
                Stage::Running { since: Some(_), .. } if !stopping && attached.contains(&state.call.id) => {
                    // It spawns no further subagent, so its earlier decision suffices.
                    state.approved = state.ticket.is_some();
                    resumption.not_finished += 1;
                }
                Stage::Running { plan, since: Some(since) }
                    if !plan.may_run_again() || state.spawned || stopping =>
                {
                    resumption.interrupted.push(state.call.id.clone());
                    let ran = last.since(*since);
                    state.lose(HOST_GONE, ran, out);
                    continue;
                }
                Stage::Running { .. } => resumption.not_finished += 1,
                Stage::Preparing | Stage::Asking(_) | Stage::Ready(_) | Stage::Reconciling { .. } => {}
            }
            if let Stage::Reconciling { .. } = &state.stage {
                resumption.reconciled.push(state.call.id.clone());
                out.push(Action::Reconcile { call: key, files: state.declared.clone() });
                continue;
            }
            if state.start_emitted {
                let ids = if stopping { &mut resumption.interrupted } else { &mut resumption.repeated };
                ids.push(state.call.id.clone());
            }
            if stopping {
                state.abandon(NotRunReason::Stopped, out);
                continue;
            }
            // The prepared call is gone with the process. A decision that has released no start still applies, if the
            // call is the same when it is prepared again.
            state.stage = Stage::Preparing;
            out.push(state.prepare(key));
        }
        resumption
    }

    /// Notes that a call has spawned a subagent.
    pub(super) fn spawned(&mut self, call_id: &str) {
        if let Some(state) = self.calls.iter_mut().find(|state| state.call.id == call_id) {
            state.spawned = true;
        }
    }

    fn key(&self, index: usize) -> CallKey {
        CallKey { model_call: self.model_call, index }
    }

    pub(super) fn get(&self, key: CallKey) -> Option<&CallState> {
        if key.model_call == self.model_call { self.calls.get(key.index) } else { None }
    }

    pub(super) fn get_mut(&mut self, key: CallKey) -> Option<&mut CallState> {
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

    /// Returns the number of calls that could start now.
    pub(super) fn waiting(&self) -> usize {
        self.startable().len()
    }

    /// Answers the calls that have not started, since nothing more may be spent. Returns whether there were any.
    pub(super) fn hold(&mut self, out: &mut Vec<Action>) -> bool {
        let waiting = self.calls.iter().any(CallState::is_waiting);
        self.answer_waiting(NotRunReason::OverBudget, out);
        waiting
    }

    pub(super) fn answer_waiting(&mut self, why: NotRunReason, out: &mut Vec<Action>) {
        for index in 0..self.calls.len() {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index).filter(|state| state.is_waiting()) else { continue };
            if matches!(state.stage, Stage::Asking(_)) {
                out.push(Action::WithdrawApproval { call: key });
                out.push(approval::ended(&state.call.id, ApprovalEnding::Cancelled));
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
                Stage::Asking(plan) | Stage::Running { plan, .. } | Stage::Reconciling { plan, .. } => plan,
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
            Stage::Reconciling { .. } => "reconciling",
            Stage::Done(_) => "done",
        };
        self.calls.iter().map(stage).collect()
    }

    /// Returns the ids of the calls that have started and have no result.
    #[cfg(test)]
    pub(super) fn open(&self) -> Vec<String> {
        let has_begun = |state: &&CallState| {
            matches!(state.stage, Stage::Running { since: Some(_), .. } | Stage::Reconciling { .. })
        };
        self.calls.iter().filter(has_begun).map(|state| state.call.id.clone()).collect()
    }

    #[cfg(test)]
    pub(super) fn at_once(&self) -> usize {
        self.at_once
    }

    pub(super) fn running(&self) -> usize {
        self.calls.iter().filter(|state| matches!(state.stage, Stage::Running { .. })).count()
    }

    pub(super) fn is_done(&self) -> bool {
        self.calls.iter().all(|state| matches!(state.stage, Stage::Done(_)))
    }

    pub(super) fn results(&self) -> Vec<ToolResult> {
        let result = |state: &CallState| match &state.stage {
            Stage::Done(result) => Some(result.clone()),
            Stage::Preparing
            | Stage::Asking(_)
            | Stage::Ready(_)
            | Stage::Running { .. }
            | Stage::Reconciling { .. } => None,
        };
        self.calls.iter().filter_map(result).collect()
    }

    /// Cancels running calls and answers those that have not started.
    pub(super) fn stop(&mut self, out: &mut Vec<Action>) {
        for index in 0..self.calls.len() {
            let key = self.key(index);
            let Some(state) = self.calls.get_mut(index) else { continue };
            if matches!(state.stage, Stage::Running { .. }) {
                out.push(Action::CancelTool { call: key });
            } else if let Stage::Reconciling { ran, .. } = state.stage {
                // A stop does not wait for an environment that may not answer.
                state.lose(HOST_GONE, ran, out);
            }
        }
        self.answer_waiting(NotRunReason::Stopped, out);
    }
}

impl CallState {
    fn new(call: ToolCall, kind: CallKind) -> Self {
        Self {
            call,
            kind,
            stage: Stage::Preparing,
            start_emitted: false,
            ticket: None,
            approved: false,
            approved_by: None,
            asked: None,
            changed: None,
            context: None,
            decided: false,
            spawned: false,
            declared: Vec::new(),
        }
    }

    /// Returns the action that prepares the call with its current arguments.
    pub(super) fn prepare(&self, key: CallKey) -> Action {
        let mut tool_call = self.call.clone();
        if let Some(ChangedArguments { arguments, .. }) = &self.changed {
            tool_call.arguments = arguments.clone().into();
            tool_call.raw_arguments = None;
            tool_call.kind = ToolCallKind::Function;
        }
        Action::PrepareCall { call: key, tool_call: Box::new(tool_call), changed: self.changed.is_some() }
    }

    /// Changes the arguments of the call.
    pub(super) fn change(&mut self, arguments: Value, by: Option<Principal>) {
        self.changed = Some(ChangedArguments { arguments, by });
        (self.ticket, self.approved, self.decided, self.stage) = (None, false, true, Stage::Preparing);
    }

    fn was_decided_with(&self, arguments: &Value) -> bool {
        self.decided && self.changed.as_ref().is_some_and(|changed| changed.arguments == *arguments)
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, Stage::Done(_))
    }

    /// Returns whether the start of the call has not been requested.
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
    pub(super) fn abandon(&mut self, why: NotRunReason, out: &mut Vec<Action>) {
        if self.start_emitted {
            // The previous process ran it.
            self.lose(HOST_GONE, Duration::ZERO, out);
        } else {
            self.refuse(ToolErrorKind::Cancelled, why.for_model(), out);
        }
    }

    /// Answers a call whose effect is unknown.
    pub(super) fn lose(&mut self, message: &str, ran: Duration, out: &mut Vec<Action>) {
        self.fail(message, ToolErrorKind::Cancelled, ran, out);
    }

    /// Answers a call that does not run.
    pub(super) fn refuse(&mut self, error: ToolErrorKind, message: &str, out: &mut Vec<Action>) {
        self.fail(message, error, Duration::ZERO, out);
    }

    pub(super) fn fail(&mut self, message: &str, error: ToolErrorKind, ran: Duration, out: &mut Vec<Action>) {
        self.emit_start(out);
        out.push(failure_event(&self.call, message, error, ran));
        let mut content = message.to_owned();
        add_context(&mut content, self.context.as_deref());
        self.stage = Stage::Done(ToolResult::new(self.call.id.clone(), content, true));
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
        images: Vec::new(),
    })
}
