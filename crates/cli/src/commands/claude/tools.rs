//! Tools of MCP servers that run in the host, reached through the control channel.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use pintle_llm::ToolDefinition;
use pintle_tools::{DefinitionError, DynTool, Effect, RegisteredTool, ToolContext, ToolError, ToolOutput};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::channel::HostChannel;

/// Version of MCP that the host's servers are addressed with.
const VERSION: &str = "2025-06-18";

/// Time for a server to list its tools.
const LIST_TIMEOUT: Duration = Duration::from_secs(30);

/// Server that runs in the host.
#[derive(Debug)]
struct HostServer {
    channel: Arc<HostChannel>,
    name: String,
    /// Number of requests so far.
    requests: AtomicU64,
}

impl HostServer {
    async fn request(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.requests.fetch_add(1, Ordering::Relaxed);
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = self.channel.mcp(&self.name, &request).await?;
        if let Some(message) = answer.pointer("/error/message").and_then(Value::as_str) {
            return Err(message.to_owned());
        }
        answer.get("result").cloned().ok_or_else(|| format!("the answer to {method} has no result"))
    }

    async fn list(&self) -> Result<Vec<Value>, String> {
        let hello = json!({
            "protocolVersion": VERSION, "capabilities": {},
            "clientInfo": {"name": "pintle", "version": env!("CARGO_PKG_VERSION")},
        });
        self.request("initialize", hello).await?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.channel.mcp(&self.name, &initialized).await?;
        let (mut tools, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.request("tools/list", params).await?;
            tools.extend(page.get("tools").and_then(Value::as_array).cloned().unwrap_or_default());
            match page.get("nextCursor").and_then(Value::as_str) {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(tools),
            }
        }
    }
}

/// Tool of such a server.
pub(super) struct HostTool {
    server: Arc<HostServer>,
    tool: String,
    description: String,
    schema: Value,
}

impl HostTool {
    /// Asks a server for its tools.
    pub(super) async fn list(
        channel: &Arc<HostChannel>,
        server: &str,
    ) -> Result<Vec<Arc<RegisteredTool>>, String> {
        let server = Arc::new(HostServer {
            channel: Arc::clone(channel),
            name: server.to_owned(),
            requests: AtomicU64::new(0),
        });
        let listed = timeout(LIST_TIMEOUT, server.list()).await;
        let listed = listed.map_err(|_| format!("no answer in {} s", LIST_TIMEOUT.as_secs()))??;
        listed.iter().map(|tool| Self::build(&server, tool)).collect()
    }

    fn build(server: &Arc<HostServer>, listed: &Value) -> Result<Arc<RegisteredTool>, String> {
        let text = |name: &str| listed.get(name).and_then(Value::as_str).map(str::to_owned);
        let tool = Self {
            server: Arc::clone(server),
            tool: text("name").ok_or("a tool has no name")?,
            description: text("description").unwrap_or_default(),
            schema: listed.get("inputSchema").cloned().ok_or("a tool has no inputSchema")?,
        };
        RegisteredTool::new(Arc::new(tool)).map(Arc::new).map_err(|error| error.to_string())
    }

    fn name(&self) -> String {
        format!("mcp__{}__{}", self.server.name, self.tool)
    }
}

#[async_trait]
impl DynTool for HostTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let name = self.name();
        ToolDefinition::new(&name, &self.description, self.schema.clone())
            .map_err(|error| DefinitionError::refused(&name, error))
    }

    fn effect(&self) -> Effect {
        Effect::Network
    }

    fn waits(&self) -> bool {
        true
    }

    async fn call_json(&self, arguments: Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let call = json!({"name": self.tool, "arguments": arguments});
        let result = self.server.request("tools/call", call).await.map_err(ToolError::failed)?;
        let blocks = result.get("content").and_then(Value::as_array);
        let text = |block: &Value| match block.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!(
                "[{} content is left out]",
                block.get("type").and_then(Value::as_str).unwrap_or("other")
            ),
        };
        let text = blocks.into_iter().flatten().map(text).collect::<Vec<_>>().join("\n");
        match result.get("isError").and_then(Value::as_bool) {
            Some(true) => Err(ToolError::failed(text)),
            Some(false) | None => Ok(ToolOutput::new(text)),
        }
    }
}

impl fmt::Debug for HostTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTool").field("name", &self.name()).finish_non_exhaustive()
    }
}
