//! Carries out the steps of a task: in clones of a repository, with sessions and environments of the host.
//!
//! Nothing that a candidate leaves counts but the content of its files when its work ends. Its diff goes into a clean clone, with
//! fresh time stamps, and all that is judged runs there.

mod control;
mod draft;
mod ports;
mod runs;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use pintle_agent::Fence;
use pintle_env::{EnvError, ExecutionEnvironment, Redactions};
use pintle_store::{Blobs, StoreError};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::runs::{Line, Runs};
use crate::anchor::{ANCHOR_RUNS, Anchor, AnchorFacts};
use crate::command_run::{CommandRun, Observation, Reference, Stability};
use crate::contract::{AnchorPlan, CandidatePlan, Contract};
use crate::diff::{ChangeKind, ChangedFile, Diff};
use crate::evidence::{Baseline, CandidateFacts, Control, passes};
use crate::local::Performer;
use crate::prompts;
use crate::repository::{RepositoryError, TaskRepository, UserRepository, kept, remove_directory};
use crate::secrets;
use crate::task::{
    Candidate, Found, Order, ReviewFacts, Spent, Step, StepId, StepKind, Task, WorkEnd, WorkFacts, WorkLimits,
};
use crate::worker::{Assignment, Place, Places, SteeringMessage, Worked, Worker, WorkerError};

/// Carries out the steps of one task.
pub struct RepositoryPerformer {
    task: String,
    /// This machine as the user sees it: git runs here.
    machine: Arc<dyn ExecutionEnvironment>,
    /// Everything of the task that is a file.
    directory: PathBuf,
    places: Arc<dyn Places>,
    worker: Arc<dyn Worker>,
    blobs: Arc<dyn Blobs>,
    /// Values that must not be in a diff.
    secrets: Redactions,
    /// Held by the step that opens the repository: the first ones may begin side by side.
    opening: Mutex<()>,
    /// Words of people for sessions whose places are being made.
    waiting: StdMutex<BTreeMap<String, Vec<SteeringMessage>>>,
}

/// Reason why a step could not be carried out.
#[derive(Debug, Error)]
enum StepError {
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error("a command could not be run: {0}")]
    Environment(#[from] EnvError),
    #[error("the output of a command cannot be read: {0}")]
    Output(#[from] std::io::Error),
    #[error("the store failed: {0}")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Worker(#[from] WorkerError),
    #[error("it was stopped")]
    Stopped,
    #[error("another process has the task")]
    Lost,
    #[error("{0}")]
    Other(String),
}

/// A step that is under way.
struct Performance<'a> {
    performer: &'a RepositoryPerformer,
    task: &'a Task,
    step: &'a StepId,
    fence: &'a Fence,
    cancel: &'a CancellationToken,
    repository: TaskRepository,
    spent: Spent,
}

impl RepositoryPerformer {
    /// Creates a performer for the task with this id. `directory` is for its files alone; `machine` is this machine as the user sees
    /// it, without a sandbox: git runs there, on repositories of ours.
    #[must_use]
    pub fn new(
        task: impl Into<String>,
        directory: impl Into<PathBuf>,
        machine: Arc<dyn ExecutionEnvironment>,
        places: Arc<dyn Places>,
        worker: Arc<dyn Worker>,
        blobs: Arc<dyn Blobs>,
    ) -> Self {
        let (task, directory) = (task.into(), directory.into());
        let (secrets, opening, waiting) = (Redactions::default(), Mutex::new(()), StdMutex::default());
        Self { task, machine, directory, places, worker, blobs, secrets, opening, waiting }
    }

