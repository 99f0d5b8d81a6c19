//! Custom execution environment: every command goes through a launcher.
//!
//! Tools access files and processes only through an `ExecutionEnvironment`, so the application chooses where they work:
//! locally, in a container, on a remote host, or anywhere else. The environment of this example is implemented in
//! `crates/env/examples/own_environment.rs`, with the contract that it fulfils. `docs/guide/environment.md` is the guide to
//! writing one.

use std::sync::Arc;

use pintle_agent::{EventKind, ProviderProfile, Session};
use pintle_env::ReadOnlyEnvironment;
use pintle_llm::Client;
use pintle_providers::Gemini;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

use own_environment::LaunchingEnvironment;

#[path = "../crates/env/examples/own_environment.rs"]
#[expect(dead_code, unreachable_pub, reason = "a separate program, whose `main` is not called here")]
mod own_environment;

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = Gemini::builder("any-key").with_base_url(server.base_url(Dialect::Gemini)).build()?;
    let client = Client::builder().provider(provider).build()?;

    // A launcher is any program that runs another one: `env` here, or `kubectl exec pod --` or `nsenter`.
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("motd"), "Welcome to the ship.\n")?;
    let launched = LaunchingEnvironment::new(
        ["env", "SHIP=Beagle"],
        &directory.path().canonicalize()?,
        std::env::vars_os(),
    )?;

    // Wrappers work with any environment, including custom ones. This one prevents file changes by tools, but not by
    // commands.
    let read_only = ReadOnlyEnvironment::new(Arc::new(launched)).allow_commands();

    // The session initialises the environment on first use and cleans it up when closed.
    let profile = ProviderProfile::gemini("gemini-3-flash-preview");
    let session = Session::builder(client, profile, read_only).build()?;

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

/// Responses of the model, each with what the request must contain.
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
