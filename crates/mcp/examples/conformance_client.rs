//! The client under test of the MCP conformance suite. The suite starts a server and runs this program with its URL.
//!
//! Like a session, it lists the tools and calls each of them once, through the pipeline of calls. If a server requires a
//! login, it logs in with a browser that agrees to everything.
#![expect(
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "the suite passes variables and shows what is printed"
)]

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
use pintle_llm::ToolCall;
use pintle_mcp::{
    Elicitation, ElicitationAnswer, Elicitor, HttpServer, McpServers, MemoryTokens, OAuthSettings,
    ServerErrorKind, ServerName, ServerSpec, ServerTransport, TokenStore, login,
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

/// Maximum number of consecutive logins before the server is given up.
const MAX_LOGINS: usize = 3;

/// Time for one login.
const LOGIN_TIME: Duration = Duration::from_secs(10);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // The browser needs a provider, although no page is at an HTTPS address.
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_other| "expected no provider of TLS")?;
    let url = std::env::args().next_back().ok_or("expected the URL of a server")?;
    let context = context();
    let name: ServerName = "test".parse()?;
    let server = HttpServer::new(&url)?.with_oauth(settings(&context));
    let spec = ServerSpec::new(name.clone(), ServerTransport::Http(server.clone()));
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/work"));
    let tokens: Arc<dyn TokenStore> = Arc::new(MemoryTokens::default());
    let servers = McpServers::with_tokens(Arc::clone(&env), [spec], Arc::new(Agreeable), Arc::clone(&tokens));
    let mut logins = 0;
    let listing = loop {
        match servers.list(&name).await {
            Err(error) if error.kind() == ServerErrorKind::LoginRequired && logins < MAX_LOGINS => {
                logins += 1;
                log_in(&server, tokens.as_ref()).await?;
            }
            listed => break listed?,
        }
    };
    let mut registry = ToolRegistry::new();
    for refused in servers.register(&mut registry, usize::MAX) {
        eprintln!("refused: {refused}");
    }
    eprintln!("{} tools", listing.len());
    let cx = ToolContext::new(env, "");
    for (number, (name, arguments)) in calls(&registry, &context).into_iter().enumerate() {
        let call = ToolCall::from_raw(format!("call_{number}"), &name, arguments.to_string());
        loop {
            let execution = run(&registry, &call, &cx, &RunOptions::new()).await;
            let text = execution.result.text();
            eprintln!("{name}: {text}");
            if !execution.result.is_error || !is_refusal(&text) || logins == MAX_LOGINS {
                break;
            }
            logins += 1;
            log_in(&server, tokens.as_ref()).await?;
        }
    }
    servers.close().await;
    Ok(())
}

/// Returns whether a call failed because a login is required.
fn is_refusal(text: &str) -> bool {
    text.contains("requires a login") || text.contains("requires a new login")
}

/// Returns the suite's description of a scenario.
fn context() -> Value {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&context).unwrap_or_default()
}

/// Returns the client that a scenario has registered. The suite knows the document at its URL.
fn settings(context: &Value) -> OAuthSettings {
    let text = |key: &str| context.get(key).and_then(Value::as_str).map(str::to_owned);
    let url = "https://conformance-test.local/client-metadata.json";
    let mut settings = OAuthSettings::new().with_client_metadata_url(url);
    settings.client_id = text("client_id");
    settings.client_secret = text("client_secret");
    settings
}

/// Logs in with a browser that follows the redirects of the authorization server.
async fn log_in(server: &HttpServer, tokens: &dyn TokenStore) -> Result<(), Box<dyn Error>> {
    let (opened, shown) = tokio::sync::oneshot::channel();
    let open = |url: &str| drop(opened.send(url.to_owned()));
    let browser = async {
        if let Ok(url) = shown.await {
            let response = reqwest::get(url).await;
            eprintln!("browser: {:?}", response.map(|response| response.status()));
        }
    };
    let (logged_in, ()) = tokio::join!(login(server, tokens, LOGIN_TIME, open), browser);
    Ok(logged_in?)
}

/// Returns the calls that the scenario requests, or else one call of each tool.
fn calls(registry: &ToolRegistry, context: &Value) -> Vec<(String, Value)> {
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
        // One tool receives the client's reading of another tool's schema.
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
