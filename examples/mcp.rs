//! MCP: the tools of an MCP server in a session, and tools of a program as an MCP server.
//!
//! The program starts itself as the server. A server is a process of the session's environment.

use std::sync::Arc;

use pintle_agent::{EventKind, ExecutionEnvironment, ProviderProfile, Session};
use pintle_env::{LocalEnvironment, MemoryEnvironment};
use pintle_llm::Client;
use pintle_mcp::{McpServer, McpServers, ServerName, ServerSpec, ServerTransport, StdioServer};
use pintle_providers::Anthropic;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use pintle_tools::pipeline::RunOptions;
use pintle_tools::{Effect, ToolContext, ToolError, ToolRegistry, tool_fn};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct City {
    name: String,
}

/// Serves one tool until the client closes the input.
async fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let mut tools = ToolRegistry::new();
    tools.register(tool_fn("forecast", "Weather of a city.", |city: City, _| async move {
        Ok::<_, ToolError>(format!("{}: 21 degrees", city.name))
    }))?;
    let context = ToolContext::new(Arc::new(MemoryEnvironment::new("/")), "");
    let server = McpServer::new(tools, context, RunOptions::new());
    Ok(server.serve(tokio::io::stdin(), tokio::io::stdout()).await?)
}

#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(2).as_deref() == Some("serve") {
        return serve().await;
    }
    // A scripted model, so that the example runs offline. Use `Client::from_env()` for a real one.
    let model = ScriptedServer::start(Script::parse(SCRIPT)?, ServerOptions::new()).await?;
    let provider =
        Anthropic::builder("any-key").with_base_url(model.base_url(Dialect::AnthropicMessages)).build()?;
    let client = Client::builder().provider(provider).build()?;
    let directory = tempfile::tempdir()?;
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os())?);
    env.initialize().await?;

    let name: ServerName = "weather".parse()?;
    let transport = ServerTransport::Stdio(StdioServer::new(std::env::current_exe()?, ["mcp", "serve"]));
    let spec = ServerSpec::new(name.clone(), transport).with_effect(Effect::Read);
    let servers = McpServers::new(Arc::clone(&env), [spec]);
    // Without this, the server starts when the model first searches for its tools.
    servers.list(&name).await?;
    let mut profile = ProviderProfile::anthropic("claude-opus-4-6");
    let refused = servers.register(&mut profile.tool_registry, 20_000);
    println!("refused  {}", refused.len());

    let session = Session::builder(client, profile, env).initialized_environment().build()?;
    let mut run = session.submit("Do I need a coat in Rome?");
    while let Some(event) = run.next().await {
        if let EventKind::ToolCallEnd { tool_name, output, .. } = event.kind {
            println!("result   {tool_name}: {}", output.to_text_lossy()?);
        }
    }
    println!("answer   {}", run.await?.text);
    servers.close().await;
    session.close().await;
    model.shutdown().await;
    Ok(())
}

/// Responses of the model, each with what the request must contain.
const SCRIPT: &str = include_str!("scripts/mcp.toml");
