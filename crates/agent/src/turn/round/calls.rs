//! Preparations, starts and results of the calls of a round.

use std::time::Duration;

use pintle_llm::{Error, ErrorKind, Retry, ToolCall, ToolResult};
use pintle_tools::ToolErrorKind;
use pintle_tools::gate::Judgement;
use pintle_tools::pipeline::Execution;
use serde_json::Value;

use super::{CallState, Judged, LOST, NotRunReason, Stage, failure_event, start_event};
use crate::protocol::{
    Action, ApprovalEnding, CallKey, CallPlan, EventKind, HookAdditions, ImageSummary, Preparation, Timer,
    Turn, add_context,
};
use crate::turn::end_reasons::RoundEnd;
use crate::turn::{Machine, Phase, approval};

impl Machine {
    pub(in crate::turn) fn call_prepared(
        &mut self,
        key: CallKey,
        preparation: Preparation,
        judged: Judged,
        out: &mut Vec<Action>,
    ) {
        if self.take_preparation(key, preparation, judged, out) {
            self.advance_round(out);
        }
    }

    /// Reports that a gate refused a call right before its effect.
    pub(in crate::turn) fn call_judged(&self, key: CallKey, judgement: Judgement, out: &mut Vec<Action>) {
        let Phase::RunningTools(round) = &self.phase else { return };
        if let Some(state) = round.get(key)
            && matches!(state.stage, Stage::Running { .. })
        {
            emit_judgement(state, judgement, out);
        }
    }

