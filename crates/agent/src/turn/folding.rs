//! Folding of inputs that another version recorded (design of the layers above, section 2).
//!
//! Another version may have decided differently, so its inputs are not stepped. Texts, answers, results and spending
//! are taken unchanged. The record also contains the consequences of an input: a request, or the end of a run. Records
//! before version 4 contain less, and the rules of the conversation supply the rest. Folding makes no decisions and
//! requests nothing; it only reports events.

use pintle_llm::{ErrorInfo, ErrorKind, Finish, Response, ToolCall};

use super::approval::ApprovalResult;
use super::cycle::{is_fatal, is_pause};
use super::end_reasons::RoundEnd;
use super::ending::Ending;
use super::final_question::status_after;
use super::progress::Progress;
use super::round::{Judged, NotRunReason};
use super::{Machine, Phase};
use crate::protocol::{
    Action, Change, EventKind, Input, InputConsequences, InputKind, LoadId, ModelCallId, OutcomeStatus,
    RunId, SessionState, Timer, Timestamp, Turn, UserMessage,
};

impl Machine {
    /// Applies a recorded input and its consequences. Returns the events and the ends of runs.
    pub(crate) fn fold(&mut self, input: Input, followed: &InputConsequences) -> Vec<Action> {
        let last = self.now;
        self.now = last.max(input.at);
        let mut out = Vec::new();
        self.fold_input(input.kind, last, followed, &mut out);
        self.fold_answers(followed, &mut out);
        let begun = out.iter().filter(|action| is_user_input(action)).count() as u64;
        if begun < followed.begun {
            self.fold_follow_up(followed, &mut out);
        }
        while let Some(status) = followed.next_end(&out) {
            let before = out.len();
            self.fold_end(status, None, followed, &mut out);
            if out.len() == before {
                break;
            }
        }
        if followed.request && self.state != SessionState::Closed {
            self.fold_request(followed, &mut out);
        }
        out.retain(|action| matches!(action, Action::Emit(_) | Action::Finish { .. }));
        out
    }

