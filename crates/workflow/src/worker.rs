//! Worker that runs the tasks of a store.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Filter, Page, SessionId, StoreError, Summary};
use tokio::sync::mpsc::{self, UnboundedSender};
use tokio::task::JoinSet;

use crate::contract::DecisionGate;
use crate::durable::InProcessHost;
use crate::local::{KIND, KIND_TASK, TaskHostError};
use crate::supervisor::{TaskEnd, TaskStatus, TaskSupervisor};

/// Interval of the search for new tasks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Runs each task of a store that has not ended, as one of any number of workers. A task whose process died is taken over.
///
/// ```
/// use std::sync::Arc;
/// use pintle_store::{MemoryStore, SessionId};
/// use pintle_workflow::contract::{Contract, TaskCheck};
/// use pintle_workflow::{TaskSupervisor, Worker, WorkerEvent};
/// # use pintle_agent::Fence;
/// # use pintle_workflow::task::{StepId, StepOutput, Task, TaskStep, WorkCost};
/// # use pintle_workflow::{Performer, PerformerFactory, SteeringMessage, TaskEnd};
/// # use tokio_util::sync::CancellationToken;
/// # #[derive(Debug)]
/// # struct Performers;
/// # #[async_trait::async_trait]
/// # impl PerformerFactory for Performers {
/// #     async fn performer(&self, _: &SessionId) -> Result<Arc<dyn Performer>, String> { Ok(Arc::new(Performers)) }
/// # }
/// # #[async_trait::async_trait]
/// # impl Performer for Performers {
/// #     async fn perform(
/// #         &self, _: &Task, _: &TaskStep, _: &Fence, _: &CancellationToken,
/// #     ) -> (StepOutput, WorkCost) {
/// #         (StepOutput::failed("there is no repository"), WorkCost::default())
/// #     }
/// #     async fn steer(&self, _: &StepId, _: SteeringMessage) -> bool { false }
/// # }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let performers = Performers;
/// // `HostPerformerFactory` is a factory of performers; here, all steps fail.
/// let supervisor = TaskSupervisor::new(Arc::new(MemoryStore::new()), Arc::new(performers)).with_max_tasks(2);
/// let contract =
///     Contract::new("Sums of negative numbers are right.").with_check(TaskCheck::new("tests", "make test"));
/// supervisor.create(&SessionId::new("negative-sums"), contract).await?;
///
/// // A process stops its worker at a signal; this one stops after the first task.
/// let ended = tokio::sync::Notify::new();
/// let report = |event: &WorkerEvent| {
///     if let WorkerEvent::Ended { end, .. } = event {
///         assert_eq!(*end, TaskEnd::Failed);
///         ended.notify_one();
///     }
/// };
/// Worker::new(Arc::new(supervisor)).run(ended.notified(), report).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Worker {
    supervisor: Arc<TaskSupervisor>,
}

/// Event of a [`Worker`]. The events of a task arrive in order. A task that had ended before has none.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerEvent {
    /// Steps of the task are running or due, in this process or another one. Reported again after a retry.
    Started {
        /// Id of the task.
        id: SessionId,
        /// First line of its goal. It is not sanitized.
        title: String,
    },
    /// The task waits before its first step here. It starts later without another event.
    Waiting {
        /// Id of the task.
        id: SessionId,
        /// First line of its goal. It is not sanitized.
        title: String,
        /// Decision that the task waits for; `None` if it waits until fewer tasks run in this process.
        gate: Option<DecisionGate>,
    },
    /// The task has ended.
    Ended {
        /// Id of the task.
        id: SessionId,
        /// First line of its goal. It is not sanitized.
        title: String,
        /// How it ended.
        end: TaskEnd,
    },
    /// A problem occurred. The worker continues.
    Problem(WorkerProblem),
}

