//! Carries out the steps of a task, in clones of a repository, with sessions and environments of the host.
//!
//! Only the content of a candidate's files at the end of its work counts. Its diff is applied to a clean clone, with fresh
//! time stamps, and all judged commands run there.

mod anchor;
mod anchor_review;
mod builder;
mod check_controls;
mod clean_clone;
mod command_runner;
mod draft;
mod evidence;
mod handed_context;
mod judging;
mod mutations;
mod pending_messages;
mod plan;
mod ports;
mod recognition;
mod review;
#[cfg(test)]
mod tests;
mod variants;
mod work;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{Fence, Limits, SessionId};
use pintle_env::{EnvError, ExecutionEnvironment, ExecutionEnvironmentExt as _, Redactions};
use pintle_evidence::anchor::Anchor;
use pintle_evidence::command_run::BlobReference;
use pintle_store::{Blobs, StoreError};
use serde_json::Value;
use thiserror::Error;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use self::builder::RepositoryPerformerBuilder;
use self::command_runner::{CommandRunner, CommandSpec};
pub use self::draft::{DraftError, FailedDraft};
use self::pending_messages::PendingMessages;
use crate::contract::{CandidatePlan, Contract, ModelPlans};
use crate::local::Performer;
use crate::repository::{RepositoryError, TaskRepository, read_blob, remove_directory, remove_task_files};
use crate::session_runner::{
    SessionAssignment, SessionRunner, SteeringMessage, WorkError, WorkResult, Workspace, WorkspaceFactory,
};
use crate::task::{
    StepId, StepKind, StepOrder, StepOutput, Task, TaskCandidate, TaskStep, WorkCost, WorkEnd,
};

/// Part of the message of git and of the system about a full disk.
const FULL_DISK: &str = "No space left on device";

/// Carries out the steps of one task.
pub struct RepositoryPerformer {
    task: String,
    /// This machine as the user sees it: git runs here.
    machine: Arc<dyn ExecutionEnvironment>,
    /// Directory of all files of the task.
    directory: PathBuf,
    workspace_factory: Arc<dyn WorkspaceFactory>,
    session_runner: Arc<dyn SessionRunner>,
    blobs: Arc<dyn Blobs>,
    /// Values that must not be in a diff.
    secrets: Redactions,
    /// Models of drafted contracts.
    draft_models: ModelPlans,
    /// Held by the step that opens the repository: the first steps may start concurrently.
    opening: Mutex<()>,
    pending_messages: PendingMessages,
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
    /// A sandbox cannot be opened, or a session could not work.
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error("it was stopped")]
    Stopped,
    #[error("another process has the task")]
    Lost,
    /// A session stopped at a limit of its budget, without an answer.
    #[error("session {0} stopped at a limit of its budget")]
    AtLimit(String),
    #[error("{0}")]
    Other(String),
}

impl StepError {
    /// Returns whether a step cannot continue with other work after this error.
    fn prevents_other_work(&self) -> bool {
        matches!(self, Self::Stopped | Self::Lost | Self::Store(_)) || self.to_string().contains(FULL_DISK)
    }

    /// Returns the result of a step that ended with this error. A candidate may cause errors of git and
    /// of commands, which read its files.
    fn into_output(self) -> StepOutput {
        if let Self::AtLimit(session) = self {
            return StepOutput::AtLimit { session };
        }
        let reason = self.to_string();
        let is_external = matches!(self, Self::Work(_) | Self::Store(_)) || reason.contains(FULL_DISK);
        StepOutput::Failed { reason, is_external }
    }
}

/// A running step.
struct RunningStep<'a> {
    performer: &'a RepositoryPerformer,
    task: &'a Task,
    step: &'a StepId,
    fence: &'a Fence,
    cancel: &'a CancellationToken,
    repository: TaskRepository,
    started: Instant,
    spent: WorkCost,
}