    /// Sets values that must not be in a diff, such as the keys of the host.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Redactions) -> Self {
        self.secrets = secrets;
        self
    }

    /// Removes everything of the task that is a file. What is judged of it is in the store.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`] if something cannot be removed.
    pub async fn clean(&self) -> Result<(), RepositoryError> {
        remove_directory(self.machine.as_ref(), &self.directory).await
    }

    /// Removes the files of the task, and the name of the commit with the user's local changes.
    async fn remove(&self, contract: &Contract) -> Result<(), RepositoryError> {
        self.clean().await?;
        match &contract.base {
            Some(base) => {
                let root = Path::new(&base.repository);
                UserRepository::remove_snapshot(&self.machine, root, &self.task).await
            }
            None => Ok(()),
        }
    }

    async fn repository(&self, contract: &Contract) -> Result<TaskRepository, StepError> {
        let base = contract.base.as_ref().ok_or_else(|| {
            StepError::Other("the contract has no base; expected a repository and a commit".to_owned())
        })?;
        let machine = Arc::clone(&self.machine);
        let _alone = self.opening.lock().await;
        Ok(TaskRepository::open(machine, &self.directory, &base.repository, &base.commit).await?)
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<String, Vec<SteeringMessage>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of the session that works in a step. The attempts of a candidate are one session.
    fn session_of(&self, step: &StepId) -> String {
        let task = &self.task;
        match (step.kind, step.candidate) {
            (StepKind::Review, Some(candidate)) => format!("{task}-review-{candidate}-{}", step.attempt),
            (_, Some(candidate)) => format!("{task}-{candidate}"),
            (kind, None) => format!("{task}-{kind}"),
        }
    }

    /// Returns a place with a directory for temporary files and ports of its own. Its root is not made yet.
    async fn place(&self, name: &str) -> Result<Place, StepError> {
        let directory = self.directory.join(name);
        let temporary = directory.join("tmp");
        self.machine.create_directory(&temporary).await?;
        let root = directory.join("tree");
        let mut variables = ports::free().await?;
        for (name, path) in [
            ("TMPDIR", temporary),
            ("CARGO_TARGET_DIR", root.join("target")),
            // A repository further up is not that of the place.
            ("GIT_CEILING_DIRECTORIES", directory),
        ] {
            variables.insert(name.to_owned(), path.display().to_string());
        }
        Ok(Place::new(root, variables))
    }
}

#[async_trait]
impl Performer for RepositoryPerformer {
    async fn perform(
        &self,
        task: &Task,
        step: &Step,
        fence: &Fence,
        cancel: &CancellationToken,
    ) -> (Found, Spent) {
        let begun = Instant::now();
        let (found, mut spent) = match self.repository(task.contract()).await {
            Err(error) => (Err(error), Spent::default()),
            Ok(repository) => {
                let spent = Spent::default();
                let mut performance =
                    Performance { performer: self, task, step: &step.id, fence, cancel, repository, spent };
                (performance.carry_out(&step.order).await, performance.spent)
            }
        };
        spent.millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        (found.unwrap_or_else(|error| Found::Failed { reason: error.to_string() }), spent)
    }

    async fn steer(&self, step: &StepId, message: SteeringMessage) -> bool {
        if let Some(waiting) = self.waiting().get_mut(&self.session_of(step)) {
            waiting.push(message);
            return true;
        }
        self.worker.steer(&self.session_of(step), message).await
    }

    async fn clean(&self, contract: &Contract) -> Result<(), String> {
        self.remove(contract).await.map_err(|error| error.to_string())
    }
}