/// Problem of a [`Worker`], which continues.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerProblem {
    /// The store cannot be read. Reported once until it can be read again.
    #[error("cannot list the tasks, retrying: {0}")]
    Unlisted(#[source] StoreError),
    /// This process cannot run the task, and does not try again.
    #[error(transparent)]
    Skipped(TaskHostError),
    /// The run of a task failed, and is resumed.
    #[error("retrying task {id}: {error}")]
    Retried {
        /// Id of the task.
        id: SessionId,
        /// Reason.
        #[source]
        error: TaskHostError,
    },
}

impl Worker {
    /// Creates a worker for the tasks in the store of a supervisor, which limits the number of concurrent tasks.
    #[must_use]
    pub fn new(supervisor: Arc<TaskSupervisor>) -> Self {
        Self { supervisor }
    }

    /// Runs tasks until `stop` completes, then closes the supervisor: running tasks are left to another process. `report`
    /// receives the starts and ends of tasks, and the problems.
    ///
    /// Dropping the future leaves the tasks running as long as the supervisor exists.
    pub async fn run(&self, stop: impl Future<Output = ()>, report: impl Fn(&WorkerEvent)) {
        tokio::select! {
            never = self.run_tasks(report) => match never {},
            () = stop => {}
        }
        self.supervisor.close().await;
    }

