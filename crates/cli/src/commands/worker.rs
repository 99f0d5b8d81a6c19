//! `pintle worker`: runs tasks that no other process runs, or tasks that an engine assigns.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_host::{Host, ResolvedSession};
use pintle_store::{Filter, Page};
use pintle_workflow::{InProcessHost, KIND, KIND_TASK, TaskHostError, TaskSupervisor};
use tokio::task::JoinSet;

use super::task::performer_factory::TaskPerformerFactory;
use super::task::workspace_factory::TaskWorkspaceFactory;
use crate::arguments::{RunArgs, WorkerArgs};
use crate::console;
use crate::env_spec::{EnvSpec, EnvironmentChoice};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::process_env::ProcessEnv;
use crate::route::ModelChoice;
use crate::sessions::Sessions;

/// Interval of the search for new tasks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Runs `pintle worker` until a signal arrives.
pub(crate) async fn run_worker(args: WorkerArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(&args.run)?;
    let resolved = Host::new(process_env.clone()).resolve(args.run.given()?.into()).await?;
    let ResolvedSession { spec, remembered, .. } = resolved;
    let choice = EnvironmentChoice::try_from(&spec)?;
    if choice.spec != EnvSpec::Local {
        return Err(Failure::usage("`pintle worker` works only with --env local"));
    }
    // Tasks whose sessions cannot be opened would end as blocked.
    let unknown = Model::choose(&ModelChoice::try_from(&spec)?, process_env).await?.unknown_model();
    process_env.notices().report_all(unknown);
    let directory = process_env.directory(choice.directory.as_deref())?;
    let machine: Arc<dyn ExecutionEnvironment> = Arc::new(process_env.local_environment(&directory)?);
    let interrupts = Interrupts::listen()?;
    let sessions = Sessions::open(process_env).await?;
    #[cfg(feature = "restate")]
    let sandbox = spec.environment.sandbox;
    let store = sessions.shared_store();
    let workspace_factory = TaskWorkspaceFactory {
        spec,
        grant: args.run.grant.clone(),
        remembered,
        process_env: process_env.clone(),
    };
    let performer_factory = Arc::new(TaskPerformerFactory::new(sessions, workspace_factory, machine));
    let max_tasks = usize::try_from(args.max_tasks).unwrap_or(usize::MAX);
    let supervisor = Arc::new(TaskSupervisor::new(store, performer_factory).with_max_tasks(max_tasks));
    #[cfg(feature = "restate")]
    if let Some(address) = args.listen {
        return super::task::engine::serve(address, &args, sandbox, supervisor, interrupts).await;
    }
    console::print("keeping the tasks of the store going\n").await?;
    tokio::select! {
        never = run_tasks(&supervisor) => match never {},
        () = interrupts.first_signal() => {}
    }
    supervisor.close().await;
    Ok(Exit::Done)
}

/// Rejects flags for a single task.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    let also = [("--wait-approval", args.wait_approval)];
    args.refuse_hosted(&also, |flag| format!("`pintle worker` takes no {flag}: tasks decide on that"))
}

/// Runs each task of the store that has not ended.
async fn run_tasks(supervisor: &Arc<TaskSupervisor>) -> Infallible {
    let filter = Filter::default().with_property(KIND, KIND_TASK);
    // Tasks that have ended, or cannot continue here, are checked only once.
    let mut known: HashSet<SessionId> = HashSet::new();
    let mut attending = JoinSet::new();
    let mut is_away = false;
    loop {
        let listed = supervisor.store().list(&filter, &Page::default()).await;
        let was_away = std::mem::replace(&mut is_away, listed.is_err());
        if let (Err(error), false) = (&listed, was_away) {
            console::notice(&format!("the tasks cannot be listed, which is tried again: {error}"));
        }
        for summary in listed.into_iter().flatten() {
            if known.insert(summary.id.clone()) {
                let host = InProcessHost::new(Arc::clone(supervisor), summary.id.clone());
                attending.spawn(async move { (summary.id, host.run().await) });
            }
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            Some(Ok((id, ended))) = attending.join_next() => match ended {
                Ok(_) => {}
                Err(error @ (TaskHostError::NotHere { .. } | TaskHostError::NotATask { .. })) => {
                    console::notice(&error.to_string());
                }
                Err(error) => {
                    // The store may be temporarily unavailable.
                    console::notice(&format!("task {id} is tried again: {error}"));
                    known.remove(&id);
                    tokio::time::sleep(INTERVAL).await;
                }
            },
        }
    }
}
