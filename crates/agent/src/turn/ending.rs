//! Ends of runs and of the session (loop specification, section 2.8 and appendix B).

use pintle_llm::{Error, ErrorInfo, ErrorKind};
use serde::{Deserialize, Serialize};

use super::budget::ReachedLimit;
use super::{Machine, Phase};
use crate::protocol::{
    Action, EventKind, Outcome, OutcomeStatus, Rejection, RunId, SessionEndReason, SessionState,
};

/// Reason for stopping everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Ending {
    /// The turn was interrupted; the session continues.
    Interrupt,
    /// The turn reached this limit; the session continues.
    Budget(ReachedLimit),
    /// The session was aborted.
    Abort,
    /// The session was closed.
    Close,
    /// The session failed with this error.
    Failure(ErrorInfo),
}

impl Machine {
    /// Stops everything that runs. The turn ends once all of it has replied.
    pub(super) fn stop(&mut self, ending: Ending, out: &mut Vec<Action>) {
        if self.state == SessionState::Closed || matches!(self.phase, Phase::CleaningUp) {
            return;
        }
        self.drop_waiting(out);
        self.stop_children(out);
        if ending == Ending::Interrupt && (self.progress.is_none() || self.ending.is_some()) {
            if self.progress.is_none() && matches!(self.phase, Phase::Compacting { .. }) {
                self.cancel_compaction();
                out.push(Action::CancelModel);
            }
            return;
        }
        let first = self.ending.is_none();
        // Closing a session that has failed does not replace the error.
        if !matches!(self.ending, Some(Ending::Failure(_))) {
            self.ending = Some(ending);
        }
        match &mut self.phase {
            Phase::Resting | Phase::LoadingContext { .. } | Phase::AwaitingBudget => self.conclude(out),
            Phase::AwaitingModel(_) | Phase::Compacting { .. } if first => out.push(Action::CancelModel),
            Phase::RunningTools(round) if first => {
                round.stop(out);
                self.settle_round(out);
            }
            Phase::AwaitingModel(_)
            | Phase::Compacting { .. }
            | Phase::RunningTools(_)
            | Phase::CleaningUp => {}
        }
    }

    /// Returns whether there is something that an interrupt stops: a run, a compaction or a subagent.
    pub(crate) fn has_work(&self) -> bool {
        self.progress.is_some() || self.has_children() || matches!(self.phase, Phase::Compacting { .. })
    }

    /// Ends the run that waits for the end of the current one.
    pub(super) fn drop_waiting(&mut self, out: &mut Vec<Action>) {
        if let Some((run, _)) = self.queued.take_next_run() {
            let outcome = Outcome::new(OutcomeStatus::Interrupted);
            out.push(Action::Finish { run, outcome: Box::new(outcome) });
        }
    }

    /// Answers an input that a hook refused.
    pub(super) fn input_refused(&self, run: Option<RunId>, reason: &str, out: &mut Vec<Action>) {
        let message = format!("a hook refused the input: {reason}");
        out.extend(run.map(|run| rejected(run, Rejection::Input, &message)));
        // No event may follow the end of the session.
        if self.state != SessionState::Closed {
            out.push(Action::emit(EventKind::Warning { message }));
        }
    }

    /// Returns why the session ends, while it does.
    pub(crate) fn end_reason(&self) -> SessionEndReason {
        match self.ending {
            Some(Ending::Failure(_)) => SessionEndReason::Failed,
            Some(Ending::Abort) => SessionEndReason::Aborted,
            Some(Ending::Close | Ending::Interrupt | Ending::Budget(_)) | None => SessionEndReason::Closed,
        }
    }

    /// Ends the turn or the session once nothing runs any more.
    pub(super) fn conclude(&mut self, out: &mut Vec<Action>) {
        match self.ending.take() {
            Some(Ending::Interrupt) => self.rest(OutcomeStatus::Interrupted, None, out),
            Some(Ending::Budget(reached)) => {
                out.push(self.reached(reached));
                self.rest(OutcomeStatus::Budget, None, out);
            }
            Some(ending @ (Ending::Abort | Ending::Close | Ending::Failure(_))) => {
                self.ending = Some(ending);
                self.clean_up(out);
            }
            None => {}
        }
    }

    pub(super) fn clean_up(&mut self, out: &mut Vec<Action>) {
        self.phase = Phase::CleaningUp;
        out.push(Action::CleanUp);
    }

