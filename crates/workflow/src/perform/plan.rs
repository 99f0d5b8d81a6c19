//! Rounds of a plan: the session that plans, the work on a step, and its evidence.

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::handed_context::ContextScope;
use super::{RunningStep, StepError, take_answer};
use crate::contract::SessionRole;
use crate::diff::Diff;
use crate::evidence::CandidateFacts;
use crate::prompts::{self, PlanAnswer, PlanRequest};
use crate::repository::RepositoryError;
use crate::secrets;
use crate::task::{
    OwnCheck, PlanFacts, PlanRound, PlannedStep, StepCandidate, StepFacts, StepOutput, StepReport, TaskPlan,
    WorkFacts, WorkLimits,
};

impl RunningStep<'_> {
    /// Runs the session that plans, in a clone with the change so far. Its changes have no effect.
    pub(super) async fn plan(
        &mut self,
        feedback: Option<&str>,
        limits: WorkLimits,
    ) -> Result<StepOutput, StepError> {
        self.ensure_active()?;
        // The container of an earlier round would have the files of that round.
        self.performer.remove_workspaces(&self.performer.directory.join("plan")).await?;
        let workspace = self.create_workspace("plan").await?;
        let commit = self.commit_snapshot(&self.commit_anchor().await?).await?;
        self.repository.clone_to(&workspace.root, &commit).await?;
        let context = self.hand_context(&workspace.working_directory(), &commit, ContextScope::Notes).await?;
        let request = PlanRequest {
            contract: self.contract(),
            plan: self.task_plan()?,
            step: self.step,
            feedback,
            context: &context,
        };
        let message = prompts::plan(&request);
        let plan = self.contract().session_plan(SessionRole::Plan);
        let mut assignment = self.create_assignment(&workspace, message, &plan, limits);
        assignment.answer = Some(prompts::plan_schema());
        let session = assignment.session.clone();
        let worked = self.run_session(assignment).await?;
        let answer = take_answer(worked, &session, "the session planned no step")?;
        let PlanAnswer { next, remaining, go_back } = serde_json::from_value(answer)
            .map_err(|error| StepError::Other(format!("cannot parse the session's answer: {error}")))?;
        Ok(StepOutput::Plan(PlanFacts { session, next, remaining, go_back }))
    }

    /// Runs the session of a candidate of a step, in a clone with the change so far.
    pub(super) async fn work_on_step(
        &mut self,
        feedback: Option<&str>,
        limits: WorkLimits,
    ) -> Result<StepOutput, StepError> {
        let session = self.performer.session_id(self.step);
        let pending = self.performer.pending_messages.accept(&session);
        let start = self.commit_anchor().await?;
        let snapshot = self.commit_snapshot(&start).await?;
        let workspace = self.create_workspace(&self.step_directory()).await?;
        self.ensure_clone(&workspace, &snapshot, None).await?;
        let directory = workspace.working_directory();
        self.performer.clear_outputs(&directory).await?;
        let context = self.hand_context(&directory, &snapshot, ContextScope::All).await?;
        let index = self.step.candidate.unwrap_or_default();
        // A step may have more candidates than the contract.
        let plan = self.contract().candidate_plan(index % self.contract().candidates.len().max(1));
        let number = u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1);
        let message =
            prompts::step(self.contract(), self.round()?.step(), &plan, number, feedback) + &context;
        let mut assignment = self.create_assignment(&workspace, message, &plan, limits);
        assignment.answer = Some(prompts::step_report_schema());
        assignment.steering = pending.take();
        let worked = self.run_session(assignment).await?;
        // A report steers spending only, so that a missing one is no failure.
        let report = worked.answer.and_then(|answer| serde_json::from_value::<StepReport>(answer).ok());
        let (diff, unfit) = self.take_diff(&workspace.root, &start).await?;
        Ok(StepOutput::Work(WorkFacts { session, end: worked.end, diff, unfit, report }))
    }

    /// Runs the checks of the contract and of the step on the change up to this step. They run without the anchor, which fails
    /// until the goal is reached.
    pub(super) async fn step_evidence(&mut self) -> Result<StepOutput, StepError> {
        let candidate = self.step.candidate.and_then(|index| self.round().ok()?.candidates().get(index));
        let work = candidate.and_then(StepCandidate::work).cloned();
        let work = work.ok_or_else(|| StepError::Other("nothing was worked on".to_owned()))?;
        // The changes are on record, so the clone of the session is not needed any more.
        let clone = self.performer.directory.join(self.step_directory());
        self.performer.remove_workspaces(&clone).await?;
        let Some(diff) = work.diff else {
            let reason = work.unfit.unwrap_or_else(|| "there is no diff".to_owned());
            return Ok(unapplied(Diff::empty(), reason));
        };
        let patch = self.read_blob(&diff.patch).await?;
        let (start, base) = (self.commit_anchor().await?, self.repository.base());
        let with_anchor = self.repository.commit_patch(&start, &patch).await;
        let (commit, plain) = match (with_anchor, self.repository.commit_patch(base, &patch).await) {
            (Ok(commit), Ok(plain)) => (commit, plain),
            (Err(RepositoryError::Unfit(reason)), _) | (_, Err(RepositoryError::Unfit(reason))) => {
                return Ok(unapplied(diff, reason));
            }
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        let judging = self.assess_change(&diff.files, &start, &commit).await?;
        let files = self.repository.compare(&self.commit_snapshot(&start).await?, &commit).await?;
        let commit = self.repository.commit_without(&commit, &judging.apart).await?;
        let plain = self.repository.commit_without(&plain, &judging.apart).await?;
        let mut facts = CandidateFacts::from_diff(diff);
        facts.secrets = secrets::find_in_patch(&patch, &self.performer.secrets);
        facts.judging = Some(judging);
        for check in &self.contract().checks {
            let seen = self.run_check_once(&plain, self.check_spec(check), 1, &mut facts).await?;
            facts.checks.insert(check.name.clone(), seen);
        }
        if let Some(anchor) = self.task.anchor() {
            facts.anchor = self.run_check_once(&commit, CommandSpec::from(anchor), 1, &mut facts).await?;
        }
        let own = self.run_own_checks(self.round()?.step(), &plain, &mut facts).await?;
        Ok(StepOutput::StepEvidence(Box::new(StepFacts { change: facts, files, own })))
    }

    /// Runs the checks of a step before it and after it.
    async fn run_own_checks(
        &self,
        step: &PlannedStep,
        commit: &str,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<OwnCheck>, StepError> {
        let snapshot = self.commit_snapshot(self.repository.base()).await?;
        let mut own = Vec::with_capacity(step.checks.len());
        for command in &step.checks {
            let spec = CommandSpec::new(command);
            let before = CleanClone::create(self, &snapshot).await?.run_prepared(self, spec).await?;
            let after = self.run_check_once(commit, spec, 1, facts).await?;
            own.push(OwnCheck { command: command.clone(), before: before.into_iter().collect(), after });
        }
        Ok(own)
    }

    /// Returns the commit with the change up to the last step, from this commit.
    async fn commit_snapshot(&self, from: &str) -> Result<String, StepError> {
        match self.task_plan()?.snapshot() {
            None => Ok(from.to_owned()),
            Some(snapshot) => {
                let patch = self.read_blob(&snapshot.diff().patch).await?;
                Ok(self.repository.commit_patch(from, &patch).await?)
            }
        }
    }

    fn task_plan(&self) -> Result<&TaskPlan, StepError> {
        self.task.plan().ok_or_else(|| StepError::Other("the contract has no plan".to_owned()))
    }

    fn round(&self) -> Result<&PlanRound, StepError> {
        let round = self.task_plan()?.round(self.step.round);
        round.ok_or_else(|| StepError::Other("the plan has no such step".to_owned()))
    }

    /// Returns the directory of a candidate of a step, below that of the task.
    fn step_directory(&self) -> String {
        format!("steps/{}-{}", self.step.round, self.step.candidate.unwrap_or_default())
    }
}

/// Returns the evidence of a change that was not judged, for this reason.
fn unapplied(diff: Diff, reason: String) -> StepOutput {
    let change = CandidateFacts::from_unapplied(diff, reason);
    StepOutput::StepEvidence(Box::new(StepFacts { change, files: Vec::new(), own: Vec::new() }))
}
