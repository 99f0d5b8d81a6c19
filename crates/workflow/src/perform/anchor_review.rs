//! Sessions around an anchor: its reviewer, and the author of a second test.

use std::time::Duration;

use pintle_agent::Limits;
use pintle_evidence::anchor::{Anchor, AnchorFacts, AnchorReview};
use pintle_evidence::command_run::CommandRun;
use pintle_evidence::review_patch::{PatchLimits, shorten_patch};

use super::anchor::AnchorSession;
use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::handed_context::ContextScope;
use super::{RunningStep, StepError, take_answer};
use crate::contract::SessionRole;
use crate::last_lines::read_last_lines;
use crate::prompts;
use crate::repository::RepositoryError;
use crate::task::WorkCost;

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
            Some(run) => read_last_lines(run, self.performer.blobs.as_ref()).await?,
            None => Vec::new(),
        };
        let text = String::from_utf8_lossy(&patch);
        let shown = shorten_patch(&text, self.task.rules(), PatchLimits::CHANGE);
        let mut message = prompts::anchor_review(self.contract(), &facts.command, &shown, &output);
        self.performer.clear_outputs(&workspace).await?;
        message.push_str(&self.hand_context(&workspace, &commit, ContextScope::Repository).await?);
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

    /// Runs a session that writes a second test from the goal alone. The test ranks candidates only, so a task continues without it,
    /// and its report has the reason. Errors of the store and a full disk end the step.
    pub(super) async fn add_hidden_anchor(
        &mut self,
        base: &str,
        limits: Limits,
        facts: &mut AnchorFacts,
    ) -> Result<(), StepError> {
        match self.find_hidden_anchor(base, limits).await {
            Ok(hidden) => match hidden.judge(true, self.task.rules()) {
                Ok(_) => facts.hidden = Some(Box::new(hidden)),
                Err(problems) => {
                    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    facts.hidden_problem = Some(problems.join("; "));
                }
            },
            Err(error) if error.prevents_other_work() => return Err(error),
            Err(error) => facts.hidden_problem = Some(error.to_string()),
        }
        Ok(())
    }

    async fn find_hidden_anchor(&mut self, base: &str, limits: Limits) -> Result<AnchorFacts, StepError> {
        let message = prompts::hidden_anchor(self.contract());
        let limits = self.limits_left(limits);
        let mut facts = self.propose_anchor(base, AnchorSession::Hidden, message, limits).await?;
        self.run_anchor_on_base(base, &mut facts).await?;
        Ok(facts)
    }

    /// Returns the limits without the costs of the earlier sessions of this step, and without its time so far.
    fn limits_left(&self, limits: Limits) -> Limits {
        subtract_cost(limits, &self.spent, self.started.elapsed())
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

fn subtract_cost(mut limits: Limits, spent: &WorkCost, elapsed: Duration) -> Limits {
    limits.cost = limits.cost.map(|cost| cost.saturating_sub(spent.cost));
    limits.tokens = limits.tokens.map(|tokens| tokens.saturating_sub(spent.tokens));
    limits.wall_time = limits.wall_time.map(|time| time.saturating_sub(elapsed));
    limits
}

#[cfg(test)]
mod tests {
    use pintle_agent::Money;

    use super::super::FULL_DISK;
    use super::*;

    #[test]
    fn later_sessions_of_a_step_have_the_limits_that_are_left() {
        let dollars = Money::from_dollars;
        let limits = |cost, tokens, seconds| {
            let time = Duration::from_secs(seconds);
            Limits::default().with_cost(cost).with_tokens(tokens).with_wall_time(time)
        };
        let spent = WorkCost { cost: dollars(0.5), tokens: 10, ..WorkCost::default() };
        for (before, elapsed, left) in [
            (limits(dollars(2.0), 30, 60), 20, limits(dollars(1.5), 20, 40)),
            (limits(dollars(0.25), 5, 60), 61, limits(Money::ZERO, 0, 0)),
            (Limits::default(), 20, Limits::default()),
        ] {
            assert_eq!(subtract_cost(before, &spent, Duration::from_secs(elapsed)), left);
        }
    }

    #[test]
    fn a_full_disk_prevents_other_work() {
        for (error, expected) in [
            (StepError::Other("the session named no command".to_owned()), false),
            (StepError::AtLimit("s".to_owned()), false),
            (StepError::Other(format!("cannot write: {FULL_DISK}")), true),
            (StepError::Stopped, true),
            (StepError::Lost, true),
        ] {
            assert_eq!(error.prevents_other_work(), expected, "{error}");
        }
    }
}