    fn fold_input(
        &mut self,
        kind: InputKind,
        last: Timestamp,
        followed: &InputConsequences,
        out: &mut Vec<Action>,
    ) {
        match kind {
            InputKind::Submit { run, message } => self.fold_submit(run, message, followed, out),
            InputKind::InputRefused { run, reason } => self.input_refused(run, &reason, out),
            InputKind::SentOn { model_call, text } => self.sent_on(model_call, text, out),
            InputKind::EndStopped { model_call, reason } => self.end_stopped(model_call, reason),
            InputKind::Interrupt => self.fold_stop(Ending::Interrupt, followed, out),
            InputKind::Abort => self.fold_stop(Ending::Abort, followed, out),
            InputKind::Close => self.fold_stop(Ending::Close, followed, out),
            InputKind::Configure { change: Change::Context } => self.context_is_current = false,
            InputKind::ApprovalDecided { call, approved, reason, by } => {
                self.take_decision(call, ApprovalResult::decided(approved, reason, by), out);
                self.fold_round(followed, out);
            }
            InputKind::CallChanged { call, arguments, by } => self.call_changed(call, arguments, by, out),
            InputKind::PolicyChanged { change } => self.policy_changed(change, out),
            InputKind::ContextLoaded { load, context } => {
                if self.expects_load(load) {
                    self.take_context(*context, out);
                }
            }
            InputKind::ContextFailed { load, error } => {
                if self.expects_load(load) {
                    self.fold_failed(error, followed, out);
                }
            }
            InputKind::ModelRetrying { model_call, error, .. } => {
                if followed.cancelled {
                    // There was no budget for another attempt.
                    self.release_failed(&error);
                    self.ending.get_or_insert(Ending::Interrupt);
                } else if self.expects(model_call) {
                    self.take_retry(&error);
                }
            }
            InputKind::ModelReplied { model_call, response } => {
                self.fold_reply(model_call, *response, followed, out);
            }
            InputKind::ModelFailed { model_call, error, partial } => {
                if self.expects(model_call) {
                    self.fold_failure(error, partial, followed, out);
                }
            }
            InputKind::TimerFired { timer: Timer::Approval(call) } => {
                self.take_decision(call, ApprovalResult::expired(), out);
                self.fold_round(followed, out);
            }
            InputKind::TimerFired { timer: Timer::Run(run) } => {
                // A timer whose limit was removed fires without effect.
                if self.limits.budget.wall_time.is_some() && self.current_run() == Some(run) {
                    self.fold_stop(Ending::Interrupt, followed, out);
                }
            }
            InputKind::CallPrepared { call, preparation, judgement, changed, additions } => {
                self.take_preparation(call, preparation, Judged { judgement, changed, additions }, out);
                self.fold_round(followed, out);
            }
            InputKind::CallJudged { call, judgement } => self.call_judged(call, judgement, out),
            InputKind::ToolStarted { call } => self.take_start(call, out),
            InputKind::Reconciled { call, result } => {
                self.take_reconciliation(call, result, out);
                self.fold_round(followed, out);
            }
            InputKind::ToolFinished { call, finished } => {
                self.take_result(call, *finished, out);
                self.fold_round(followed, out);
            }
            InputKind::ToolLost { call } => {
                self.take_loss(call, out);
                self.fold_round(followed, out);
            }
            InputKind::ChildSpent { agent, spent } => {
                self.take_child_spent(&agent, spent);
            }
            InputKind::ChildAccount { agent, account } => {
                self.take_child_account(&agent, account);
            }
            InputKind::ChildAsked { agent, ask, has, wants, .. } => {
                self.take_child_ask(&agent, ask, has, wants);
            }
            InputKind::BudgetGranted { ask, slice, .. } => self.take_grant(ask, slice),
            InputKind::CleanedUp => {
                if self.ends_the_session() && !followed.is_complete {
                    self.close_round(NotRunReason::Stopped, followed, out);
                    self.phase = Phase::CleaningUp;
                }
                self.cleaned_up(out);
            }
            InputKind::Unrecorded { error } => {
                out.push(Action::emit(EventKind::Error { error: error.clone() }));
                self.fold_stop(Ending::Failure(error), followed, out);
            }
            InputKind::Resumed { attached, asks } => {
                self.take_source(asks);
                if self.state != SessionState::Closed {
                    self.take_resumption(last, &attached, out);
                    self.fold_resumption(followed, out);
                }
            }
            // The consequences contain the summary.
            InputKind::Compact | InputKind::TakenUp { .. } => {}
            // These inputs involve no decision.
            kind @ (InputKind::Opened { .. }
            | InputKind::Steer { .. }
            | InputKind::FollowUp { .. }
            | InputKind::Rewind { .. }
            | InputKind::CheckpointTaken { .. }
            | InputKind::Configure { .. }
            | InputKind::DecisionRefused { .. }
            | InputKind::SegmentOpened { .. }
            | InputKind::SegmentClosed { .. }
            | InputKind::ArgumentsOpened { .. }
            | InputKind::ArgumentsClosed { .. }
            | InputKind::ChangesDeclared { .. }
            | InputKind::ChildSpawned { .. }
            | InputKind::ChildEnded { .. }) => self.handle(kind, last, out),
        }
    }

    /// Applies a user input. An input during a run was rejected, unless the run was being stopped.
    fn fold_submit(
        &mut self,
        run: RunId,
        message: UserMessage,
        followed: &InputConsequences,
        out: &mut Vec<Action>,
    ) {
        let is_closing = self.state == SessionState::Closed || matches!(self.phase, Phase::CleaningUp);
        if is_closing || message.problem().is_some() {
            return;
        }
        if self.progress.is_some() {
            if self.ending == Some(Ending::Interrupt) && !self.queued.has_next_run() {
                self.queued.set_next_run(run, message);
            }
            return;
        }
        self.progress = Some(Progress::new(run, self.now, self.charged(), self.spent));
        self.state = SessionState::Processing;
        self.fold_user(message, followed, out);
    }

    fn fold_user(&mut self, message: UserMessage, followed: &InputConsequences, out: &mut Vec<Action>) {
        self.begin_input(message, out);
        self.fold_steering(followed, out);
        if !matches!(self.phase, Phase::Compacting { .. }) {
            self.await_request();
        }
    }

    /// Delivers the waiting steering messages: the recorded number, or else all. Returns whether there were any.
    fn fold_steering(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) -> bool {
        let told = out.iter().filter(|action| is_steering(action)).count() as u64;
        let mut left = if followed.is_complete { followed.steered.saturating_sub(told) } else { u64::MAX };
        let before = out.len();
        while left > 0
            && let Some(message) = self.queued.take_steering()
        {
            left -= 1;
            self.inject(message, out);
        }
        out.len() > before
    }

    /// Notes that another request follows.
    fn await_request(&mut self) {
        self.phase = Phase::LoadingContext { load: LoadId(0), stale: false };
    }

