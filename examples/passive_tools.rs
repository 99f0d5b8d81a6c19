//! Passive tools: the model's calls are returned to the program, which makes them in its own way and its own time.
//!
//! A tool with a handler (`ClientTool::typed`) is called by `generate`. A passive one has only a definition: for calls that a
//! user confirms, that another process makes, or that take days.

use pintle_llm::{Client, ClientTool, GenerateOptions, Message, ToolDefinition, ToolResult, generate};
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use serde_json::json;

fn temperature() -> Result<ClientTool, pintle_llm::Error> {
    let parameters = json!({
        "type": "object",
        "properties": { "city": { "type": "string" } },
        "required": ["city"],
    });
    Ok(ClientTool::passive(ToolDefinition::new("temperature", "Temperature of a city in °C.", parameters)?))
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).default_provider("anthropic").build()?;
    let options = GenerateOptions::new("claude-opus-4-6").with_client(client).with_tool(temperature()?);

    let mut messages = vec![Message::user("Where is it warmer, in Oslo or in Rome?").into()];
    let first = generate(options.clone().with_messages(messages.clone())).await?;
    let mut results = Vec::new();
    for call in first.tool_calls() {
        println!("call    {} {}", call.name, call.arguments_text());
        // Every call needs a result; an error is one, too.
        let city = call.arguments_object().and_then(|arguments| arguments.get("city")?.as_str());
        results.push(match city {
            Some("Oslo") => ToolResult::new(&call.id, "4", false),
            Some("Rome") => ToolResult::new(&call.id, "17", false),
            _ => ToolResult::new(&call.id, "unknown city", true),
        });
    }

    // `messages` of a result are what it adds to the conversation: here the model's calls.
    messages.extend(first.messages);
    messages.push(Message::tool_results(results).into());
    let second = generate(options.with_messages(messages)).await?;
    println!("answer  {}", second.text());
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/passive_tools.toml");
