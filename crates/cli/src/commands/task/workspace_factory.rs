//! Environments of a task: like environments of a run, each with separate caches and temporary files.

use std::path::PathBuf;

use async_trait::async_trait;
use pintle_host::SessionSpec;
use pintle_workflow::{OpenWorkspace, WorkError, Workspace, WorkspaceFactory};

use crate::env_spec::EnvironmentChoice;
use crate::environment::{Confinement, EnvSession, EnvTarget, SandboxRequirements};
use crate::failure::Failure;
use crate::policy;
use crate::process_env::ProcessEnv;
use crate::sessions::RememberedSettings;

/// Opens environments with the settings of a run.
#[derive(Clone, Debug)]
pub(crate) struct TaskWorkspaceFactory {
    /// The settings, without the grant.
    pub(crate) spec: SessionSpec,
    /// File of the grant, which is read for each session.
    pub(crate) grant: Option<PathBuf>,
    /// Settings that a session remembers.
    pub(crate) remembered: RememberedSettings,
    pub(crate) process_env: ProcessEnv,
}

impl TaskWorkspaceFactory {
    /// Returns the settings and the variables for a workspace.
    pub(crate) fn settings_for(&self, workspace: &Workspace) -> (SessionSpec, ProcessEnv) {
        let mut spec = self.spec.clone();
        spec.environment.dir = Some(workspace.root.clone());
        (spec, self.process_env.with_variables(&workspace.variables).with_workspace(Some(&workspace.root)))
    }

    /// Adds the grant, if there is one.
    pub(crate) fn add_grant(&self, spec: &mut SessionSpec) -> Result<(), Failure> {
        if let Some(file) = &self.grant {
            spec.policy.grant = Some(policy::grant::read_file(file)?);
        }
        Ok(())
    }

    /// Opens the environment of a workspace.
    async fn connect(spec: &SessionSpec, process_env: &ProcessEnv) -> Result<EnvSession, Failure> {
        let choice = EnvironmentChoice::try_from(spec)?;
        let target = EnvTarget::new(choice, Confinement::from(spec), process_env)?;
        let used = SandboxRequirements { is_disposable: true, ..SandboxRequirements::default() };
        let target = target.with_denials(&spec.policy.deny).with_hidden(&spec.policy.hidden);
        target.with_requirements(used).connect().await
    }
}

#[async_trait]
impl WorkspaceFactory for TaskWorkspaceFactory {
    async fn open(&self, workspace: &Workspace) -> Result<OpenWorkspace, WorkError> {
        let (spec, process_env) = self.settings_for(workspace);
        let session = Self::connect(&spec, &process_env).await.map_err(|failure| work_error(&failure))?;
        Ok(OpenWorkspace::new(session.environment(), session))
    }
}

pub(crate) fn work_error(failure: &Failure) -> WorkError {
    WorkError(failure.message())
}
