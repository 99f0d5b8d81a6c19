//! `pintle task`: tasks that end with evidence.

mod add;
mod apply;
mod draft;
#[cfg(feature = "restate")]
pub(super) mod engine;
mod gate_prompt;
mod logs;
mod new_task;
mod plan;
mod progress;
mod push;
mod run;
mod show;
mod signals;

use std::path::Path;

use pintle_agent::SessionId;
use pintle_env::shell_word;
use pintle_host::boxed_future::box_future;
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::{ProcessEnv, STATE_VARIABLE};
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::{Sessions, find_by_prefix};
use pintle_store::{Filter, Page, StoreError, Summary};
use pintle_tui::console;
use pintle_workflow::contract::ContractError;
use pintle_workflow::report::TaskReport;
use pintle_workflow::task::{STATE_UNDER_WAY, STATE_WAITING, Task, WorkCost};
use pintle_workflow::{IntactTask, KIND, KIND_TASK, TaskHostError, read_intact_task, read_task};
use serde_json::{Value, json};

use crate::arguments::{ListFormat, ListTasksArgs, ReportTaskArgs, TaskArgs, TaskCommand, TaskReportFormat};
use crate::exit::Exit;

/// Runs `pintle task`.
pub(crate) async fn task(args: TaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    match args.command {
        TaskCommand::Run(args) => box_future(|| run::run(*args, process_env)).await,
        TaskCommand::Add(args) => box_future(|| add::add(*args, process_env)).await,
        TaskCommand::List(args) => box_future(|| list(&args, process_env)).await,
        TaskCommand::Show(args) => box_future(|| show::show(&args, process_env)).await,
        TaskCommand::Report(args) => box_future(|| report(&args, process_env)).await,
        TaskCommand::Logs(args) => box_future(|| logs::logs(&args, process_env)).await,
        TaskCommand::Plan(args) => box_future(|| plan::plan(&args, process_env)).await,
        TaskCommand::Steer(args) => box_future(|| signals::steer(args, process_env)).await,
        TaskCommand::Decide(args) => box_future(|| signals::decide(args, process_env)).await,
        TaskCommand::Cancel(args) => box_future(|| signals::cancel(args, process_env)).await,
        TaskCommand::Apply(args) => box_future(|| apply::apply(args, process_env)).await,
    }
}

/// Returns the task whose id starts with `prefix`.
async fn find(sessions: &Sessions, prefix: &str) -> Result<SessionId, Failure> {
    let all = summaries(sessions).await?;
    Ok(find_by_prefix(prefix, all, "task", "`pintle task list` shows all")?.id)
}

async fn summaries(sessions: &Sessions) -> Result<Vec<Summary>, Failure> {
    let filter = Filter::default().with_property(KIND, KIND_TASK);
    sessions.store().list(&filter, &Page::default()).await.or_failed("cannot list the tasks")
}

async fn read(sessions: &Sessions, id: &SessionId) -> Result<Task, Failure> {
    match read_task(sessions.store(), id).await {
        Ok(task) => Ok(task),
        Err(error) => Err(open_failure(sessions, &error, id).await),
    }
}

/// Reads a task up to the first damaged line of its journal, with a notice about the damage.
async fn read_intact(sessions: &Sessions, id: &SessionId) -> Result<IntactTask, Failure> {
    let intact = read_intact_task(sessions.store(), id).await.map_err(|error| host_failure(&error, id))?;
    if let Some(damage) = &intact.damage {
        console::notice(&format!("{damage}; everything from there on is left out"));
    }
    Ok(intact)
}

/// Returns the start of the commands in hints. A separate state directory is part of it, so that the commands find the task.
fn shown_program(process_env: &ProcessEnv) -> String {
    match process_env.variable(STATE_VARIABLE) {
        Some(state) => format!("{STATE_VARIABLE}={} pintle", shell_word(&state)),
        None => "pintle".to_owned(),
    }
}

/// Returns costs in parentheses. Empty if no model was called.
fn cost_note(spent: &WorkCost) -> String {
    if spent.has_calls() {
        format!("  ({}, {} tokens)", spent.dollars(), spent.tokens)
    } else {
        String::new()
    }
}

/// Returns the failure of a contract, which a file may contain.
fn contract_failure(error: &ContractError, file: Option<&Path>) -> Failure {
    Failure::usage(match file {
        Some(path) => format!("{}: {error}", path.display()),
        None => error.to_string(),
    })
}

fn host_failure(error: &TaskHostError, id: &SessionId) -> Failure {
    if let TaskHostError::Contract(error) = error {
        return contract_failure(error, None);
    }
    if let TaskHostError::Store(StoreError::InUse { holder, .. }) = error {
        return Failure::failed(format!("task {id} is in use by {holder}"))
            .with_hint(&format!("`pintle task show {id}` shows its status"));
    }
    Failure::failed(format!("cannot use task {id}")).caused_by(error)
}

/// Returns the failure of opening a task, with the command that shows the part before the damage, if that part exists.
async fn open_failure(sessions: &Sessions, error: &TaskHostError, id: &SessionId) -> Failure {
    let failure = host_failure(error, id);
    let is_damaged = matches!(error, TaskHostError::Store(error) if error.is_damage());
    if !is_damaged || read_intact_task(sessions.store(), id).await.is_err() {
        return failure;
    }
    failure.with_hint(&format!("`pintle task report {id}` shows the task before the damage"))
}

