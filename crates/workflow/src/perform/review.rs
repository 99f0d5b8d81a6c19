//! The review of a change, or of all changes that have their evidence.

use pintle_agent::Limits;
use pintle_evidence::review_patch::{PatchLimits, shorten_patch};

use super::handed_context::ContextScope;
use super::{RunningStep, StepError, take_answer};
use crate::contract::SessionRole;
use crate::prompts::{self, ComparedChange, ReviewAnswer};
use crate::session_runner::Workspace;
use crate::task::{ComparedCandidate, ReviewFacts, StepOutput, TaskCandidate};

/// Directory in a reviewer's clone that has the patches of compared candidates.
const PATCHES: &str = ".review";

impl RunningStep<'_> {
    /// Runs a separate session that reviews changes with their evidence. With several candidates, it compares all of them.
    pub(super) async fn review(&mut self, limits: Limits) -> Result<StepOutput, StepError> {
        let candidates = self.task.ranked_candidates();
        let workspace = self.create_workspace(&self.step.to_string()).await?;
        let (mut message, schema) = if candidates.len() > 1 {
            let message = self.prepare_comparison(&workspace, &candidates).await?;
            (message, prompts::comparison_schema())
        } else {
            (self.prepare_review(&workspace).await?, prompts::review_schema())
        };
        self.performer.clear_outputs(&workspace).await?;
        let start = self.commit_anchor().await?;
        message.push_str(&self.hand_context(&workspace, &start, ContextScope::Notes).await?);
        let plan = self.contract().session_plan(SessionRole::Review);
        let mut assignment = self.create_assignment(&workspace, message, &plan, limits);
        assignment.answer = Some(schema);
        let session = assignment.session.clone();
        let worked = self.run_session(assignment).await?;
        let answer = take_answer(worked, &session, "the reviewer gave no answer")?;
        let answer = serde_json::from_value::<ReviewAnswer>(answer)
            .map_err(|error| StepError::Other(format!("cannot parse the reviewer's answer: {error}")))?;
        self.performer.remove_workspaces(workspace.directory()).await?;
        let reviewed = self.step.candidate.unwrap_or_default();
        Ok(StepOutput::Review(if candidates.len() > 1 {
            compared_facts(session, reviewed, &candidates, answer)
        } else {
            ReviewFacts::new(session, answer.findings, answer.remarks)
        }))
    }

    /// Creates the clone with a change, and returns the request for its review.
    async fn prepare_review(&self, workspace: &Workspace) -> Result<String, StepError> {
        let proof = self.candidate().and_then(TaskCandidate::proof);
        let proof = proof.ok_or_else(|| StepError::Other("there is nothing to review".to_owned()))?;
        let patch = self.read_blob(&proof.diff().patch).await?;
        let commit = self.repository.commit_patch(&self.commit_anchor().await?, &patch).await?;
        self.ensure_clone(workspace, &commit, None).await?;
        let text = String::from_utf8_lossy(&patch);
        let shown = shorten_patch(&text, self.task.rules(), PatchLimits::CHANGE);
        let evidence =
            crate::report::evidence(self.contract(), proof) + &self.describe_hidden_anchor().await?;
        Ok(prompts::review(self.contract(), &shown, &evidence))
    }

    /// Creates the clone with the patches of these candidates, and returns the request for their comparison.
    async fn prepare_comparison(
        &self,
        workspace: &Workspace,
        candidates: &[usize],
    ) -> Result<String, StepError> {
        self.ensure_clone(workspace, &self.commit_anchor().await?, None).await?;
        let limits = PatchLimits::CHANGE.share(candidates.len());
        let mut changes = Vec::new();
        for candidate in candidates.iter().copied() {
            let Some(proof) = self.task.candidates().get(candidate).and_then(TaskCandidate::proof) else {
                continue;
            };
            let patch = self.read_blob(&proof.diff().patch).await?;
            let name = format!("{PATCHES}/candidate-{candidate}.patch");
            self.performer.write_in_clone(workspace, &name, &patch).await?;
            let text = String::from_utf8_lossy(&patch);
            let patch = shorten_patch(&text, self.task.rules(), limits);
            let evidence = crate::report::evidence(self.contract(), proof);
            changes.push(ComparedChange { candidate, patch, evidence });
        }
        let mut message = prompts::compare(self.contract(), PATCHES, &changes);
        message.push_str(&self.describe_hidden_anchor().await?);
        Ok(message)
    }
}

/// Returns the review of a comparison. Candidates that the reviewer does not rank follow in the order of the evidence.
fn compared_facts(
    session: String,
    reviewed: usize,
    candidates: &[usize],
    answer: ReviewAnswer,
) -> ReviewFacts {
    let ReviewAnswer { findings: shared, remarks, candidates: single, ranking } = answer;
    let mut order: Vec<usize> = Vec::with_capacity(candidates.len());
    for candidate in ranking.into_iter().chain(candidates.iter().copied()) {
        if candidates.contains(&candidate) && !order.contains(&candidate) {
            order.push(candidate);
        }
    }
    let findings_of = |candidate: usize| {
        let single = single.iter().filter(|found| found.candidate == candidate);
        shared.iter().chain(single.flat_map(|found| &found.findings)).cloned().collect::<Vec<_>>()
    };
    let mut facts = ReviewFacts::new(session, findings_of(reviewed), remarks);
    for (rank, candidate) in (0_u32..).zip(order) {
        if candidate == reviewed {
            facts.rank = Some(rank);
        } else {
            facts.others.push(ComparedCandidate { candidate, findings: findings_of(candidate), rank });
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_candidate_has_its_findings_and_its_place() {
        let answer = json!({
            "findings": [], "remarks": "close", "ranking": [2, 7, 2],
            "candidates": [{"candidate": 1, "findings": ["it special-cases 3"]}],
        });
        let facts = compared_facts("s".to_owned(), 1, &[1, 0, 2], serde_json::from_value(answer).unwrap());
        assert_eq!(
            (facts.rank, facts.findings.as_slice()),
            (Some(1), &["it special-cases 3".to_owned()][..])
        );
        let others: Vec<_> = facts.others.iter().map(|other| (other.candidate, other.rank)).collect();
        assert_eq!(others, [(2, 0), (0, 2)]);
        assert!(facts.others.iter().all(|other| other.findings.is_empty()));
    }

    #[test]
    fn an_answer_without_a_ranking_keeps_the_order_of_the_evidence() {
        let answer = json!({ "findings": ["all lack a case"], "remarks": "" });
        let facts = compared_facts("s".to_owned(), 1, &[1, 0], serde_json::from_value(answer).unwrap());
        assert_eq!((facts.rank, facts.others.len()), (Some(0), 1));
        assert_eq!((facts.others[0].rank, facts.others[0].findings.len()), (1, 1));
    }
}