    pub(super) fn cleaned_up(&mut self, out: &mut Vec<Action>) {
        if !matches!(self.phase, Phase::CleaningUp) {
            return;
        }
        self.phase = Phase::Resting;
        self.state = SessionState::Closed;
        let (status, error) = match self.ending.take() {
            Some(Ending::Failure(error)) => (OutcomeStatus::Failed, Some(error)),
            Some(Ending::Interrupt | Ending::Budget(_) | Ending::Abort | Ending::Close) | None => {
                (OutcomeStatus::Aborted, None)
            }
        };
        if self.progress.is_some() {
            out.push(Action::emit(EventKind::ProcessingEnd { state: self.state, outcome: Some(status) }));
        }
        out.push(Action::emit(EventKind::SessionEnd { state: self.state }));
        self.finish_run(status, error, out);
    }

    /// Ends the current input: starts the next follow-up, or ends the run.
    pub(super) fn finish_input(&mut self, status: OutcomeStatus, out: &mut Vec<Action>) {
        // A follow-up would only reach these limits again, so it stays queued.
        let is_limit = matches!(
            status,
            OutcomeStatus::TurnLimit
                | OutcomeStatus::Budget
                | OutcomeStatus::ContextFull
                | OutcomeStatus::OutputLimit
        );
        if !is_limit && let Some(next) = self.queued.take_follow_up() {
            let outcome = self.input_outcome(status, None);
            out.extend(outcome.map(|(run, outcome)| Action::FinishInput { run, outcome, is_last: false }));
            self.start_input(next, out);
            return;
        }
        self.rest(status, None, out);
    }

    pub(super) fn rest(&mut self, status: OutcomeStatus, error: Option<ErrorInfo>, out: &mut Vec<Action>) {
        self.phase = Phase::Resting;
        self.ending = None;
        let awaits_input = status == OutcomeStatus::AwaitingInput;
        self.state = if awaits_input { SessionState::AwaitingInput } else { SessionState::Idle };
        out.push(Action::emit(EventKind::ProcessingEnd { state: self.state, outcome: Some(status) }));
        self.finish_run(status, error, out);
        self.return_slice();
        if let Some((run, message)) = self.queued.take_next_run() {
            self.start_run(run, message, out);
        }
    }

    /// Returns the current run and the outcome of its current input alone.
    fn input_outcome(
        &self,
        status: OutcomeStatus,
        error: Option<ErrorInfo>,
    ) -> Option<(RunId, Box<Outcome>)> {
        let progress = self.progress.as_ref()?;
        let start = &progress.input;
        let model_calls = progress.model_calls.saturating_sub(start.model_calls);
        let outcome = Outcome {
            cost: self.spent.since(&start.spent).cost,
            status,
            // Without a response, the text is the text of an earlier input.
            text: if model_calls > 0 { progress.text.clone() } else { String::new() },
            usage: progress.usage.since(&start.usage),
            model_calls,
            tool_calls: progress.tool_calls.saturating_sub(start.tool_calls),
            error,
            rejection: None,
            warning: progress.response.warning.clone(),
        };
        Some((progress.run, Box::new(outcome)))
    }

    pub(super) fn finish_run(
        &mut self,
        status: OutcomeStatus,
        error: Option<ErrorInfo>,
        out: &mut Vec<Action>,
    ) {
        let input = self.input_outcome(status, error.clone());
        out.extend(input.map(|(run, outcome)| Action::FinishInput { run, outcome, is_last: true }));
        let Some(progress) = self.progress.take() else { return };
        let outcome = Outcome {
            cost: self.spent.since(&progress.spent_at_start).cost,
            status,
            text: progress.text,
            usage: progress.usage,
            model_calls: progress.model_calls,
            tool_calls: progress.tool_calls,
            error,
            rejection: None,
            warning: progress.response.warning,
        };
        out.push(Action::Finish { run: progress.run, outcome: Box::new(outcome) });
    }
}

/// Returns the end of a run that was rejected and never started.
pub(super) fn rejected(run: RunId, rejection: Rejection, message: &str) -> Action {
    let error = Error::new(ErrorKind::InvalidRequest, message);
    let mut outcome = Outcome::new(OutcomeStatus::Failed);
    outcome.error = Some(error.info().clone());
    outcome.rejection = Some(rejection);
    Action::Finish { run, outcome: Box::new(outcome) }
}
