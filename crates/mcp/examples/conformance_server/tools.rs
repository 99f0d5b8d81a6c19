//! The tools of the suite that our layer serves.

use std::sync::Arc;
use std::time::Duration;

use pintle_env::{ExecutionEnvironment, MemoryEnvironment, OutputChunk, OutputStream};
use pintle_mcp::McpServer;
use pintle_tools::pipeline::RunOptions;
use pintle_tools::{DefinitionError, Effect, Tool, ToolContext, ToolError, ToolOutput, ToolRegistry};
use schemars::JsonSchema;
use serde::Deserialize;

/// Time between two lines of progress.
const PAUSE: Duration = Duration::from_millis(150);

/// Returns the server that offers them.
pub(crate) fn server() -> Result<McpServer, DefinitionError> {
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/work"));
    let mut registry = ToolRegistry::new();
    for fixture in [Fixture::Text, Fixture::Error, Fixture::Progress, Fixture::Reconnection] {
        registry.register(fixture)?;
    }
    Ok(McpServer::new(registry, ToolContext::new(env, ""), RunOptions::new()))
}

/// Tool without arguments.
#[derive(Clone, Copy)]
enum Fixture {
    Text,
    Error,
    Progress,
    Reconnection,
}

#[derive(Deserialize, JsonSchema)]
struct NoInput {}

impl Tool for Fixture {
    type Input = NoInput;

    fn name(&self) -> &str {
        match self {
            Self::Text => "test_simple_text",
            Self::Error => "test_error_handling",
            Self::Progress => "test_tool_with_progress",
            Self::Reconnection => "test_reconnection",
        }
    }

    fn description(&self) -> &str {
        match self {
            Self::Text => "Returns a text.",
            Self::Error => "Fails.",
            Self::Progress => "Reports progress.",
            Self::Reconnection => "Takes a while.",
        }
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    async fn call(&self, _input: NoInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        match self {
            Self::Text => Ok(ToolOutput::new("This is a simple text response for testing.")),
            Self::Error => {
                Ok(ToolOutput::new("This tool intentionally returns an error for testing").with_error(true))
            }
            Self::Progress => {
                for line in ["0 of 100\n", "50 of 100\n", "100 of 100\n"] {
                    if let Some(sink) = &cx.on_output {
                        sink(OutputChunk::new(OutputStream::Stdout, line));
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                Ok(ToolOutput::new("done"))
            }
            Self::Reconnection => {
                tokio::time::sleep(PAUSE).await;
                Ok(ToolOutput::new("reconnected"))
            }
        }
    }
}
