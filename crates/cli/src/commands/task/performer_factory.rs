//! Performers of tasks, with the flags of a run.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::SessionId;
use pintle_env::{ExecutionEnvironment, ExecutionEnvironmentExt as _};
use pintle_workflow::{Performer, PerformerFactory, RepositoryPerformer, read_task};

use super::session_runner::TaskSessionRunner;
use super::task_directory;
use super::workspace_factory::TaskWorkspaceFactory;
use crate::failure::Failure;
use crate::process_secrets;
use crate::sessions::Sessions;

/// Creates performers for tasks whose repositories are on this machine.
#[derive(Debug)]
pub(crate) struct TaskPerformerFactory {
    sessions: Sessions,
    workspace_factory: TaskWorkspaceFactory,
    machine: Arc<dyn ExecutionEnvironment>,
    session_runner: Arc<TaskSessionRunner>,
}

impl TaskPerformerFactory {
    pub(crate) fn new(
        sessions: Sessions,
        workspace_factory: TaskWorkspaceFactory,
        machine: Arc<dyn ExecutionEnvironment>,
    ) -> Self {
        let session_runner = Arc::new(TaskSessionRunner::new(workspace_factory.clone()));
        Self { sessions, workspace_factory, machine, session_runner }
    }

    /// Returns the performer of a task.
    pub(super) fn create(&self, id: &SessionId) -> Result<RepositoryPerformer, Failure> {
        let process_env = &self.workspace_factory.process_env;
        let performer = RepositoryPerformer::new(
            id.as_str(),
            task_directory(id, process_env)?,
            Arc::clone(&self.machine),
            Arc::new(self.workspace_factory.clone()),
            Arc::clone(&self.session_runner) as Arc<dyn pintle_workflow::SessionRunner>,
            Arc::from(self.sessions.store().blobs(id)),
        );
        Ok(performer.with_secrets(process_secrets::redactions(process_env, None)))
    }
}

#[async_trait]
impl PerformerFactory for TaskPerformerFactory {
    async fn performer(&self, id: &SessionId) -> Result<Arc<dyn Performer>, String> {
        let task = read_task(self.sessions.store(), id).await.map_err(|error| error.to_string())?;
        let base = task.contract().base.as_ref().ok_or("its contract has no repository")?;
        let repository = Path::new(&base.repository);
        let is_here = self.machine.file_exists(repository).await.map_err(|error| error.to_string())?;
        if !is_here {
            return Err(format!("its repository {} is not on this machine", repository.display()));
        }
        let performer = self.create(id).map_err(|failure| failure.message())?;
        Ok(Arc::new(performer))
    }
}
