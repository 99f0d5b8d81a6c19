//! `pintle worker`: runs tasks that no other process runs, or tasks that an engine assigns.

use std::sync::Arc;

use pintle_host::Host;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use pintle_workflow::{HostPerformerFactory, TaskSupervisor, Worker};

use crate::arguments::{RunArgs, WorkerArgs};
use crate::exit::Exit;

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
    let worker = Worker::new(supervisor);
    worker.run(interrupts.first_signal(), |problem| console::notice(&problem.to_string())).await;
    Ok(Exit::Done)
}

/// Rejects flags for a single task.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    let also = [("--wait-approval", args.wait_approval)];
    args.refuse_hosted(&also, |flag| format!("`pintle worker` takes no {flag}: tasks decide on that"))
}
