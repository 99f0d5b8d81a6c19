//! Reviews of candidates, and comparisons of several.

use super::step::{ComparedCandidate, ReviewFacts, StepId, StepKind, StepOrder, TaskStep};
use super::{Task, TaskCandidate};

impl Task {
    /// Returns the candidate that the next review is about. With several proved candidates, a review compares all of them,
    /// and a candidate with a new attempt is compared again. A review without a comparison, as of earlier versions, accepts
    /// the best candidate.
    pub(super) fn candidate_to_review(&self) -> Option<usize> {
        if self.contract.review.rounds == 0 {
            return None;
        }
        let ranked = self.ranked_candidates();
        let review = |candidate: &usize| self.candidates.get(*candidate).and_then(TaskCandidate::review);
        match review(ranked.first()?) {
            Some(best) if best.rank.is_none() => None,
            Some(_) | None => ranked.into_iter().find(|candidate| review(candidate).is_none()),
        }
    }

    /// Returns the step that reviews a candidate.
    pub(super) fn review_step(&self, candidate: usize) -> TaskStep {
        let attempt = self.candidates.get(candidate).map_or(1, TaskCandidate::attempt_number);
        let mut step = TaskStep::new(StepKind::Review, Some(candidate), attempt, StepOrder::Evidence);
        step.order = StepOrder::Review { limits: self.step_limits(&step.id, 1) };
        step
    }

    /// Records a review of a candidate and, after a comparison, of the others. Only candidates with a proof count. Findings
    /// send a candidate back, unless the comparison has a candidate without findings.
    pub(super) fn record_review(&mut self, step: &StepId, mut facts: ReviewFacts) {
        let others = std::mem::take(&mut facts.others);
        let mut reviews: Vec<(usize, ReviewFacts)> = Vec::new();
        for ComparedCandidate { candidate, findings, rank } in others.clone() {
            let is_proved = self.candidates.get(candidate).is_some_and(|other| other.proof().is_some());
            if is_proved && step.candidate != Some(candidate) {
                let review = ReviewFacts::new(facts.session.clone(), findings, "");
                reviews.push((candidate, ReviewFacts { rank: Some(rank), ..review }));
            }
        }
        let is_comparison = !reviews.is_empty();
        facts.others = others;
        reviews.extend(step.candidate.map(|candidate| (candidate, facts)));
        let has_accepted = is_comparison && reviews.iter().any(|(_, review)| review.findings.is_empty());
        for (candidate, review) in reviews {
            let Some(candidate) = self.candidates.get_mut(candidate) else { continue };
            if has_accepted && !review.findings.is_empty() {
                candidate.record_rejection(review);
            } else {
                candidate.record_review(review, &self.contract);
            }
        }
    }
}
