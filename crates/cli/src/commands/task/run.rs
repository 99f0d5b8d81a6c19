//! `pintle task run`: starts or resumes a task, and stays until it has ended.

mod task_opener;

use std::sync::Arc;

use pintle_agent::SessionId;
use pintle_host::Host;
use pintle_host::attendant::Attendant as _;
use pintle_host::boxed_future::box_future;
use pintle_host::failure::{Failure, FailureKind, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::json_line;
use pintle_host::sessions::Sessions;
use pintle_tui::approve::Prompter;
use pintle_tui::console::{self, Console};
use pintle_tui::interrupt::Interrupts;
#[cfg(feature = "restate")]
use pintle_workflow::LocalDirectory;
#[cfg(feature = "restate")]
use pintle_workflow::evidence::Baseline;
use pintle_workflow::report::TaskReport;
use pintle_workflow::task::{StepOutput, Task, TaskInput, TaskOutcome};
use pintle_workflow::{
    HostPerformerFactory, IntactTask, LocalTaskHost, Performer, TaskHostError, read_last_lines,
};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

use self::task_opener::{TaskOpener, TaskSource, select_source};
#[cfg(feature = "restate")]
use super::new_task::{self, TaskStart};
use super::{gate_prompt, progress};
use crate::arguments::{OutputFormat, RunArgs, RunTaskArgs};
use crate::exit::Exit;

pub(super) async fn run(args: RunTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    refuse(&args.run)?;
    let host = Host::new(process_env.clone());
    let given = args.run.given()?;
    #[cfg(feature = "restate")]
    if let Some(url) = args.restate.clone().or_else(|| process_env.variable(super::engine::RESTATE)) {
        let spec = box_future(|| host.resolve(given.into())).await?.spec;
        let directory = LocalDirectory::from_settings(&spec, &host)?;
        return box_future(|| hand_over(&args, &url, &directory, process_env)).await;
    }
    let performer_factory = box_future(|| HostPerformerFactory::open(host, given)).await?;
    let sessions = performer_factory.sessions();
    let format = args.run.output;
    // Until the handlers are installed, a signal ends the process, also while it reads standard input.
    let source = box_future(|| select_source(&args, sessions)).await?;
    let interrupts = Interrupts::listen()?;
    let prompter = Prompter::from_process(console::style(process_env), Some(process_env.principal()), false);
    let id = match &source {
        TaskSource::Task(id) => id.clone(),
        TaskSource::Contract(_) | TaskSource::Goal(_) => SessionId::generate(),
    };
    let opener = TaskOpener {
        args: &args,
        id: &id,
        performer_factory: &performer_factory,
        prompter: &prompter,
        interrupts: &interrupts,
        process_env,
    };
    let host = box_future(|| opener.open(source)).await?;
    let program = super::shown_program(process_env);
    console::notice(&format!("task {id}; `{program} task report {id}` shows its status"));
    if format == OutputFormat::StreamJson {
        console::print(&identity_line(&id)?).await?;
    }
    let performer = Arc::new(performer_factory.create(&id)?);
    let contract = host.task().contract().clone();
    let task_console = TaskConsole { sessions, id: &id, prompter: &prompter, format, waits: !args.no_wait };
    let ended = box_future(|| task_console.run(host, performer.clone(), &interrupts)).await?;
    match ended {
        Ok(None) => {
            print_report(sessions, &id, format).await?;
            Ok(Exit::Failed)
        }
        Ok(Some(outcome)) => {
            // The outcome is recorded, and leftover files do not change it.
            if let Err(error) = Performer::clean(performer.as_ref(), &contract).await {
                console::notice(&format!("the files of the task cannot be removed: {error}"));
            }
            report_end(sessions, &id, &outcome, format, &program).await
        }
        Err(TaskHostError::Stopped) => {
            let hint = format!("`{program} task run --task {id}` resumes it");
            Err(Failure::new(FailureKind::Interrupted, "the task was stopped").with_hint(&hint))
        }
        Err(error) => Err(super::open_failure(sessions, &error, &id).await),
    }
}

/// Records the task, unless it exists, and hands it over to an engine.
#[cfg(feature = "restate")]
async fn hand_over(
    args: &RunTaskArgs,
    url: &str,
    directory: &LocalDirectory,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    // Checked first: a task that no engine knows would stay open.
    super::engine::require_engine(url).await?;
    let sessions = Sessions::open(process_env).await?;
    let id = match &args.task {
        Some(prefix) => super::find(&sessions, prefix).await?,
        None => {
            let id = SessionId::generate();
            let given = new_task::read_contract(&args.terms, &args.run.prompt)?;
            let mut contract = given.ok_or_else(|| {
                Failure::usage("a task that is handed over needs `--check COMMAND` or `--contract FILE`")
            })?;
            if contract.base.is_none() {
                let start = TaskStart::find(directory, args.terms.changes).await?;
                let base = start.resolve(&id, Some(&contract)).await;
                if base.is_err() {
                    new_task::remove_snapshot(directory, &id).await;
                }
                contract.base = Some(base?);
            }
            // The flags of the worker apply to the rest.
            new_task::set_default_model(&mut contract, args.run.model.model.as_ref());
            let created = LocalTaskHost::create(sessions.store(), id.clone(), contract).await;
            if created.is_err() {
                new_task::remove_snapshot(directory, &id).await;
            }
            created.map_err(|error| super::host_failure(&error, &id))?;
            id
        }
    };
    console::notice(&format!("task {id}"));
    if args.run.output != OutputFormat::Text {
        console::print(&identity_line(&id)?).await?;
    }
    if args.task.is_some() {
        return super::engine::hand_over(url, &id).await;
    }
    submit(url, &sessions, &id, process_env).await
}

/// Hands over a new task to the engine, and cancels it if the engine refuses it.
#[cfg(feature = "restate")]
pub(super) async fn submit(
    url: &str,
    sessions: &Sessions,
    id: &SessionId,
    process_env: &ProcessEnv,
) -> Result<Exit, Failure> {
    let handed_over = super::engine::hand_over(url, id).await;
    if handed_over.is_err() {
        // The engine may have the task although its answer is missing. It then finds the task ended.
        let ended =
            super::signals::cancel_unstarted(sessions, id, "Restate refused the task", process_env).await;
        if let Err(failure) = ended {
            console::notice(&format!("task {id} cannot be ended: {}", failure.message()));
        }
    }
    handed_over
}

/// Rejects flags for a single session.
fn refuse(args: &RunArgs) -> Result<(), Failure> {
    args.conversation.refuse()?;
    let session = &args.session;
    let flags = [
        ("--continue, --resume and --fork", session.is_continuation() || session.fork.is_some()),
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

/// Returns the line that identifies the task for programs.
fn identity_line(id: &SessionId) -> Result<String, Failure> {
    json_line(&json!({"task": {"id": id.as_str()}}))
}

/// Shows a task that runs here to the user.
struct TaskConsole<'a> {
    sessions: &'a Sessions,
    id: &'a SessionId,
    prompter: &'a Prompter,
    format: OutputFormat,
    /// Whether the command waits for decisions.
    waits: bool,
}

impl TaskConsole<'_> {
    /// Runs the task until it has ended, and shows its inputs. The first signal stops it. Returns no outcome if the task waits
    /// for a decision and the command does not.
    async fn run(
        &self,
        mut host: LocalTaskHost,
        performer: Arc<dyn Performer>,
        interrupts: &Interrupts,
    ) -> Result<Result<Option<TaskOutcome>, TaskHostError>, Failure> {
        let (stop, inputs) = (CancellationToken::new(), host.inputs());
        let shown = host.task().clone();
        let following = async {
            let followed = self.follow(shown, inputs).await;
            if followed.is_err() {
                // The reader is gone, as with a closed pipe.
                stop.cancel();
            }
            followed
        };
        let running = async {
            let ended = match self.waits {
                true => host.run_until(performer, &stop).await.map(Some),
                false => host.run_until_gate(performer, &stop).await,
            };
            // The end of the inputs.
            let closed = host.close().await;
            ended.and_then(|ended| closed.map(|()| ended))
        };
        let stopping = async {
            interrupts.first_signal().await;
            stop.cancel();
            std::future::pending::<()>().await
        };
        tokio::select! {
            (ended, followed) = async { tokio::join!(running, following) } => followed.and(Ok(ended)),
            () = stopping => Err(Failure::silent(FailureKind::Interrupted)),
        }
    }

    /// Shows each input as it is applied, and asks the user if the task waits for a decision and a terminal is present.
    async fn follow(&self, mut task: Task, mut inputs: UnboundedReceiver<TaskInput>) -> Result<(), Failure> {
        let mut console = Console::new();
        let mut told = None;
        loop {
            let gate = task.pending().gate;
            let is_new = gate.is_some() && gate != told;
            told = gate;
            if let Some(gate) = gate.filter(|_| is_new) {
                let (id, name) = (self.id, gate_prompt::gate_name(gate));
                console::notice(&format!(
                    "the task waits for a person to decide about the {name}: `pintle task decide {id}` answers"
                ));
            }
            let is_asked = is_new && self.waits && self.prompter.is_attended();
            let input = match gate.filter(|_| is_asked) {
                // An answer from another process ends the question.
                Some(gate) => tokio::select! {
                    asked = gate_prompt::ask(self.prompter, self.sessions, self.id, &task, gate) => {
                        asked?;
                        inputs.recv().await
                    }
                    input = inputs.recv() => input,
                },
                None => inputs.recv().await,
            };
            let Some(input) = input else { return Ok(()) };
            task.apply(input.clone());
            if let TaskInput::StepFinished(result) = &input
                && let StepOutput::Baseline(baseline) = &result.output
            {
                self.warn(baseline).await?;
            }
            let text = match self.format {
                OutputFormat::Text => progress::render_input(&task, &input),
                OutputFormat::StreamJson => json_line(&input)?,
                OutputFormat::Json => continue,
            };
            console.write(&text).await?;
        }
    }

    /// Reports each check that fails on the base or has no results of single tests there, with the end of its output. A failure
    /// can be the goal of the task, or a check that no candidate can pass.
    async fn warn(&self, baseline: &Baseline) -> Result<(), Failure> {
        let blobs = self.sessions.store().blobs(self.id);
        for (name, run) in baseline.failures() {
            let lines = read_last_lines(run, blobs.as_ref()).await.or_failed("the output cannot be read")?;
            let lines: String = lines.iter().map(|line| format!("\n    {line}")).collect();
            let text = format!("check `{name}` fails before any change: it {}{lines}", run.end.describe());
            console::report(&Failure::multi_line(FailureKind::Other, &text));
        }
        for (name, problem) in &baseline.without_results {
            let run = baseline.checks.get(name).and_then(|runs| runs.first());
            let lines = match run {
                Some(run) => {
                    read_last_lines(run, blobs.as_ref()).await.or_failed("the output cannot be read")?
                }
                None => Vec::new(),
            };
            let lines: String = lines.iter().map(|line| format!("\n    {line}")).collect();
            let text = format!("check `{name}` has no results of single tests: {problem}{lines}");
            console::report(&Failure::multi_line(FailureKind::Other, &text));
        }
        Ok(())
    }
}

/// Writes the report and returns the exit status of the outcome.
async fn report_end(
    sessions: &Sessions,
    id: &SessionId,
    outcome: &TaskOutcome,
    format: OutputFormat,
    program: &str,
) -> Result<Exit, Failure> {
    print_report(sessions, id, format).await?;
    if let TaskOutcome::Done(_) = outcome {
        console::notice(&format!("`{program} task apply {id} --branch NAME` applies the change"));
    }
    Ok(exit_status(outcome))
}

/// Writes the report.
async fn print_report(sessions: &Sessions, id: &SessionId, format: OutputFormat) -> Result<(), Failure> {
    let IntactTask { task, inputs, .. } = super::read_intact(sessions, id).await?;
    let anchor = super::apply::read_anchor(sessions, id, &task).await;
    let report = TaskReport::from_task(&task).with_id(id).with_inputs(&inputs).with_anchor_patch(anchor);
    let text = match format {
        OutputFormat::Text => format!("\n{}", report.to_markdown()),
        OutputFormat::Json | OutputFormat::StreamJson => json_line(&report)?,
    };
    console::print(&text).await
}

/// Returns the exit status for the outcome of a task. The report contains the reason.
fn exit_status(outcome: &TaskOutcome) -> Exit {
    match outcome {
        TaskOutcome::Done(_) => Exit::Done,
        TaskOutcome::Limit { .. } => Exit::LimitReached,
        TaskOutcome::Aborted { .. } => Exit::Interrupted,
        // Treat an outcome unknown to this version as a failure.
        TaskOutcome::Blocked(_) | TaskOutcome::Failed { .. } | _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use pintle_workflow::task::{BlockReason, LimitKind};

    use super::*;

    #[test]
    fn unsuccessful_tasks_have_an_exit_status() {
        let cases = [
            (TaskOutcome::Blocked(BlockReason::NoCandidate), Exit::Failed),
            (TaskOutcome::Limit { limit: LimitKind::Usd, best: None }, Exit::LimitReached),
            (TaskOutcome::Aborted { reason: "no".to_owned() }, Exit::Interrupted),
        ];
        for (outcome, exit) in cases {
            assert_eq!(exit_status(&outcome), exit, "{outcome:?}");
        }
    }
}