    fn fold_request(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) {
        self.close_round(NotRunReason::OverBudget, followed, out);
        self.model_calls += 1;
        let model_call = ModelCallId(self.model_calls);
        if let Some(progress) = &mut self.progress {
            progress.model_calls += 1;
        }
        self.take_reservation(followed.reserved);
        let through = followed.compaction.and_then(|through| usize::try_from(through).ok());
        let is_between_runs = self.progress.is_none();
        self.phase = match through {
            Some(through) => {
                out.push(Action::emit(EventKind::CompactionStart { through: through as u64 }));
                Phase::Compacting { model_call, through }
            }
            // Between runs, only a compaction calls the model. The number of entries that it replaces is not recorded.
            None if is_between_runs => Phase::Compacting { model_call, through: 0 },
            None => Phase::AwaitingModel(model_call),
        };
        self.state = SessionState::Processing;
    }

    fn fold_reply(
        &mut self,
        model_call: ModelCallId,
        mut response: Response,
        followed: &InputConsequences,
        out: &mut Vec<Action>,
    ) {
        if let Phase::Compacting { through, .. } = self.phase
            && self.expects(model_call)
        {
            self.fold_summary(through, &response, followed, out);
            return;
        }
        if !self.awaits(model_call) {
            return;
        }
        if self.is_summary_of_old(&response, followed) {
            self.settle(&response.usage, out);
            self.await_request();
            return;
        }
        self.accepted = self.history.len();
        self.make_call_ids_unique(&mut response.message, out);
        let calls: Vec<ToolCall> = response.tool_calls().cloned().collect();
        self.record_response(&response, out);
        let finish = response.finish_reason.reason;
        if self.ending.is_some() {
            self.settle_unrun(calls, NotRunReason::Stopped, out);
            self.fold_end(OutcomeStatus::Interrupted, None, followed, out);
        } else if finish == Finish::ContentFilter {
            self.settle_unrun(calls, NotRunReason::Blocked, out);
            self.fold_end_by(OutcomeStatus::Refused, followed, out);
        } else if finish == Finish::Error {
            self.settle_unrun(calls, NotRunReason::CutOff, out);
            self.fold_end_by(OutcomeStatus::Failed, followed, out);
        } else if calls.is_empty() && self.end_reasons.take_stop().is_some() {
            self.fold_end(OutcomeStatus::Failed, None, followed, out);
        } else if calls.is_empty() {
            self.fold_answer(&response, followed, out);
        } else if finish == Finish::Length {
            self.track_unrun_for_loops(&calls);
            self.settle_unrun(calls, NotRunReason::CutOff, out);
            self.fold_steering(followed, out);
            self.await_request();
        } else {
            let round = self.new_round(model_call, calls);
            self.phase = Phase::RunningTools(round);
        }
    }

    /// Returns whether this load can be the newest one. Loads are recorded only when they end.
    fn expects_load(&mut self, LoadId(load): LoadId) -> bool {
        let expects = matches!(self.phase, Phase::LoadingContext { .. }) && load >= self.loads;
        if expects {
            self.loads = load;
        }
        expects
    }

    /// Returns whether this model call is the newest one and has not ended.
    fn expects(&self, model_call: ModelCallId) -> bool {
        let compacts =
            matches!(self.phase, Phase::Compacting { model_call: current, .. } if current == model_call);
        compacts || self.awaits(model_call)
    }

    /// Returns whether this response is the summary of a record before version 4: a request followed, although neither
    /// a message, a call nor a pause requires one.
    fn is_summary_of_old(&self, response: &Response, followed: &InputConsequences) -> bool {
        !followed.is_complete
            && followed.request
            && response.tool_calls().next().is_none()
            && !self.queued.has_messages()
            && !is_pause(response)
    }

    fn fold_summary(
        &mut self,
        through: usize,
        response: &Response,
        followed: &InputConsequences,
        out: &mut Vec<Action>,
    ) {
        self.settle(&response.usage, out);
        let summary = response.text();
        let is_taken = followed.summarized && !summary.trim().is_empty();
        if is_taken && through > 0 && through <= self.history.len() {
            let before = self.size.estimated_tokens();
            let from = self.compactions.entries();
            self.set_view(self.compaction_of(through, summary));
            out.push(Action::emit(EventKind::CompactionEnd {
                through: through as u64,
                from: from as u64,
                tokens_before: before,
                tokens_after: self.size.estimated_tokens(),
                usage: response.usage.clone(),
            }));
        }
        self.end_summary(followed, out);
    }

