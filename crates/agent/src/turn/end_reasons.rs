//! Reasons to end a run that arise while its calls and requests run, and take effect between them.

use serde::{Deserialize, Serialize};

use super::budget::ReachedLimit;

/// Reasons of the current round and request to end the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct EndReasons {
    /// A call of this round lost the execution environment.
    environment_lost: bool,
    /// Reason of a gate or a hook to end the run with this round.
    #[serde(default, rename = "stopped_by_gate")]
    stop: Option<String>,
    /// Question of a call of this round to the user.
    #[serde(default)]
    question: Option<String>,
    /// Limit that kept a call of this round from running.
    #[serde(default)]
    over_budget: Option<ReachedLimit>,
}

/// How a round ends, apart from the state of the run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RoundEnd {
    /// The execution environment is lost.
    EnvironmentLost,
    /// A gate or a hook ends the run for this reason.
    Stopped(String),
    /// Calls ask the user this.
    Question(String),
    /// Another request follows.
    NextRequest,
}

impl RoundEnd {
    /// Returns whether the run fails with this round.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::EnvironmentLost | Self::Stopped(_))
    }
}

impl EndReasons {
    pub(super) fn lose_environment(&mut self) {
        self.environment_lost = true;
    }

    /// Adds the reason of a gate or a hook. The first one counts.
    pub(super) fn stop(&mut self, reason: Option<String>) {
        self.stop = self.stop.take().or(reason);
    }

    /// Adds a question to the user. Several questions of one round are asked together.
    pub(super) fn ask(&mut self, question: &str) {
        let earlier = self.question.take().map(|earlier| earlier + "\n\n").unwrap_or_default();
        self.question = Some(earlier + question);
    }

    /// Adds a limit that keeps calls from running. The first one counts.
    pub(super) fn reach(&mut self, limit: ReachedLimit) {
        self.over_budget = self.over_budget.or(Some(limit));
    }

    /// Returns whether a limit kept a call from running.
    pub(super) fn has_limit(&self) -> bool {
        self.over_budget.is_some()
    }

    pub(super) fn take_limit(&mut self) -> Option<ReachedLimit> {
        self.over_budget.take()
    }

    pub(super) fn drop_limit(&mut self) {
        self.over_budget = None;
    }

    /// Takes the reason of a gate or a hook.
    pub(super) fn take_stop(&mut self) -> Option<String> {
        self.stop.take()
    }

    /// Takes all reasons of a round except its limit, and returns the one that counts.
    pub(super) fn end_round(&mut self) -> RoundEnd {
        let is_lost = std::mem::take(&mut self.environment_lost);
        let (stop, question) = (self.stop.take(), self.question.take());
        if is_lost {
            RoundEnd::EnvironmentLost
        } else if let Some(reason) = stop {
            RoundEnd::Stopped(reason)
        } else {
            question.map_or(RoundEnd::NextRequest, RoundEnd::Question)
        }
    }

    /// Drops the question and the limit of a round that is cut off.
    pub(super) fn rewind(&mut self) {
        self.question = None;
        self.over_budget = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{BudgetKind, BudgetUsage, Limits};

    fn limit(tokens: u64) -> ReachedLimit {
        let limits = Limits { tokens: Some(tokens), ..Limits::default() };
        let none = BudgetUsage::default();
        ReachedLimit::before(BudgetKind::Tokens, &limits, &none, &none)
    }

    #[test]
    fn the_most_severe_reason_ends_the_round_and_all_are_taken() {
        let mut reasons = EndReasons::default();
        assert_eq!(reasons.end_round(), RoundEnd::NextRequest);
        let mut ends = Vec::new();
        for (is_lost, stop) in [(true, Some("stop")), (false, Some("stop")), (false, None)] {
            reasons.ask("Which one?");
            reasons.stop(stop.map(str::to_owned));
            if is_lost {
                reasons.lose_environment();
            }
            let end = reasons.end_round();
            ends.push((end.is_failure(), end));
            assert_eq!(reasons.end_round(), RoundEnd::NextRequest);
        }
        let expected = [
            (true, RoundEnd::EnvironmentLost),
            (true, RoundEnd::Stopped("stop".into())),
            (false, RoundEnd::Question("Which one?".into())),
        ];
        assert_eq!(ends, expected);
    }

    #[test]
    fn questions_add_up_and_the_first_stop_and_limit_count() {
        let mut reasons = EndReasons::default();
        reasons.ask("One?");
        reasons.ask("Two?");
        assert_eq!(reasons.end_round(), RoundEnd::Question("One?\n\nTwo?".into()));
        reasons.stop(Some("first".into()));
        reasons.stop(Some("second".into()));
        reasons.stop(None);
        assert_eq!(reasons.take_stop().as_deref(), Some("first"));
        reasons.reach(limit(1));
        reasons.reach(limit(2));
        assert!(reasons.has_limit());
        assert_eq!(reasons.take_limit(), Some(limit(1)));
        assert!(!reasons.has_limit());
    }

    #[test]
    fn a_rewind_drops_the_question_and_the_limit() {
        let mut reasons = EndReasons::default();
        reasons.ask("One?");
        reasons.reach(limit(1));
        reasons.rewind();
        assert!(!reasons.has_limit());
        assert_eq!(reasons.end_round(), RoundEnd::NextRequest);
    }
}
