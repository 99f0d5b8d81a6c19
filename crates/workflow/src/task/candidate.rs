//! Candidates. Each works on the goal, is judged, and tries again with the missing evidence as feedback.

use pintle_agent::{Limits, Money};
use pintle_evidence::diff::Diff;
use pintle_evidence::proof::{CandidateFacts, Finding, Proof, feedback, render_failed_outputs};

use super::step::{ReviewFacts, StepId, StepKind, StepOrder, TaskStep, WorkEnd, WorkFacts};
use crate::contract::Contract;
use crate::work_cost::WorkCost;

/// A candidate and its attempts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskCandidate {
    attempts: Vec<CandidateAttempt>,
    /// Number of times that a review has sent it back.
    sent_back: u32,
    /// Number of times that a user has refused it.
    refused: u32,
    /// User messages for its next attempt.
    pub(super) words: Vec<String>,
    /// User messages in the prompt of a started attempt. The prompt stays the same when the attempt is restarted.
    delivered: Option<Vec<String>>,
    /// Reason why it has stopped.
    stop_reason: Option<String>,
    spent: WorkCost,
    /// Costs without reviews.
    work_cost: WorkCost,
}

/// One attempt of a candidate.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct CandidateAttempt {
    /// End of the work, once it has ended.
    pub work: Option<WorkFacts>,
    /// Facts about its diff, once they are collected.
    pub facts: Option<CandidateFacts>,
    /// Its proof, or the missing evidence.
    pub verdict: Option<Result<Proof, Vec<Finding>>>,
    /// Its review.
    pub review: Option<ReviewFacts>,
    /// Required changes, after a review or a refusal.
    pub sent_back: Vec<String>,
    /// Failure that ended the attempt and that the candidate did not cause.
    pub failure: Option<ExternalFailure>,
}

/// Failure of a step that the candidate did not cause, such as an error of its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExternalFailure {
    /// The step.
    pub step: StepId,
    /// Reason.
    pub reason: String,
}

impl TaskCandidate {
    /// Returns its attempts.
    #[must_use]
    pub fn attempts(&self) -> &[CandidateAttempt] {
        &self.attempts
    }

    /// Returns the costs of its steps.
    #[must_use]
    pub fn spent(&self) -> &WorkCost {
        &self.spent
    }

    /// Returns the models that its sessions have called, without those of reviews and plans.
    pub(crate) fn called_models(&self) -> Option<String> {
        let models: Vec<&str> = self.work_cost.models.keys().map(String::as_str).collect();
        (!models.is_empty()).then(|| models.join(", "))
    }

    /// Returns its costs without reviews and plans, if all prices are known. Neither must change which candidate is the best.
    pub(super) fn known_work_cost(&self) -> Option<Money> {
        self.work_cost.known_cost()
    }

    pub(super) fn add_cost(&mut self, kind: StepKind, spent: &WorkCost) {
        self.spent.add(spent);
        if !matches!(kind, StepKind::Review | StepKind::Plan) {
            self.work_cost.add(spent);
        }
    }

    /// Returns the reason why it has stopped, if it has.
    #[must_use]
    pub fn stop_reason(&self) -> Option<&str> {
        self.stop_reason.as_deref()
    }

    /// Returns the proof of its newest attempt, unless it was sent back or has stopped.
    #[must_use]
    pub fn proof(&self) -> Option<&Proof> {
        let attempt = self
            .attempts
            .last()
            .filter(|attempt| attempt.sent_back.is_empty() && self.stop_reason.is_none())?;
        attempt.verdict.as_ref()?.as_ref().ok()
    }

    /// Returns the proof of its newest attempt, also after the attempt was sent back.
    pub(super) fn newest_proof(&self) -> Option<&Proof> {
        self.attempts.last()?.verdict.as_ref()?.as_ref().ok()
    }

    /// Returns its newest changes.
    #[must_use]
    pub fn diff(&self) -> Option<&Diff> {
        self.attempts.iter().rev().find_map(|attempt| attempt.work.as_ref()?.diff.as_ref())
    }

