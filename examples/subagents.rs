//! Parallel subagents: one agent asks two others, from two other providers.
//!
//! A model with `spawn_agent` delegates work to a new session, which has its own history but shares environment, gates and
//! budget. The application receives the events of the whole tree in one stream. Closing the root session closes all of
//! them.

use std::collections::{BTreeMap, HashMap};

use pintle_agent::{EventKind, Limits, ProviderProfile, Session, SessionConfig};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::{Anthropic, Gemini, OpenAi};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Scripted models, so that the example runs offline. Use `Client::from_env()` for real ones.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let url = |dialect| server.base_url(dialect);
    // A subagent can use any model of the client.
    let client = Client::builder()
        .provider(Anthropic::builder("any-key").with_base_url(url(Dialect::AnthropicMessages)).build()?)
        .provider(OpenAi::builder("any-key").with_base_url(url(Dialect::OpenAiResponses)).build()?)
        .provider(Gemini::builder("any-key").with_base_url(url(Dialect::Gemini)).build()?)
        .build()?;

    let directory = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?;
    // The limits apply to the session with its subagents.
    let limits = Limits::default().with_tool_calls(20);
    let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env)
        // These are the defaults: no nested subagents, and at most eight open at a time.
        .with_config(
            SessionConfig::default().with_max_subagent_depth(1).with_max_subagents(8).with_budget(limits),
        )
        .build()?;

    let mut events = session.tree_events();
    let outcome = session.submit("Is this design any good? Ask two others.").await?;
    let spending = session.spending();
    session.close().await;

    // Events of several sessions are interleaved. `session_id`, `depth` and `parent` identify the session.
    let mut models = HashMap::new();
    let mut transcripts: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let line = match event.kind {
            EventKind::SessionStart { model, .. } => {
                models.insert(event.session_id.clone(), model);
                "started".to_owned()
            }
            EventKind::UserInput { content, .. } => format!("input: {content}"),
            EventKind::ToolCallStart { tool_name, .. } => format!("calls {tool_name}"),
            // Gemini ends a response with an empty text that carries its signature.
            EventKind::AssistantTextEnd { text, .. } if !text.is_empty() => format!("says: {text}"),
            EventKind::SessionEnd { .. } => "closed".to_owned(),
            _ => continue,
        };
        let model = models.get(&event.session_id).cloned().unwrap_or_default();
        transcripts.entry((event.depth, model)).or_default().push(line);
    }
    for ((depth, model), lines) in transcripts {
        println!("{}{model}", "    ".repeat(depth as usize));
        for line in lines {
            println!("{}  {line}", "    ".repeat(depth as usize));
        }
    }
    println!("outcome: {:?}, {} model calls in the root session", outcome.status, outcome.model_calls);
    println!("spent: {} of 20 tool calls, {} models", spending.total.tool_calls, spending.models.len());
    server.shutdown().await;
    Ok(())
}

/// Responses of the three models. Each subagent's command waits for the other's, which proves that they run in parallel.
const SCRIPT: &str = include_str!("scripts/subagents.toml");
