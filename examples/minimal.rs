//! Minimal weight: one provider, a session and a custom tool, without an environment of the system.
//!
//! A crate with this program needs only `pintle` with `default-features = false, features = ["anthropic", "memory"]`.

use pintle_agent::{ProviderProfile, Session};
use pintle_env::MemoryEnvironment;
use pintle_llm::Client;
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::{ToolError, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let server = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(server.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;

    // A new profile has neither instructions nor tools.
    let tool = tool_fn("weather", "Weather of a city.", |city: City, _| async move {
        Ok::<_, ToolError>(format!("{}: 21 degrees", city.name))
    });
    let profile = ProviderProfile::new("anthropic", "claude-opus-4-6")
        .with_base_instructions("You answer in one sentence.")
        .with_tool(tool)?;
    let session = Session::builder(client, profile, MemoryEnvironment::new("/")).build()?;
    println!("{}", session.submit("Do I need a coat in Rome?").await?.text);
    session.close().await;
    server.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/minimal.toml");
