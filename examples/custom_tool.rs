//! A tool of the host's own: the agent looks tickets up in the host's tracker.
//!
//! A tool is a type for its input, some words for the model and one async function. The session makes the schema from
//! the type, checks every call against it, runs the call, cuts what it gives to size and tells the host of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_agent::{EventKind, ProviderProfile, Session};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolErrorKind, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

/// What the tool needs of its host. A real one would hold a client of the tracker.
struct TicketLookup {
    open_tickets: BTreeMap<u32, &'static str>,
}

/// What the model fills in. The comments of the fields are what the model reads about them.
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

    // It only looks, so several calls of it run at the same time, and a gate that guards changes lets it pass.
    fn effect(&self) -> Effect {
        Effect::Read
    }

    // The context has the environment of the session and a token that fires when the call should stop. This tool needs
    // neither: its future is dropped when the turn is stopped, and that is enough.
    async fn call(&self, input: Ticket, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        match self.open_tickets.get(&input.number) {
            Some(text) => Ok(ToolOutput::new(*text)),
            // A failure is written for the model: it says what to do better, and the turn goes on.
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
    // The model is a script, so that this runs offline. Yours comes from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;

    // A profile has the tools that its models were trained on; yours stand beside them.
    let open_tickets = BTreeMap::from([(7, "Dates are shown as 2026-02-30."), (9, "The logo is too small.")]);
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(TicketLookup { open_tickets })?;

    let folder = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?;
    let session = Session::builder(client, profile, Arc::new(env)).build()?;

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

/// What the model says, and what it must have been told before it says it.
const SCRIPT: &str = r#"
name = "tickets"

[[turn]]
call = [{ tool = "look_up_ticket", arguments = { number = 70 } }]

[[turn]]
expect = [{ call = 0, is_error = true, contains = "[7, 9]" }]
call = [{ tool = "look_up_ticket", arguments = { number = 7 } }]

[[turn]]
expect = [{ call = 0, is_error = false, contains = "2026-02-30" }]
text = "There is no ticket 70. You may mean 7: a day is shown that February does not have."
"#;
