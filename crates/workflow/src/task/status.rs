//! The state of a task and of its candidates as text.

use pintle_agent::Limits;
use pintle_evidence::diff::Diff;

use super::{StepSnapshot, Task, TaskCandidate, TaskOutcome, TaskPlan};

/// State of a task that has steps to carry out.
pub const STATE_UNDER_WAY: &str = "under way";

/// State of a task that waits for a decision.
pub const STATE_WAITING: &str = "waits for a person";

impl Task {
    /// Returns the state as text.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match &self.outcome {
            None if self.pending().gate.is_some() => STATE_WAITING,
            None => STATE_UNDER_WAY,
            Some(TaskOutcome::Done(_)) => "done",
            Some(TaskOutcome::Blocked(_)) => "blocked",
            Some(TaskOutcome::Limit { .. }) => "at its limit",
            Some(TaskOutcome::Aborted { .. }) => "cancelled",
            Some(TaskOutcome::Failed { .. }) => "failed",
        }
    }

    /// Returns the reason why there is no hidden anchor, although the contract asks for one.
    #[must_use]
    pub fn hidden_problem(&self) -> Option<&str> {
        self.hidden_problem.as_deref()
    }

    /// Returns whether a candidate has failed and makes no further attempt for now, because another candidate has its
    /// evidence. It continues if the other candidate is sent back.
    #[must_use]
    pub fn is_waiting(&self, candidate: usize) -> bool {
        let Some(state) = self.candidates.get(candidate).filter(|state| state.has_failed()) else {
            return false;
        };
        let next = state.next_step(candidate, &Limits::default());
        let has_started = next.is_some_and(|step| self.started.contains(&step.id));
        self.outcome.is_none() && !has_started && self.candidates.iter().any(|state| state.proof().is_some())
    }

    /// Returns the state of a candidate as text, for every list and page; `None` if there is no such candidate.
    #[must_use]
    pub fn candidate_state(&self, candidate: usize) -> Option<String> {
        let state = self.candidates.get(candidate)?;
        if self.is_planning() {
            return Some(self.describe_plan(candidate));
        }
        let number = state.attempts().len();
        let is_chosen =
            matches!(&self.outcome, Some(TaskOutcome::Done(done)) if done.candidate() == candidate);
        Some(match state.stop_reason() {
            _ if is_chosen => "reached the goal".to_owned(),
            Some(reason) => reason.to_owned(),
            None if state.proof().is_some() => "has its evidence".to_owned(),
            None if self.outcome.is_some() && candidate == 0 && self.plan.snapshot().is_some() => {
                "stopped; the steps that hold are its change".to_owned()
            }
            None if self.outcome.is_some() => "stopped".to_owned(),
            None if state.is_collecting_evidence() => format!("attempt {number} is judged"),
            None if self.is_waiting(candidate) => "waits: another candidate has its evidence".to_owned(),
            None => format!("works on attempt {}", number.saturating_add(1)),
        })
    }

    /// Returns the newest change of a candidate. In a plan, the steps that hold are the change of candidate 0.
    #[must_use]
    pub fn newest_change(&self, candidate: usize) -> Option<&Diff> {
        let is_done = matches!(self.outcome, Some(TaskOutcome::Done(_)));
        let plan = self.plan().filter(|_| candidate == 0 && !is_done);
        let held = plan.and_then(TaskPlan::snapshot).map(StepSnapshot::diff);
        held.or_else(|| self.candidates.get(candidate).and_then(TaskCandidate::diff))
    }

    /// Returns the state of a candidate while the plan is carried out.
    fn describe_plan(&self, candidate: usize) -> String {
        let number = self.plan.count();
        match self.plan.open_round() {
            _ if candidate > 0 => "waits: the plan makes one change".to_owned(),
            Some(round) => format!("step {number} of the plan {}", round.state()),
            None => format!("plans step {}", number.saturating_add(1)),
        }
    }
}
