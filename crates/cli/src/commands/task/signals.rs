//! Messages and decisions of users. They are stored until a process has the task open.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_host::Host;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sessions::Sessions;
use pintle_store::{Posting, StoreError};
use pintle_tui::console;
use pintle_workflow::contract::Contract;
use pintle_workflow::repository::remove_task_files;
use pintle_workflow::task::{GateAnswer, TaskSignal};
use pintle_workflow::{LocalTaskHost, TaskHostError, post_signal, read_inputs, task_directory};

use super::gate_prompt::gate_name;
use super::{find, host_failure, open_failure, read};
use crate::arguments::{CancelTaskArgs, DecideTaskArgs, SteerTaskArgs, TaskDecision};
use crate::exit::Exit;

pub(super) async fn steer(args: SteerTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    let task = read(&sessions, &id).await?;
    let count = task.candidates().len();
    if let Some(candidate) = args.candidate.filter(|candidate| *candidate >= count) {
        return Err(Failure::usage(format!("--candidate {candidate}: expected less than {count}")));
    }
    let to = args.candidate.map_or("all candidates".to_owned(), |candidate| format!("candidate {candidate}"));
    let signal = TaskSignal::Steer { candidate: args.candidate, text: args.text };
    let posted = post(&sessions, &id, &signal, process_env).await?;
    console::print(&format!("sent to {to} of task {id}\n")).await?;
    Ok(posted)
}

pub(super) async fn decide(args: DecideTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    let task = read(&sessions, &id).await?;
    let Some(gate) = task.pending().gate else {
        return Err(Failure::usage(format!("task {id} does not wait for a decision")));
    };
    let is_approved = args.decision == TaskDecision::Approve;
    if is_approved && args.words.is_some() {
        return Err(Failure::usage("--words is for `refuse`: expected none with `approve`"));
    }
    if args.words.is_some() && !task.is_changed_by_words(gate) {
        let problem = "--words: the contract names the anchor, and words change only one that a model wrote";
        return Err(Failure::usage(problem).with_hint(
            "`refuse` without words ends the task; `approve` continues it, and `pintle task steer` sends a message to its candidates",
        ));
    }
    let decision = GateAnswer { gate, is_approved, words: args.words };
    post_decision(&sessions, &id, decision, process_env).await?;
    let (done, name) = (if is_approved { "approved" } else { "refused" }, gate_name(gate));
    console::print(&format!("{done} the {name} of task {id}\n")).await?;
    note_absence(&sessions, &id).await;
    Ok(Exit::Done)
}

/// Posts a decision. A gate takes one: without a process that reads it, an earlier decision stays.
async fn post_decision(
    sessions: &Sessions,
    id: &SessionId,
    decision: GateAnswer,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let name = gate_name(decision.gate);
    // Equal for all decisions about the gate until a process reads one, so that the store accepts the first.
    let place = read_inputs(sessions.store(), id).await.map_err(|error| host_failure(&error, id))?.len();
    let input = format!("decide-{name}-{place}");
    let posted = post_to_inbox(sessions, id, &input, &TaskSignal::Decide(decision), process_env).await?;
    if posted == Posting::Known {
        return Err(Failure::usage(format!(
            "the {name} of task {id} was decided before, and no process has read the decision yet"
        ))
        .with_hint(&format!(
            "`pintle task run --task {id}` continues the task, and `pintle task cancel {id}` ends it"
        )));
    }
    #[cfg(feature = "restate")]
    super::engine::wake(id, process_env).await?;
    Ok(())
}

pub(super) async fn cancel(args: CancelTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    send(&sessions, &id, &TaskSignal::Cancel { reason: args.reason }, process_env).await?;
    let has_ended = settle(&sessions, &id, process_env).await?;
    let text = match has_ended {
        true => format!("cancelled task {id}\n"),
        false => format!("task {id} is being cancelled by the process that has it open\n"),
    };
    console::print(&text).await?;
    Ok(Exit::Done)
}

/// Cancels a task that was never started.
#[cfg(feature = "restate")]
pub(super) async fn cancel_unstarted(
    sessions: &Sessions,
    id: &SessionId,
    reason: &str,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let (input, signal) = (SessionId::generate(), TaskSignal::Cancel { reason: reason.to_owned() });
    post_to_inbox(sessions, id, input.as_str(), &signal, process_env).await?;
    settle(sessions, id, process_env).await.map(|_| ())
}

/// Ends a task that was cancelled, and removes its files and the name of its local changes. A process that has it open
/// does this itself; returns `false` then.
async fn settle(sessions: &Sessions, id: &SessionId, process_env: &ProcessEnv) -> Result<bool, Failure> {
    if sessions.is_live(id).await {
        return Ok(false);
    }
    let mut host = match LocalTaskHost::open(sessions.store(), id).await {
        Ok(host) => host,
        // Another process has opened it meanwhile, and handles the posted signals.
        Err(TaskHostError::Store(StoreError::InUse { .. })) => return Ok(false),
        Err(error) => return Err(open_failure(sessions, &error, id).await),
    };
    host.settle().await.map_err(|error| host_failure(&error, id))?;
    let machine: Arc<dyn ExecutionEnvironment> =
        Arc::new(process_env.local_environment(&process_env.directory(None)?)?);
    remove_files(&machine, id, host.task().contract(), process_env).await?;
    Ok(true)
}

/// Removes the files and the git reference of a task that has ended.
pub(super) async fn remove_files(
    machine: &Arc<dyn ExecutionEnvironment>,
    id: &SessionId,
    contract: &Contract,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    let left = "the files of the task cannot be removed";
    let directory = task_directory(id, &Host::new(process_env.clone()))?;
    let repository = contract.base.as_ref().map(|base| Path::new(&base.repository));
    remove_task_files(machine, &directory, id.as_str(), repository).await.or_failed(left)
}

/// Posts a signal for the process that runs the task, now or later.
pub(super) async fn post(
    sessions: &Sessions,
    id: &SessionId,
    signal: &TaskSignal,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    send(sessions, id, signal, process_env).await?;
    note_absence(sessions, id).await;
    Ok(Exit::Done)
}

/// Reports that no process reads a signal for now.
async fn note_absence(sessions: &Sessions, id: &SessionId) {
    if !sessions.is_live(id).await {
        console::notice(&format!("no process has the task open; `pintle task run --task {id}` resumes it"));
    }
}

/// Posts a signal, unless the task has ended.
async fn send(
    sessions: &Sessions,
    id: &SessionId,
    signal: &TaskSignal,
    process_env: &ProcessEnv,
) -> Result<(), Failure> {
    if read(sessions, id).await?.outcome().is_some() {
        return Err(Failure::usage(format!("task {id} has ended")));
    }
    post_to_inbox(sessions, id, SessionId::generate().as_str(), signal, process_env).await?;
    #[cfg(feature = "restate")]
    super::engine::wake(id, process_env).await?;
    Ok(())
}

async fn post_to_inbox(
    sessions: &Sessions,
    id: &SessionId,
    input: &str,
    signal: &TaskSignal,
    process_env: &ProcessEnv,
) -> Result<Posting, Failure> {
    post_signal(sessions.store(), id, input, signal, Some(process_env.principal()))
        .await
        .or_failed("cannot send the signal to the task")
}
