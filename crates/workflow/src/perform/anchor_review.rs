//! Sessions around an anchor: its reviewer, and the author of a second test.

use pintle_agent::Limits;

use super::anchor::AnchorSession;
use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::handed_context::ContextScope;
use super::{RunningStep, StepError, take_answer};
use crate::anchor::{Anchor, AnchorFacts, AnchorReview};
use crate::command_run::CommandRun;
use crate::contract::{AnchorPlan, SessionRole};
use crate::prompts;
use crate::repository::RepositoryError;
use crate::review_patch::{PatchLimits, shorten_patch};

impl RunningStep<'_> {
    /// Runs a session that reviews an anchor. It sees the goal and the anchor, and no solution.
    pub(super) async fn review_anchor(
        &mut self,
        facts: &AnchorFacts,
        limits: Limits,
    ) -> Result<AnchorReview, StepError> {
        let patch = match &facts.patch {
            Some(patch) => self.read_blob(patch).await?,
            None => Vec::new(),
        };
        let commit = self.repository.commit_patch(self.repository.base(), &patch).await?;
        let name = format!("anchor-review-{}", self.step.attempt);
        let workspace = self.create_workspace(&name).await?;
        self.ensure_clone(&workspace, &commit, None).await?;
        let output = match facts.runs.last() {
            Some(run) => run.last_lines(self.performer.blobs.as_ref()).await?,
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&patch);
        let shown = shorten_patch(&text, self.task.rules(), PatchLimits::CHANGE);
        let mut message = prompts::anchor_review(self.contract(), &facts.command, &shown, &output);
        self.performer.clear_outputs(&workspace.working_directory()).await?;
        message.push_str(
            &self.hand_context(&workspace.working_directory(), &commit, ContextScope::Repository).await?,
        );
        let plan = self.contract().session_plan(SessionRole::Review);
        let limits = self.limits_left(limits);
        let mut assignment = self.create_assignment(&workspace, message, &plan, limits);
        assignment.session = format!("{}-{name}", self.performer.task);
        assignment.answer = Some(prompts::review_schema());
        let session = assignment.session.clone();
        let worked = self.run_session(assignment).await?;
        let answer = take_answer(worked, &session, "the reviewer of the anchor gave no answer")?;
        let review = serde_json::from_value::<prompts::ReviewAnswer>(answer)
            .map_err(|error| StepError::Other(format!("cannot parse the reviewer's answer: {error}")))?;
        self.performer.remove_workspaces(workspace.directory()).await?;
        Ok(AnchorReview { session, findings: review.findings })
    }

    /// Runs a session that writes a second test from the goal alone. Returns `None` if its test is unsuitable: it ranks
    /// candidates only, so a task continues without it.
    pub(super) async fn find_hidden_anchor(
        &mut self,
        base: &str,
        limits: Limits,
    ) -> Result<Option<AnchorFacts>, StepError> {
        let message = prompts::hidden_anchor(self.contract());
        let limits = self.limits_left(limits);
        let mut facts = match self.propose_anchor(base, AnchorSession::Hidden, message, limits).await {
            Ok(facts) => facts,
            Err(error @ (StepError::Stopped | StepError::Lost | StepError::Store(_))) => return Err(error),
            Err(_) => return Ok(None),
        };
        match self.run_anchor_on_base(base, &mut facts).await {
            Ok(_) => {}
            Err(error @ (StepError::Stopped | StepError::Lost | StepError::Store(_))) => return Err(error),
            Err(_) => return Ok(None),
        }
        let is_sound = facts.judge(&AnchorPlan::Test, self.task.rules()).is_ok();
        Ok(is_sound.then_some(facts))
    }

    /// Returns the limits without the costs of the earlier sessions of this step.
    fn limits_left(&self, mut limits: Limits) -> Limits {
        limits.cost = limits.cost.map(|cost| cost.saturating_sub(self.spent.cost));
        limits.tokens = limits.tokens.map(|tokens| tokens.saturating_sub(self.spent.tokens));
        limits
    }

    /// Runs the hidden anchor on the commit of a candidate. Returns no run if it cannot be added to the candidate's files.
    pub(super) async fn run_hidden_anchor(&self, commit: &str) -> Result<Vec<CommandRun>, StepError> {
        let Some(anchor) = self.task.hidden_anchor() else { return Ok(Vec::new()) };
        let Some(patch) = anchor.patch() else { return Ok(Vec::new()) };
        let commit = match self.repository.commit_patch(commit, &self.read_blob(patch).await?).await {
            Ok(commit) => commit,
            Err(RepositoryError::Unfit(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let clean = CleanClone::create(self, &commit).await?;
        Ok(clean.run_prepared(self, CommandSpec::from(anchor)).await?.into_iter().collect())
    }

    /// Returns the hidden anchor for a reviewer, or an empty text.
    pub(super) async fn describe_hidden_anchor(&self) -> Result<String, StepError> {
        let Some(patch) = self.task.hidden_anchor().and_then(Anchor::patch) else { return Ok(String::new()) };
        let patch = self.read_blob(patch).await?;
        let limits = PatchLimits::CHANGE.share(4);
        let shown = shorten_patch(&String::from_utf8_lossy(&patch), self.task.rules(), limits);
        Ok(prompts::hidden_test(&shown))
    }
}
