//! Custom environment: a wrapper that sets a variable for every command, in a read-only wrapper.
//!
//! Tools access files and processes only through an `ExecutionEnvironment`, so the application chooses where they work. A
//! `DelegatingEnvironment` forwards each operation that it does not override. `docs/guide/environment.md` is the guide to
//! environments that are not wrappers, such as a remote host.

use std::sync::Arc;

use async_trait::async_trait;
use pintle_agent::{EventKind, ProviderProfile, Session};
use pintle_env::{
    Command, DelegatingEnvironment, EnvError, ExecRequest, ExecResult, ExecutionEnvironment,
    LocalEnvironment, Process, ReadOnlyEnvironment,
};
use pintle_llm::Client;
use pintle_providers::Gemini;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

/// Runs commands with the variable `SHIP`.
#[derive(Debug)]
struct ShipEnvironment(Arc<dyn ExecutionEnvironment>);

#[async_trait]
impl DelegatingEnvironment for ShipEnvironment {
    fn inner(&self) -> &Arc<dyn ExecutionEnvironment> {
        &self.0
    }

    fn wrap(&self, inner: Arc<dyn ExecutionEnvironment>) -> Arc<dyn ExecutionEnvironment> {
        Arc::new(Self(inner))
    }

    // Both operations run commands.
    async fn spawn(&self, command: Command) -> Result<Box<dyn Process>, EnvError> {
        self.0.spawn(command.with_env("SHIP", "Beagle")).await
    }

    async fn exec_command(&self, request: ExecRequest) -> Result<ExecResult, EnvError> {
        self.0.exec_command(request.with_env("SHIP", "Beagle")).await
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = Gemini::builder("any-key").with_base_url(server.base_url(Dialect::Gemini)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("motd"), "Welcome to the ship.\n")?;
    let local = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let ship = ShipEnvironment(Arc::new(local));

    // Wrappers work with any environment, including custom ones. This one prevents file changes by tools, but not by
    // commands.
    let read_only = ReadOnlyEnvironment::new(Arc::new(ship)).allow_commands();

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
const SCRIPT: &str = include_str!("scripts/custom_environment.toml");
