//! `pintle worker`: runs tasks that no other process runs, or tasks that an engine assigns.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use pintle_agent::SessionId;
use pintle_host::Host;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::sanitize;
use pintle_store::{Filter, Page, Summary};
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use pintle_workflow::{
    HostPerformerFactory, InProcessHost, KIND, KIND_TASK, TaskEnd, TaskHostError, TaskStatus, TaskSupervisor,
};
use tokio::task::JoinSet;

use crate::arguments::{RunArgs, WorkerArgs};
use crate::exit::Exit;

/// Interval of the search for new tasks.
const INTERVAL: Duration = Duration::from_secs(2);

/// Runs `pintle worker` until a signal arrives.
pub(crate) async fn run_worker(args: WorkerArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(&args.run)?;
    let host = Host::new(process_env.clone());
    let performer_factory = HostPerformerFactory::open(host, args.run.given()?).await?;
    let interrupts = Interrupts::listen()?;
    #[cfg(feature = "restate")]
    let sandbox = performer_factory.spec().environment.sandbox;
    let store = performer_factory.sessions().shared_store();
    let max_tasks = usize::try_from(args.max_tasks).unwrap_or(usize::MAX);
    let supervisor =
        Arc::new(TaskSupervisor::new(store, Arc::new(performer_factory)).with_max_tasks(max_tasks));
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

/// Runs a task to its end. The output has its start and its end, unless it had ended before.
async fn attend(supervisor: Arc<TaskSupervisor>, summary: Summary) -> Result<(), TaskHostError> {
    let Summary { id, title, .. } = summary;
    let status = supervisor.ensure_running(&id).await?;
    let title = sanitize(&title).into_owned();
    let line = match status {
        TaskStatus::Ended(_) => return Ok(()),
        TaskStatus::Asked(_) => format!("task {id} waits for a decision: {title}\n"),
        TaskStatus::Full => format!("task {id} waits for another task: {title}\n"),
        TaskStatus::Steps(_) | _ => format!("task {id} starts: {title}\n"),
    };
    // A worker whose output is closed continues.
    let _ = console::print(&line).await;
    let end = describe_end(InProcessHost::new(supervisor, id.clone()).run().await?);
    let _ = console::print(&format!("task {id} is {end}: {title}\n")).await;
    Ok(())
}

fn describe_end(end: TaskEnd) -> &'static str {
    match end {
        TaskEnd::Done => "done",
        TaskEnd::Blocked => "blocked",
        TaskEnd::Limit => "at its limit",
        TaskEnd::Aborted => "cancelled",
        TaskEnd::Failed | _ => "failed",
    }
}

/// Runs each task of the store that has not ended.
async fn run_tasks(supervisor: &Arc<TaskSupervisor>) -> Infallible {
    let filter = Filter::default().with_property(KIND, KIND_TASK);
    // Tasks that have ended, or cannot continue here, are checked only once.
    let mut known: HashSet<SessionId> = HashSet::new();
    // Tasks without a contract, which their process may be about to record.
    let mut incomplete: HashSet<SessionId> = HashSet::new();
    let mut attending = JoinSet::new();
    let mut is_away = false;
    loop {
        let listed = supervisor.store().list(&filter, &Page::default()).await;
        let was_away = std::mem::replace(&mut is_away, listed.is_err());
        if let (Err(error), false) = (&listed, was_away) {
            console::notice(&format!("cannot list the tasks, retrying: {error}"));
        }
        for summary in listed.into_iter().flatten() {
            if known.insert(summary.id.clone()) {
                let supervisor = Arc::clone(supervisor);
                attending.spawn(async move { (summary.id.clone(), attend(supervisor, summary).await) });
            }
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            Some(Ok((id, ended))) = attending.join_next() => match ended {
                Ok(()) => {}
                Err(TaskHostError::NotATask { .. }) if incomplete.insert(id.clone()) => {
                    known.remove(&id);
                    tokio::time::sleep(INTERVAL).await;
                }
                Err(error @ (TaskHostError::NotHere { .. } | TaskHostError::NotATask { .. })) => {
                    console::notice(&error.to_string());
                }
                Err(error) => {
                    // The store may be temporarily unavailable.
                    console::notice(&format!("retrying task {id}: {error}"));
                    known.remove(&id);
                    tokio::time::sleep(INTERVAL).await;
                }
            },
        }
    }
}
