//! Finds the anchor of a task, and runs it on the base.

use pintle_agent::Limits;
use pintle_evidence::anchor::AnchorFacts;
use pintle_evidence::command_run::{RunComparison, TestStability};
use pintle_evidence::control_plan::control_template;
use pintle_evidence::diff::ChangedFile;

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::handed_context::ContextScope;
use super::{RunningStep, StepError, take_answer};
use crate::contract::{AnchorPlan, SessionRole};
use crate::prompts;
use crate::session_runner::Workspace;
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
            AnchorPlan::Command { command, results, report } => {
                AnchorFacts::from_command(command.clone(), *results, report.clone())
            }
            AnchorPlan::Test | AnchorPlan::None { .. } => {
                let message = prompts::anchor(self.contract(), self.step.attempt, feedback);
                self.propose_anchor(&base, AnchorSession::Anchor, message, limits).await?
            }
        };
        let commit = self.run_anchor_on_base(&base, &mut facts).await?;
        self.add_controls(&commit, &mut facts).await?;
        let is_sound = facts.judge(self.contract().anchor.is_test(), self.task.rules()).is_ok();
        if is_sound && facts.patch.is_some() && self.contract().review.rounds > 0 {
            facts.review = Some(self.review_anchor(&facts, limits).await?);
        }
        let is_accepted = facts.judge(self.contract().anchor.is_test(), self.task.rules()).is_ok();
        if is_accepted && self.contract().has_hidden_anchor() {
            self.add_hidden_anchor(&base, limits, &mut facts).await?;
        }
        Ok(StepOutput::Anchor(Box::new(facts)))
    }

    /// Runs a proposed anchor on the base, and recognizes its results. Returns the commit that has it.
    pub(super) async fn run_anchor_on_base(
        &self,
        base: &str,
        facts: &mut AnchorFacts,
    ) -> Result<String, StepError> {
        let commit = match &facts.patch {
            None => base.to_owned(),
            Some(patch) => self.repository.commit_patch(base, &self.read_blob(patch).await?).await?,
        };
        self.run_proposed_anchor(facts, &commit).await?;
        if facts.patch.is_some() {
            // Tests of the same command that fail without the patch prove nothing.
            let spec = CommandSpec::new(&facts.command).with_results(facts.results, facts.report.as_deref());
            let clean = CleanClone::create(self, base).await?;
            let before = RunComparison::compare(&clean.run_in_clean_clone(self, spec, 1).await?);
            facts.failing_before = [TestStability::Fails, TestStability::Breaks]
                .into_iter()
                .flat_map(|stability| before.tests_with(stability).map(str::to_owned).collect::<Vec<_>>())
                .collect();
        }
        Ok(commit)
    }

    /// Finds the controls of an anchor that has run: variants of its test, or else an unconditional one.
    async fn add_controls(&self, commit: &str, facts: &mut AnchorFacts) -> Result<(), StepError> {
        let (command, report) = (facts.command.clone(), facts.report.clone());
        let spec = CommandSpec::new(&command).with_results(facts.results, report.as_deref());
        if let Some((file, controls)) = self.find_controls(commit, spec, facts).await? {
            (facts.control, facts.controls) = (Some(file), controls);
        } else if facts.results.is_some() {
            facts.control = self.find_control_file(commit, spec, &facts.files).await?;
        }
        Ok(())
    }

    /// Finds a file of the anchor in which a control runs and fails.
    async fn find_control_file(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        files: &[ChangedFile],
    ) -> Result<Option<String>, StepError> {
        let known = files.iter().find(|file| control_template(&file.path).is_some());
        let Some(file) = known.map(|file| file.path.clone()) else { return Ok(None) };
        let control = CleanClone::run_control(self, commit, spec, &file).await?;
        Ok(control.is_some_and(|control| control.has_failed()).then_some(file))
    }

    /// Returns the context for the author of a test. The author of a hidden test knows the repository and the goal alone.
    async fn hand_to_author(
        &self,
        workspace: &Workspace,
        base: &str,
        session: AnchorSession,
    ) -> Result<String, StepError> {
        self.performer.clear_outputs(workspace).await?;
        let scope = match session {
            AnchorSession::Anchor => ContextScope::Notes,
            AnchorSession::Hidden => ContextScope::Repository,
        };
        let context = self.hand_context(workspace, base, scope).await?;
        // A session that has proposed a test knows it already.
        Ok(if self.step.attempt > 1 && session == AnchorSession::Anchor { String::new() } else { context })
    }

    /// Runs a session that proposes an anchor.
    pub(super) async fn propose_anchor(
        &mut self,
        base: &str,
        session: AnchorSession,
        message: String,
        limits: Limits,
    ) -> Result<AnchorFacts, StepError> {
        let workspace = self.create_workspace(session.name()).await?;
        self.ensure_clone(&workspace, base, None).await?;
        let context = self.hand_to_author(&workspace, base, session).await?;
        let plan = self.contract().session_plan(SessionRole::Anchor);
        let mut assignment = self.create_assignment(&workspace, message + &context, &plan, limits);
        assignment.session = format!("{}-{}", self.performer.task, session.name());
        assignment.answer = Some(prompts::proposal_schema());
        let session = assignment.session.clone();
        let worked = self.run_session(assignment).await?;
        let answer = take_answer(worked, &session, "the session named no command")?;
        let proposal: prompts::AnchorProposal = serde_json::from_value(answer)
            .map_err(|error| StepError::Other(format!("cannot parse the session's answer: {error}")))?;
        let diff = self.repository.diff(&workspace.root, base, self.performer.blobs.as_ref()).await?;
        Ok(AnchorFacts {
            session: Some(session),
            patch: Some(diff.patch),
            files: diff.files,
            regression: proposal.regression,
            notes: proposal.notes,
            ..AnchorFacts::from_command(proposal.command, proposal.results, proposal.report)
        })
    }
}

/// Session that writes a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnchorSession {
    Anchor,
    /// It writes a second test, which candidates never see.
    Hidden,
}

impl AnchorSession {
    /// Returns the name of its workspace, and the end of its id.
    fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::Hidden => "hidden-anchor",
        }
    }
}