async fn list(args: &ListTasksArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let (mut rows, mut text, mut attempts) = (Vec::new(), String::new(), 0_u64);
    for summary in summaries(&sessions).await? {
        let id = &summary.id;
        // One that cannot be read is not hidden.
        let runs = sessions.is_live(id).await;
        let found = read_intact_task(sessions.store(), id).await;
        if !args.all && found.as_ref().is_ok_and(|intact| is_attempt(&intact.task, process_env)) {
            attempts += 1;
            continue;
        }
        let (state, damage, spent) = match found {
            Ok(intact) => {
                let state = intact.state(runs);
                let IntactTask { task, inputs, damage, .. } = intact;
                let spent = (runs || !inputs.is_empty() || damage.is_some()).then(|| task.spent().clone());
                (state, damage, spent)
            }
            Err(_) => ("cannot be read", None, None),
        };
        let running = describe_process(&sessions, id, state, runs).await;
        let damaged = if damage.is_some() { ", damaged" } else { "" };
        let cost = spent.as_ref().map(cost_note).unwrap_or_default();
        text.push_str(&format!("{id}  {state}{running}{damaged}  {}{cost}\n", sanitize(&summary.title)));
        rows.push(json!({
            "id": id.as_str(), "title": summary.title, "state": state, "running": runs,
            "damaged": damage.is_some(), "spent": spent,
        }));
    }
    if rows.is_empty() {
        text.push_str("no tasks\n");
    }
    let text = match args.output {
        ListFormat::Text => text,
        ListFormat::Json => json_line(&Value::Array(rows))?,
    };
    console::print(&text).await?;
    if attempts > 0 {
        let attempts = pintle_tui::render::plural(attempts, "task");
        console::notice(&format!("{attempts} of `pintle eval` left out; `--all` lists them"));
    }
    Ok(Exit::Done)
}

/// Returns whether a process has the task open, as an addition to its state. Empty for a state that needs no process.
async fn describe_process(sessions: &Sessions, id: &SessionId, state: &str, runs: bool) -> &'static str {
    if runs {
        return ", running";
    }
    if state == STATE_UNDER_WAY {
        return ", interrupted";
    }
    // Signals stay in the inbox until a process reads them.
    let has_input = state == STATE_WAITING && sessions.store().has_posted(id).await.unwrap_or(false);
    if has_input { ", with unread input" } else { "" }
}

/// Returns whether a task is an attempt of `pintle eval`, whose repository is in the state directory.
fn is_attempt(task: &Task, process_env: &ProcessEnv) -> bool {
    let (Some(base), Ok(state)) = (&task.contract().base, Sessions::directory(process_env)) else {
        return false;
    };
    let attempts = process_env.real_path(&state).join("worktrees/eval-");
    base.repository.starts_with(&attempts.display().to_string())
}

async fn report(args: &ReportTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    if args.instance.is_some() && !matches!(args.output, TaskReportFormat::Prediction) {
        return Err(Failure::usage(
            "--instance: expected `--output prediction`, since only a prediction has an instance",
        ));
    }
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    let IntactTask { task, inputs, damage, .. } = read_intact(&sessions, &id).await?;
    let report = TaskReport::from_task(&task).with_damage(damage.as_ref()).with_id(&id).with_inputs(&inputs);
    let report = report.with_anchor_patch(apply::read_anchor(&sessions, &id, &task).await);
    let text = match args.output {
        TaskReportFormat::Markdown => report.to_markdown(),
        TaskReportFormat::Html => report.to_html(&apply::read_diffs(&sessions, &id, &task).await?, &inputs),
        TaskReportFormat::Json => {
            let text = report.to_json().or_failed("the report cannot be written as JSON")?;
            format!("{text}\n")
        }
        TaskReportFormat::Prediction => {
            let change = apply::read_change(&sessions, &id, &task, None).await?;
            let model = task.contract().candidate_plan(change.candidate).model;
            let model = model.unwrap_or_else(|| "pintle".to_owned());
            // The tests of an anchor are ours; a benchmark has its own.
            json_line(&json!({
                "instance_id": args.instance.clone().unwrap_or_else(|| id.to_string()),
                "model_name_or_path": model,
                "model_patch": String::from_utf8_lossy(&change.patch),
            }))?
        }
    };
    console::print(&text).await?;
    // A prediction is complete: it is the change that reached the goal.
    let is_prediction = matches!(args.output, TaskReportFormat::Prediction);
    Ok(if damage.is_some() && !is_prediction { Exit::Failed } else { Exit::Done })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use pintle_store::Holder;

    use super::*;

    #[test]
    fn hints_name_a_separate_state_directory() {
        for (variables, expected) in [
            (&[("HOME", "/u")][..], "pintle"),
            (&[(STATE_VARIABLE, "/tmp/a b")], "PINTLE_STATE_DIR='/tmp/a b' pintle"),
        ] {
            let process_env =
                ProcessEnv::from_variables(variables.iter().map(|(name, value)| (*name, OsStr::new(*value))));
            assert_eq!(shown_program(&process_env), expected);
        }
    }

    #[test]
    fn a_task_of_another_process_names_it() {
        let id = SessionId::new("t-1");
        let in_use = StoreError::InUse { session: id.clone(), holder: Holder::new("host", 7) };
        let failure = host_failure(&in_use.into(), &id);
        assert_eq!(
            failure.message(),
            "task t-1 is in use by process 7 on host; `pintle task show t-1` shows its status"
        );
    }
}
