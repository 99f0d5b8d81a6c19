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

use crate::contract::{Contract, Gate};
use crate::local::{LocalHost, Performer, TaskHostError, read_task};
use crate::task::{Input, Outcome, StepId, Task};

/// Interval at which a task of another process is polled.
const ELSEWHERE: Duration = Duration::from_millis(500);

/// Default number of concurrent tasks of a process.
const MAX_TASKS: usize = 8;

/// Provides the performers of tasks.
#[async_trait]
pub trait Performers: fmt::Debug + Send + Sync {
    /// Returns the performer of a task.
    ///
    /// # Errors
    ///
    /// The reason why this host cannot carry out the task's steps, as text.
    async fn performer(&self, id: &SessionId) -> Result<Arc<dyn Performer>, String>;
}

/// Status of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Standing {
    /// It has ended. The store has the report.
    Ended(Ending),
    /// These steps are running or due.
    Steps(Vec<StepId>),
    /// It waits for a user's decision. No process has to own it meanwhile.
    Asked(Gate),
    /// It can continue, but this process has reached its limit of concurrent tasks.
    Full,
}

/// How a task has ended, without details.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
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
pub enum Progress {
    /// It has ended, or is no longer needed.
    Ended,
    /// It has not ended.
    Pending,
}

/// Supervisor of the tasks of this process.
#[derive(Debug)]
pub struct Desk {
    store: Arc<dyn SessionStore>,
    performers: Arc<dyn Performers>,
    max_tasks: usize,
    tasks: Mutex<HashMap<SessionId, Owned>>,
    /// Held while a task is opened, so that only one caller opens it.
    taking: tokio::sync::Mutex<()>,
    /// Cancelled once no further task may be opened.
    closed: CancellationToken,
}

/// A task that runs in this process.
#[derive(Debug)]
struct Owned {
    standing: watch::Receiver<Standing>,
    stop: CancellationToken,
    /// The run of the task, as the only member.
    running: JoinSet<()>,
}

