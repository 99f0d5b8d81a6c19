//! Adapter of a server's tool to our tools.

use async_trait::async_trait;
use pintle_llm::ToolDefinition;
use pintle_tools::{DefinitionError, DynTool, Effect, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};

use crate::listing::OfferedTool;
use crate::result;
use crate::servers::McpServers;
use crate::spec::ServerName;

/// Tool of a server.
pub(crate) struct McpTool {
    servers: McpServers,
    server: ServerName,
    offered: OfferedTool,
}

impl McpTool {
    pub(crate) fn new(servers: McpServers, server: ServerName, offered: OfferedTool) -> Self {
        Self { servers, server, offered }
    }
}

#[async_trait]
impl DynTool for McpTool {
    fn definition(&self) -> Result<ToolDefinition, DefinitionError> {
        let OfferedTool { name, description, parameters, .. } = &self.offered;
        ToolDefinition::new(name, description, parameters.clone())
            .map_err(|error| DefinitionError::refused(name, error))
    }

    fn effect(&self) -> Effect {
        self.offered.effect
    }

    /// The server may ask a user. Its own time limit applies.
    fn waits(&self) -> bool {
        true
    }

    async fn call_json(&self, arguments: Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Map::new()
            }
        };
        let called =
            self.servers.call(&self.server, &self.offered.tool, arguments, &cx.cancel, cx.on_output.as_ref());
        Ok(result::output(called.await?))
    }
}
