//! The work of a candidate.

use pintle_agent::Limits;

use super::{RunningStep, StepError};
use crate::diff::Diff;
use crate::prompts;
use crate::repository::RepositoryError;
use crate::session_runner::SessionAssignment;
use crate::task::{StepOutput, TaskCandidate, WorkFacts};

impl RunningStep<'_> {
    /// Runs the session of a candidate.
    pub(super) async fn work(
        &mut self,
        feedback: Option<&str>,
        limits: Limits,
    ) -> Result<StepOutput, StepError> {
        let session = self.performer.session_id(self.step);
        let pending = self.performer.pending_messages.accept(&session);
        let (start, mut assignment) = self.prepare_work(feedback, limits).await?;
        assignment.steering = pending.take();
        let workspace = assignment.workspace.clone();
        let worked = self.run_session(assignment).await?;
        // Taken now, so that later changes by running jobs do not count.
        let taken = self.repository.diff(&workspace.root, &start, self.performer.blobs.as_ref()).await;
        let (diff, unfit) = match taken {
            Ok(diff) => (Some(diff), None),
            Err(RepositoryError::Unfit(reason)) => (None, Some(reason)),
            Err(error) => return Err(error.into()),
        };
        Ok(StepOutput::Work(WorkFacts { session, end: worked.end, diff, unfit }))
    }

    /// Creates the workspace of a candidate, and returns its start commit and its assignment.
    async fn prepare_work(
        &self,
        feedback: Option<&str>,
        limits: Limits,
    ) -> Result<(String, SessionAssignment), StepError> {
        let start = self.commit_anchor().await?;
        let index = self.step.candidate.unwrap_or_default();
        let workspace = self.performer.create_workspace(&format!("candidates/{index}")).await?;
        let before = self.candidate().and_then(newest_diff).map(|diff| diff.patch.clone());
        self.ensure_clone(&workspace, &start, before.as_ref()).await?;
        let plan = self.contract().candidates.get(index).cloned().unwrap_or_default();
        let number = self.step.attempt;
        let message = match self.candidate().is_some_and(TaskCandidate::has_worked) {
            true => prompts::more_work(number, feedback),
            false => prompts::work(self.contract(), &plan, self.task.anchor(), number, feedback),
        };
        Ok((start, self.create_assignment(&workspace, message, &plan, limits)))
    }
}

fn newest_diff(candidate: &TaskCandidate) -> Option<&Diff> {
    candidate.attempts().iter().rev().find_map(|attempt| attempt.work.as_ref()?.diff.as_ref())
}
