//! The work of a candidate.

use std::path::Path;

use super::handed_context::{ContextScope, OUTPUTS};
use super::{RunningStep, StepError};
use crate::command_run::BlobReference;
use crate::diff::Diff;
use crate::prompts;
use crate::repository::RepositoryError;
use crate::session_runner::SessionAssignment;
use crate::task::{StepOutput, TaskCandidate, WorkFacts, WorkLimits};

impl RunningStep<'_> {
    /// Runs the session of a candidate.
    pub(super) async fn work(
        &mut self,
        feedback: Option<&str>,
        limits: WorkLimits,
    ) -> Result<StepOutput, StepError> {
        let session = self.performer.session_id(self.step);
        let pending = self.performer.pending_messages.accept(&session);
        let (start, mut assignment) = self.prepare_work(feedback, limits).await?;
        assignment.steering = pending.take();
        let workspace = assignment.workspace.clone();
        let worked = self.run_session(assignment).await?;
        let (diff, unfit) = self.take_diff(&workspace.root, &start).await?;
        Ok(StepOutput::Work(WorkFacts { session, end: worked.end, diff, unfit, report: None }))
    }

    /// Returns the changes of a session, or the reason why they cannot be used. They are taken at the end of its work, so that
    /// later changes by running jobs do not count.
    pub(super) async fn take_diff(
        &self,
        root: &Path,
        start: &str,
    ) -> Result<(Option<Diff>, Option<String>), StepError> {
        match self.repository.diff(root, start, self.performer.blobs.as_ref()).await {
            Ok(diff) => Ok((Some(diff), None)),
            Err(RepositoryError::Unfit(reason)) => Ok((None, Some(reason))),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the workspace of a candidate, and returns its start commit and its assignment.
    async fn prepare_work(
        &self,
        feedback: Option<&str>,
        limits: WorkLimits,
    ) -> Result<(String, SessionAssignment), StepError> {
        let start = self.commit_anchor().await?;
        let index = self.step.candidate.unwrap_or_default();
        let workspace = self.create_workspace(&format!("candidates/{index}")).await?;
        let before = self.candidate().and_then(newest_diff).map(|diff| diff.patch.clone());
        self.ensure_clone(&workspace, &start, before.as_ref()).await?;
        let plan = self.contract().candidate_plan(index);
        let feedback = self.add_outputs(&workspace.working_directory(), feedback).await?;
        let feedback = feedback.as_deref();
        let number = self.step.attempt;
        let context = self.hand_context(&workspace.working_directory(), &start, ContextScope::All).await?;
        let message = match self.candidate().is_some_and(TaskCandidate::has_worked) {
            // Its session has the context already.
            true => prompts::more_work(number, feedback),
            false => prompts::work(self.contract(), &plan, self.task.anchor(), number, feedback) + &context,
        };
        Ok((start, self.create_assignment(&workspace, message, &plan, limits)))
    }
}

impl RunningStep<'_> {
    /// Removes the earlier files for the session. Writes the output of the commands that failed in the last attempt to files
    /// below its working directory, and names them in the feedback.
    async fn add_outputs(
        &self,
        working_directory: &Path,
        feedback: Option<&str>,
    ) -> Result<Option<String>, StepError> {
        self.performer.clear_outputs(working_directory).await?;
        let Some(feedback) = feedback else { return Ok(None) };
        let (directory, machine) = (working_directory.join(OUTPUTS), self.performer.machine.as_ref());
        let mut text = feedback.to_owned();
        for (name, output) in self.failed_outputs() {
            let output = self.read_blob(output).await?;
            machine.write(&directory.join(&name), &output).await?;
            text.push_str(&format!("- The whole output is in `{OUTPUTS}/{name}`.\n"));
        }
        Ok(Some(text))
    }

    /// Returns the output of the failed commands of the newest judged attempt, with a name for each.
    fn failed_outputs(&self) -> Vec<(String, &BlobReference)> {
        let attempts = self.candidate().map(TaskCandidate::attempts).unwrap_or_default();
        let Some(facts) = attempts.iter().rev().find_map(|attempt| attempt.facts.as_ref()) else {
            return Vec::new();
        };
        let checks = (1..).zip(facts.checks.values());
        let named = checks.map(|(number, runs): (usize, _)| (format!("check-{number}.txt"), runs));
        let mut outputs = Vec::new();
        for (name, runs) in [("anchor.txt".to_owned(), &facts.anchor)].into_iter().chain(named) {
            let failed = runs.iter().find(|run| !run.has_passed());
            outputs.extend(failed.and_then(|run| Some((name, run.output.as_ref()?))));
        }
        outputs
    }
}

fn newest_diff(candidate: &TaskCandidate) -> Option<&Diff> {
    candidate.attempts().iter().rev().find_map(|attempt| attempt.work.as_ref()?.diff.as_ref())
}
