//! Parallel subagents: one agent asks two others, of two other makers, and makes up its mind.
//!
//! A model that has `spawn_agent` gives a part of its work to a session of its own, with a history of its own and the
//! same environment, gates and budget. Its host sees the whole tree in one stream of events, and closing the session
//! that it made closes them all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use pintle_agent::{EventKind, ProviderProfile, Session, SessionConfig};
use pintle_env::LocalEnvironment;
use pintle_llm::Client;
use pintle_providers::{Anthropic, Gemini, OpenAi};
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The models are a script, so that this runs offline. Yours come from `Client::from_env()`.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let url = |dialect| server.base_url(dialect);
    // A subagent may have any model that the client reaches.
    let client = Client::builder()
        .provider(Anthropic::builder("any-key").base_url(url(Dialect::AnthropicMessages)).build()?)
        .provider(OpenAi::builder("any-key").base_url(url(Dialect::OpenAiResponses)).build()?)
        .provider(Gemini::builder("any-key").base_url(url(Dialect::Gemini)).build()?)
        .build()?;

    let folder = tempfile::tempdir()?;
    let env = LocalEnvironment::with_host_env(folder.path(), std::env::vars_os())?;
    let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), Arc::new(env))
        // Both are the defaults: subagents have none of their own, and eight may be open at a time.
        .config(SessionConfig::default().with_max_subagent_depth(1).with_max_subagents(8))
        .build()?;

    let mut events = session.tree_events();
    let outcome = session.submit("Is this design any good? Ask two others.").await?;
    session.close().await;

    // The events of several sessions come in between each other. `session_id`, `depth` and `parent` say whose they are.
    let mut models = HashMap::new();
    let mut stories: BTreeMap<(u32, String), Vec<String>> = BTreeMap::new();
    while let Some(event) = events.next().await {
        let line = match event.kind {
            EventKind::SessionStart { model, .. } => {
                models.insert(event.session_id.clone(), model);
                "begins".to_owned()
            }
            EventKind::UserInput { content } => format!("is asked: {content}"),
            EventKind::ToolCallStart { tool_name, .. } => format!("calls {tool_name}"),
            // Gemini ends an answer with an empty text, which carries its signature.
            EventKind::AssistantTextEnd { text, .. } if !text.is_empty() => format!("says: {text}"),
            EventKind::SessionEnd { .. } => "is closed".to_owned(),
            _ => continue,
        };
        let model = models.get(&event.session_id).cloned().unwrap_or_default();
        stories.entry((event.depth, model)).or_default().push(line);
    }
    for ((depth, model), lines) in stories {
        println!("{}{model}", "    ".repeat(depth as usize));
        for line in lines {
            println!("{}  {line}", "    ".repeat(depth as usize));
        }
    }
    println!("outcome: {:?}, {} model calls of the first session", outcome.status, outcome.model_calls);
    server.shutdown().await;
    Ok(())
}

/// What the three models say. Each subagent's command waits for that of the other one: they do work side by side.
const SCRIPT: &str = r#"
name = "second opinions"

[[turn]]
only = ["anthropic"]
[[turn.call]]
tool = "spawn_agent"
arguments = { task = "Judge the design.", model = "gpt-5.2-codex" }
[[turn.call]]
tool = "spawn_agent"
arguments = { task = "Judge the design.", model = "gemini-3-flash-preview" }

[[turn]]
only = ["anthropic"]
call = [{ tool = "wait", arguments = { agent_id = "agent_1" } }, { tool = "wait", arguments = { agent_id = "agent_2" } }]

[[turn]]
only = ["anthropic"]
expect = [{ call = 0, contains = "success: true" }, { call = 1, contains = "success: true" }]
text = "One likes it and one does not. I would keep it, and write down why."

[[turn]]
only = ["openai"]
call = [{ tool = "shell", arguments = { command = "touch one; until [ -e two ]; do sleep 0.02; done" } }]

[[turn]]
only = ["openai"]
text = "It is sound."

[[turn]]
only = ["gemini"]
call = [{ tool = "shell", arguments = { command = "touch two; until [ -e one ]; do sleep 0.02; done" } }]

[[turn]]
only = ["gemini"]
text = "It is too clever."
"#;
