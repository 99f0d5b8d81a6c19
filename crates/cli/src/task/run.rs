//! `pintle task run`: begins a task, or goes on with one, and stays until it has ended.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_env::ExecutionEnvironment;
use pintle_workflow::contract::{Base, CandidatePlan, Check, Contract, Gate};
use pintle_workflow::report::Report;
use pintle_workflow::repository::UserRepository;
use pintle_workflow::task::{Input, Outcome, Task};
use pintle_workflow::{HostError, LocalHost};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use super::performers::TaskPerformers;
use super::places::TaskPlaces;
use super::{find, host_failure, lanes};
use crate::args::{OutputFormat, RunArgs, RunTaskArgs};
use crate::config;
use crate::console::{self, Console};
use crate::env_spec::EnvSpec;
use crate::exit::Exit;
use crate::failure::{Failure, OrFailure as _};
use crate::interrupt::Interrupts;
use crate::model::Model;
use crate::process_env::{self, ProcessEnv};
use crate::prompt_source;
use crate::sessions::Sessions;

pub(super) async fn run(args: RunTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(&args.run)?;
    let run = config::complete_run(&[], process_env).await?;
    if run.environment.env != EnvSpec::Local {
        return Err(Failure::usage("`pintle task run` works only with --env local"));
    }
    let directory = process_env.directory(run.environment.dir.as_deref())?;
    let machine: Arc<dyn ExecutionEnvironment> = Arc::new(process_env.local_environment(&directory)?);
    #[cfg(feature = "restate")]
    if let Some(url) = args.restate.clone().or_else(|| process_env.variable(super::engine::RESTATE)) {
        return hand_over(&args, &url, &machine, &directory, process_env).await;
    }
    // A task whose sessions cannot be opened would end as blocked.
    Model::from_args(&run.model, process_env).await?;
    let sessions = Sessions::open(process_env).await?;
    let mut host = match &args.task {
        Some(prefix) => {
            let id = find(&sessions, prefix).await?;
            LocalHost::open(sessions.store(), &id).await.map_err(|error| host_failure(&error, &id))?
        }
        None => {
            let id = SessionId::generate();
            let contract = based(contract(&args)?, &args, &machine, &directory, &id).await?;
            let created = LocalHost::create(sessions.store(), id.clone(), contract).await;
            created.map_err(|error| host_failure(&error, &id))?
        }
    };
    let id = host.id().clone();
    console::notice(&format!("task {id}; `pintle task report {id}` says where it is"));
    let format = run.output;
    let places = TaskPlaces { args: run, process_env: process_env.clone() };
    let performer = Arc::new(TaskPerformers::new(sessions.clone(), places, machine).of(&id)?);
    let interrupts = Interrupts::listen()?;
    let (stop, inputs) = (CancellationToken::new(), host.inputs());
    let shown = host.task().clone();
    let ended = {
        let following = async {
            let followed = follow(shown, inputs, format).await;
            if followed.is_err() {
                // The reader is gone, as with a closed pipe.
                stop.cancel();
            }
            followed
        };
        let running = async {
            let ended = host.run_until(performer.clone(), &stop).await;
            // The end of the inputs.
            (ended, drop(host))
        };
        let stopping = async {
            interrupts.first_signal().await;
            stop.cancel();
            std::future::pending::<()>().await
        };
        tokio::select! {
            ((ended, ()), followed) = async { tokio::join!(running, following) } => followed.and(Ok(ended))?,
            () = stopping => return Err(Failure::silent(Exit::Interrupted)),
        }
    };
    match ended {
        Ok(outcome) => {
            performer.clean().await.or_failed("the files of the task cannot be removed")?;
            end(&sessions, &id, &outcome, format).await
        }
        Err(HostError::Stopped) => {
            let hint = format!("`pintle task run --task {id}` goes on");
            Err(Failure::new(Exit::Interrupted, "the task was stopped").with_hint(&hint))
        }
        Err(error) => Err(host_failure(&error, &id)),
    }
}

/// Records the task, unless it is there, and lets an engine keep it going.
#[cfg(feature = "restate")]
async fn hand_over(
    args: &RunTaskArgs,
    url: &str,
    machine: &Arc<dyn ExecutionEnvironment>,
    directory: &Path,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = match &args.task {
        Some(prefix) => find(&sessions, prefix).await?,
        None => {
            let id = SessionId::generate();
            let mut contract = based(contract(args)?, args, machine, directory, &id).await?;
            // The flags of the worker count for the rest.
            for plan in contract.candidates.iter_mut().filter(|plan| plan.model.is_none()) {
                plan.model.clone_from(&args.run.model.model);
            }
            let created = LocalHost::create(sessions.store(), id.clone(), contract).await;
            created.map_err(|error| host_failure(&error, &id))?;
            id
        }
    };
    console::notice(&format!("task {id}"));
    super::engine::hand_over(url, &id).await
}