    async fn run_tasks(&self, report: impl Fn(&WorkerEvent)) -> Infallible {
        let filter = Filter::default().with_property(KIND, KIND_TASK);
        // Tasks that have ended, or cannot continue here, are checked only once.
        let mut known: HashSet<SessionId> = HashSet::new();
        // Tasks without a contract, which their process may be about to record.
        let mut incomplete: HashSet<SessionId> = HashSet::new();
        let mut attending = JoinSet::new();
        let (sender, mut events) = mpsc::unbounded_channel();
        let mut is_away = false;
        loop {
            match self.supervisor.store().list(&filter, &Page::default()).await {
                Ok(listed) => {
                    is_away = false;
                    for task in listed {
                        if known.insert(task.id.clone()) {
                            let (supervisor, sender) = (Arc::clone(&self.supervisor), sender.clone());
                            attending.spawn(async move {
                                (task.id.clone(), attend(supervisor, task, &sender).await)
                            });
                        }
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        report(&WorkerEvent::Problem(WorkerProblem::Unlisted(error)));
                    }
                }
            }
            tokio::select! {
                // The events of a task precede its error.
                biased;
                Some(event) = events.recv() => {
                    report(&event);
                    while let Ok(event) = events.try_recv() {
                        report(&event);
                    }
                }
                Some(Ok((id, attended))) = attending.join_next() => match attended {
                    Ok(()) => {}
                    Err(TaskHostError::NotATask { .. }) if incomplete.insert(id.clone()) => {
                        known.remove(&id);
                        tokio::time::sleep(INTERVAL).await;
                    }
                    Err(error @ (TaskHostError::NotHere { .. } | TaskHostError::NotATask { .. })) => {
                        report(&WorkerEvent::Problem(WorkerProblem::Skipped(error)));
                    }
                    Err(error) => {
                        // The store may be temporarily unavailable.
                        known.remove(&id);
                        report(&WorkerEvent::Problem(WorkerProblem::Retried { id, error }));
                        tokio::time::sleep(INTERVAL).await;
                    }
                },
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }
}

/// Runs a task to its end, and sends its events. A task that had ended before has none.
async fn attend(
    supervisor: Arc<TaskSupervisor>,
    task: Summary,
    events: &UnboundedSender<WorkerEvent>,
) -> Result<(), TaskHostError> {
    let Summary { id, title, .. } = task;
    let status = supervisor.ensure_running(&id).await?;
    let event = match status {
        TaskStatus::Ended(_) => return Ok(()),
        TaskStatus::Asked(gate) => {
            WorkerEvent::Waiting { id: id.clone(), title: title.clone(), gate: Some(gate) }
        }
        TaskStatus::Full => WorkerEvent::Waiting { id: id.clone(), title: title.clone(), gate: None },
        TaskStatus::Steps(_) => WorkerEvent::Started { id: id.clone(), title: title.clone() },
    };
    // The receiver is dropped only with the worker, which ends this task as well.
    let _ = events.send(event);
    let end = InProcessHost::new(supervisor, id.clone()).run().await?;
    let _ = events.send(WorkerEvent::Ended { id, title, end });
    Ok(())
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use pintle_store::MemoryStore;

    use super::*;
    use crate::local::{Performer, read_task};
    use crate::supervisor::PerformerFactory;
    use crate::testing::{ScriptedPerformer, SinglePerformerFactory, contract};

    /// Time limit of every wait.
    const PATIENCE: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn tasks_that_exist_or_are_created_later_run_to_their_end() {
        let store = Arc::new(MemoryStore::new());
        let performers = SinglePerformerFactory(Arc::new(ScriptedPerformer::default()));
        let supervisor = Arc::new(TaskSupervisor::new(store.clone(), Arc::new(performers)));
        let ids = ["earlier", "later"].map(SessionId::new);
        let stop = async {
            for id in &ids {
                supervisor.create(id, contract()).await.unwrap();
                while read_task(store.as_ref(), id).await.unwrap().outcome().is_none() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        };
        let worker = Worker::new(Arc::clone(&supervisor));
        let run = worker.run(stop, |event| {
            assert!(!matches!(event, WorkerEvent::Problem(_)), "{event:?}");
        });
        tokio::time::timeout(PATIENCE, run).await.expect("both tasks end");
    }

    #[tokio::test(start_paused = true)]
    async fn the_start_and_the_end_of_a_task_are_reported_once() {
        let store = Arc::new(MemoryStore::new());
        let performers = SinglePerformerFactory(Arc::new(ScriptedPerformer::default()));
        let supervisor = Arc::new(TaskSupervisor::new(store, Arc::new(performers)));
        let id = SessionId::new("t");
        supervisor.create(&id, contract()).await.unwrap();
        for expected in [
            &[
                "t starts: Sums of negative numbers are right.",
                "t is Done: Sums of negative numbers are right.",
            ][..],
            // The next worker finds a task that has ended.
            &[],
        ] {
            assert_eq!(reported(Arc::clone(&supervisor)).await, expected);
        }
    }

    /// Runs a worker until it has nothing more to do, and returns its events as text.
    async fn reported(supervisor: Arc<TaskSupervisor>) -> Vec<String> {
        let (sender, mut events) = mpsc::unbounded_channel();
        let stop = tokio::time::sleep(10 * INTERVAL);
        let report = |event: &WorkerEvent| sender.send(describe(event)).unwrap();
        Worker::new(supervisor).run(stop, report).await;
        let mut texts = Vec::new();
        while let Ok(text) = events.try_recv() {
            texts.push(text);
        }
        texts
    }

    fn describe(event: &WorkerEvent) -> String {
        match event {
            WorkerEvent::Started { id, title } => format!("{id} starts: {title}"),
            WorkerEvent::Waiting { id, title, gate } => format!("{id} waits for {gate:?}: {title}"),
            WorkerEvent::Ended { id, title, end } => format!("{id} is {end:?}: {title}"),
            WorkerEvent::Problem(problem) => problem.to_string(),
        }
    }

    /// A host without the files of any task.
    #[derive(Debug)]
    struct Elsewhere;

    #[async_trait]
    impl PerformerFactory for Elsewhere {
        async fn performer(&self, _id: &SessionId) -> Result<Arc<dyn Performer>, String> {
            Err("its repository is elsewhere".to_owned())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_task_that_cannot_run_here_is_reported_once() {
        let store = Arc::new(MemoryStore::new());
        let supervisor = Arc::new(TaskSupervisor::new(store, Arc::new(Elsewhere)));
        supervisor.create(&SessionId::new("t"), contract()).await.unwrap();
        assert_eq!(
            reported(supervisor).await,
            ["task `t` cannot continue here: its repository is elsewhere"]
        );
    }
}
