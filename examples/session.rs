//! Session: a custom tool, a call that waits for approval, and messages and a stop while the model works.
//!
//! A `SessionHandle` controls a session from anywhere: another task, a signal handler, a button. Only `stop_turn` and `close`
//! cancel tools and model calls.

use std::sync::Arc;

use pintle_agent::{Decision, EventKind, ExecutionEnvironment, ProviderProfile, Session, approver_channel};
use pintle_env::LocalEnvironment;
use pintle_governance::{Mode, Policy, PolicyGate, Rules};
use pintle_llm::Client;
use pintle_providers::OpenAiCompatible;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::{Effect, tool_fn};

/// Input of the tool. The doc comments of the fields become descriptions for the model.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Ticket {
    /// The number of the ticket, without `#`.
    number: u32,
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider = OpenAiCompatible::builder(server.base_url(Dialect::ChatCompletions)).build()?;
    let client = Client::builder().provider(provider).build()?;

    let directory = tempfile::tempdir()?;
    let workspace = directory.path().canonicalize()?;
    std::fs::write(workspace.join("7.txt"), "Dates are shown as 2026-02-30.")?;
    let tickets = workspace.clone();
    // Any error becomes a result for the model, which can correct its call.
    let tool = tool_fn("look_up_ticket", "Text of a ticket.", move |ticket: Ticket, _| {
        let path = tickets.join(format!("{}.txt", ticket.number));
        async move { std::fs::read_to_string(path) }
    });
    let profile =
        ProviderProfile::openai_compatible("local-model").with_tool(tool.with_effect(Effect::Read))?;

    // This mode asks about commands, except for the commands of the rules. The approver sends the questions to a receiver.
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(&workspace, std::env::vars_os())?);
    let rules = Rules::parse("rules.toml", r#"allow = ["shell(sleep *)"]"#, &workspace)?;
    let gate = PolicyGate::new(Policy::new(Mode::Edit, rules, &workspace), Arc::clone(&env));
    let (approver, mut questions) = approver_channel(1);
    let session = Session::builder(client, profile, env).gate(gate).approver(approver).build()?;

    let handle = session.handle();
    let mut run = session.submit("Resolve ticket 7.");
    while let Some(event) = run.next().await {
        match event.kind {
            EventKind::ApprovalRequested { .. } => {
                let question = questions.next().await.ok_or("no question")?;
                // The model reads this after the current round of calls, before its next response.
                handle.steer("Leave the public API alone.").await?;
                // This is processed after the first input, as if it were submitted then.
                handle.follow_up("Now write the change log.").await?;
                question.decide(Decision::Approve);
            }
            EventKind::SteeringInjected { content, .. } => println!("steering   {content}"),
            EventKind::AssistantTextEnd { text, .. } => println!("assistant  {text}"),
            // Stops the turn and its running command. The session stays usable, and every call gets a result.
            EventKind::ToolCallStart { arguments, .. } if arguments.to_string().contains("sleep") => {
                handle.stop_turn()?;
            }
            EventKind::ToolCallEnd { tool_name, error, .. } => println!("result     {tool_name} {error:?}"),
            _ => {}
        }
    }
    println!("outcome    {:?}", run.await?.status);
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/session.toml");
