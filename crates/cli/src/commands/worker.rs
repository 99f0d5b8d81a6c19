//! `pintle worker`: runs tasks that no other process runs, or tasks that an engine assigns.

use std::sync::Arc;

use pintle_host::Host;
use pintle_host::failure::Failure;
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::sanitize;
use pintle_tui::console;
use pintle_tui::interrupt::Interrupts;
use pintle_workflow::{HostPerformerFactory, TaskEnd, TaskSupervisor, Worker, WorkerEvent};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

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
    let (sender, lines) = unbounded_channel();
    let report = move |event: &WorkerEvent| report(event, &sender);
    tokio::join!(worker.run(interrupts.first_signal(), report), print_lines(lines));
    Ok(Exit::Done)
}

/// Rejects flags for a single task.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    let also = [("--wait-approval", args.wait_approval)];
    args.refuse_hosted(&also, |flag| format!("`pintle worker` takes no {flag}: tasks decide on that"))
}

/// Reports an event: a problem as a notice, any other event as a line of the output.
fn report(event: &WorkerEvent, lines: &UnboundedSender<String>) {
    let line = match event {
        WorkerEvent::Started { id, title } => format!("task {id} starts: {}\n", sanitize(title)),
        WorkerEvent::Waiting { id, title, gate } => {
            let awaited = if gate.is_some() { "a decision" } else { "another task" };
            format!("task {id} waits for {awaited}: {}\n", sanitize(title))
        }
        WorkerEvent::Ended { id, title, end } => {
            format!("task {id} is {}: {}\n", describe_end(*end), sanitize(title))
        }
        WorkerEvent::Problem(problem) => return console::notice(&problem.to_string()),
        _ => return,
    };
    // The receiver exists as long as the worker runs.
    let _ = lines.send(line);
}

/// Prints lines until no sender is left.
async fn print_lines(mut lines: UnboundedReceiver<String>) {
    while let Some(line) = lines.recv().await {
        // A worker whose output is closed continues.
        let _ = console::print(&line).await;
    }
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
