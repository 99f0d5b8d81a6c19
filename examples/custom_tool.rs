//! Custom tool: the agent looks up tickets in the application's tracker.
//!
//! A tool is an input type, a description for the model and an async function. The session derives the schema from the
//! type, validates every call against it, runs the call, truncates its output and emits events.

use std::collections::BTreeMap;

use pintle_agent::{EventKind, ProviderProfile, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

/// State of the tool. A real one would hold a client of the tracker.
struct TicketLookup {
    open_tickets: BTreeMap<u32, &'static str>,
}

/// Input of the tool. The doc comments of the fields become descriptions for the model.
#[derive(Deserialize, JsonSchema)]
struct Ticket {
    /// The number of the ticket, without `#`.
    number: u32,
}

impl Tool for TicketLookup {
    type Input = Ticket;

    fn name(&self) -> &str {
        "look_up_ticket"
    }

    fn description(&self) -> &str {
        "Gives the text of an open ticket of this project."
    }

    // Read-only calls run in parallel, and gates that guard changes let them pass.
    fn effect(&self) -> Effect {
        Effect::Read
    }

    // The context has the session's environment and a cancellation token. This tool needs neither: dropping its future is
    // enough to cancel it.
    async fn call(&self, input: Ticket, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        match self.open_tickets.get(&input.number) {
            Some(text) => Ok(ToolOutput::new(*text)),
            // The error is for the model, which can correct its call. The turn continues.
            None => {
                let open: Vec<u32> = self.open_tickets.keys().copied().collect();
                let message =
                    format!("There is no open ticket {}; the open ones are {open:?}.", input.number);
                Err(ToolError::new(ToolErrorKind::NotFound, message))
            }
        }
    }
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;

    // The profile has the tools that its models were trained on. Add yours to them.
    let open_tickets = BTreeMap::from([(7, "Dates are shown as 2026-02-30."), (9, "The logo is too small.")]);
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(TicketLookup { open_tickets })?;

    let directory = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    let session = Session::builder(client, profile, env).build()?;

    let mut run = session.submit("What is ticket 70 about?");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ToolCallStart { tool_name, arguments, .. } => {
                println!("call    {tool_name} {arguments}")
            }
            EventKind::ToolCallEnd { output, .. } => println!("result  {}", output.to_text_lossy()?),
            _ => {}
        }
    }
    println!("answer  {}", run.await?.text);
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/custom_tool.toml");
