//! Tasks on a store alone, without an engine or other services.
//!
//! The journal of a task is authoritative. Its first line is the contract, and each other line is an input. Opening a task
//! replays its inputs and resumes it. Signals of users are posted to the inbox of the task, whether a process has it open
//! or not.

mod history;
mod journal_line;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{Clock, Principal, SystemClock};
use pintle_store::{
    Barrier, Fence, InboxSignal, Posting, SessionId, SessionStore, SessionWriter, StoreError, Summary,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::history::{IntactTask, RecordedInput, TaskLine, TaskReader, read_inputs, read_intact_task};
use self::journal_line::JournalLine;
use crate::contract::{Contract, ContractError};
use crate::session_runner::SteeringMessage;
use crate::task::{
    StepId, StepOutput, StepResult, Task, TaskInput, TaskOutcome, TaskSignal, TaskStep, WorkCost,
};

/// Summary property that distinguishes tasks from sessions.
pub const KIND: &str = Summary::KIND;

/// Value of the property for tasks.
pub const KIND_TASK: &str = "task";

/// Longest title of a task, in characters.
const MAX_TITLE: usize = 80;

/// Carries out the steps of a task. An implementation owns the worktrees and the sessions.
#[async_trait]
pub trait Performer: fmt::Debug + Send + Sync {
    /// Carries out a step. A process that died may have started it before. The performer then resumes or discards the work
    /// of that process.
    ///
    /// When `cancel` is cancelled, the step ends soon, and leaves no running process behind. `fence` fails once another
    /// process owns the task. No effect may follow then.
    async fn perform(
        &self,
        task: &Task,
        step: &TaskStep,
        fence: &Fence,
        cancel: &CancellationToken,
    ) -> (StepOutput, WorkCost);

    /// Sends a message to a running step, on behalf of its author. Returns whether the step accepts it.
    async fn steer(&self, step: &StepId, message: SteeringMessage) -> bool;

    /// Removes the files and git references that the steps have left on this host, after the task with this contract has
    /// ended. The default removes nothing.
    ///
    /// # Errors
    ///
    /// A description of the files that could not be removed.
    async fn clean(&self, contract: &Contract) -> Result<(), String> {
        let _ = contract;
        Ok(())
    }
}

/// Error of a host.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TaskHostError {
    /// The store failed. Inputs that were recorded until then remain valid.
    #[error("the store of the task failed")]
    Store(#[from] StoreError),
    /// The contract is invalid.
    #[error(transparent)]
    Contract(#[from] ContractError),
    /// A value cannot be written as JSON.
    #[error("it cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// This host cannot carry out the steps of the task.
    #[error("task `{id}` cannot continue here: {reason}")]
    NotHere {
        /// Id.
        id: SessionId,
        /// Reason.
        reason: String,
    },
    /// The run of a task failed. The log contains the reason. The next query of its status resumes it.
    #[error("the run of task `{0}` broke off")]
    Interrupted(SessionId),
    /// The task was stopped, and can be resumed.
    #[error("the task was stopped")]
    Stopped,
    /// The journal does not belong to a task, or has another version.
    #[error("`{id}` is not a task that this version can read: {reason}")]
    NotATask {
        /// Id.
        id: SessionId,
        /// Reason.
        reason: String,
    },
}

/// A task on a store, and its only host.
///
/// ```
/// use pintle_store::{MemoryStore, SessionId};
/// use pintle_workflow::contract::{Contract, TaskCheck};
/// use pintle_workflow::task::{StepOrder, TaskOutcome, TaskSignal};
/// use pintle_workflow::{LocalTaskHost, post_signal};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (store, id) = (MemoryStore::new(), SessionId::new("negative-sums"));
/// let contract =
///     Contract::new("Sums of negative numbers are right.").with_check(TaskCheck::new("tests", "make test"));
/// LocalTaskHost::create(&store, id.clone(), contract).await?.close().await?;
///
/// // Any process can open the task. `host.run(performer)` would carry out its steps to the end.
/// let mut host = LocalTaskHost::open(&store, &id).await?;
/// assert_eq!(host.task().pending().steps[0].order, StepOrder::Baseline);
///
/// // Users and other processes reach the task through its inbox.
/// let cancel = TaskSignal::Cancel { reason: "fixed elsewhere".to_owned() };
/// post_signal(&store, &id, "cancel-1", &cancel, None).await?;
/// assert!(matches!(host.settle().await?, Some(TaskOutcome::Aborted { .. })));
/// host.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LocalTaskHost {
    id: SessionId,
    writer: Box<dyn SessionWriter>,
    /// Whether closing the writer was attempted. Another attempt would fail.
    is_closed: bool,
    inbox: Box<dyn InboxSignal>,
    task: Task,
    /// Ids of the posted signals that are on record.
    known: HashSet<String>,
    clock: Arc<dyn Clock>,
    /// Receives each input that the task has taken.
    observer: Option<mpsc::UnboundedSender<TaskInput>>,
}

/// Running steps.
#[derive(Debug)]
struct RunningSteps {
    tokens: BTreeMap<StepId, CancellationToken>,
    tasks: JoinSet<()>,
    finished: mpsc::UnboundedReceiver<StepResult>,
    sender: mpsc::UnboundedSender<StepResult>,
}

impl LocalTaskHost {
    /// Records a new task.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Contract`] before anything is written, and [`TaskHostError::Store`].
    pub async fn create(
        store: &dyn SessionStore,
        id: SessionId,
        contract: Contract,
    ) -> Result<Self, TaskHostError> {
        let task = Task::new(contract)?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut summary = Summary::new(id.clone(), clock.now()).with_property(KIND, KIND_TASK);
        summary.title = task.contract().title(MAX_TITLE);
        let mut writer = store.create(summary).await?;
        writer.append(vec![journal_line::encode_contract(task.contract())?], Barrier::Synced).await?;
        let (inbox, known) = (writer.inbox_signal(), HashSet::new());
        Ok(Self { id, inbox, writer, is_closed: false, task, known, clock, observer: None })
    }

    /// Records the contract of a task whose process died before it had recorded it. Leaves any other task unchanged.
    ///
    /// # Errors
    ///
    /// As for [`create`](Self::create).
    pub(crate) async fn complete(
        store: &dyn SessionStore,
        id: &SessionId,
        contract: &Contract,
    ) -> Result<(), TaskHostError> {
        if !has_no_journal_line(store, id).await? {
            return Ok(());
        }
        let mut writer = match store.open(id).await {
            Ok(opened) => opened.writer,
            // The owner of the task is about to write the contract.
            Err(StoreError::InUse { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        if has_no_journal_line(store, id).await? {
            writer.append(vec![journal_line::encode_contract(contract)?], Barrier::Synced).await?;
        }
        writer.close().await?;
        Ok(())
    }

    /// Opens a task in the state in which its last process left it.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Store`], for example if another process owns the task, and [`TaskHostError::NotATask`].
    pub async fn open(store: &dyn SessionStore, id: &SessionId) -> Result<Self, TaskHostError> {
        let opened = store.open(id).await?;
        let (task, known) = replay(store, id).await?;
        let writer = opened.writer;
        let clock = Arc::new(SystemClock);
        let (id, inbox) = (id.clone(), writer.inbox_signal());
        Ok(Self { id, inbox, writer, is_closed: false, task, known, clock, observer: None })
    }

    /// Returns the id of the task.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the task.
    #[must_use]
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// Returns a receiver of all later inputs. It receives an input after the input is on record and the task has taken it.
    pub fn inputs(&mut self) -> mpsc::UnboundedReceiver<TaskInput> {
        let (sender, inputs) = mpsc::unbounded_channel();
        self.observer = Some(sender);
        inputs
    }

    /// Takes the posted signals, and carries out no step. Returns the outcome if the task has ended: a cancelled task ends
    /// here.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Store`].
    pub async fn settle(&mut self) -> Result<Option<TaskOutcome>, TaskHostError> {
        self.take_signals(None).await?;
        Ok(self.task.outcome().cloned())
    }

    /// As [`run`](Self::run), until `stop` is cancelled. The running steps end then, and start again when the task is
    /// opened.
    ///
    /// # Errors
    ///
    /// As for [`run`](Self::run), and [`TaskHostError::Stopped`].
    pub async fn run_until(
        &mut self,
        performer: Arc<dyn Performer>,
        stop: &CancellationToken,
    ) -> Result<TaskOutcome, TaskHostError> {
        loop {
            if let Some(outcome) = self.run_until_gate(Arc::clone(&performer), stop).await? {
                return Ok(outcome);
            }
            tokio::select! {
                () = self.inbox.wait() => {}
                () = stop.cancelled() => {
                    self.close_writer().await?;
                    return Err(TaskHostError::Stopped);
                }
            }
        }
    }

    /// As [`run_until`](Self::run_until), and returns `None` once the task waits for a user and no step is running. The task
    /// stays open.
    ///
    /// # Errors
    ///
    /// As for [`run_until`](Self::run_until).
    pub async fn run_until_gate(
        &mut self,
        performer: Arc<dyn Performer>,
        stop: &CancellationToken,
    ) -> Result<Option<TaskOutcome>, TaskHostError> {
        let mut running = RunningSteps::new();
        let ended = tokio::select! {
            biased;
            ended = self.run_steps(&performer, &mut running) => ended,
            () = stop.cancelled() => Err(TaskHostError::Stopped),
        };
        let results = running.stop().await;
        if matches!(ended, Ok(None)) {
            return Ok(None);
        }
        // A step that resumes later reports all of its costs then.
        let recorded = match ended {
            Ok(Some(_)) => self.record_results(results).await,
            Ok(None) | Err(_) => Ok(()),
        };
        let closed = self.close_writer().await;
        let outcome = ended?;
        recorded?;
        closed?;
        Ok(outcome)
    }

    /// Closes the journal, so that another process can open the task. Dropping the host has the same effect, at some later time.
    /// A [run](Self::run) that has ended has closed the journal and reported any failure, so this returns `Ok` then.
    ///
    /// If the future is dropped, the journal may lack the mark that it is complete. The task can still be opened.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Store`].
    pub async fn close(mut self) -> Result<(), TaskHostError> {
        self.close_writer().await
    }

    async fn close_writer(&mut self) -> Result<(), TaskHostError> {
        // The writer cannot be used after any attempt, even a failed or cancelled one.
        if !std::mem::replace(&mut self.is_closed, true) {
            self.writer.close().await?;
        }
        Ok(())
    }

    /// Runs the task to its end, and waits for users without a time limit. Returns the outcome.
    ///
    /// Cancel safe: the running steps end with the future, and start again when the task is opened.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Store`]; the running steps are stopped then.
    pub async fn run(&mut self, performer: Arc<dyn Performer>) -> Result<TaskOutcome, TaskHostError> {
        self.run_until(performer, &CancellationToken::new()).await
    }

    async fn run_steps(
        &mut self,
        performer: &Arc<dyn Performer>,
        running: &mut RunningSteps,
    ) -> Result<Option<TaskOutcome>, TaskHostError> {
        loop {
            self.take_signals(Some((performer, &*running))).await?;
            if let Some(outcome) = self.task.outcome() {
                return Ok(Some(outcome.clone()));
            }
            self.start_steps(performer, running).await?;
            if running.tokens.is_empty() && self.task.pending().gate.is_some() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                Some(result) = running.finished.recv() => {
                    running.tokens.remove(&result.step);
                    self.record(TaskInput::StepFinished(Box::new(result)), None).await?;
                }
                () = self.inbox.wait() => {}
            }
        }
    }

    /// Records the results of steps that the end of the task has stopped, for their costs.
    async fn record_results(&mut self, results: Vec<StepResult>) -> Result<(), TaskHostError> {
        for result in results {
            self.record(TaskInput::StepFinished(Box::new(result)), None).await?;
        }
        Ok(())
    }

    /// Starts due steps that are not running, and stops running steps that are no longer needed.
    async fn start_steps(
        &mut self,
        performer: &Arc<dyn Performer>,
        running: &mut RunningSteps,
    ) -> Result<(), TaskHostError> {
        let wanted = self.task.pending().steps;
        for (id, token) in &running.tokens {
            if !wanted.iter().any(|step| step.id == *id) {
                token.cancel();
            }
        }
        for step in wanted {
            if running.tokens.contains_key(&step.id) {
                continue;
            }
            if !self.task.has_started(&step.id) {
                self.record(TaskInput::StepStarted(step.id.clone()), None).await?;
            }
            running.start(Arc::clone(performer), self.task.clone(), step, self.writer.fence());
        }
        Ok(())
    }

    /// Records the posted signals, and removes them from the inbox.
    async fn take_signals(
        &mut self,
        running: Option<(&Arc<dyn Performer>, &RunningSteps)>,
    ) -> Result<(), TaskHostError> {
        for posted in self.writer.inbox().await? {
            if !self.known.contains(&posted.input_id) {
                // An input that is not a signal is discarded.
                if let Ok(PostedSignal { signal, by }) = serde_json::from_str(&posted.input) {
                    if let (TaskSignal::Steer { candidate, text }, Some((performer, running))) =
                        (&signal, running)
                    {
                        let message = SteeringMessage { text: text.clone(), author: by.clone() };
                        running.steer(performer, *candidate, &message).await;
                    }
                    self.record_by(TaskInput::Signal(signal), Some(posted.input_id.clone()), by).await?;
                }
            }
            self.writer.take(&posted.input_id).await?;
        }
        Ok(())
    }

    /// Records an input, and applies it to the task.
    async fn record(&mut self, input: TaskInput, posted: Option<String>) -> Result<(), TaskHostError> {
        self.record_by(input, posted, None).await
    }

    async fn record_by(
        &mut self,
        input: TaskInput,
        posted: Option<String>,
        by: Option<Principal>,
    ) -> Result<(), TaskHostError> {
        let line = journal_line::encode_input(self.clock.now(), posted.as_deref(), by, &input)?;
        self.writer.append(vec![line], Barrier::Synced).await?;
        self.known.extend(posted);
        self.task.apply(input.clone());
        if let Some(observer) = &self.observer {
            // The receiver may have been dropped.
            let _ = observer.send(input);
        }
        Ok(())
    }
}

impl RunningSteps {
    fn new() -> Self {
        let (sender, finished) = mpsc::unbounded_channel();
        Self { tokens: BTreeMap::new(), tasks: JoinSet::new(), finished, sender }
    }

    fn start(&mut self, performer: Arc<dyn Performer>, task: Task, step: TaskStep, fence: Fence) {
        let (token, sender) = (CancellationToken::new(), self.sender.clone());
        self.tokens.insert(step.id.clone(), token.clone());
        self.tasks.spawn(async move {
            let (output, spent) = performer.perform(&task, &step, &fence, &token).await;
            // The receiver is dropped only with the host.
            let _ = sender.send(StepResult { step: step.id, output, spent });
        });
    }

    async fn steer(
        &self,
        performer: &Arc<dyn Performer>,
        candidate: Option<usize>,
        message: &SteeringMessage,
    ) {
        for step in self.tokens.keys().filter(|step| is_recipient(step, candidate)) {
            performer.steer(step, message.clone()).await;
        }
    }

    /// Stops all steps, and waits until they have ended. Returns the results that were not received before.
    async fn stop(mut self) -> Vec<StepResult> {
        self.tokens.values().for_each(CancellationToken::cancel);
        while self.tasks.join_next().await.is_some() {}
        std::iter::from_fn(|| self.finished.try_recv().ok()).collect()
    }
}

/// Returns whether a message to a candidate, or to all, is for the session of a step. The sessions of a plan make one change, so
/// they receive all messages.
fn is_recipient(step: &StepId, candidate: Option<usize>) -> bool {
    step.round > 0 || candidate.is_none_or(|wanted| step.candidate == Some(wanted))
}

/// Signal as it is posted.
#[derive(Debug, Serialize, Deserialize)]
struct PostedSignal {
    #[serde(flatten)]
    signal: TaskSignal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by: Option<Principal>,
}

/// Posts a signal to a task, whether or not a process has it open, with `by` as its author. The signal is durable once this
/// returns. Posting again with the same `input_id` has no effect.
///
/// # Errors
///
/// As for [`SessionStore::post`].
pub async fn post_signal(
    store: &dyn SessionStore,
    id: &SessionId,
    input_id: &str,
    signal: &TaskSignal,
    by: Option<Principal>,
) -> Result<Posting, StoreError> {
    let posted = PostedSignal { signal: signal.clone(), by };
    store.post(id, input_id, serde_json::to_string(&posted).unwrap_or_default()).await
}

async fn has_no_journal_line(store: &dyn SessionStore, id: &SessionId) -> Result<bool, TaskHostError> {
    match pintle_store::read_objects(store, id).await {
        // Lines of the store itself do not count.
        Ok(objects) => Ok(objects.iter().all(|object| matches!(JournalLine::parse(object), Ok(None)))),
        Err(StoreError::NotFound(_)) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

/// Reads the recorded state of a task, also while a process has it open.
///
/// # Errors
///
/// As for [`LocalTaskHost::open`].
pub async fn read_task(store: &dyn SessionStore, id: &SessionId) -> Result<Task, TaskHostError> {
    Ok(replay(store, id).await?.0)
}

async fn replay(store: &dyn SessionStore, id: &SessionId) -> Result<(Task, HashSet<String>), TaskHostError> {
    let IntactTask { task, inputs, damage } = read_intact_task(store, id).await?;
    match damage {
        Some(damage) => Err(damage.into()),
        None => Ok((task, inputs.into_iter().filter_map(|recorded| recorded.posted).collect())),
    }
}
