//! Complete response: one request and its text, then a conversation of several messages.
//!
//! `generate` retries transient failures. `Client::complete` is the layer below it: one request, one attempt.

use pintle_llm::{Client, GenerateOptions, Message, Request, generate};
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

const MODEL: &str = "claude-opus-4-6";

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).default_provider("anthropic").build()?;

    let options = GenerateOptions::new(MODEL)
        .with_client(client.clone())
        .with_system("You answer in one sentence.")
        .with_prompt("Why is the sky blue?");
    let result = generate(options).await?;
    println!("text    {}", result.text());
    println!("finish  {:?}", result.finish_reason().reason);

    // A conversation is the list of its messages. The response's own message is one of them.
    let messages = [
        Message::user("Why is the sky blue?"),
        result.response.message.clone(),
        Message::user("And at sunset?"),
    ];
    let response = client.complete(Request::new(MODEL, messages)).await?;
    println!("next    {}", response.text());
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/complete.toml");