    /// Continues after a summary, or after a failed attempt to get one.
    fn end_summary(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) {
        if self.progress.is_none() {
            self.state = SessionState::Idle;
            if self.ends_the_session() {
                self.phase = Phase::CleaningUp;
            } else {
                // A budget too low for a retry stops the summary alone.
                self.ending = None;
                self.phase = Phase::Resting;
            }
        } else if self.ending.is_some() {
            self.fold_end(OutcomeStatus::Interrupted, None, followed, out);
        } else {
            self.await_request();
        }
    }

    /// Continues after a response without calls: with a waiting message, with another request if the response was cut
    /// off or empty, or with the end of the run.
    fn fold_answer(&mut self, response: &Response, followed: &InputConsequences, out: &mut Vec<Action>) {
        let goes_on = self.fold_steering(followed, out) || (is_pause(response) && followed.ended.is_empty());
        if goes_on {
            self.await_request();
            return;
        }
        if followed.continues(response) {
            self.record_continuation();
        }
        if followed.is_complete && followed.asks_again() {
            self.await_request();
        } else {
            let status = status_after(&response.text());
            self.fold_end_by(status, followed, out);
        }
    }

    /// Ends the input: with a follow-up, or with the run. The recorded consequences have precedence.
    fn fold_end_by(&mut self, status: OutcomeStatus, followed: &InputConsequences, out: &mut Vec<Action>) {
        // The recorded consequences end the run, or start the next input.
        if followed.is_complete && (!followed.ended.is_empty() || followed.begun > 0) {
            return;
        }
        if !self.fold_follow_up(followed, out) {
            self.fold_end(status, None, followed, out);
        }
    }

    /// Starts the next follow-up, if there is one. Returns whether it did.
    fn fold_follow_up(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) -> bool {
        let Some(next) = self.queued.take_follow_up() else { return false };
        self.close_round(NotRunReason::OverBudget, followed, out);
        self.fold_user(next, followed, out);
        true
    }

    fn fold_failure(
        &mut self,
        error: ErrorInfo,
        partial: String,
        followed: &InputConsequences,
        out: &mut Vec<Action>,
    ) {
        self.release_failed(&error);
        if matches!(self.phase, Phase::Compacting { .. }) {
            if error.refused_reasoning {
                self.repair_after(&error, out);
            }
            self.end_summary(followed, out);
        } else if self.ending.is_some() {
            if !partial.trim().is_empty() {
                self.record(Turn::interrupted(partial, self.now));
            }
            self.fold_end(OutcomeStatus::Interrupted, None, followed, out);
        } else if went_on_after(&error, followed) {
            self.repair_after(&error, out);
            self.await_request();
        } else if self.progress.is_some() {
            self.fold_failed(error, followed, out);
        }
    }

    /// Ends the run with an error. Also ends the session if no later input can succeed.
    fn fold_failed(&mut self, error: ErrorInfo, followed: &InputConsequences, out: &mut Vec<Action>) {
        if self.progress.is_none() {
            return;
        }
        out.push(Action::emit(EventKind::Error { error: error.clone() }));
        if is_fatal(&error) {
            self.ending = Some(Ending::Failure(error));
            self.phase = Phase::CleaningUp;
        } else {
            self.fold_end(OutcomeStatus::Failed, Some(error), followed, out);
        }
    }

    /// Continues after the end of the process that drove the session.
    fn fold_resumption(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) {
        match self.phase {
            Phase::Compacting { .. } => self.end_summary(followed, out),
            Phase::RunningTools(_) => self.fold_round(followed, out),
            Phase::LoadingContext { .. } | Phase::AwaitingBudget | Phase::AwaitingModel(_) => {
                if self.ending.is_some() {
                    self.fold_end(OutcomeStatus::Interrupted, None, followed, out);
                } else {
                    // The response to a request of the previous process never arrives.
                    self.await_request();
                }
            }
            Phase::Resting | Phase::CleaningUp => {}
        }
    }

    fn fold_stop(&mut self, ending: Ending, followed: &InputConsequences, out: &mut Vec<Action>) {
        if self.state == SessionState::Closed || matches!(self.phase, Phase::CleaningUp) {
            return;
        }
        self.drop_waiting(out);
        if ending == Ending::Interrupt && (self.progress.is_none() || self.ending.is_some()) {
            return;
        }
        if !matches!(self.ending, Some(Ending::Failure(_))) {
            self.ending = Some(ending);
        }
        match &mut self.phase {
            Phase::RunningTools(round) => {
                round.stop(out);
                self.fold_round(followed, out);
            }
            Phase::Resting | Phase::LoadingContext { .. } | Phase::AwaitingBudget => {
                self.fold_end(OutcomeStatus::Interrupted, None, followed, out);
            }
            Phase::AwaitingModel(_) | Phase::Compacting { .. } | Phase::CleaningUp => {}
        }
    }