    /// Returns the review of its newest attempt.
    #[must_use]
    pub fn review(&self) -> Option<&ReviewFacts> {
        self.attempts.last()?.review.as_ref()
    }

    /// Returns the number of its newest attempt, from 1.
    pub(super) fn attempt_number(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).max(1)
    }

    /// Returns whether the end of an attempt's work is on record, so that the session already knows the goal.
    #[must_use]
    pub(crate) fn has_worked(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.work.is_some())
    }

    /// Returns whether it has stopped because its budget is used up.
    pub(super) fn is_at_limit(&self) -> bool {
        let newest = self.attempts.last().and_then(|attempt| attempt.work.as_ref());
        self.stop_reason.is_some() && newest.is_some_and(|work| work.end == WorkEnd::Limit)
    }

    /// Returns the external failure of its newest attempt, if any.
    #[must_use]
    pub fn external_failure(&self) -> Option<&ExternalFailure> {
        self.attempts.last()?.failure.as_ref()
    }

    /// Returns whether it is neither proved nor stopped.
    pub(super) fn is_active(&self) -> bool {
        self.stop_reason.is_none() && self.proof().is_none()
    }

    /// Returns whether the evidence of its newest attempt is being collected.
    pub(super) fn is_collecting_evidence(&self) -> bool {
        self.attempts.last().is_some_and(|attempt| attempt.work.is_some() && attempt.verdict.is_none())
    }

    /// Returns whether it would try again because evidence is missing.
    pub(super) fn has_failed(&self) -> bool {
        let newest = self.attempts.last().and_then(|attempt| attempt.verdict.as_ref());
        self.is_active() && matches!(newest, Some(Err(_)))
    }

    /// Returns its next step, if it is neither proved nor stopped.
    pub(super) fn next_step(&self, index: usize, limits: &Limits) -> Option<TaskStep> {
        if !self.is_active() {
            return None;
        }
        if self.is_collecting_evidence() {
            return Some(TaskStep::new(
                StepKind::Evidence,
                Some(index),
                self.attempt_number(),
                StepOrder::Evidence,
            ));
        }
        let attempt = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX).saturating_add(1);
        let order = StepOrder::Work { feedback: self.feedback(), limits: *limits };
        Some(TaskStep::new(StepKind::Work, Some(index), attempt, order))
    }

    /// Returns the evidence that is missing after the newest attempt, and the later messages of users.
    pub(super) fn feedback(&self) -> Option<String> {
        let mut lines = self.missing_evidence();
        self.pending_words().iter().for_each(|words| lines.push_str(&format!("- {words}\n")));
        (!lines.is_empty()).then_some(lines)
    }

    /// Returns the evidence that is missing after the newest attempt. An attempt that an external failure ended before its
    /// evidence has no findings.
    pub(super) fn missing_evidence(&self) -> String {
        let mut lines = String::new();
        let is_judged = |attempt: &&CandidateAttempt| {
            attempt.failure.as_ref().is_none_or(|failure| failure.step.kind == StepKind::Evidence)
        };
        if let Some(newest) = self.attempts.iter().rev().find(is_judged) {
            if let Some(Err(findings)) = &newest.verdict {
                lines.push_str(&feedback(findings));
                lines.extend(newest.facts.as_ref().map(render_failed_outputs));
            }
            newest.sent_back.iter().for_each(|words| lines.push_str(&format!("- {words}\n")));
        }
        lines
    }

    /// Returns the user messages in the prompt of the started session, or for the next one.
    pub(super) fn pending_words(&self) -> &[String] {
        self.delivered.as_ref().unwrap_or(&self.words)
    }

    /// Returns the messages of a session that failed. It is possible that no session has received them.
    pub(super) fn return_words(&mut self) {
        let delivered = self.delivered.take().unwrap_or_default();
        self.words.splice(0..0, delivered);
    }

    /// Forgets the messages that a session has received.
    pub(super) fn finish_words(&mut self) {
        self.delivered = None;
    }

    /// Starts an attempt. Later user messages reach its session, or else the next attempt.
    pub(super) fn start_attempt(&mut self) {
        self.delivered = Some(std::mem::take(&mut self.words));
    }

    pub(super) fn record_work(&mut self, facts: WorkFacts) {
        self.delivered = None;
        self.attempts.push(CandidateAttempt { work: Some(facts), ..CandidateAttempt::default() });
    }

    /// Records the verdict about the newest attempt. `forced` is a proof with changes of files that judge, which a user decides
    /// about. It counts once there is no further attempt.
    pub(super) fn record_verdict(
        &mut self,
        facts: CandidateFacts,
        verdict: Result<Proof, Vec<Finding>>,
        forced: Option<Proof>,
        contract: &Contract,
    ) {
        let before = self.attempts.iter().rev().nth(1).and_then(|attempt| attempt.verdict.as_ref());
        let is_same = matches!((before, &verdict), (Some(Err(before)), Err(now)) if before == now);
        let Some(newest) = self.attempts.last_mut() else { return };
        let is_proved = verdict.is_ok();
        newest.facts = Some(facts);
        newest.verdict = Some(verdict);
        if is_proved {
            return;
        }
        let final_reason = newest.work.as_ref().and_then(|work| work.end.final_reason());
        if is_same {
            self.stop_reason = Some("two attempts have the same faults".to_owned());
        } else if let Some(reason) = final_reason {
            self.stop_reason = Some(reason.to_owned());
        } else if self.attempt_number() >= self.max_attempts(contract) {
            self.stop_reason = Some("it has no attempt left".to_owned());
        }
        if let Some(proof) = forced.filter(|_| self.stop_reason.is_some()) {
            self.stop_reason = None;
            self.attempts.last_mut().into_iter().for_each(|newest| newest.verdict = Some(Ok(proof.clone())));
        }
    }

    pub(super) fn record_failure(
        &mut self,
        finding: Finding,
        failure: Option<ExternalFailure>,
        contract: &Contract,
    ) {
        let what = finding.what.clone();
        let is_external = failure.is_some();
        let is_begun = self.attempts.last().is_some_and(|attempt| attempt.verdict.is_none());
        if !is_begun {
            self.return_words();
            self.attempts.push(CandidateAttempt::default());
        }
        if let Some(newest) = self.attempts.last_mut() {
            newest.verdict = Some(Err(vec![finding]));
            newest.failure = failure;
        }
        if self.attempt_number() >= self.max_attempts(contract) {
            self.stop_reason = Some(if is_external { what } else { "it has no attempt left".to_owned() });
        }
    }

    pub(super) fn record_review(&mut self, facts: ReviewFacts, contract: &Contract) {
        let findings = facts.findings.clone();
        if let Some(newest) = self.attempts.last_mut() {
            newest.review = Some(facts);
        }
        if findings.is_empty() {
            return;
        }
        if self.sent_back >= contract.review.rounds {
            self.stop_reason = Some("the review has faults still".to_owned());
        } else {
            self.sent_back += 1;
        }
        if let Some(newest) = self.attempts.last_mut() {
            newest.sent_back = findings;
        }
    }

    /// Records findings of a comparison in which another candidate has none, and stops.
    pub(super) fn record_rejection(&mut self, facts: ReviewFacts) {
        if let Some(newest) = self.attempts.last_mut() {
            newest.review = Some(facts);
        }
        self.stop("the comparison prefers another candidate");
    }

    /// Sends it back with the message of a user.
    pub(super) fn send_back(&mut self, words: String, contract: &Contract) {
        self.refused += 1;
        if let Some(newest) = self.attempts.last_mut() {
            newest.sent_back = vec![words];
        }
        if self.refused > contract.review.rounds.saturating_add(contract.attempts) {
            self.stop_reason = Some("it was refused too often".to_owned());
        }
    }

    /// Stops the candidate, with a reason.
    pub(super) fn stop(&mut self, reason: &str) {
        self.stop_reason = Some(reason.to_owned());
    }

    fn max_attempts(&self, contract: &Contract) -> u32 {
        contract.attempts.saturating_add(self.sent_back).saturating_add(self.refused)
    }
}
