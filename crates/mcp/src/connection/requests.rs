//! The requests of a session: lists of what a server offers, calls, reads.

use std::collections::HashSet;

use pintle_env::OutputSink;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, CustomResult, GetPromptRequest,
    GetPromptRequestParams, GetPromptResult, JsonObject, ListToolsRequest, PaginatedRequestParams, Prompt,
    ReadResourceRequest, ReadResourceRequestParams, Resource, ResourceContents, ResourceTemplate,
    ServerCapabilities, ServerResult, Tool,
};
use rmcp::service::Peer;
use rmcp::{RoleClient, ServiceError};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Connection;
use crate::error::ServerError;
use crate::listing::MalformedTool;

/// Entries of one list that are taken. Those after them are left out.
const MAX_ENTRIES: usize = 10_000;

impl Connection {
    /// Returns what the server offers besides tools.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        self.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default()
    }

    /// Returns the tools of the server, as it lists them, and the entries that are no tools.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ServerErrorKind::TimedOut) beyond the time for a start, [`Answered`](crate::ServerErrorKind::Answered)
    /// or [`Lost`](crate::ServerErrorKind::Lost). So it is with all lists.
    pub(crate) async fn tools(&self) -> Result<Vec<Result<Tool, MalformedTool>>, ServerError> {
        let peer = &self.peer;
        // A server that says nothing about itself is asked.
        if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let page = |page: PaginatedRequestParams| async move {
            match peer.list_tools(Some(page.clone())).await {
                Ok(listed) => Ok((listed.tools.into_iter().map(Ok).collect(), listed.next_cursor)),
                // One malformed tool makes the result one of an unknown kind.
                Err(ServiceError::UnexpectedResponse) => tools_one_by_one(peer, page).await,
                Err(error) => Err(error),
            }
        };
        self.in_time(all(page)).await
    }

    /// Returns the resources of the server; none if it has none.
    pub(crate) async fn resources(&self) -> Result<Vec<Resource>, ServerError> {
        let peer = &self.peer;
        if self.capabilities().resources.is_none() {
            return Ok(Vec::new());
        }
        let page = |page| async move {
            let listed = peer.list_resources(Some(page)).await?;
            Ok((listed.resources, listed.next_cursor))
        };
        self.in_time(all(page)).await
    }

    /// Returns the templates for URIs of further resources. Servers need not know them.
    pub(crate) async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>, ServerError> {
        let peer = &self.peer;
        if self.capabilities().resources.is_none() {
            return Ok(Vec::new());
        }
        let page = |page| async move {
            let listed = peer.list_resource_templates(Some(page)).await?;
            Ok((listed.resource_templates, listed.next_cursor))
        };
        let listed = async {
            match all(page).await {
                Err(ServiceError::McpError(_)) => Ok(Vec::new()),
                listed => listed,
            }
        };
        self.in_time(listed).await
    }

    /// Returns the prompts of the server; none if it has none.
    pub(crate) async fn prompts(&self) -> Result<Vec<Prompt>, ServerError> {
        let peer = &self.peer;
        if self.capabilities().prompts.is_none() {
            return Ok(Vec::new());
        }
        let page = |page| async move {
            let listed = peer.list_prompts(Some(page)).await?;
            Ok((listed.prompts, listed.next_cursor))
        };
        self.in_time(all(page)).await
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// All kinds but [`Start`](crate::ServerErrorKind::Start). So it is with reads.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
        progress: Option<&OutputSink>,
    ) -> Result<CallToolResult, ServerError> {
        let request = |responses, state| {
            let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params))
        };
        let answered = self.ask(request, cancel, progress).await?;
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "results of other requests, and of versions to come"
        )]
        match answered {
            ServerResult::CallToolResult(result) => Ok(result),
            // Without a content, a result cannot be told from others.
            ServerResult::EmptyResult(_) => Ok(CallToolResult::default()),
            _ => Err(self.failed(ServiceError::UnexpectedResponse)),
        }
    }

    /// Reads a resource.
    pub(crate) async fn read(
        &self,
        uri: &str,
        cancel: &CancellationToken,
        progress: Option<&OutputSink>,
    ) -> Result<Vec<ResourceContents>, ServerError> {
        let request = |responses, state| {
            let mut params = ReadResourceRequestParams::new(uri.to_owned());
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params))
        };
        let answered = self.ask(request, cancel, progress).await?;
        let ServerResult::ReadResourceResult(result) = answered else {
            return Err(self.failed(ServiceError::UnexpectedResponse));
        };
        Ok(result.contents)
    }

    /// Gets the messages of a prompt.
    pub(crate) async fn prompt(
        &self,
        name: &str,
        arguments: JsonObject,
        cancel: &CancellationToken,
    ) -> Result<GetPromptResult, ServerError> {
        let request = |responses, state| {
            let mut params = GetPromptRequestParams::new(name.to_owned()).with_arguments(arguments.clone());
            (params.input_responses, params.request_state) = (responses, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params))
        };
        let answered = self.ask(request, cancel, None).await?;
        let ServerResult::GetPromptResult(result) = answered else {
            return Err(self.failed(ServiceError::UnexpectedResponse));
        };
        Ok(result)
    }
}

/// A page of tools, and the cursor of the next one.
type ToolPage = (Vec<Result<Tool, MalformedTool>>, Option<String>);

/// Lists a page of tools, and reads each of them alone.
async fn tools_one_by_one(
    peer: &Peer<RoleClient>,
    page: PaginatedRequestParams,
) -> Result<ToolPage, ServiceError> {
    let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
    let ServerResult::CustomResult(CustomResult(mut listed)) = peer.send_request(request).await? else {
        return Err(ServiceError::UnexpectedResponse);
    };
    let Some(Value::Array(tools)) = listed.get_mut("tools").map(Value::take) else {
        return Err(ServiceError::UnexpectedResponse);
    };
    let cursor = listed.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    Ok((tools.into_iter().map(MalformedTool::check).collect(), cursor.map(str::to_owned)))
}

/// Returns all pages of a list. One that leads back to itself ends.
async fn all<T, F>(page: impl Fn(PaginatedRequestParams) -> F) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<(Vec<T>, Option<String>), ServiceError>>,
{
    let (mut entries, mut seen, mut cursor) = (Vec::new(), HashSet::new(), None);
    loop {
        let (listed, next) = page(PaginatedRequestParams::default().with_cursor(cursor.take())).await?;
        entries.extend(listed);
        cursor = next.filter(|next| entries.len() < MAX_ENTRIES && seen.insert(next.clone()));
        if cursor.is_none() {
            entries.truncate(MAX_ENTRIES);
            return Ok(entries);
        }
    }
}