impl Performance<'_> {
    async fn carry_out(&mut self, order: &Order) -> Result<Found, StepError> {
        match order {
            Order::Baseline => self.baseline().await,
            Order::Anchor { feedback, limits } => self.anchor(feedback.as_deref(), *limits).await,
            Order::Work { feedback, limits } => self.work(feedback.as_deref(), *limits).await,
            Order::Evidence => self.evidence().await,
            Order::Review { limits } => self.review(*limits).await,
        }
    }

    fn contract(&self) -> &Contract {
        self.task.contract()
    }

    /// Refuses to go on once another process has the task.
    fn check(&self) -> Result<(), StepError> {
        if self.cancel.is_cancelled() {
            return Err(StepError::Stopped);
        }
        self.fence.check().map_err(|_| StepError::Lost)
    }

    /// Runs all checks on the base.
    async fn baseline(&mut self) -> Result<Found, StepError> {
        let base = self.repository.base().to_owned();
        let mut baseline = Baseline { remarks: self.repository.remarks().await?, ..Baseline::default() };
        for check in &self.contract().checks {
            let clean = Clean::at(self, &base).await?;
            let seen = clean.seen(self, Line::from(check), check.runs as usize).await?;
            if let Some(problem) = crate::evidence::incomparable(check, &seen) {
                return Err(StepError::Other(format!("check {} on the base: {problem}", check.name)));
            }
            baseline.checks.insert(check.name.clone(), seen);
        }
        let failures = baseline.failures().map(|(name, run)| {
            format!(
                "check `{}` failed before any change: it {}",
                crate::names::shown(name),
                run.end.describe()
            )
        });
        let failures: Vec<String> = failures.collect();
        baseline.remarks.extend(failures);
        Ok(Found::Baseline(baseline))
    }

    /// Finds an anchor, and runs it on the base.
    async fn anchor(&mut self, feedback: Option<&str>, limits: WorkLimits) -> Result<Found, StepError> {
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
            AnchorPlan::Test | AnchorPlan::None { .. } => self.proposal(&base, feedback, limits).await?,
        };
        let line = Line::new(&facts.command).with_results(facts.results, facts.report.as_deref());
        let commit = match &facts.patch {
            None => base.clone(),
            Some(patch) => {
                // Tests of the same command that fail without it prove nothing.
                let clean = Clean::at(self, &base).await?;
                let before = clean.seen(self, line, 1).await?;
                let before = Observation::of(&before);
                facts.failing_before = [Stability::Fails, Stability::Breaks]
                    .into_iter()
                    .flat_map(|stability| before.having(stability).map(str::to_owned).collect::<Vec<_>>())
                    .collect();
                self.repository.with_patch(&base, &self.kept(patch).await?).await?
            }
        };
        let clean = Clean::at(self, &commit).await?;
        facts.runs = clean.seen(self, line, ANCHOR_RUNS).await?;
        if facts.results.is_some() {
            facts.control = self.place_for_control(&commit, line, &facts.files).await?;
        }
        Ok(Found::Anchor(Box::new(facts)))
    }

    /// Finds a file of the anchor in which a control runs, and fails.
    async fn place_for_control(
        &self,
        commit: &str,
        line: Line<'_>,
        files: &[ChangedFile],
    ) -> Result<Option<String>, StepError> {
        let known = files.iter().find(|file| control::form(&file.path).is_some());
        let Some(file) = known.map(|file| file.path.clone()) else { return Ok(None) };
        let control = Clean::control(self, commit, line, &file).await?;
        Ok(control.is_some_and(|control| control.is_seen_failing()).then_some(file))
    }

    /// Lets a session propose an anchor.
    async fn proposal(
        &mut self,
        base: &str,
        feedback: Option<&str>,
        limits: WorkLimits,
    ) -> Result<AnchorFacts, StepError> {
        let place = self.performer.place("anchor").await?;
        self.make_once(&place, base, None).await?;
        let message = prompts::anchor(self.contract(), self.step.attempt, feedback);
        let plan = CandidatePlan::default();
        let mut assignment = self.assignment(&place, message, &plan, limits);
        assignment.answer = Some(prompts::proposal_schema());
        let session = assignment.session.clone();
        let worked = self.let_work(assignment).await?;
        let answer =
            worked.answer.ok_or_else(|| StepError::Other("the session named no command".to_owned()))?;
        let proposal: prompts::Proposal = serde_json::from_value(answer)
            .map_err(|error| StepError::Other(format!("the answer of the session is none: {error}")))?;
        let diff = self.repository.diff(&place.root, base, self.performer.blobs.as_ref()).await?;
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

    /// Lets a candidate work.
    async fn work(&mut self, feedback: Option<&str>, limits: WorkLimits) -> Result<Found, StepError> {
        let session = self.performer.session_of(self.step);
        self.performer.waiting().insert(session.clone(), Vec::new());
        let prepared = self.prepared(feedback, limits).await;
        let steering = self.performer.waiting().remove(&session).unwrap_or_default();
        let (start, mut assignment) = prepared?;
        assignment.steering = steering;
        let place = assignment.place.clone();
        let worked = self.let_work(assignment).await?;
        // Taken now: jobs that go on change nothing that counts.
        let taken = self.repository.diff(&place.root, &start, self.performer.blobs.as_ref()).await;
        let (diff, unfit) = match taken {
            Ok(diff) => (Some(diff), None),
            Err(RepositoryError::Unfit(reason)) => (None, Some(reason)),
            Err(error) => return Err(error.into()),
        };
        Ok(Found::Work(WorkFacts { session, end: worked.end, diff, unfit }))
    }

    /// Makes the place of a candidate, and returns the commit that it starts from and its assignment.
    async fn prepared(
        &self,
        feedback: Option<&str>,
        limits: WorkLimits,
    ) -> Result<(String, Assignment), StepError> {
        let start = self.anchored().await?;
        let index = self.step.candidate.unwrap_or_default();
        let place = self.performer.place(&format!("candidates/{index}")).await?;
        let before = self.candidate().and_then(newest_diff).map(|diff| diff.patch.clone());
        self.make_once(&place, &start, before.as_ref()).await?;
        let plan = self.contract().candidates.get(index).cloned().unwrap_or_default();
        let number = self.step.attempt;
        let message = match self.candidate().is_some_and(Candidate::knows_goal) {
            true => prompts::more_work(number, feedback),
            false => prompts::work(self.contract(), &plan, self.task.anchor(), number, feedback),
        };
        Ok((start, self.assignment(&place, message, &plan, limits)))
    }

    /// Puts the diff of a candidate into a clean clone, and runs everything there.
    async fn evidence(&mut self) -> Result<Found, StepError> {
        let work = self.candidate().and_then(|candidate| candidate.attempts().last()?.work.clone());
        let work = work.ok_or_else(|| StepError::Other("nothing was worked on".to_owned()))?;
        let Some(diff) = work.diff else {
            let reason = work.unfit.unwrap_or_else(|| "there is no diff".to_owned());
            return Ok(Found::Evidence(Box::new(CandidateFacts::not_applied(Diff::empty(), reason))));
        };
        let patch = self.kept(&diff.patch).await?;
        let start = self.anchored().await?;
        let commit = match self.repository.with_patch(&start, &patch).await {
            Ok(commit) => commit,
            Err(RepositoryError::Unfit(reason)) => {
                return Ok(Found::Evidence(Box::new(CandidateFacts::not_applied(diff, reason))));
            }
            Err(error) => return Err(error.into()),
        };
        let mut facts = CandidateFacts::of(diff);
        facts.secrets = secrets::in_patch(&patch, &self.performer.secrets);
        if let Some(anchor) = self.task.anchor() {
            facts.anchor = self.tried(&commit, Line::from(anchor), ANCHOR_RUNS, &mut facts).await?;
            let control = anchor.control().filter(|_| passes(anchor, &facts.anchor));
            if let Some(file) = control {
                facts.control = Clean::control(self, &commit, Line::from(anchor), file).await?;
            }
        }
        for check in &self.contract().checks {
            let seen = self.tried(&commit, Line::from(check), check.runs as usize, &mut facts).await?;
            facts.checks.insert(check.name.clone(), seen);
        }
        Ok(Found::Evidence(Box::new(facts)))
    }

    /// Runs a command in a clean clone of its own: another command may have let the code change what is beside the files that
    /// are compared, such as installed dependencies. Adds what keeps the clone from being judged to the facts.
    async fn tried(
        &self,
        commit: &str,
        line: Line<'_>,
        times: usize,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<CommandRun>, StepError> {
        let seen = self.tried_in_one(commit, line, times, facts).await?;
        if !differ(&seen) {
            return Ok(seen);
        }
        let mut apart = Vec::with_capacity(times);
        for _ in 0..times {
            apart.extend(self.tried_in_one(commit, line, 1, facts).await?);
        }
        Ok(apart)
    }

    async fn tried_in_one(
        &self,
        commit: &str,
        line: Line<'_>,
        times: usize,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<CommandRun>, StepError> {
        if facts.not_applied.is_some() {
            return Ok(Vec::new());
        }
        let clean = Clean::at(self, commit).await?;
        facts.not_applied = clean.not_prepared(self).await?;
        if facts.not_applied.is_some() {
            return Ok(Vec::new());
        }
        let seen = clean.runs(self).await?.repeat_and_close(line, times).await?;
        match self.changed_by_commands(&clean, commit).await {
            Ok(changed) => {
                facts.protected.extend(changed);
                facts.protected.sort();
                facts.protected.dedup();
            }
            Err(StepError::Repository(RepositoryError::Unfit(reason))) => {
                facts.not_applied = Some(format!("after its commands, {reason}"));
            }
            Err(error) => return Err(error),
        }
        clean.remove(self).await?;
        Ok(seen)
    }

    /// Returns the protected files that the commands have changed.
    async fn changed_by_commands(&self, clean: &Clean, commit: &str) -> Result<Vec<String>, StepError> {
        let changed = self.repository.changes(&clean.place.root, commit).await?;
        let anchored =
            |path: &String| self.task.anchor().is_some_and(|anchor: &Anchor| anchor.files().contains(path));
        let rules = self.task.rules();
        // New files next to tests, such as snapshots, change none of them.
        let is_judging = |file: &ChangedFile| {
            file.kind != ChangeKind::Added && (rules.is_protected(&file.path) || anchored(&file.path))
        };
        Ok(changed.into_iter().filter(is_judging).map(|file| file.path).collect())
    }

    /// Lets a session of its own review a change that has its evidence.
    async fn review(&mut self, limits: WorkLimits) -> Result<Found, StepError> {
        let proof = self.candidate().and_then(Candidate::proof);
        let proof = proof.ok_or_else(|| StepError::Other("there is nothing to review".to_owned()))?.clone();
        let patch = self.kept(&proof.diff().patch).await?;
        let commit = self.repository.with_patch(&self.anchored().await?, &patch).await?;
        let place = self.performer.place(&self.step.to_string()).await?;
        self.make_once(&place, &commit, None).await?;
        let evidence = crate::report::evidence(self.contract(), &proof);
        let message = prompts::review(self.contract(), &String::from_utf8_lossy(&patch), &evidence);
        let plan = CandidatePlan { model: self.contract().review.model.clone(), ..CandidatePlan::default() };
        let mut assignment = self.assignment(&place, message, &plan, limits);
        assignment.answer = Some(prompts::review_schema());
        let session = assignment.session.clone();
        let worked = self.let_work(assignment).await?;
        let review = worked.answer.and_then(|answer| serde_json::from_value::<prompts::Review>(answer).ok());
        let review = review.ok_or_else(|| StepError::Other("the reviewer gave no answer".to_owned()))?;
        remove_directory(self.performer.machine.as_ref(), place.directory()).await?;
        let prompts::Review { findings, remarks } = review;
        Ok(Found::Review(ReviewFacts { session, findings, remarks }))
    }

    fn candidate(&self) -> Option<&Candidate> {
        self.task.candidates().get(self.step.candidate?)
    }

    /// Returns the commit from which candidates start: the base with the anchor.
    async fn anchored(&self) -> Result<String, StepError> {
        let base = self.repository.base();
        match self.task.anchor().and_then(Anchor::patch) {
            None => Ok(base.to_owned()),
            Some(patch) => Ok(self.repository.with_patch(base, &self.kept(patch).await?).await?),
        }
    }

    async fn kept(&self, reference: &Reference) -> Result<Vec<u8>, StepError> {
        Ok(kept(reference, self.performer.blobs.as_ref()).await?)
    }

    /// Makes the clone of a place, unless an earlier attempt has made it. A host that does not have that attempt begins with its
    /// changes.
    async fn make_once(
        &self,
        place: &Place,
        commit: &str,
        changes: Option<&Reference>,
    ) -> Result<(), StepError> {
        self.check()?;
        let machine = self.performer.machine.as_ref();
        let made = place.directory().join("made");
        if machine.file_exists(&made).await? {
            return Ok(());
        }
        self.repository.clone_to(&place.root, commit).await?;
        if let Some(changes) = changes {
            self.repository.apply_to(&place.root, commit, &self.kept(changes).await?).await?;
        }
        if let Some(prepare) = &self.contract().prepare {
            let open = self.performer.places.open(place).await?;
            let runs = Runs::new(place, open, self.performer.blobs.as_ref(), self.cancel);
            // A session sees itself that it failed.
            runs.repeat_and_close(Line::new(prepare), 1).await?;
        }
        machine.write(&made, b"").await?;
        Ok(())
    }

    fn assignment(
        &self,
        place: &Place,
        message: String,
        plan: &CandidatePlan,
        limits: WorkLimits,
    ) -> Assignment {
        Assignment {
            session: self.performer.session_of(self.step),
            task: self.performer.task.clone(),
            message,
            steering: Vec::new(),
            place: place.clone(),
            model: plan.model.clone(),
            effort: plan.effort.clone(),
            answer: None,
            limits,
        }
    }

    async fn let_work(&mut self, assignment: Assignment) -> Result<Worked, StepError> {
        self.check()?;
        let worked = self.performer.worker.work(assignment, self.cancel).await?;
        self.spent.add(&worked.spent);
        self.check()?;
        match worked.error {
            Some(error) => Err(StepError::Other(error)),
            None if worked.end == WorkEnd::Loop && self.step.kind != StepKind::Work => {
                Err(StepError::Other("the session repeated the same calls, and was stopped".to_owned()))
            }
            None => Ok(worked),
        }
    }
}

/// Returns whether runs in one clone differ. A run may have left files that the next one stumbles over: then each has to have a
/// clone of its own, and only what differs there is flaky.
fn differ(runs: &[CommandRun]) -> bool {
    let observed = Observation::of(runs);
    observed.ends.len() > 1 || observed.having(Stability::Flaky).next().is_some()
}

/// A clean clone, in which we run what is judged.
struct Clean {
    place: Place,
    commit: String,
}

impl Clean {
    async fn at(of: &Performance<'_>, commit: &str) -> Result<Self, StepError> {
        of.check()?;
        let place = of.performer.place(&format!("clean/{}", of.step)).await?;
        of.repository.clone_to(&place.root, commit).await?;
        Ok(Self { place, commit: commit.to_owned() })
    }

    async fn runs<'a>(&'a self, of: &Performance<'a>) -> Result<Runs<'a>, StepError> {
        let open = of.performer.places.open(&self.place).await?;
        Ok(Runs::new(&self.place, open, of.performer.blobs.as_ref(), of.cancel))
    }

    /// Prepares the clone, and returns why that failed, with the end of the output.
    async fn not_prepared(&self, of: &Performance<'_>) -> Result<Option<String>, StepError> {
        let Some(prepare) = &of.contract().prepare else { return Ok(None) };
        let runs = self.runs(of).await?.repeat_and_close(Line::new(prepare), 1).await?;
        let Some(run) = runs.iter().find(|run| !run.is_success()) else { return Ok(None) };
        let mut reason = format!("`{}` {}", crate::names::shown(prepare), run.end.describe());
        for line in run.last_lines(of.performer.blobs.as_ref()).await? {
            reason.push_str("\n    ");
            reason.push_str(&line);
        }
        Ok(Some(reason))
    }

    /// Prepares the clone, runs a command in it, and removes it.
    async fn seen(
        self,
        of: &Performance<'_>,
        line: Line<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        let commit = self.commit.clone();
        let seen = self.seen_in_one(of, line, times).await?;
        if !differ(&seen) {
            return Ok(seen);
        }
        let mut apart = Vec::with_capacity(times);
        for _ in 0..times {
            apart.extend(Self::at(of, &commit).await?.seen_in_one(of, line, 1).await?);
        }
        Ok(apart)
    }

    async fn seen_in_one(
        self,
        of: &Performance<'_>,
        line: Line<'_>,
        times: usize,
    ) -> Result<Vec<CommandRun>, StepError> {
        if let Some(reason) = self.not_prepared(of).await? {
            return Err(StepError::Other(reason));
        }
        let seen = self.runs(of).await?.repeat_and_close(line, times).await?;
        self.remove(of).await?;
        Ok(seen)
    }

    /// Runs a command with a control in a file; `None` for a file that cannot have one. The clone is a new one, since code that
    /// ran in another may have made a link of the file.
    async fn control(
        of: &Performance<'_>,
        commit: &str,
        line: Line<'_>,
        file: &str,
    ) -> Result<Option<Control>, StepError> {
        let Some(form) = control::form(file) else { return Ok(None) };
        let clean = Self::at(of, commit).await?;
        let (test, path, machine) =
            (control::name(), clean.place.root.join(file), of.performer.machine.as_ref());
        let mut text = match machine.read(&path, None).await {
            Ok(text) => text,
            // The candidate has removed it.
            Err(EnvError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        text.extend_from_slice(form(&test).as_bytes());
        machine.write(&path, &text).await?;
        let runs = clean.seen(of, line, 1).await?;
        Ok(runs.into_iter().next().map(|run| Control { test, run }))
    }

    async fn remove(self, of: &Performance<'_>) -> Result<(), StepError> {
        Ok(remove_directory(of.performer.machine.as_ref(), self.place.directory()).await?)
    }
}

fn newest_diff(candidate: &Candidate) -> Option<&Diff> {
    candidate.attempts().iter().rev().find_map(|attempt| attempt.work.as_ref()?.diff.as_ref())
}

impl fmt::Debug for RepositoryPerformer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, directory, .. } = self;
        f.debug_struct("RepositoryPerformer")
            .field("task", task)
            .field("directory", directory)
            .finish_non_exhaustive()
    }
}
