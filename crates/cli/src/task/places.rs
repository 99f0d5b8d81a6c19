//! Environments of a task: like environments of a run, each with separate caches and temporary files.

use async_trait::async_trait;
use pintle_workflow::{OpenPlace, Place, Places, WorkerError};

use crate::args::RunArgs;
use crate::environment::{EnvSession, EnvTarget, SandboxUse};
use crate::failure::Failure;
use crate::process_env::ProcessEnv;

/// Opens environments with the flags of a run.
#[derive(Clone, Debug)]
pub(super) struct TaskPlaces {
    pub(super) args: RunArgs,
    pub(super) process_env: ProcessEnv,
}

impl TaskPlaces {
    /// Returns the flags and the variables for a workspace.
    pub(super) fn of(&self, place: &Place) -> (RunArgs, ProcessEnv) {
        let mut args = self.args.clone();
        args.environment.dir = Some(place.root.clone());
        (args, self.process_env.and(&place.variables).with_workspace(Some(&place.root)))
    }

    /// Opens the environment of a workspace.
    pub(super) async fn connect(args: &RunArgs, process_env: &ProcessEnv) -> Result<EnvSession, Failure> {
        let target = EnvTarget::new((&args.environment).into(), (&args.confinement).into(), process_env)?;
        let used = SandboxUse { is_disposable: true, ..SandboxUse::default() };
        target.with_denials(&args.policy.deny).for_use(used).connect().await
    }
}

#[async_trait]
impl Places for TaskPlaces {
    async fn open(&self, place: &Place) -> Result<OpenPlace, WorkerError> {
        let (args, process_env) = self.of(place);
        let session = Self::connect(&args, &process_env).await.map_err(|failure| worker_error(&failure))?;
        Ok(OpenPlace::new(session.environment(), session))
    }
}

pub(super) fn worker_error(failure: &Failure) -> WorkerError {
    WorkerError(failure.message())
}
