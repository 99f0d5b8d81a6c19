//! The client under test of the conformance suite of MCP, which starts a server and runs this with its URL.
//!
//! It does what a session does: it lists the tools and calls each of them once, through the pipeline of calls.
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "the suite passes variables and shows what is printed"
)]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
use pintle_llm::ToolCall;
use pintle_mcp::{
    Elicitation, ElicitationAnswer, Elicitor, HttpServer, McpServers, ServerName, ServerSpec, ServerTransport,
};
use pintle_tools::pipeline::{RunOptions, run};
use pintle_tools::{RegisteredTool, ToolContext, ToolRegistry};
use serde_json::{Map, Value, json};

/// Accepts every question with the values that the server proposes.
struct Agreeable;

#[async_trait]
impl Elicitor for Agreeable {
    async fn elicit(&self, _question: Elicitation) -> ElicitationAnswer {
        ElicitationAnswer::Accept(Map::new())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::args().next_back().ok_or("expected the URL of a server")?;
    let name: ServerName = "test".parse()?;
    let spec = ServerSpec::new(name.clone(), ServerTransport::Http(HttpServer::new(&url)?));
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/work"));
    let servers = McpServers::with_elicitor(Arc::clone(&env), [spec], Arc::new(Agreeable));
    let listing = servers.list(&name).await?;
    let mut registry = ToolRegistry::new();
    for refused in servers.register(&mut registry, usize::MAX) {
        eprintln!("refused: {refused}");
    }
    eprintln!("{} tools", listing.len());
    let cx = ToolContext::new(env, "");
    for (number, (name, arguments)) in calls(&registry).into_iter().enumerate() {
        let call = ToolCall::from_raw(format!("call_{number}"), &name, arguments.to_string());
        let execution = run(&registry, &call, &cx, &RunOptions::new()).await;
        eprintln!("{name}: {}", execution.result.text());
    }
    servers.close().await;
    Ok(())
}

/// Returns the calls that the scenario asks for, or else one of each tool.
fn calls(registry: &ToolRegistry) -> Vec<(String, Value)> {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    if let Some(wanted) = context.get("toolCalls").and_then(Value::as_array) {
        let call = |call: &Value| {
            let name = call.get("name")?.as_str()?;
            Some((format!("mcp__test__{name}"), call.get("arguments")?.clone()))
        };
        return wanted.iter().filter_map(call).collect();
    }
    let tools: Vec<_> = registry.names().filter_map(|name| registry.get(name)).collect();
    let call = |tool: &&Arc<RegisteredTool>| {
        let mut arguments = example(&tool.definition().parameters);
        // One tool is told what the client has understood of another one's schema.
        let other = tools.iter().find(|other| other.name() != tool.name());
        if let (Some(schema), Some(other)) = (arguments.get_mut("schema"), other) {
            schema.clone_from(&other.definition().parameters);
        }
        (tool.name().to_owned(), arguments)
    };
    tools.iter().map(call).collect()
}

/// Returns a value that fits a schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(|values| values.get(0)).or_else(|| schema.get("const")) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let examples =
                properties.into_iter().flatten().map(|(name, schema)| (name.clone(), example(schema)));
            Value::Object(examples.collect())
        }
        Some("array") => json!([]),
        Some("integer" | "number") => json!(5),
        Some("boolean") => json!(true),
        Some("null") => Value::Null,
        _ => json!("test"),
    }
}
