//! Steering from a second task: a message to the running model, a follow-up, and an interrupt.
//!
//! A `SessionHandle` controls a session from anywhere: another task, a signal handler, a button. Only `interrupt` and
//! `abort` cancel tools and model calls.

use std::path::Path;

use pintle_agent::{EventKind, Events, ProviderProfile, Session, SessionHandle};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::OpenAi;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Watches the session with its own subscription and acts whenever a tool starts.
async fn supervise(
    mut events: Events,
    handle: SessionHandle,
    directory: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut tools = 0;
    while let Some(event) = events.next().await {
        let EventKind::ToolCallStart { .. } = event.kind else { continue };
        tools += 1;
        if tools == 1 {
            // The model reads this after the current round of calls, before its next response.
            handle.steer("Leave the public API alone.").await?;
            // This is processed after the first task, as if it were submitted then.
            handle.follow_up("Now write the change log.").await?;
            // Lets the first tool's command finish. It simulates a long test run.
            std::fs::write(directory.join("steered"), "")?;
        } else {
            // Stops the turn and its running command. The session stays usable, and every call gets a result.
            handle.stop_turn()?;
        }
    }
    Ok(())
}

async fn watch(session: &Session) -> Result<(), Box<dyn std::error::Error>> {
    let mut run = session.submit("Rename the module.");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::UserInput { content, .. } => println!("user       {content}"),
            EventKind::SteeringInjected { content, .. } => println!("steering   {content}"),
            EventKind::AssistantTextEnd { text, .. } => println!("assistant  {text}"),
            EventKind::ToolCallStart { arguments, .. } => println!("call       {arguments}"),
            EventKind::ToolCallEnd { error: Some(error), .. } => println!("stopped    {error:?}"),
            _ => {}
        }
    }
    println!("outcome    {:?}, session {:?}", run.await?.status, session.state());
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        OpenAi::builder("any-key").with_base_url(server.base_url(Dialect::OpenAiResponses)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let directory = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let session = Session::builder(client, ProviderProfile::openai("gpt-5.2-codex"), env).build()?;

    // Both futures run within this function, so neither outlives it. `tokio::spawn` works as well.
    let supervisor = supervise(session.events(), session.handle(), directory.path());
    let working = async {
        watch(&session).await?;
        // Closing also ends the supervisor's subscription, with `SessionEnd` as its last event.
        session.close().await;
        Ok(())
    };
    tokio::try_join!(supervisor, working)?;
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = r#"
name = "rename"

[[turn]]
text = "I rename it and run the tests."
call = [{ tool = "shell", arguments = { command = "until [ -e steered ]; do sleep 0.02; done" } }]

[[turn]]
expect = [{ request_contains = "Leave the public API alone." }]
text = "Renamed inside only: the public name is an alias."

[[turn]]
expect = [{ request_contains = "Now write the change log." }]
text = "I look at what has changed."
call = [{ tool = "shell", arguments = { command = "sleep 600" } }]
"#;
