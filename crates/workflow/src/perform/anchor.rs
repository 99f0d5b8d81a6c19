//! Finds the anchor of a task, and runs it on the base.

use pintle_agent::Limits;

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError, control, take_answer};
use crate::anchor::{ANCHOR_RUNS, AnchorFacts};
use crate::command_run::{RunComparison, TestStability};
use crate::contract::{AnchorPlan, CandidatePlan};
use crate::diff::ChangedFile;
use crate::prompts;
use crate::task::StepOutput;

impl RunningStep<'_> {
    /// Finds an anchor, and runs it on the base.
    pub(super) async fn anchor(
        &mut self,
        feedback: Option<&str>,
        limits: Limits,
    ) -> Result<StepOutput, StepError> {
        let base = self.repository.base().to_owned();
        let mut facts = match &self.contract().anchor {
            AnchorPlan::Command { command, results, report } => AnchorFacts {
                command: command.clone(),
                results: *results,
                report: report.clone(),
                session: None,
                patch: None,
                control: None,
                files: Vec::new(),
                runs: Vec::new(),
                failing_before: Default::default(),
            },
            AnchorPlan::Test | AnchorPlan::None { .. } => {
                self.propose_anchor(&base, feedback, limits).await?
            }
        };
        let spec = CommandSpec::new(&facts.command).with_results(facts.results, facts.report.as_deref());
        let commit = match &facts.patch {
            None => base.clone(),
            Some(patch) => {
                // Tests of the same command that fail without the patch prove nothing.
                let clean = CleanClone::create(self, &base).await?;
                let before = clean.run_in_clean_clone(self, spec, 1).await?;
                let before = RunComparison::compare(&before);
                facts.failing_before = [TestStability::Fails, TestStability::Breaks]
                    .into_iter()
                    .flat_map(|stability| before.tests_with(stability).map(str::to_owned).collect::<Vec<_>>())
                    .collect();
                self.repository.commit_patch(&base, &self.read_blob(patch).await?).await?
            }
        };
        let clean = CleanClone::create(self, &commit).await?;
        facts.runs = clean.run_in_clean_clone(self, spec, ANCHOR_RUNS).await?;
        if facts.results.is_some() {
            facts.control = self.find_control_file(&commit, spec, &facts.files).await?;
        }
        Ok(StepOutput::Anchor(Box::new(facts)))
    }

    /// Finds a file of the anchor in which a control runs and fails.
    async fn find_control_file(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        files: &[ChangedFile],
    ) -> Result<Option<String>, StepError> {
        let known = files.iter().find(|file| control::test_template(&file.path).is_some());
        let Some(file) = known.map(|file| file.path.clone()) else { return Ok(None) };
        let control = CleanClone::run_control(self, commit, spec, &file).await?;
        Ok(control.is_some_and(|control| control.has_failed()).then_some(file))
    }

    /// Runs a session that proposes an anchor.
    async fn propose_anchor(
        &mut self,
        base: &str,
        feedback: Option<&str>,
        limits: Limits,
    ) -> Result<AnchorFacts, StepError> {
        let workspace = self.performer.create_workspace("anchor").await?;
        self.ensure_clone(&workspace, base, None).await?;
        let message = prompts::anchor(self.contract(), self.step.attempt, feedback);
        let plan = CandidatePlan::default();
        let mut assignment = self.create_assignment(&workspace, message, &plan, limits);
        assignment.answer = Some(prompts::proposal_schema());
        let session = assignment.session.clone();
        let worked = self.run_session(assignment).await?;
        let answer = take_answer(worked, &session, "the session named no command")?;
        let proposal: prompts::AnchorProposal = serde_json::from_value(answer)
            .map_err(|error| StepError::Other(format!("cannot parse the session's answer: {error}")))?;
        let diff = self.repository.diff(&workspace.root, base, self.performer.blobs.as_ref()).await?;
        Ok(AnchorFacts {
            command: proposal.command,
            results: proposal.results,
            report: proposal.report,
            session: Some(session),
            patch: Some(diff.patch),
            control: None,
            files: diff.files,
            runs: Vec::new(),
            failing_before: Default::default(),
        })
    }
}
