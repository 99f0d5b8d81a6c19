//! Our tools as an MCP server.

use std::fmt;
use std::sync::Arc;

use pintle_llm::{ImageData, MediaSource, ToolCall};
use pintle_tools::pipeline::{Execution, RunOptions, run};
use pintle_tools::{Effect, RegisteredTool, ToolContext, ToolErrorKind, ToolRegistry};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, ServiceExt};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::progress::ProgressReporter;

/// Offers tools to one client. All its calls pass the gates of the options, share the context, and run in its environment.
///
/// If a client requests progress, it gets the last line of a call's output while the call runs, or that it still runs. If
/// the client cancels a call, the call ends, and so do the commands that it has started.
///
/// A call that a gate asks about is denied unless the options have an [approver](RunOptions::with_approval). Tools that
/// [wait](pintle_tools::Tool::waits) for a user do so here as well.
///
/// Cheap to clone; clones share background commands and known files, as the calls of one session do.
#[derive(Clone)]
pub struct McpServer {
    tools: Arc<ToolRegistry>,
    context: ToolContext,
    options: RunOptions,
    instructions: Option<String>,
}

/// Reason why a connection failed, other than that the client closed it.
#[derive(Debug, thiserror::Error)]
#[error("the connection to the MCP client failed: {why}")]
pub struct ServeError {
    why: String,
}

impl McpServer {
    /// Creates a server with these tools.
    #[must_use]
    pub fn new(tools: ToolRegistry, context: ToolContext, options: RunOptions) -> Self {
        Self { tools: Arc::new(tools), context, options, instructions: None }
    }

