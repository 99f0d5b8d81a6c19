//! The review of a change.

use pintle_agent::Limits;

use super::{RunningStep, StepError, take_answer};
use crate::contract::CandidatePlan;
use crate::prompts;
use crate::repository::remove_directory;
use crate::task::{ReviewFacts, StepOutput, TaskCandidate};

impl RunningStep<'_> {
    /// Runs a separate session that reviews a change with its evidence.
    pub(super) async fn review(&mut self, limits: Limits) -> Result<StepOutput, StepError> {
        let proof = self.candidate().and_then(TaskCandidate::proof);
        let proof = proof.ok_or_else(|| StepError::Other("there is nothing to review".to_owned()))?.clone();
        let patch = self.read_blob(&proof.diff().patch).await?;
        let commit = self.repository.commit_patch(&self.commit_anchor().await?, &patch).await?;
        let workspace = self.performer.create_workspace(&self.step.to_string()).await?;
        self.ensure_clone(&workspace, &commit, None).await?;
        let evidence = crate::report::evidence(self.contract(), &proof);
        let message = prompts::review(self.contract(), &String::from_utf8_lossy(&patch), &evidence);
        let plan = CandidatePlan { model: self.contract().review.model.clone(), ..CandidatePlan::default() };
        let mut assignment = self.create_assignment(&workspace, message, &plan, limits);
        assignment.answer = Some(prompts::review_schema());
        let session = assignment.session.clone();
        let worked = self.run_session(assignment).await?;
        let answer = take_answer(worked, &session, "the reviewer gave no answer")?;
        let review = serde_json::from_value::<prompts::ReviewAnswer>(answer)
            .map_err(|error| StepError::Other(format!("cannot parse the reviewer's answer: {error}")))?;
        remove_directory(self.performer.machine.as_ref(), workspace.directory()).await?;
        let prompts::ReviewAnswer { findings, remarks } = review;
        Ok(StepOutput::Review(ReviewFacts { session, findings, remarks }))
    }
}