    /// Ends the round if every call has its result.
    fn fold_round(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) {
        let Phase::RunningTools(round) = &self.phase else { return };
        if !round.is_done() {
            return;
        }
        self.record_round();
        let end = self.end_reasons.end_round();
        if let Some(progress) = &mut self.progress {
            progress.rounds += 1;
        }
        self.await_request();
        if self.ending.is_some() {
            self.fold_end(OutcomeStatus::Interrupted, None, followed, out);
        } else if end.is_failure() {
            self.fold_end(OutcomeStatus::Failed, None, followed, out);
        } else if let RoundEnd::Question(question) = end
            && !self.queued.has_steering()
        {
            if let Some(progress) = &mut self.progress {
                progress.text = question;
            }
            self.fold_end(OutcomeStatus::AwaitingInput, None, followed, out);
        } else {
            self.fold_steering(followed, out);
        }
    }

    /// Answers the calls that were answered without a separate input.
    fn fold_answers(&mut self, followed: &InputConsequences, out: &mut Vec<Action>) {
        let why = if self.ending.is_some() { NotRunReason::Stopped } else { NotRunReason::OverBudget };
        let Phase::RunningTools(round) = &mut self.phase else { return };
        for state in round.calls.iter_mut().filter(|state| followed.answered.contains(&state.call.id)) {
            if !state.is_done() {
                state.abandon(why, out);
            }
        }
        self.fold_round(followed, out);
    }

    /// Answers the calls of a round that has ended without them.
    fn close_round(&mut self, why: NotRunReason, followed: &InputConsequences, out: &mut Vec<Action>) {
        let Phase::RunningTools(round) = &mut self.phase else { return };
        round.answer_waiting(why, out);
        for state in round.calls.iter_mut().filter(|state| !state.is_done()) {
            state.lose(super::round::HOST_GONE, std::time::Duration::ZERO, out);
        }
        let results = round.results();
        self.record(Turn::tool_results(results, self.now));
        if self.ending.is_none() {
            self.fold_steering(followed, out);
        }
        self.await_request();
    }

    fn ends_the_session(&self) -> bool {
        matches!(self.ending, Some(Ending::Abort | Ending::Close | Ending::Failure(_)))
    }

    /// Ends the current run, if there is one. The record has precedence on whether it ended, and how.
    fn fold_end(
        &mut self,
        status: OutcomeStatus,
        error: Option<ErrorInfo>,
        followed: &InputConsequences,
        out: &mut Vec<Action>,
    ) {
        if self.progress.is_none() && self.ending.is_none() {
            return;
        }
        let why = if self.ending.is_some() { NotRunReason::Stopped } else { NotRunReason::OverBudget };
        if self.ends_the_session() {
            self.close_round(why, followed, out);
            self.phase = Phase::CleaningUp;
            return;
        }
        let recorded = followed.next_end(out);
        if followed.is_complete && recorded.is_none() {
            return;
        }
        self.close_round(why, followed, out);
        let status = recorded.unwrap_or(status);
        self.phase = Phase::Resting;
        self.ending = None;
        let awaits_input = status == OutcomeStatus::AwaitingInput;
        self.state = if awaits_input { SessionState::AwaitingInput } else { SessionState::Idle };
        out.push(Action::emit(EventKind::ProcessingEnd { state: self.state, outcome: Some(status) }));
        self.finish_run(status, error, out);
        self.return_slice();
        if let Some((run, message)) = self.queued.take_next_run() {
            self.fold_submit(run, message, followed, out);
        }
    }
}

fn is_steering(action: &Action) -> bool {
    matches!(action, Action::Emit(event) if matches!(event.as_ref(), EventKind::SteeringInjected { .. }))
}

fn is_user_input(action: &Action) -> bool {
    matches!(action, Action::Emit(event) if matches!(event.as_ref(), EventKind::UserInput { .. }))
}

/// Returns whether a model call failed without ending the run: its request was to be repeated without the content that
/// the provider had refused, or with a summary.
fn went_on_after(error: &ErrorInfo, followed: &InputConsequences) -> bool {
    if followed.is_complete {
        // Before version 6, a run that exceeded the context window ended as failed, too.
        let is_overflow = error.kind == ErrorKind::ContextLength;
        let is_end = |status: &OutcomeStatus| {
            *status == OutcomeStatus::Failed || (is_overflow && *status == OutcomeStatus::ContextFull)
        };
        !is_fatal(error) && !followed.ended.first().is_some_and(is_end)
    } else {
        followed.request
    }
}