    /// Applies the preparation of a call. Returns whether it was expected.
    pub(in crate::turn) fn take_preparation(
        &mut self,
        key: CallKey,
        preparation: Preparation,
        judged: Judged,
        out: &mut Vec<Action>,
    ) -> bool {
        let Phase::RunningTools(round) = &mut self.phase else { return false };
        let Some(state) = round.get_mut(key) else { return false };
        if !matches!(state.stage, Stage::Preparing) {
            return false;
        }
        if let Preparation::Ready(plan) | Preparation::Ask { plan, .. } = &preparation {
            emit_repairs(&state.call, plan, out);
        }
        if judged.changed.is_some() {
            state.changed = judged.changed;
        }
        emit_judgement(state, judged.judgement, out);
        let HookAdditions { context, stop } = judged.additions;
        state.context = state.context.take().or(context);
        self.end_reasons.stop(stop);
        match preparation {
            Preparation::Ready(plan) => {
                state.stage = Stage::Ready(plan);
            }
            Preparation::Ask { plan, fingerprint, .. }
                if state.approved && state.ticket == Some(fingerprint) =>
            {
                out.push(Action::ConfirmApproval { call: key, by: state.approved_by.clone() });
                state.stage = Stage::Ready(plan);
            }
            Preparation::Ask { plan, arguments, fingerprint, .. } if state.was_decided_with(&arguments) => {
                state.ticket = Some(fingerprint);
                state.approved = true;
                let by = state.changed.as_ref().and_then(|changed| changed.by.clone());
                out.push(Action::ConfirmApproval { call: key, by });
                state.stage = Stage::Ready(plan);
            }
            Preparation::Ask { plan, arguments, reason, fingerprint, sandbox } => {
                if state.ticket.is_some_and(|ticket| ticket != fingerprint) {
                    out.push(approval::ended(&state.call.id, ApprovalEnding::Superseded));
                }
                state.ticket = Some(fingerprint);
                state.approved = false;
                state.asked = Some(approval::content(&state.call.name, &arguments));
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
                    sandbox,
                }));
            }
            Preparation::Refused { error, message } => {
                if error == ToolErrorKind::EnvironmentLost {
                    self.end_reasons.lose_environment();
                }
                state.refuse(error, &message, out);
            }
        }
        true
    }

    pub(in crate::turn) fn tool_started(&mut self, key: CallKey, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        if let Stage::Running { plan, since: since @ None } = &mut state.stage {
            *since = Some(now);
            // One decision releases one start. Until a call declares its changes it has had no effect.
            state.approved = state.approved && plan.declares_changes;
            state.emit_start(out);
            out.push(Action::RunTool { call: key });
        }
    }

    pub(in crate::turn) fn tool_finished(
        &mut self,
        key: CallKey,
        finished: Execution,
        out: &mut Vec<Action>,
    ) {
        if self.take_result(key, finished, out) {
            self.advance_round(out);
        }
    }

    /// Applies the result of a call. Returns whether it was expected.
    pub(in crate::turn) fn take_result(
        &mut self,
        key: CallKey,
        finished: Execution,
        out: &mut Vec<Action>,
    ) -> bool {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return false };
        let Some(state) = round.get_mut(key) else { return false };
        let Stage::Running { since, .. } = state.stage else { return false };
        // Each end has a start, even if the start was never reported.
        state.emit_start(out);
        let since = since.unwrap_or(now);
        let mut result = finished.result;
        if finished.error == Some(ToolErrorKind::EnvironmentLost) {
            self.end_reasons.lose_environment();
        }
        self.end_reasons.stop(finished.stop);
        if let Some(question) = finished.question {
            self.end_reasons.ask(&question);
        }
        if let (Some(changed), Value::String(text)) = (&state.changed, &mut result.content) {
            text.insert_str(0, &changed.note());
        }
        if let Value::String(text) = &mut result.content {
            add_context(text, state.context.as_deref());
        }
        // The result belongs to this call, whatever id the tool returned.
        result.tool_call_id.clone_from(&state.call.id);
        let images = result.images.iter().map(ImageSummary::from_image).collect();
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
            images,
        }));
        true
    }

    pub(in crate::turn) fn tool_lost(&mut self, key: CallKey, out: &mut Vec<Action>) {
        if self.take_loss(key, out) {
            self.advance_round(out);
        }
    }

    /// Answers a call that was stopped. Returns whether that was expected.
    pub(in crate::turn) fn take_loss(&mut self, key: CallKey, out: &mut Vec<Action>) -> bool {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return false };
        let Some(state) = round.get_mut(key) else { return false };
        let Stage::Running { since, .. } = &state.stage else { return false };
        if let Some(since) = since {
            let ran = now.since(*since);
            state.lose(LOST, ran, out);
        } else {
            state.refuse(ToolErrorKind::Cancelled, NotRunReason::Stopped.for_model(), out);
        }
        true
    }

    /// Applies the start of a call that another version of this program started.
    pub(in crate::turn) fn take_start(&mut self, key: CallKey, out: &mut Vec<Action>) {
        let now = self.now;
        let Phase::RunningTools(round) = &mut self.phase else { return };
        let Some(state) = round.get_mut(key) else { return };
        let (Stage::Ready(plan) | Stage::Asking(plan)) = &state.stage else { return };
        let plan = plan.clone();
        state.approved = state.approved && plan.declares_changes;
        state.stage = Stage::Running { plan, since: Some(now) };
        state.emit_start(out);
        self.spent.tool_calls += 1;
    }

    pub(in crate::turn) fn advance_round(&mut self, out: &mut Vec<Action>) {
        if self.ending.is_none() {
            self.start_calls(out);
        }
        self.settle_round(out);
    }

    fn start_calls(&mut self, out: &mut Vec<Action>) {
        if self.limit_on_tool_call().is_none() {
            let left = self.tool_calls_left();
            let Phase::RunningTools(round) = &mut self.phase else { return };
            let started = round.start(left, out);
            self.spent.tool_calls += started;
            self.note_started(started);
        }
        if !self.ask_for_tool_calls(out) {
            self.hold_calls(out);
        }
    }

    /// Records the results of a round in which every call has one.
    pub(in crate::turn) fn record_round(&mut self) {
        let Phase::RunningTools(round) = &self.phase else { return };
        let results = round.results();
        let window = self.limits.loop_window();
        for (state, result) in round.calls.iter().zip(&results) {
            self.calls.push(&state.call, Some(result), window);
        }
        self.record(Turn::tool_results(results, self.now));
    }

    /// Ends the round if every call has its result.
    pub(in crate::turn) fn settle_round(&mut self, out: &mut Vec<Action>) {
        let Phase::RunningTools(round) = &self.phase else { return };
        if !round.is_done() {
            return;
        }
        self.record_round();
        let end = self.end_reasons.end_round();
        if self.ending.is_some() || end.is_failure() {
            // The run ends for another reason.
            self.end_reasons.drop_limit();
        }
        if self.ending.is_some() {
            self.conclude(out);
            return;
        }
        match end {
            RoundEnd::EnvironmentLost => {
                let error = Error::new(ErrorKind::Network, "the execution environment is lost")
                    .with_retry(Retry::Never);
                self.fail(error.info().clone(), out);
            }
            RoundEnd::Stopped(reason) => self.fail_stopped(reason, out),
            RoundEnd::Question(question) if !self.queued.has_steering() && !self.end_reasons.has_limit() => {
                self.await_answer(question, out);
            }
            // A steering message may be the answer.
            RoundEnd::Question(_) | RoundEnd::NextRequest => self.next_round(out),
        }
    }

    /// Answers calls that will not run, so that providers accept the history.
    pub(in crate::turn) fn settle_unrun(
        &mut self,
        calls: Vec<ToolCall>,
        why: NotRunReason,
        out: &mut Vec<Action>,
    ) {
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

fn emit_judgement(state: &CallState, judgement: Judgement, out: &mut Vec<Action>) {
    if !judgement.is_empty() || state.changed.is_some() {
        out.push(Action::emit(EventKind::CallJudged {
            call_id: state.call.id.clone(),
            tool_name: state.call.name.clone(),
            permission: judgement.permission(),
            steps: judgement,
            changed: state.changed.clone(),
        }));
    }
}
