//! Supervises the tasks of one process, for hosts that query them step by step.
//!
//! A query starts a task here, or attaches to it. A repeated query, such as a retry of an engine, changes nothing. The
//! journal in the store is the only record. The status of a task that another live process owns is read from it. A task
//! whose process died is taken over.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_store::{SessionId, SessionStore, StoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::contract::{Contract, DecisionGate};
use crate::local::{LocalTaskHost, Performer, TaskHostError, read_task};
use crate::task::{StepId, Task, TaskInput, TaskOutcome};

/// Interval at which a task of another process is polled.
const FOREIGN_POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Default number of concurrent tasks of a process.
const MAX_TASKS: usize = 8;

/// Provides the performers of tasks.
#[async_trait]
pub trait PerformerFactory: fmt::Debug + Send + Sync {
    /// Returns the performer of a task.
    ///
    /// # Errors
    ///
    /// The reason why this host cannot carry out the task's steps, as text.
    async fn performer(&self, id: &SessionId) -> Result<Arc<dyn Performer>, String>;

    /// Returns whether a task that has ended has left files or git references on this host, because its process died before it
    /// removed them, or because a server without the files ended it. The default returns `false`.
    async fn has_leftovers(&self, id: &SessionId, contract: &Contract) -> bool {
        let _ = (id, contract);
        false
    }
}

/// Status of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskStatus {
    /// It has ended. The store has the report.
    Ended(TaskEnd),
    /// These steps are running or due.
    Steps(Vec<StepId>),
    /// It waits for a user's decision. No process has to own it meanwhile.
    Asked(DecisionGate),
    /// It can continue, but this process has reached its limit of concurrent tasks.
    Full,
}

/// How a task has ended, without details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskEnd {
    /// The goal was reached, with evidence.
    Done,
    /// It cannot continue automatically.
    Blocked,
    /// A limit of its budget was reached.
    Limit,
    /// A user has cancelled it.
    Aborted,
    /// A step that the task depends on could not be carried out.
    Failed,
}

/// Progress of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepProgress {
    /// It has ended, or is no longer needed.
    Ended,
    /// It has not ended.
    Pending,
}

/// Supervisor of the tasks of this process.
#[derive(Debug)]
pub struct TaskSupervisor {
    store: Arc<dyn SessionStore>,
    performers: Arc<dyn PerformerFactory>,
    max_tasks: usize,
    tasks: Mutex<HashMap<SessionId, SupervisedTask>>,
    /// Held while a task is opened, so that only one caller opens it.
    opening: tokio::sync::Mutex<()>,
    /// Cancelled once no further task may be opened.
    closed: CancellationToken,
}

/// A task that runs in this process.
#[derive(Debug)]
struct SupervisedTask {
    status: watch::Receiver<TaskStatus>,
    stop: CancellationToken,
    /// The run of the task, as the only member.
    running: JoinSet<()>,
}