impl RepositoryPerformer {
    /// Returns a builder of the performer for the task with this id. `directory` is for its files alone. `machine` is this
    /// machine as the user sees it, without a sandbox: git runs there, on repositories of the task. `blobs` are the large
    /// values of the task's store.
    pub fn builder(
        task: impl Into<String>,
        directory: impl Into<PathBuf>,
        machine: Arc<dyn ExecutionEnvironment>,
        blobs: Arc<dyn Blobs>,
    ) -> RepositoryPerformerBuilder {
        RepositoryPerformerBuilder::new(task.into(), directory.into(), machine, blobs)
    }

    /// Sets values that must not be in a diff, such as the keys of the host.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Redactions) -> Self {
        self.secrets = secrets;
        self
    }

    /// Sets the models of contracts that [`draft`](Self::draft) drafts, and of the session that drafts them.
    #[must_use]
    pub fn with_draft_models(mut self, models: ModelPlans) -> Self {
        self.draft_models = models;
        self
    }

    /// Removes all files of the task. The judged facts are in the store.
    ///
    /// # Errors
    ///
    /// [`RepositoryError`] if a file cannot be removed.
    pub async fn clean(&self) -> Result<(), RepositoryError> {
        self.remove_workspaces(&self.directory).await
    }

    /// Removes a directory with workspaces, and ends what runs for them.
    async fn remove_workspaces(&self, directory: &Path) -> Result<(), RepositoryError> {
        let ended = self.workspace_factory.end(directory).await;
        remove_directory(self.machine.as_ref(), directory).await?;
        ended.map_err(|WorkError(reason)| RepositoryError::Unfit(reason))
    }

    /// Removes the files of the task, and the git reference to the commit with the user's local changes.
    async fn remove_files(&self, contract: &Contract) -> Result<(), RepositoryError> {
        let ended = self.workspace_factory.end(&self.directory).await;
        let repository = contract.base.as_ref().map(|base| Path::new(&base.repository));
        remove_task_files(&self.machine, &self.directory, &self.task, repository).await?;
        ended.map_err(|WorkError(reason)| RepositoryError::Unfit(reason))
    }

    async fn open_repository(&self, contract: &Contract) -> Result<TaskRepository, StepError> {
        let base = contract.base.as_ref().ok_or_else(|| {
            StepError::Other("the contract has no base; expected a repository and a commit".to_owned())
        })?;
        let machine = Arc::clone(&self.machine);
        let _alone = self.opening.lock().await;
        let (directory, name) = (&self.directory, Some(self.task.as_str()));
        let opened = TaskRepository::open(machine, directory, &base.repository, &base.commit, name).await?;
        Ok(opened.in_directory(contract.directory()).await?)
    }

    /// Returns the id of the session that works in a step. The attempts of a candidate are one session.
    fn session_id(&self, step: &StepId) -> String {
        let task = &self.task;
        match (step.kind, step.candidate) {
            (StepKind::Review, Some(candidate)) => format!("{task}-review-{candidate}-{}", step.attempt),
            (_, Some(candidate)) if step.round > 0 => format!("{task}-r{}-{candidate}", step.round),
            (_, Some(candidate)) => format!("{task}-{candidate}"),
            (kind, None) => format!("{task}-{kind}"),
        }
    }

    /// Returns a workspace with a separate directory for temporary files and separate ports. Its root does not exist yet.
    async fn create_workspace(&self, name: &str) -> Result<Workspace, StepError> {
        let directory = self.directory.join(name);
        let temporary = directory.join("tmp");
        self.machine.create_directory(&temporary).await?;
        let root = directory.join("tree");
        let mut variables = ports::find_free().await?;
        for (name, path) in [
            ("TMPDIR", temporary),
            ("CARGO_TARGET_DIR", root.join("target")),
            // Git must not use a repository further up.
            ("GIT_CEILING_DIRECTORIES", directory),
        ] {
            variables.insert(name.to_owned(), path.display().to_string());
        }
        Ok(Workspace::new(root, variables).with_readable(self.object_directories().await?))
    }

    /// Returns a workspace without variables, at a path that no other workspace has. Its root does not exist yet.
    async fn create_plain_workspace(&self) -> Result<Workspace, StepError> {
        let id = SessionId::generate();
        let unique: String = id.as_str().chars().filter(char::is_ascii_alphanumeric).collect();
        let directory = self.directory.join(unique);
        self.machine.create_directory(&directory.join("tmp")).await?;
        let workspace = Workspace::new(directory.join("project"), BTreeMap::new());
        Ok(workspace.with_readable(self.object_directories().await?))
    }

    async fn object_directories(&self) -> Result<Vec<PathBuf>, RepositoryError> {
        TaskRepository::object_directories(self.machine.as_ref(), &self.directory).await
    }
}

