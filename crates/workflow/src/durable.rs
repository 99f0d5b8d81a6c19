//! Runs a task, in this process alone or on an engine that outlives it.
//!
//! An engine schedules. It keeps only the names and the progress of steps; the journal of the task is the record of
//! effects. No step takes longer than a slice, so that no time-out of an engine ends a step.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_store::SessionId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::local::TaskHostError;
use crate::supervisor::{StepProgress, TaskEnd, TaskStatus, TaskSupervisor};

/// Longest duration of a step of a host.
pub const STEP_SLICE: Duration = Duration::from_secs(20);

/// Time after which a host checks for a decision of which it was not notified.
pub const DECISION_POLL_INTERVAL: Duration = Duration::from_secs(300);

/// Delay before the next check while the process is full.
const FULL_DELAY: Duration = Duration::from_secs(5);

/// Host of a task. It runs steps and keeps their results, sleeps, and waits for signals.
///
/// Candidates are not children of the host, and cancellation is an ordinary signal: see the decision about hosts of tasks.
pub trait DurableHost: Send {
    /// Error of the host.
    type Error: Send;

    /// Runs an action, and keeps its result under its position in the order of steps. After an interruption, the host
    /// returns a kept result instead. An action without a kept result runs again.
    ///
    /// # Errors
    ///
    /// Errors of the host, and errors of the action, unless the host retries the action.
    fn step<T, A, F>(
        &mut self,
        name: String,
        action: A,
    ) -> impl Future<Output = Result<T, Self::Error>> + Send
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        A: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<T, TaskHostError>> + Send + 'static;

    /// Waits.
    ///
    /// # Errors
    ///
    /// Errors of the host.
    fn sleep(&mut self, time: Duration) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Waits until a signal is posted to the task, for at most this time. A signal since the newest step counts. May return
    /// early.
    ///
    /// # Errors
    ///
    /// Errors of the host.
    fn signal(&mut self, at_most: Duration) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Runs a task to its end, on any host. Returns `None` after `most` status checks, so that the history of the host stays
/// bounded. The caller then has to call this again.
///
/// # Errors
///
/// Errors of the host.
pub async fn run_to_end<H: DurableHost>(
    host: &mut H,
    supervisor: &Arc<TaskSupervisor>,
    id: &SessionId,
    most: u32,
) -> Result<Option<TaskEnd>, H::Error> {
    for _ in 0..most {
        let (here, task) = (Arc::clone(supervisor), id.clone());
        // Engines record this name.
        match host.step("look".to_owned(), || async move { here.ensure_running(&task).await }).await? {
            TaskStatus::Ended(ending) => return Ok(Some(ending)),
            TaskStatus::Asked(_) => host.signal(DECISION_POLL_INTERVAL).await?,
            TaskStatus::Full => host.sleep(FULL_DELAY).await?,
            TaskStatus::Steps(steps) => {
                // The steps run concurrently. Waits for each of them, so that the history names each once.
                for step in steps {
                    let (here, task, name) = (Arc::clone(supervisor), id.clone(), step.to_string());
                    let _: StepProgress = host
                        .step(name, || async move { here.wait_for_step(&task, &step, STEP_SLICE).await })
                        .await?;
                }
            }
        }
    }
    Ok(None)
}

/// A host within this process. It keeps nothing except the journal of the task.
#[derive(Debug)]
pub struct InProcessHost {
    supervisor: Arc<TaskSupervisor>,
    id: SessionId,
}

/// Interval at which the inbox of a task is polled.
const INBOX_POLL_INTERVAL: Duration = Duration::from_millis(500);

impl InProcessHost {
    /// Creates a host for the task.
    #[must_use]
    pub fn new(supervisor: Arc<TaskSupervisor>, id: SessionId) -> Self {
        Self { supervisor, id }
    }

    /// Runs the task to its end.
    ///
    /// Cancel safe: the task continues while the supervisor is open.
    ///
    /// # Errors
    ///
    /// [`TaskHostError`].
    pub async fn run(mut self) -> Result<TaskEnd, TaskHostError> {
        let (supervisor, id) = (Arc::clone(&self.supervisor), self.id.clone());
        loop {
            if let Some(ending) = run_to_end(&mut self, &supervisor, &id, u32::MAX).await? {
                return Ok(ending);
            }
        }
    }
}

impl DurableHost for InProcessHost {
    type Error = TaskHostError;

    async fn step<T, A, F>(&mut self, _name: String, action: A) -> Result<T, TaskHostError>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        A: FnOnce() -> F + Send + 'static,
        F: Future<Output = Result<T, TaskHostError>> + Send + 'static,
    {
        action().await
    }

    async fn sleep(&mut self, time: Duration) -> Result<(), TaskHostError> {
        tokio::time::sleep(time).await;
        Ok(())
    }

    async fn signal(&mut self, at_most: Duration) -> Result<(), TaskHostError> {
        let waiting = async {
            while !self.supervisor.store().has_posted(&self.id).await? {
                tokio::time::sleep(INBOX_POLL_INTERVAL).await;
            }
            Ok(())
        };
        tokio::time::timeout(at_most, waiting).await.unwrap_or(Ok(()))
    }
}