impl TaskSupervisor {
    /// Creates a supervisor for up to 8 concurrent tasks.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, performers: Arc<dyn PerformerFactory>) -> Self {
        Self {
            store,
            performers,
            max_tasks: MAX_TASKS,
            tasks: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            closed: CancellationToken::new(),
        }
    }

    /// Sets the number of concurrent tasks.
    #[must_use]
    pub fn with_max_tasks(mut self, max_tasks: usize) -> Self {
        self.max_tasks = max_tasks;
        self
    }

    /// Returns the store with the tasks.
    #[must_use]
    pub fn store(&self) -> &dyn SessionStore {
        self.store.as_ref()
    }

    /// Records a new task. Leaves an existing task unchanged, unless its process died before it had recorded the contract:
    /// then records the contract.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Contract`] before anything is written, and [`TaskHostError::Store`].
    pub async fn create(&self, id: &SessionId, contract: Contract) -> Result<(), TaskHostError> {
        match LocalTaskHost::create(self.store.as_ref(), id.clone(), contract.clone()).await {
            Ok(host) => host.close().await,
            Err(TaskHostError::Store(StoreError::Exists(_))) => {
                LocalTaskHost::complete(self.store.as_ref(), id, &contract).await
            }
            Err(error) => Err(error),
        }
    }

    /// Starts or attaches to the task and returns its status.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Stopped`] once the supervisor is closed, and other errors of the host. The task is unchanged then.
    pub async fn ensure_running(&self, id: &SessionId) -> Result<TaskStatus, TaskHostError> {
        let _guard = self.opening.lock().await;
        if let Some(status) = self.running_status(id) {
            return Ok(status);
        }
        let task = read_task(self.store(), id).await?;
        let read = TaskStatus::from_task(&task);
        if matches!(read, TaskStatus::Ended(_)) {
            self.clean_leftovers(id, task.contract()).await;
            return Ok(read);
        }
        if self.closed.is_cancelled() {
            return Err(TaskHostError::Stopped);
        }
        // Removes tasks whose runs have ended since the last query.
        self.tasks().retain(|_, owned| owned.running.try_join_next().is_none());
        if self.tasks().len() >= self.max_tasks {
            return Ok(TaskStatus::Full);
        }
        let mut host = match LocalTaskHost::open(self.store(), id).await {
            Ok(host) => host,
            Err(TaskHostError::Store(StoreError::InUse { .. })) => return Ok(read),
            Err(error) => return Err(error),
        };
        let performer = match self.performers.performer(id).await {
            Ok(performer) => performer,
            Err(reason) => {
                host.close().await?;
                return Err(TaskHostError::NotHere { id: id.clone(), reason });
            }
        };
        host.settle().await?;
        let status = TaskStatus::from_task(host.task());
        match status {
            TaskStatus::Steps(_) => self.spawn_run(host, performer, status.clone()),
            TaskStatus::Ended(_) => {
                let contract = host.task().contract().clone();
                host.close().await?;
                clean(performer.as_ref(), id, &contract).await;
            }
            TaskStatus::Asked(_) | TaskStatus::Full => host.close().await?,
        }
        Ok(status)
    }

    /// Waits until a step has ended, for up to `slice`. Opens the task first if no process owns it.
    ///
    /// Cancel safe: the step continues.
    ///
    /// # Errors
    ///
    /// As for [`ensure_running`](Self::ensure_running).
    pub async fn wait_for_step(
        &self,
        id: &SessionId,
        step: &StepId,
        slice: Duration,
    ) -> Result<StepProgress, TaskHostError> {
        let is_pending =
            |status: &TaskStatus| matches!(status, TaskStatus::Steps(steps) if steps.contains(step));
        let waiting = async {
            loop {
                let status = self.ensure_running(id).await?;
                if status != TaskStatus::Full && !is_pending(&status) {
                    return Ok(StepProgress::Ended);
                }
                let here = self.tasks().get(id).map(|owned| owned.status.clone());
                match here {
                    // The sender is dropped early only if the store failed.
                    Some(mut here) => {
                        let ended = here.wait_for(|status| !is_pending(status)).await;
                        ended.map_err(|_| TaskHostError::Interrupted(id.clone()))?;
                    }
                    None => tokio::select! {
                        () = tokio::time::sleep(FOREIGN_POLL_INTERVAL) => {}
                        () = self.closed.cancelled() => return Err(TaskHostError::Stopped),
                    },
                }
            }
        };
        tokio::time::timeout(slice, waiting).await.unwrap_or(Ok(StepProgress::Pending))
    }

    /// Stops a task of this process. Its steps end, and another process can resume it.
    pub async fn stop(&self, id: &SessionId) {
        let owned = self.tasks().remove(id);
        if let Some(owned) = owned {
            owned.end().await;
        }
    }

    /// Stops all tasks, and opens no further task.
    pub async fn close(&self) {
        self.closed.cancel();
        // A task that is being opened now is in the map once the lock is acquired.
        let _guard = self.opening.lock().await;
        let all: Vec<SupervisedTask> = self.tasks().drain().map(|(_, owned)| owned).collect();
        all.iter().for_each(|owned| owned.stop.cancel());
        for owned in all {
            owned.end().await;
        }
    }

    /// Returns the status of a task that runs in this process. Removes a task whose run has ended.
    fn running_status(&self, id: &SessionId) -> Option<TaskStatus> {
        let mut tasks = self.tasks();
        let owned = tasks.get_mut(id)?;
        if owned.running.try_join_next().is_some() {
            tasks.remove(id);
            return None;
        }
        Some(owned.status.borrow().clone())
    }

    /// Removes the files and references of a task that has ended in another process.
    async fn clean_leftovers(&self, id: &SessionId, contract: &Contract) {
        if self.performers.has_leftovers(id, contract).await
            && let Ok(performer) = self.performers.performer(id).await
        {
            clean(performer.as_ref(), id, contract).await;
        }
    }

    fn spawn_run(&self, mut host: LocalTaskHost, performer: Arc<dyn Performer>, status: TaskStatus) {
        let (id, stop) = (host.id().clone(), CancellationToken::new());
        let (sender, status) = watch::channel(status);
        let (task, inputs, stopped) = (host.task().clone(), host.inputs(), stop.clone());
        let contract = task.contract().clone();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let id = host.id().clone();
            let run = async {
                let ended = host.run_until_gate(Arc::clone(&performer), &stopped).await;
                match (ended, host.close().await) {
                    (Ok(None), Err(error)) => Err(error),
                    (ended, _) => ended,
                }
            };
            let ((), ended) = tokio::join!(publish_status(task, inputs, &sender), run);
            match ended {
                Ok(Some(_)) => clean(performer.as_ref(), &id, &contract).await,
                Ok(None) | Err(TaskHostError::Stopped) => {}
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(task = %id, error, "the run failed; the next query of the status resumes the task");
                }
            }
        });
        self.tasks().insert(id, SupervisedTask { status, stop, running });
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<SessionId, SupervisedTask>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SupervisedTask {
    async fn end(mut self) {
        self.stop.cancel();
        // The run panics only if a performer does. The journal has all results until then.
        let _ = self.running.join_next().await;
    }
}

