//! The smoke test of a session (loop specification, section 9.13).

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{EventKind, Outcome, OutcomeStatus, Session, SessionEvent};
use pintle_env::LocalEnvironment;
use pintle_testkit::Dialect;
use tempfile::TempDir;

use crate::check::{Checked, during, ensure};
use crate::scripts;
use crate::target::Target;

/// Tools that run commands, in any toolset.
const SHELLS: [&str; 4] = ["shell", "exec_command", "Bash", "run_shell_command"];

/// Tools that spawn subagents, in any toolset.
const SPAWNERS: [&str; 3] = ["spawn_agent", "Task", "invoke_agent"];

/// Size of the large file, in characters.
const LARGE: usize = 100_000;

/// Runs the steps in one session and returns their names.
pub(crate) async fn run(target: &Target) -> Checked<Vec<&'static str>> {
    let test_client = target.test_client(scripts::session(target.dialect)).await?;
    let directory = during("making a directory", TempDir::new())?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os());
    let env = Arc::new(during("working in the directory", env)?);
    let builder =
        Session::builder(test_client.client.clone(), target.profile(), env).with_config(target.config());
    let session = during("building the session", builder.build())?;
    let checked = steps(&session, target.dialect, directory.path()).await;
    session.close().await;
    checked
}

async fn steps(session: &Session, dialect: Dialect, directory: &Path) -> Checked<Vec<&'static str>> {
    let file = |name: &str| during("reading a file", std::fs::read_to_string(directory.join(name)));

    run_input(session, "Create a file called hello.py that prints 'Hello World'", None).await?;
    ensure(file("hello.py")?.contains("Hello"), "creation: hello.py does not say Hello")?;

    run_input(session, "Read hello.py and add a second print statement that says 'Goodbye'", None).await?;
    let content = file("hello.py")?;
    ensure(
        content.contains("Hello") && content.contains("Goodbye"),
        format!("edit: hello.py is {content:?}"),
    )?;

    let events = run_input(session, "Run hello.py and show the output", None).await?;
    ensure(calls(&events, &SHELLS) > 0, "shell: no command was run")?;
    ensure(outputs(&events).any(|output| output.contains("Goodbye")), "shell: hello.py did not say Goodbye")?;

    let written = std::fs::write(directory.join("big.txt"), "x".repeat(LARGE));
    during("writing a file", written)?;
    let events = run_input(session, "Read big.txt", None).await?;
    let whole =
        outputs(&events).any(|output| output.matches('x').count() >= LARGE && !output.contains("[WARNING"));
    ensure(whole, "truncation: no event has the whole output")?;
    ensure(was_truncated(session), "truncation: no result for the model has the marker")?;

    let steering = "Actually, just create a single /health endpoint for now";
    let events =
        run_input(session, "Create a Flask web application with multiple routes", Some(steering)).await?;
    let injected = |event: &SessionEvent| matches!(&event.kind, EventKind::SteeringInjected { content, .. } if content == steering);
    ensure(events.iter().any(injected), "steering: it was never injected")?;

    let task = "Spawn a subagent to write tests for hello.py, then review its output";
    let events = run_input(session, task, None).await?;
    ensure(calls(&events, &SPAWNERS) > 0, "subagent: none was spawned")?;

    // Anthropic's default is two minutes, longer than the command takes.
    let limit =
        if dialect == Dialect::AnthropicMessages { "a timeout of 10 seconds" } else { "the default timeout" };
    let events = run_input(session, &format!("Run 'sleep 30' with {limit}"), None).await?;
    ensure(
        outputs(&events).any(|output| output.contains("timed out after")),
        "timeout: no command timed out",
    )?;
    Ok(vec!["creation", "edit", "shell", "truncation", "steering", "subagent", "timeout"])
}

/// Submits an input, optionally with immediate steering. Returns its events.
async fn run_input(session: &Session, text: &str, steering: Option<&str>) -> Checked<Vec<SessionEvent>> {
    let mut run = session.submit(text);
    if let Some(steering) = steering {
        during("steering", session.handle().steer(steering).await)?;
    }
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    let Outcome { status, error, .. } =
        during(text, run.await.or_else(pintle_agent::RunError::into_outcome))?;
    let well = matches!(status, OutcomeStatus::Completed | OutcomeStatus::AwaitingInput);
    ensure(well, format!("`{text}` ended as {status:?}: {error:?}"))?;
    Ok(events)
}

fn calls(events: &[SessionEvent], tools: &[&str]) -> usize {
    let is_one = |event: &&SessionEvent| matches!(&event.kind, EventKind::ToolCallStart { tool_name, .. } if tools.contains(&tool_name.as_str()));
    events.iter().filter(is_one).count()
}

/// Returns the complete outputs of the calls.
fn outputs(events: &[SessionEvent]) -> impl Iterator<Item = String> {
    events.iter().filter_map(|event| match &event.kind {
        EventKind::ToolCallEnd { output, .. } => output.to_text_lossy().ok(),
        _ => None,
    })
}

fn was_truncated(session: &Session) -> bool {
    let history = session.history();
    let mut results = history.iter().flat_map(|turn| turn.item.results());
    results.any(|result| result.text().contains("[WARNING: Tool output was truncated."))
}