impl Desk {
    /// Creates a desk for up to 8 concurrent tasks.
    #[must_use]
    pub fn new(store: Arc<dyn SessionStore>, performers: Arc<dyn Performers>) -> Self {
        Self {
            store,
            performers,
            max_tasks: MAX_TASKS,
            tasks: Mutex::default(),
            taking: tokio::sync::Mutex::default(),
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
        match LocalHost::create(self.store.as_ref(), id.clone(), contract.clone()).await {
            Ok(host) => host.close().await,
            Err(TaskHostError::Store(StoreError::Exists(_))) => {
                LocalHost::complete(self.store.as_ref(), id, &contract).await
            }
            Err(error) => Err(error),
        }
    }

    /// Starts or attaches to the task and returns its status.
    ///
    /// # Errors
    ///
    /// [`TaskHostError::Stopped`] once the desk is closed, and other errors of the host. The task is unchanged then.
    pub async fn look(&self, id: &SessionId) -> Result<Standing, TaskHostError> {
        let _guard = self.taking.lock().await;
        if let Some(standing) = self.owned(id) {
            return Ok(standing);
        }
        let read = standing_of(&read_task(self.store(), id).await?);
        if matches!(read, Standing::Ended(_)) {
            return Ok(read);
        }
        if self.closed.is_cancelled() {
            return Err(TaskHostError::Stopped);
        }
        // Removes tasks whose runs have ended since the last query.
        self.tasks().retain(|_, owned| owned.running.try_join_next().is_none());
        if self.tasks().len() >= self.max_tasks {
            return Ok(Standing::Full);
        }
        let mut host = match LocalHost::open(self.store(), id).await {
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
        let standing = standing_of(host.task());
        match standing {
            Standing::Steps(_) => self.go_on(host, performer, standing.clone()),
            Standing::Ended(_) => {
                let contract = host.task().contract().clone();
                host.close().await?;
                clean(performer.as_ref(), id, &contract).await;
            }
            Standing::Asked(_) | Standing::Full => host.close().await?,
        }
        Ok(standing)
    }

    /// Waits until a step has ended, for up to `slice`. Opens the task first if no process owns it.
    ///
    /// Cancel safe: the step continues.
    ///
    /// # Errors
    ///
    /// As for [`look`](Self::look).
    pub async fn wait(
        &self,
        id: &SessionId,
        step: &StepId,
        slice: Duration,
    ) -> Result<Progress, TaskHostError> {
        let goes_on =
            |standing: &Standing| matches!(standing, Standing::Steps(steps) if steps.contains(step));
        let waiting = async {
            loop {
                let standing = self.look(id).await?;
                if standing != Standing::Full && !goes_on(&standing) {
                    return Ok(Progress::Ended);
                }
                let here = self.tasks().get(id).map(|owned| owned.standing.clone());
                match here {
                    // The sender is dropped early only if the store failed.
                    Some(mut here) => {
                        let ended = here.wait_for(|standing| !goes_on(standing)).await;
                        ended.map_err(|_| TaskHostError::Interrupted(id.clone()))?;
                    }
                    None => tokio::select! {
                        () = tokio::time::sleep(ELSEWHERE) => {}
                        () = self.closed.cancelled() => return Err(TaskHostError::Stopped),
                    },
                }
            }
        };
        tokio::time::timeout(slice, waiting).await.unwrap_or(Ok(Progress::Pending))
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
        let _guard = self.taking.lock().await;
        let all: Vec<Owned> = self.tasks().drain().map(|(_, owned)| owned).collect();
        all.iter().for_each(|owned| owned.stop.cancel());
        for owned in all {
            owned.end().await;
        }
    }

    /// Returns the status of a task that runs in this process. Removes a task whose run has ended.
    fn owned(&self, id: &SessionId) -> Option<Standing> {
        let mut tasks = self.tasks();
        let owned = tasks.get_mut(id)?;
        if owned.running.try_join_next().is_some() {
            tasks.remove(id);
            return None;
        }
        Some(owned.standing.borrow().clone())
    }

    fn go_on(&self, mut host: LocalHost, performer: Arc<dyn Performer>, standing: Standing) {
        let (id, stop) = (host.id().clone(), CancellationToken::new());
        let (sender, standing) = watch::channel(standing);
        let (task, inputs, stopped) = (host.task().clone(), host.inputs(), stop.clone());
        let contract = task.contract().clone();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let id = host.id().clone();
            let run = async {
                let ended = host.run_until_asked(Arc::clone(&performer), &stopped).await;
                match (ended, host.close().await) {
                    (Ok(None), Err(error)) => Err(error),
                    (ended, _) => ended,
                }
            };
            let ((), ended) = tokio::join!(follow(task, inputs, &sender), run);
            match ended {
                Ok(Some(_)) => clean(performer.as_ref(), &id, &contract).await,
                Ok(None) | Err(TaskHostError::Stopped) => {}
                Err(error) => {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(task = %id, error, "the run failed; the next query of the status resumes the task");
                }
            }
        });
        self.tasks().insert(id, Owned { standing, stop, running });
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<SessionId, Owned>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Owned {
    async fn end(mut self) {
        self.stop.cancel();
        // The run panics only if a performer does. The journal has all results until then.
        let _ = self.running.join_next().await;
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Publishes the status of the task after each input.
async fn follow(
    mut task: Task,
    mut inputs: mpsc::UnboundedReceiver<Input>,
    standing: &watch::Sender<Standing>,
) {
    while let Some(input) = inputs.recv().await {
        task.take(input);
        standing.send_replace(standing_of(&task));
    }
}

/// Removes the files of a task that has ended. Logs a failure, and does not return it.
async fn clean(performer: &dyn Performer, id: &SessionId, contract: &Contract) {
    if let Err(error) = performer.clean(contract).await {
        tracing::warn!(task = %id, error, "files of the task cannot be removed");
    }
}

/// Returns the status of a task according to its inputs.
#[must_use]
pub fn standing_of(task: &Task) -> Standing {
    if let Some(outcome) = task.outcome() {
        return Standing::Ended(Ending::of(outcome));
    }
    let wants = task.wants();
    match wants.gate {
        Some(gate) if wants.steps.is_empty() => Standing::Asked(gate),
        _ => Standing::Steps(wants.steps.into_iter().map(|step| step.id).collect()),
    }
}

impl Ending {
    /// Returns how a task has ended, without details.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Done(_) => Self::Done,
            Outcome::Blocked(_) => Self::Blocked,
            Outcome::Limit { .. } => Self::Limit,
            Outcome::Aborted { .. } => Self::Aborted,
            Outcome::Failed { .. } => Self::Failed,
        }
    }
}