impl Drop for SupervisedTask {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Publishes the status of the task after each input.
async fn publish_status(
    mut task: Task,
    mut inputs: mpsc::UnboundedReceiver<TaskInput>,
    status: &watch::Sender<TaskStatus>,
) {
    while let Some(input) = inputs.recv().await {
        task.apply(input);
        status.send_replace(TaskStatus::from_task(&task));
    }
}

/// Removes the files of a task that has ended. Logs a failure, and does not return it.
async fn clean(performer: &dyn Performer, id: &SessionId, contract: &Contract) {
    if let Err(error) = performer.clean(contract).await {
        tracing::warn!(task = %id, error, "files of the task cannot be removed");
    }
}

impl TaskStatus {
    /// Returns the status of a task according to its inputs.
    #[must_use]
    pub fn from_task(task: &Task) -> Self {
        if let Some(outcome) = task.outcome() {
            return Self::Ended(TaskEnd::from_outcome(outcome));
        }
        let wants = task.pending();
        match wants.gate {
            Some(gate) if wants.steps.is_empty() => Self::Asked(gate),
            _ => Self::Steps(wants.steps.into_iter().map(|step| step.id).collect()),
        }
    }
}

impl TaskEnd {
    /// Returns how a task has ended, without details.
    #[must_use]
    pub fn from_outcome(outcome: &TaskOutcome) -> Self {
        match outcome {
            TaskOutcome::Done(_) => Self::Done,
            TaskOutcome::Blocked(_) => Self::Blocked,
            TaskOutcome::Limit { .. } => Self::Limit,
            TaskOutcome::Aborted { .. } => Self::Aborted,
            TaskOutcome::Failed { .. } => Self::Failed,
        }
    }
}
