//! Checked object: the response is parsed into a type and validated against its schema.
//!
//! Providers with structured output get the schema; a response that does not match is an error with the raw text.

use pintle_llm::{Client, GenerateOptions, generate_object_as, stream_object_as};
use pintle_providers::OpenAi;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use schemars::JsonSchema;
use serde::Deserialize;

/// Doc comments of the fields become descriptions for the model.
#[derive(Debug, Deserialize, JsonSchema)]
struct Recipe {
    /// Name of the dish.
    name: String,
    /// Minutes from start to table.
    minutes: u32,
}

#[derive(Deserialize, JsonSchema)]
struct Menu {
    /// Names of the dishes.
    dishes: Vec<String>,
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        OpenAi::builder("any-key").with_base_url(server.base_url(Dialect::OpenAiResponses)).build()?;
    let client = Client::builder().provider(provider).default_provider("openai").build()?;
    let options =
        |prompt: &str| GenerateOptions::new("gpt-5.2-codex").with_client(client.clone()).with_prompt(prompt);

    let recipe = generate_object_as::<Recipe>(options("A recipe for pancakes.")).await?.output;
    println!("object   {} in {} minutes", recipe.name, recipe.minutes);

    // The same as a stream: `next` has the part that has arrived, `object` the complete and valid one.
    let mut parts = stream_object_as::<Recipe>(options("A recipe for pancakes."))?;
    let mut count = 0;
    while let Some(part) = parts.next().await {
        part?;
        count += 1;
    }
    println!("stream   in several parts: {}, then {:?}", count > 1, parts.object().await?);

    // A response that does not match the schema is an error.
    match generate_object_as::<Menu>(options("A menu for today.")).await {
        Ok(result) => println!("menu     {:?}", result.output.dishes),
        Err(error) => println!("error    {:?}", error.kind()),
    }
    server.shutdown().await;
    Ok(())
}

/// Response of the model, the same to every first message.
const SCRIPT: &str = include_str!("scripts/object.toml");
