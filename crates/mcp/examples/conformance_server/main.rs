//! The server under test of the MCP conformance suite: our tools as a server, over HTTP on 127.0.0.1.
//!
//! Its first line of output is its URL. Our layer serves tools, their errors, images and progress. This example serves
//! the other fixtures of the suite. It exits at the end of its standard input.
#![expect(clippy::print_stdout, reason = "the URL is printed")]
#![expect(deprecated, reason = "the suite asks for what versions before 2026-07-28 have")]

mod fixtures;
mod questions;
mod rounds;
mod tools;

use std::error::Error;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use pintle_mcp::McpServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams, CompleteResult,
    GetPromptRequestParams, GetPromptResponse, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
    Tool, UnsubscribeRequestParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::rounds::Rounds;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    println!("http://{}/mcp", listener.local_addr()?);
    let server = ConformanceServer::new()?;
    let service = TowerToHyperService::new(StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    ));
    let mut connections = JoinSet::new();
    let (mut input, mut end) = (tokio::io::stdin(), [0]);
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let connection = http1::Builder::new().serve_connection(TokioIo::new(accepted?.0), service.clone());
                connections.spawn(async { connection.await.map_err(|error| error.to_string()) });
            }
            Some(_ended) = connections.join_next() => {}
            _ended = input.read(&mut end) => return Ok(()),
        }
    }
}

/// Server with the fixtures.
#[derive(Clone)]
struct ConformanceServer {
    /// Serves our tools.
    ours: McpServer,
    rounds: Arc<Rounds>,
    /// Number of changes of the lists of tools and of prompts.
    changes: Arc<(watch::Sender<u64>, watch::Sender<u64>)>,
}

impl ConformanceServer {
    fn new() -> Result<Self, Box<dyn Error>> {
        Ok(Self { ours: tools::server()?, rounds: Arc::default(), changes: Arc::default() })
    }

    fn complete(result: Value) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResponse::Complete(typed::<CallToolResult>(result)?))
    }
}

/// Returns a fixture in its protocol type.
fn typed<T: DeserializeOwned>(fixture: Value) -> Result<T, ErrorData> {
    serde_json::from_value(fixture).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        let config = self.ours.get_info();
        let capabilities = typed(fixtures::capabilities()).unwrap_or_default();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = config.server_info;
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.ours.list_tools(page, context).await?;
        listed.tools.extend(typed::<Vec<Tool>>(fixtures::tools())?);
        Ok(listed)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let tools = typed::<Vec<Tool>>(fixtures::tools()).unwrap_or_default();
        self.ours.get_tool(name).or_else(|| tools.into_iter().find(|tool| tool.name == name))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if let Some(result) = fixtures::result(&params.name) {
            return Self::complete(result);
        }
        if let Some(response) = self.rounds.answer(&params, &context) {
            return response;
        }
        let arguments = params.arguments.clone().unwrap_or_default();
        match params.name.as_ref() {
            "test_tool_with_logging" | "test_logging_tool" => Self::complete(questions::log(&context).await),
            "test_sampling" => Self::complete(questions::sample(&context, &arguments).await?),
            "test_elicitation" | "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
                Self::complete(questions::elicit(&context, &params.name, &arguments).await?)
            }
            "test_trigger_tool_change" => {
                self.changes.0.send_modify(|number| *number += 1);
                Self::complete(fixtures::text("changed"))
            }
            "test_trigger_prompt_change" => {
                self.changes.1.send_modify(|number| *number += 1);
                Self::complete(fixtures::text("changed"))
            }
            _ => self.ours.call_tool(params, context).await,
        }
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(typed(fixtures::resources())?))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(typed(fixtures::resource_templates())?))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match fixtures::resource(&params.uri) {
            Some(contents) => Ok(ReadResourceResponse::Complete(typed(contents)?)),
            None => {
                let uri = serde_json::json!({"uri": params.uri});
                Err(ErrorData::invalid_params("Resource not found", Some(uri)))
            }
        }
    }

    async fn subscribe(
        &self,
        _params: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _params: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(typed(fixtures::prompts())?))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if params.name == rounds::PROMPT && params.input_responses.is_none() {
            return Ok(GetPromptResponse::InputRequired(typed(rounds::prompt_question())?));
        }
        let arguments = params.arguments.unwrap_or_default();
        match fixtures::prompt(&params.name, &arguments) {
            Some(messages) => Ok(GetPromptResponse::Complete(typed(messages)?)),
            None => Err(ErrorData::invalid_params("unknown prompt", None)),
        }
    }

    async fn complete(
        &self,
        _params: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn set_level(
        &self,
        _params: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let (mut tools, mut prompts) = (self.changes.0.subscribe(), self.changes.1.subscribe());
        let (wants_tools, wants_prompts) = {
            let accepted = context.accepted();
            (accepted.tools_list_changed == Some(true), accepted.prompts_list_changed == Some(true))
        };
        loop {
            // A disconnected client ends the subscription.
            let sent = tokio::select! {
                () = context.cancelled() => return Ok(()),
                Ok(()) = tools.changed(), if wants_tools => context.sink().notify_tool_list_changed().await,
                Ok(()) = prompts.changed(), if wants_prompts => context.sink().notify_prompt_list_changed().await,
            };
            if sent.is_err() {
                return Ok(());
            }
        }
    }
}
