//! `pintle task logs`: the output of the commands that judge a task.

use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::process_env::ProcessEnv;
use pintle_host::sanitize::{json_line, sanitize};
use pintle_host::sessions::Sessions;
use pintle_store::Blobs;
use pintle_tui::console;
use pintle_workflow::repository::read_blob;
use pintle_workflow::task::{StepResult, TaskInput};
use pintle_workflow::{CommandRun, IntactTask, RunPurpose, read_last_lines};
use serde_json::{Value, json};

use super::{find, read_intact};
use crate::arguments::{ListFormat, LogsTaskArgs};
use crate::exit::Exit;

/// A run of a judged command, with its output.
struct LoggedRun {
    step: String,
    purpose: RunPurpose,
    /// Number among the runs of the step with this purpose, from 1, and their count.
    number: usize,
    count: usize,
    end: String,
    millis: u64,
    bytes: u64,
    output: Vec<String>,
}

pub(super) async fn logs(args: &LogsTaskArgs, process_env: &ProcessEnv) -> Result<Exit, Failure> {
    let sessions = Sessions::open(process_env).await?;
    let id = find(&sessions, &args.task.id).await?;
    let IntactTask { inputs, damage, .. } = read_intact(&sessions, &id).await?;
    let blobs = sessions.store().blobs(&id);
    let (mut logged, mut known) = (Vec::new(), Vec::new());
    for recorded in &inputs {
        let TaskInput::StepFinished(result) = &recorded.input else { continue };
        let step = result.step.to_string();
        let is_selected = args.step.as_ref().is_none_or(|selected| *selected == step);
        if is_selected {
            logged.extend(read_runs(result, args.step.is_some(), blobs.as_ref()).await?);
        }
        known.push(step);
    }
    if let Some(step) = args.step.as_ref().filter(|step| !known.contains(step)) {
        let hint = format!("its finished steps are {}", known.join(", "));
        return Err(Failure::usage(format!("task {id} has no finished step `{step}`")).with_hint(&hint));
    }
    let text = match args.output {
        ListFormat::Text if logged.is_empty() => "no command has run\n".to_owned(),
        ListFormat::Text => logged.iter().map(render_run).collect(),
        ListFormat::Json => json_line(&Value::Array(logged.iter().map(describe_run).collect::<Vec<_>>()))?,
    };
    console::print(&text).await?;
    Ok(if damage.is_some() { Exit::Failed } else { Exit::Done })
}

/// Reads the output of the runs of a step: all of it, or the last lines.
async fn read_runs(
    result: &StepResult,
    is_complete: bool,
    blobs: &dyn Blobs,
) -> Result<Vec<LoggedRun>, Failure> {
    let mut logged = Vec::new();
    let runs = result.output.command_runs();
    for (index, (purpose, run)) in runs.iter().enumerate() {
        let count_same = |length: usize| runs.iter().take(length).filter(|(of, _)| of == purpose).count();
        let (number, count, purpose) = (count_same(index + 1), count_same(runs.len()), purpose.clone());
        let output = match is_complete {
            true => read_lines(run, blobs).await?,
            false => read_last_lines(run, blobs).await.or_failed("the output cannot be read")?,
        };
        let bytes = run.output.as_ref().map_or(0, |output| output.bytes);
        let (step, end, millis) = (result.step.to_string(), run.end.describe(), run.millis);
        logged.push(LoggedRun { step, purpose, number, count, end, millis, bytes, output });
    }
    Ok(logged)
}

async fn read_lines(run: &CommandRun, blobs: &dyn Blobs) -> Result<Vec<String>, Failure> {
    let Some(output) = &run.output else { return Ok(Vec::new()) };
    let bytes = read_blob(output, blobs).await.or_failed("the output cannot be read")?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
}

fn render_run(run: &LoggedRun) -> String {
    let LoggedRun { step, purpose, number, count, end, millis, bytes, output } = run;
    let number = if *count > 1 { format!("run {number} of {count}, ") } else { String::new() };
    let head = format!("{step}: {purpose} {end} ({number}{millis} ms, {bytes} bytes of output)");
    let lines = output.iter().map(|line| format!("    {}\n", sanitize(line)));
    format!("{}\n{}", sanitize(&head), lines.collect::<String>())
}

fn describe_run(run: &LoggedRun) -> Value {
    let LoggedRun { step, purpose, number, count, end, millis, bytes, output } = run;
    json!({
        "step": step, "command": purpose.to_string(), "run": number, "runs": count, "end": end,
        "millis": millis, "bytes": bytes, "output": output,
    })
}
