//! Keeping a task going, on this process alone or on an engine that outlives it.
//!
//! An engine schedules, and the journal of the task is the record of effects: it keeps the names of steps and where they are, and
//! nothing else. No step of it takes longer than a slice, so that no time-out of an engine ends a step.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_store::SessionId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::desk::{Desk, Ending, Progress, Standing};
use crate::local::TaskHostError;

/// Longest time that a step of a host takes.
pub const SLICE: Duration = Duration::from_secs(20);

/// Time after which a host looks for a decision that nobody has told it of.
pub const PEOPLE: Duration = Duration::from_secs(300);

/// Time after which a full process is asked again.
const FULL: Duration = Duration::from_secs(5);

/// Host of a task: runs steps whose results it keeps, sleeps, and is woken by people.
///
/// Candidates are no children of it, and cancelling is a signal as any other: see the decision about hosts of tasks.
pub trait DurableHost: Send {
    /// Error of the host.
    type Error: Send;

    /// Runs an action, and keeps its result under its place in the order of steps. A host that was interrupted later returns the
    /// kept result instead. An action whose result was not kept yet runs again.
    ///
    /// # Errors
    ///
    /// The host's own, and those of the action, unless the host tries the action again.
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
    /// The host's own.
    fn sleep(&mut self, time: Duration) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Waits until somebody has said something to the task since its newest step, or for this time. It may return early.
    ///
    /// # Errors
    ///
    /// The host's own.
    fn signal(&mut self, at_most: Duration) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// Keeps a task going until it has ended, on any host. Returns `None` after `most` looks, so that the history of a host stays
/// bounded: the task is then to be attended to anew.
///
/// # Errors
///
/// Those of the host.
pub async fn attend<H: DurableHost>(
    host: &mut H,
    desk: &Arc<Desk>,
    id: &SessionId,
    most: u32,
) -> Result<Option<Ending>, H::Error> {
    for _ in 0..most {
        let (here, task) = (Arc::clone(desk), id.clone());
        match host.step("look".to_owned(), || async move { here.look(&task).await }).await? {
            Standing::Ended(ending) => return Ok(Some(ending)),
            Standing::Asked(_) => host.signal(PEOPLE).await?,
            Standing::Full => host.sleep(FULL).await?,
            Standing::Steps(steps) => {
                // They go on side by side, and all of them are waited for, so that each is named once in the history.
                for step in steps {
                    let (here, task, name) = (Arc::clone(desk), id.clone(), step.to_string());
                    let _: Progress =
                        host.step(name, || async move { here.wait(&task, &step, SLICE).await }).await?;
                }
            }
        }
    }
    Ok(None)
}

/// A host that is this process, for as long as it lives. The journal of the task is all that is kept.
#[derive(Debug)]
pub struct InProcess {
    desk: Arc<Desk>,
    id: SessionId,
}

/// Interval in which the inbox of a task is looked at.
const INBOX: Duration = Duration::from_millis(500);

impl InProcess {
    /// Creates a host for the task.
    #[must_use]
    pub fn new(desk: Arc<Desk>, id: SessionId) -> Self {
        Self { desk, id }
    }

    /// Keeps the task going until it has ended.
    ///
    /// Cancel safe: the task goes on while the desk is open.
    ///
    /// # Errors
    ///
    /// [`TaskHostError`].
    pub async fn attend(mut self) -> Result<Ending, TaskHostError> {
        let (desk, id) = (Arc::clone(&self.desk), self.id.clone());
        loop {
            if let Some(ending) = attend(&mut self, &desk, &id, u32::MAX).await? {
                return Ok(ending);
            }
        }
    }
}

impl DurableHost for InProcess {
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
            while !self.desk.store().has_posted(&self.id).await? {
                tokio::time::sleep(INBOX).await;
            }
            Ok(())
        };
        tokio::time::timeout(at_most, waiting).await.unwrap_or(Ok(()))
    }
}
