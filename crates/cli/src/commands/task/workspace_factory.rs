//! Environments of a task: like environments of a run, each with separate caches and temporary files.

use async_trait::async_trait;
use pintle_workflow::{OpenWorkspace, WorkError, Workspace, WorkspaceFactory};

use crate::arguments::RunArgs;
use crate::environment::{EnvSession, EnvTarget, SandboxUse};
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Opens environments with the flags of a run.
#[derive(Clone, Debug)]
pub(crate) struct TaskWorkspaceFactory {
    pub(crate) args: RunArgs,
    pub(crate) process_env: ProcessEnv,
}

impl TaskWorkspaceFactory {
    /// Returns the flags and the variables for a workspace.
    pub(super) fn flags_for(&self, workspace: &Workspace) -> (RunArgs, ProcessEnv) {
        let mut args = self.args.clone();
        args.environment.dir = Some(workspace.root.clone());
        (args, self.process_env.and(&workspace.variables).with_workspace(Some(&workspace.root)))
    }

    /// Opens the environment of a workspace.
    pub(super) async fn connect(args: &RunArgs, process_env: &ProcessEnv) -> Result<EnvSession, Failure> {
        let target = EnvTarget::new((&args.environment).into(), (&args.confinement).into(), process_env)?;
        let used = SandboxUse { is_disposable: true, ..SandboxUse::default() };
        target.with_denials(&args.policy.deny).for_use(used).connect().await
    }
}

#[async_trait]
impl WorkspaceFactory for TaskWorkspaceFactory {
    async fn open(&self, workspace: &Workspace) -> Result<OpenWorkspace, WorkError> {
        let (args, process_env) = self.flags_for(workspace);
        let session = Self::connect(&args, &process_env).await.map_err(|failure| work_error(&failure))?;
        Ok(OpenWorkspace::new(session.environment(), session))
    }
}

pub(super) fn work_error(failure: &Failure) -> WorkError {
    WorkError(failure.message())
}
