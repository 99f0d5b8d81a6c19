//! Streamed response: the text as it arrives, then the complete response with its usage.
//!
//! Dropping the stream cancels the request.

use pintle_llm::{Client, GenerateOptions, StreamEvent, stream};
use pintle_providers::OpenAi;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        OpenAi::builder("any-key").with_base_url(server.base_url(Dialect::OpenAiResponses)).build()?;
    let client = Client::builder().provider(provider).default_provider("openai").build()?;

    let options = GenerateOptions::new("gpt-5.2-codex").with_client(client).with_prompt("Count to five.");
    let mut events = stream(options)?;
    while let Some(event) = events.next().await {
        match event? {
            StreamEvent::TextStart { .. } => print!("text    "),
            // The size of the deltas depends on the provider.
            StreamEvent::TextDelta { delta, .. } => print!("{delta}"),
            StreamEvent::TextEnd { .. } => println!(),
            _ => {}
        }
    }
    // `events.text_stream()` has the text alone, and `events.result()` skips to the end.
    let response = events.response()?;
    println!("finish  {:?}", response.finish_reason.reason);
    println!("usage   {} output tokens", response.usage.output_tokens);
    server.shutdown().await;
    Ok(())
}

/// Responses of the model.
const SCRIPT: &str = include_str!("scripts/stream.toml");
