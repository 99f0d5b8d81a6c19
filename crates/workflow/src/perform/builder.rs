//! Builder of the performer of a task.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use pintle_env::{ExecutionEnvironment, Redactions};
use pintle_store::Blobs;
use tokio::sync::Mutex;

use super::RepositoryPerformer;
use super::pending_messages::PendingMessages;
use crate::contract::ModelPlans;
use crate::session_runner::{SessionRunner, WorkspaceFactory};

/// Builder of a [`RepositoryPerformer`].
#[must_use]
pub struct RepositoryPerformerBuilder {
    task: String,
    directory: PathBuf,
    machine: Arc<dyn ExecutionEnvironment>,
    blobs: Arc<dyn Blobs>,
}

impl RepositoryPerformerBuilder {
    pub(super) fn new(
        task: String,
        directory: PathBuf,
        machine: Arc<dyn ExecutionEnvironment>,
        blobs: Arc<dyn Blobs>,
    ) -> Self {
        Self { task, directory, machine, blobs }
    }

    /// Builds the performer, whose candidates work in workspaces of `workspace_factory` with sessions of
    /// `session_runner`.
    #[must_use]
    pub fn build(
        self,
        workspace_factory: Arc<dyn WorkspaceFactory>,
        session_runner: Arc<dyn SessionRunner>,
    ) -> RepositoryPerformer {
        let Self { task, directory, machine, blobs } = self;
        RepositoryPerformer {
            task,
            machine,
            directory,
            workspace_factory,
            session_runner,
            blobs,
            secrets: Redactions::default(),
            draft_models: ModelPlans::default(),
            opening: Mutex::new(()),
            pending_messages: PendingMessages::default(),
        }
    }
}

impl fmt::Debug for RepositoryPerformerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RepositoryPerformerBuilder")
            .field("task", &self.task)
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
