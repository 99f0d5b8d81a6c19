//! A session whose tools work somewhere else: every command goes through a launcher.
//!
//! Tools touch the world through an `ExecutionEnvironment` and in no other way, so the place where they work is the
//! host's choice: this machine, a container, another host, or a place that only you know. The environment of this
//! example stands, whole and with the contract that it keeps, in `crates/env/examples/own_environment.rs`; the guide
//! to writing one is `docs/environments.md`.

use std::sync::Arc;

use pintle_agent::{EventKind, ProviderProfile, Session};
use pintle_env::ReadOnly;
use pintle_llm::Client;
use pintle_providers::Gemini;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

use own_environment::Launched;

#[path = "../crates/env/examples/own_environment.rs"]
#[expect(dead_code, unreachable_pub, reason = "a program of its own, with a `main` that nobody calls here")]
mod own_environment;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The model is a script, so that this runs offline. Yours comes from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = Gemini::builder("any-key").base_url(server.base_url(Dialect::Gemini)).build()?;
    let client = Client::builder().provider(provider).build()?;

    // A launcher is any program that runs another one: here `env`, elsewhere `kubectl exec pod --` or `nsenter`.
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("motd"), "Welcome to the ship.\n")?;
    let place = Launched::new(["env", "SHIP=Beagle"], &folder.path().canonicalize()?, std::env::vars_os())?;

    // Wrappers go around any environment, yours too. In this one tools change no file; commands are trusted.
    let read_only = ReadOnly::new(Arc::new(place)).allow_commands();

    // The session initialises the environment when it needs it, and cleans it up when it is closed.
    let profile = ProviderProfile::gemini("gemini-3-flash-preview");
    let session = Session::builder(client, profile, Arc::new(read_only)).build()?;

    let mut run = session.submit("Which ship is this? Rename it to Fram.");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ToolCallStart { tool_name, arguments, .. } => {
                println!("call    {tool_name} {arguments}")
            }
            EventKind::ToolCallEnd { error: Some(error), .. } => println!("failed  {error:?}"),
            EventKind::ToolCallEnd { output, error: None, .. } => {
                println!("result  {}", output.to_text_lossy()?.lines().next().unwrap_or_default());
            }
            _ => {}
        }
    }
    println!("answer  {}", run.await?.text);
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// What the model says, and what it must have been told before it says it.
const SCRIPT: &str = r#"
name = "ship"

[[turn]]
call = [{ tool = "read_file", arguments = { file_path = "motd" } }]

[[turn]]
expect = [{ call = 0, contains = "Welcome to the ship." }]
call = [{ tool = "shell", arguments = { command = "echo \"this is the $SHIP\"" } }]

[[turn]]
expect = [{ call = 0, contains = "this is the Beagle" }]
call = [{ tool = "write_file", arguments = { file_path = "motd", content = "Welcome to the Fram.\n" } }]

[[turn]]
expect = [{ call = 0, is_error = true }]
text = "This is the Beagle. I may not rename it: nothing here can be changed."
"#;
