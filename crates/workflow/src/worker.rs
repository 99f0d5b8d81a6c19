//! Worker that runs the tasks of a store.

use std::collections::HashSet;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use pintle_store::{Filter, Page, SessionId, StoreError};
use tokio::task::JoinSet;

use crate::durable::InProcessHost;
use crate::local::{KIND, KIND_TASK, TaskHostError};
use crate::supervisor::TaskSupervisor;

/// Interval of the search for new tasks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Runs each task of a store that has not ended, as one of any number of workers. A task whose process died is taken over.
#[derive(Clone, Debug)]
pub struct Worker {
    supervisor: Arc<TaskSupervisor>,
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
    /// receives the problems.
    ///
    /// Dropping the future leaves the tasks running as long as the supervisor exists.
    pub async fn run(&self, stop: impl Future<Output = ()>, report: impl Fn(&WorkerProblem)) {
        tokio::select! {
            never = self.run_tasks(report) => match never {},
            () = stop => {}
        }
        self.supervisor.close().await;
    }

    async fn run_tasks(&self, report: impl Fn(&WorkerProblem)) -> Infallible {
        let filter = Filter::default().with_property(KIND, KIND_TASK);
        // Tasks that have ended, or cannot continue here, are checked only once.
        let mut known: HashSet<SessionId> = HashSet::new();
        // Tasks without a contract, which their process may be about to record.
        let mut incomplete: HashSet<SessionId> = HashSet::new();
        let mut attending = JoinSet::new();
        let mut is_away = false;
        loop {
            match self.supervisor.store().list(&filter, &Page::default()).await {
                Ok(listed) => {
                    is_away = false;
                    for summary in listed {
                        if known.insert(summary.id.clone()) {
                            let host = InProcessHost::new(Arc::clone(&self.supervisor), summary.id.clone());
                            attending.spawn(async move { (summary.id, host.run().await) });
                        }
                    }
                }
                Err(error) => {
                    if !std::mem::replace(&mut is_away, true) {
                        report(&WorkerProblem::Unlisted(error));
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(INTERVAL) => {}
                Some(Ok((id, ended))) = attending.join_next() => match ended {
                    Ok(_) => {}
                    Err(TaskHostError::NotATask { .. }) if incomplete.insert(id.clone()) => {
                        known.remove(&id);
                        tokio::time::sleep(INTERVAL).await;
                    }
                    Err(error @ (TaskHostError::NotHere { .. } | TaskHostError::NotATask { .. })) => {
                        report(&WorkerProblem::Skipped(error));
                    }
                    Err(error) => {
                        // The store may be temporarily unavailable.
                        known.remove(&id);
                        report(&WorkerProblem::Retried { id, error });
                        tokio::time::sleep(INTERVAL).await;
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use pintle_store::MemoryStore;
    use tokio::sync::mpsc;

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
        let run = worker.run(stop, |problem| panic!("{problem}"));
        tokio::time::timeout(PATIENCE, run).await.expect("both tasks end");
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
        let (reported, mut problems) = mpsc::unbounded_channel();
        let stop = tokio::time::sleep(10 * INTERVAL);
        let worker = Worker::new(supervisor);
        worker.run(stop, |problem| reported.send(problem.to_string()).unwrap()).await;
        assert_eq!(
            problems.try_recv().unwrap(),
            "task `t` cannot continue here: its repository is elsewhere"
        );
        assert!(problems.try_recv().is_err());
    }
}