/// Rejects flags that are about one session.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    args.conversation.refuse()?;
    let session = &args.session;
    let flags = [
        ("--continue, --resume and --fork", session.goes_on() || session.fork.is_some()),
        ("--no-session", session.no_session),
        ("--worktree", session.worktree.is_some()),
        ("--output-schema", args.output_schema.is_some()),
        ("--image", !args.image.is_empty()),
        ("--wait-approval", args.wait_approval),
    ];
    match flags.iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Failure::usage(format!("`pintle task run` takes no {flag}"))),
        None => Ok(()),
    }
}

/// Returns the contract of the flags.
fn contract(args: &RunTaskArgs) -> Result<Contract, Failure> {
    if let Some(path) = &args.contract {
        let text = process_env::read_text("contract", path)?;
        return Contract::parse(&text)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())));
    }
    let goal = prompt_source::read(&args.run.prompt)?;
    let numbered = args.check.iter().enumerate();
    let contract = numbered.fold(Contract::new(goal), |contract, (number, command)| {
        contract.with_check(Check::new(format!("check {}", number + 1), command))
    });
    let count = usize::from(args.candidates.unwrap_or(1));
    Ok(contract.with_candidates(vec![CandidatePlan::default(); count]))
}

/// Returns the contract with the state of the repository that it starts from.
async fn based(
    contract: Contract,
    args: &RunTaskArgs,
    machine: &Arc<dyn ExecutionEnvironment>,
    directory: &Path,
    id: &SessionId,
) -> Result<Contract, Failure> {
    if contract.base.is_some() {
        return Ok(contract);
    }
    let found = UserRepository::find(Arc::clone(machine), directory).await;
    let found = found.map_err(|error| Failure::usage(error.to_string()))?;
    let commit = match (args.changes, found.changed) {
        (true, 1..) => found.snapshot(id.as_str()).await.or_failed("the local changes cannot be read")?,
        (false, 1..) => {
            console::notice(&format!(
                "{} local changes are no part of the task; `--changes` starts from them",
                found.changed
            ));
            found.head.clone()
        }
        (_, 0) => found.head.clone(),
    };
    Ok(contract.with_base(Base::new(found.root.display().to_string(), commit)))
}

/// Shows each input as it is taken.
async fn follow(
    mut task: Task,
    mut inputs: UnboundedReceiver<Input>,
    format: OutputFormat,
) -> Result<(), Failure> {
    let mut console = Console::new();
    let mut told = None;
    loop {
        tell_of_gate(&task, &mut told);
        let Some(input) = inputs.recv().await else { return Ok(()) };
        task.take(input.clone());
        let text = match format {
            OutputFormat::Text => lanes::line(&task, &input),
            OutputFormat::StreamJson => crate::render::json_line(&input)?,
            OutputFormat::Json => continue,
        };
        console.write(&text).await?;
    }
}

/// Says that a person is waited for, once for each time.
fn tell_of_gate(task: &Task, told: &mut Option<Gate>) {
    let gate = task.wants().gate;
    if gate.is_some() && gate != *told {
        console::notice("the task waits for a person: `pintle task decide` answers");
    }
    *told = gate;
}

/// Writes the report.
async fn end(
    sessions: &Sessions,
    id: &SessionId,
    outcome: &Outcome,
    format: OutputFormat,
) -> Result<Exit, Failure> {
    let task = super::read(sessions, id).await?;
    let report = Report::of(&task);
    let text = match format {
        OutputFormat::Text => format!("\n{}", report.to_markdown()),
        OutputFormat::Json | OutputFormat::StreamJson => crate::render::json_line(&report)?,
    };
    Console::new().write(&text).await?;
    match outcome {
        Outcome::Done(_) => {
            console::notice(&format!("`pintle task apply {id} --branch NAME` takes the change over"));
            Ok(Exit::Done)
        }
        Outcome::Limit { .. } => Err(Failure::silent(Exit::LimitReached)),
        Outcome::Aborted { .. } => Err(Failure::silent(Exit::Interrupted)),
        Outcome::Blocked(_) | Outcome::Failed { .. } | _ => Err(Failure::silent(Exit::Failed)),
    }
}
