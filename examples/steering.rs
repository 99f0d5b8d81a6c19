//! Steering from a second task: a word to the model while it works, one for afterwards, and the brake.
//!
//! A `SessionHandle` reaches a session from anywhere: from another task, a signal handler, a button. Nothing that it
//! sends interrupts a tool or a model call, except `interrupt` and `abort`.

use std::path::Path;
use std::sync::Arc;

use pintle_agent::{EventKind, Events, ProviderProfile, Session, SessionHandle};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::OpenAi;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Watches the session with a subscription of its own and has its say whenever a tool begins.
async fn oversee(
    mut events: Events,
    handle: SessionHandle,
    folder: &Path,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut tools = 0;
    while let Some(event) = events.next().await {
        let EventKind::ToolCallStart { .. } = event.kind else { continue };
        tools += 1;
        if tools == 1 {
            // The model reads this after the round of calls that runs now, before it says anything else.
            handle.steer("Leave the public API alone.")?;
            // This is handled when the model is done with the first task, as if it were submitted then.
            handle.follow_up("Now write the change log.")?;
            // Lets the command end that the first tool runs, which stands for tests that take minutes.
            std::fs::write(folder.join("told"), "")?;
        } else {
            // Stops the turn and the command that it runs. The session stays, and every call has its answer.
            handle.interrupt()?;
        }
    }
    Ok(())
}

async fn watch(session: &Session) -> Result<(), Box<dyn std::error::Error>> {
    let mut run = session.submit("Rename the module.");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::UserInput { content } => println!("user       {content}"),
            EventKind::SteeringInjected { content } => println!("steering   {content}"),
            EventKind::AssistantTextEnd { text, .. } => println!("assistant  {text}"),
            EventKind::ToolCallStart { arguments, .. } => println!("call       {arguments}"),
            EventKind::ToolCallEnd { error: Some(error), .. } => println!("stopped    {error:?}"),
            _ => {}
        }
    }
    println!("outcome    {:?}, the session is {:?}", run.await?.status, session.state());
    Ok(())
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The model is a script, so that this runs offline. Yours comes from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAi::builder("any-key").base_url(server.base_url(Dialect::OpenAiResponses)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let folder = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?;
    let session =
        Session::builder(client, ProviderProfile::openai("gpt-5.2-codex"), Arc::new(env)).build()?;

    // Both sides run in this function, so that neither outlives it; `tokio::spawn` does as well.
    let overseer = oversee(session.events(), session.handle(), folder.path());
    let working = async {
        watch(&session).await?;
        // Closing ends the overseer's subscription too: its last event is `SessionEnd`.
        session.close().await;
        Ok(())
    };
    tokio::try_join!(overseer, working)?;
    server.shutdown().await;
    Ok(())
}

/// What the model says, and what it must have been told before it says it.
const SCRIPT: &str = r#"
name = "rename"

[[turn]]
text = "I rename it and run the tests."
call = [{ tool = "shell", arguments = { command = "until [ -e told ]; do sleep 0.02; done" } }]

[[turn]]
expect = [{ request_contains = "Leave the public API alone." }]
text = "Renamed inside only: the public name is an alias."

[[turn]]
expect = [{ request_contains = "Now write the change log." }]
text = "I look at what has changed."
call = [{ tool = "shell", arguments = { command = "sleep 600" } }]
"#;