    /// Sets instructions that a client may pass to its model.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Answers a client until it closes its end. Dropping the future ends the connection and stops the calls that run.
    ///
    /// # Errors
    ///
    /// [`ServeError`] if the client does not complete the handshake.
    pub async fn serve(
        self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), ServeError> {
        let failed = |why: String| ServeError { why };
        let service = ServiceExt::<RoleServer>::serve(self, (input, output));
        let running = service.await.map_err(|error| failed(error.to_string()))?;
        running.waiting().await.map(|_reason| ()).map_err(|error| failed(error.to_string()))
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("pintle", env!("CARGO_PKG_VERSION"));
        let config = ServerConfig::new(capabilities).with_server_info(name);
        match &self.instructions {
            Some(instructions) => config.with_instructions(instructions),
            None => config,
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.tools.names().filter_map(|name| self.tools.get(name)).map(|tool| to_mcp_tool(tool));
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.get(name).map(|tool| to_mcp_tool(tool))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let call = ToolCall::new(context.id.to_string(), params.name, params.arguments.unwrap_or_default());
        let cx = self.context.clone().with_cancel(context.ct.clone());
        let execution = match context.meta.get_progress_token() {
            Some(token) => {
                let mut progress = ProgressReporter::new(token, context.peer.clone());
                let cx = cx.with_on_output(progress.sink());
                tokio::select! {
                    biased;
                    execution = run(&self.tools, &call, &cx, &self.options) => execution,
                    never = progress.report() => match never {},
                }
            }
            None => run(&self.tools, &call, &cx, &self.options).await,
        };
        match execution.error {
            Some(ToolErrorKind::UnknownTool) => Err(ErrorData::invalid_params(execution.result.text(), None)),
            _ => Ok(CallToolResponse::Complete(to_call_result(&execution))),
        }
    }
}

fn to_mcp_tool(tool: &RegisteredTool) -> Tool {
    let definition = tool.definition();
    let schema = match &definition.parameters {
        Value::Object(schema) => schema.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    };
    let effect = tool.effect();
    let hints = ToolAnnotations::new()
        .read_only(effect == Effect::Read)
        .destructive(matches!(effect, Effect::Write | Effect::Execute))
        .idempotent(tool.is_repeatable())
        .open_world(matches!(effect, Effect::Execute | Effect::Network));
    Tool::new(definition.name.clone(), definition.description.clone(), schema).with_annotations(hints)
}

fn to_call_result(execution: &Execution) -> CallToolResult {
    let mut content = vec![ContentBlock::text(execution.result.text())];
    content.extend(execution.result.images.iter().filter_map(to_image_block));
    match execution.result.is_error {
        true => CallToolResult::error(content),
        false => CallToolResult::success(content),
    }
}

/// Returns an image with its data. Other images are at a URL, which the text names.
fn to_image_block(image: &ImageData) -> Option<ContentBlock> {
    let MediaSource::Data(bytes) = &image.source else { return None };
    Some(ContentBlock::image(
        bytes.to_base64(),
        image.media_type.clone().unwrap_or_else(|| "image/png".to_owned()),
    ))
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("tools", &self.tools)
            .field("context", &self.context)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use pintle_env::{
        ExecutionEnvironment, ExecutionEnvironmentExt as _, MemoryEnvironment, OutputChunk, OutputStream,
    };
    use pintle_tools::gate::{EffectGate, Permission};
    use pintle_tools::{ToolError, ToolOutput, builtin};
    use rmcp::model::{CallToolRequest, ClientRequest, ProgressNotificationParam};
    use rmcp::service::{NotificationContext, PeerRequestOptions};
    use rmcp::{ClientHandler, RoleClient, ServiceError};
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// Prints a line, then waits until it is cancelled, and notes that.
    struct Waits(CancellationToken);

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct NoInput {}

    impl pintle_tools::Tool for Waits {
        type Input = NoInput;

        fn name(&self) -> &str {
            "waits"
        }

        fn description(&self) -> &str {
            "Waits."
        }

        fn effect(&self) -> Effect {
            Effect::Read
        }

        async fn call(&self, _input: NoInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            if let Some(sink) = &cx.on_output {
                sink(OutputChunk::new(OutputStream::Stdout, "first\nsecond line\n"));
            }
            cx.cancel.cancelled().await;
            self.0.cancel();
            Err(ToolError::new(ToolErrorKind::Cancelled, "stopped"))
        }
    }

    /// Keeps the progress that it is told.
    #[derive(Clone)]
    struct Watches(tokio::sync::mpsc::UnboundedSender<ProgressNotificationParam>);

    impl ClientHandler for Watches {
        async fn on_progress(
            &self,
            params: ProgressNotificationParam,
            _context: NotificationContext<RoleClient>,
        ) {
            self.0.send(params).unwrap();
        }
    }

    #[tokio::test]
    async fn a_call_reports_progress_and_ends_when_it_is_cancelled() {
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/work"));
        let (mut registry, stopped) = (ToolRegistry::new(), CancellationToken::new());
        registry.register(Waits(stopped.clone())).unwrap();
        let server = McpServer::new(registry, ToolContext::new(env, ""), RunOptions::new());
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(ours);
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(server.serve(input, output));
        let (progress, mut reported) = tokio::sync::mpsc::unbounded_channel();
        let client = Watches(progress).serve(theirs).await.unwrap();
        let request = CallToolRequest::new(CallToolRequestParams::new("waits"));
        let request = ClientRequest::CallToolRequest(request);
        let sent = client.send_request_with_option(request, PeerRequestOptions::no_options()).await.unwrap();
        let first = reported.recv().await.unwrap();
        assert_eq!(first.progress_token, sent.progress_token);
        assert_eq!(first.message.as_deref(), Some("second line"));
        assert!(!stopped.is_cancelled());
        sent.cancel(None).await.unwrap();
        stopped.cancelled().await;
        client.cancel().await.unwrap();
        serving.join_next().await.unwrap().unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_client_lists_and_calls_tools_under_the_gates() {
        let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/work"));
        env.write_file("notes.txt".as_ref(), "remember\n").await.unwrap();
        let mut registry = ToolRegistry::new();
        builtin::register_core(&mut registry).unwrap();
        let options =
            RunOptions::new().with_gate(EffectGate::new().with_permission(Effect::Execute, Permission::Ask));
        let server = McpServer::new(registry, ToolContext::new(Arc::clone(&env), ""), options);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(ours);
        let mut serving = tokio::task::JoinSet::new();
        serving.spawn(server.with_instructions("Ask before you write.").serve(input, output));
        let client = ().serve(theirs).await.unwrap();
        let info = client.peer().peer_info().unwrap();
        assert_eq!(info.instructions.as_deref(), Some("Ask before you write."));
        let tools = client.list_all_tools().await.unwrap();
        let hints = |name: &str| {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            tool.annotations.as_ref().and_then(|hints| hints.read_only_hint)
        };
        assert_eq!((hints("read_file"), hints("write_file")), (Some(true), Some(false)));
        let called = async |name: &'static str, arguments: Value| {
            let params =
                CallToolRequestParams::new(name).with_arguments(arguments.as_object().unwrap().clone());
            client.call_tool(params).await
        };
        let text = |result: &CallToolResult| result.content[0].as_text().unwrap().text.clone();
        let read = called("read_file", json!({"file_path": "notes.txt"})).await.unwrap();
        assert!(text(&read).contains("remember") && read.is_error != Some(true), "{read:?}");
        let denied = called("shell", json!({"command": "true"})).await.unwrap();
        assert!(text(&denied).contains("was denied") && denied.is_error == Some(true), "{denied:?}");
        let wrong = called("read_file", json!({"file_path": 7})).await.unwrap();
        assert!(text(&wrong).contains("Invalid arguments") && wrong.is_error == Some(true), "{wrong:?}");
        let unknown = called("no_such_tool", json!({})).await.unwrap_err();
        assert!(
            matches!(unknown, ServiceError::McpError(error) if error.message.starts_with("Unknown tool"))
        );
        client.cancel().await.unwrap();
        serving.join_next().await.unwrap().unwrap().unwrap();
    }
}