#[async_trait]
impl Performer for RepositoryPerformer {
    async fn perform(
        &self,
        task: &Task,
        step: &TaskStep,
        fence: &Fence,
        cancel: &CancellationToken,
    ) -> (StepOutput, WorkCost) {
        let started = Instant::now();
        let (output, mut spent) = match self.open_repository(task.contract()).await {
            Err(error) => (Err(error), WorkCost::default()),
            Ok(repository) => {
                let spent = WorkCost::default();
                let mut performance = RunningStep {
                    performer: self,
                    task,
                    step: &step.id,
                    fence,
                    cancel,
                    repository,
                    started,
                    spent,
                };
                (performance.carry_out(&step.order).await, performance.spent)
            }
        };
        spent.millis = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        (output.unwrap_or_else(StepError::into_output), spent)
    }

    async fn steer(&self, step: &StepId, message: SteeringMessage) -> bool {
        let session = self.session_id(step);
        match self.pending_messages.push(&session, message) {
            Some(message) => self.session_runner.steer(&session, message).await,
            None => true,
        }
    }

    async fn clean(&self, contract: &Contract) -> Result<(), String> {
        self.remove_files(contract).await.map_err(|error| error.to_string())
    }
}

impl RunningStep<'_> {
    async fn carry_out(&mut self, order: &StepOrder) -> Result<StepOutput, StepError> {
        match order {
            StepOrder::Work { feedback, limits } if self.step.round > 0 => {
                self.work_on_step(feedback.as_deref(), *limits).await
            }
            StepOrder::Evidence if self.step.round > 0 => self.step_evidence().await,
            StepOrder::Plan { feedback, limits } => self.plan(feedback.as_deref(), *limits).await,
            StepOrder::Baseline => self.baseline().await,
            StepOrder::Anchor { feedback, limits } => self.anchor(feedback.as_deref(), *limits).await,
            StepOrder::Work { feedback, limits } => self.work(feedback.as_deref(), *limits).await,
            StepOrder::Evidence => self.evidence().await,
            StepOrder::Review { limits } => self.review(*limits).await,
        }
    }

    fn contract(&self) -> &Contract {
        self.task.contract()
    }

    /// Returns a workspace of the step, in the directory of the task.
    async fn create_workspace(&self, name: &str) -> Result<Workspace, StepError> {
        Ok(self.performer.create_workspace(name).await?.in_directory(self.contract().directory()))
    }

    /// Fails once the step is cancelled or another process owns the task.
    fn ensure_active(&self) -> Result<(), StepError> {
        if self.cancel.is_cancelled() {
            return Err(StepError::Stopped);
        }
        self.fence.check().map_err(|_| StepError::Lost)
    }

    fn candidate(&self) -> Option<&TaskCandidate> {
        self.task.candidates().get(self.step.candidate?)
    }

    /// Returns the commit from which candidates start: the base with the anchor.
    async fn commit_anchor(&self) -> Result<String, StepError> {
        let base = self.repository.base();
        match self.task.anchor().and_then(Anchor::patch) {
            None => Ok(base.to_owned()),
            Some(patch) => Ok(self.repository.commit_patch(base, &self.read_blob(patch).await?).await?),
        }
    }

    async fn read_blob(&self, reference: &BlobReference) -> Result<Vec<u8>, StepError> {
        Ok(read_blob(reference, self.performer.blobs.as_ref()).await?)
    }

    /// Creates the clone of a workspace, unless an earlier attempt has created it. On a host without that clone, applies the
    /// changes of the attempt to a new clone.
    async fn ensure_clone(
        &self,
        workspace: &Workspace,
        commit: &str,
        changes: Option<&BlobReference>,
    ) -> Result<(), StepError> {
        self.ensure_active()?;
        let machine = self.performer.machine.as_ref();
        let made = workspace.directory().join("made");
        if machine.file_exists(&made).await? {
            self.ensure_unlinked(workspace).await?;
            if self.performer.workspace_factory.is_lost(workspace).await {
                self.prepare(workspace).await?;
            }
            return Ok(());
        }
        let prepared = self.create_clone(workspace, commit, changes).await;
        if prepared.is_err() {
            if self.fence.check().is_ok() {
                // The first error is reported. A directory that cannot be removed now is removed with the task.
                let _ = self.performer.remove_workspaces(workspace.directory()).await;
            }
            return prepared;
        }
        machine.write(&made, b"").await?;
        Ok(())
    }

    /// Fails if an earlier session has replaced the directory of the task in its clone by a link. This machine writes files for
    /// the next session there, and would follow the link.
    async fn ensure_unlinked(&self, workspace: &Workspace) -> Result<(), StepError> {
        let machine = self.performer.machine.as_ref();
        let root = machine.canonicalize(&workspace.root).await?;
        let directory = machine.canonicalize(&workspace.working_directory()).await?;
        if directory == root.join(&workspace.subdirectory) {
            return Ok(());
        }
        let shown = workspace.subdirectory.display();
        Err(StepError::Other(format!("`{shown}` became a link; expected the directory of the task")))
    }

    /// Creates and prepares the clone of a workspace.
    async fn create_clone(
        &self,
        workspace: &Workspace,
        commit: &str,
        changes: Option<&BlobReference>,
    ) -> Result<(), StepError> {
        self.repository.clone_to(&workspace.root, commit).await?;
        if let Some(changes) = changes {
            self.repository.apply_to(&workspace.root, commit, &self.read_blob(changes).await?).await?;
        }
        self.prepare(workspace).await
    }

    /// Prepares a workspace. A preparation that fails is not an error: the session can run it again.
    async fn prepare(&self, workspace: &Workspace) -> Result<(), StepError> {
        if let Some(prepare) = &self.contract().prepare {
            let open = self.performer.workspace_factory.open(workspace).await?;
            let runs = CommandRunner::new(workspace, open, self.performer.blobs.as_ref(), self.cancel);
            runs.repeat_and_close(CommandSpec::new(prepare), 1).await?;
        }
        Ok(())
    }

    fn create_assignment(
        &self,
        workspace: &Workspace,
        message: String,
        plan: &CandidatePlan,
        limits: Limits,
    ) -> SessionAssignment {
        SessionAssignment {
            session: self.performer.session_id(self.step),
            task: self.performer.task.clone(),
            message,
            steering: Vec::new(),
            workspace: workspace.clone(),
            model: plan.model.clone(),
            effort: plan.effort.clone(),
            answer: None,
            limits,
        }
    }

    async fn run_session(&mut self, assignment: SessionAssignment) -> Result<WorkResult, StepError> {
        self.ensure_active()?;
        let worked = self.performer.session_runner.run(assignment, self.cancel).await?;
        self.spent.add(&worked.spent);
        self.ensure_active()?;
        match worked.error {
            Some(error) => Err(WorkError(error).into()),
            None if worked.end == WorkEnd::Loop && self.step.kind != StepKind::Work => {
                Err(StepError::Other("the session repeated the same calls, and was stopped".to_owned()))
            }
            None => Ok(worked),
        }
    }
}

/// Returns the answer of a session that had to give one, or the reason why it is missing.
fn take_answer(worked: WorkResult, session: &str, missing: &str) -> Result<Value, StepError> {
    worked.answer.ok_or_else(|| match worked.end {
        WorkEnd::Limit => StepError::AtLimit(session.to_owned()),
        WorkEnd::Finished
        | WorkEnd::TurnLimit
        | WorkEnd::ContextFull
        | WorkEnd::OutputLimit
        | WorkEnd::Loop
        | WorkEnd::Failed => StepError::Other(missing.to_owned()),
    })
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
