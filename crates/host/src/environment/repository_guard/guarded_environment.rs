//! Environment of programs that pass no gate.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{Command, EnvError, ExecRequest, ExecResult, ExecutionEnvironment, Process, forward};

use super::RepositoryGuard;

/// Updates the backups of the histories before each program starts. A later command, or the end of the run, restores files that
/// the program removes. Programs outside of the sandbox have no guard.
#[derive(Debug)]
pub(super) struct GuardedEnvironment {
    pub(super) inner: Arc<dyn ExecutionEnvironment>,
    pub(super) repositories: RepositoryGuard,
}

#[async_trait]
impl ExecutionEnvironment for GuardedEnvironment {
    forward! {
        inner:
        working_directory, home_directory, platform, os_version, output_limits, shares_host_files, command_limits, resolve,
        initialize, cleanup, place, read, write, metadata, list, remove, rename, canonicalize, canonicalize_many, read_file,
        find_files, grep, create_directory, create_symlink, set_mode, walk, read_many,
    }

    fn outside_sandbox(&self) -> Option<Arc<dyn ExecutionEnvironment>> {
        self.inner.outside_sandbox()
    }

    async fn hold(&self, paths: &[PathBuf]) -> Result<Option<Arc<dyn ExecutionEnvironment>>, EnvError> {
        let held = self.inner.hold(paths).await?;
        Ok(held.map(|inner| self.repositories.guard_programs(inner)))
    }

    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.repositories.update().await;
        self.inner.spawn(command).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        self.repositories.update().await;
        self.inner.exec_command(request).await
    }
}
