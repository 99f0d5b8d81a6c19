//! The requests of a session: lists, calls and reads.

use std::collections::HashSet;

use pintle_env::OutputSink;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, CustomResult, GetPromptRequest,
    GetPromptRequestParams, GetPromptResult, JsonObject, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, ListToolsRequest, PaginatedRequestParams, Prompt, ReadResourceRequest,
    ReadResourceRequestParams, Resource, ResourceContents, ResourceTemplate, ServerCapabilities,
    ServerResult, Tool,
};
use rmcp::service::Peer;
use rmcp::{RoleClient, ServiceError};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::ServerConnection;
use crate::error::ServerError;
use crate::listing::MalformedEntry;

/// Maximum number of entries of one list. Further entries are left out.
const MAX_ENTRIES: usize = 10_000;

impl ServerConnection {
    /// Returns the capabilities of the server.
    pub(crate) fn capabilities(&self) -> ServerCapabilities {
        self.peer.peer_info().map(|info| info.capabilities.clone()).unwrap_or_default()
    }

    /// Returns the tools of the server in its order, and the malformed entries. The same applies to all lists.
    ///
    /// # Errors
    ///
    /// [`TimedOut`](crate::ServerErrorKind::TimedOut) beyond the time for a start,
    /// [`Answered`](crate::ServerErrorKind::Answered) or [`Lost`](crate::ServerErrorKind::Lost). The same applies to all
    /// lists.
    pub(crate) async fn tools(&self) -> Result<Vec<ListEntry<Tool>>, ServerError> {
        let peer = &self.peer;
        // A server that has reported no capabilities is asked.
        if peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let page = |page: PaginatedRequestParams| async move {
            let listed = peer.list_tools(Some(page.clone())).await;
            let listed = listed.map(|listed| (listed.tools, listed.next_cursor));
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(page));
            entries(peer, listed, request, "tools").await
        };
        self.in_time(all(page)).await
    }

    /// Returns the resources of the server; empty if it has none.
    pub(crate) async fn resources(&self) -> Result<Vec<ListEntry<Resource>>, ServerError> {
        let peer = &self.peer;
        if self.capabilities().resources.is_none() {
            return Ok(Vec::new());
        }
        let page = |page: PaginatedRequestParams| async move {
            let listed = peer.list_resources(Some(page.clone())).await;
            let listed = listed.map(|listed| (listed.resources, listed.next_cursor));
            let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
            entries(peer, listed, request, "resources").await
        };
        self.in_time(all(page)).await
    }

    /// Returns the templates for URIs of further resources. Servers need not support them.
    pub(crate) async fn resource_templates(&self) -> Result<Vec<ListEntry<ResourceTemplate>>, ServerError> {
        let peer = &self.peer;
        if self.capabilities().resources.is_none() {
            return Ok(Vec::new());
        }
        let page = |page: PaginatedRequestParams| async move {
            let listed = peer.list_resource_templates(Some(page.clone())).await;
            let listed = listed.map(|listed| (listed.resource_templates, listed.next_cursor));
            let request =
                ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page));
            entries(peer, listed, request, "resourceTemplates").await
        };
        let listed = async {
            match all(page).await {
                Err(ServiceError::McpError(_)) => Ok(Vec::new()),
                listed => listed,
            }
        };
        self.in_time(listed).await
    }

    /// Returns the prompts of the server; empty if it has none.
    pub(crate) async fn prompts(&self) -> Result<Vec<ListEntry<Prompt>>, ServerError> {
        let peer = &self.peer;
        if self.capabilities().prompts.is_none() {
            return Ok(Vec::new());
        }
        let page = |page: PaginatedRequestParams| async move {
            let listed = peer.list_prompts(Some(page.clone())).await;
            let listed = listed.map(|listed| (listed.prompts, listed.next_cursor));
            let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
            entries(peer, listed, request, "prompts").await
        };
        self.in_time(all(page)).await
    }

    /// Calls a tool.
    ///
    /// # Errors
    ///
    /// All kinds but [`Start`](crate::ServerErrorKind::Start). The same applies to reads.
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
            // A result without content is parsed as an empty result.
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

/// An entry of a list, or the reason why it cannot be read.
pub(crate) type ListEntry<T> = Result<T, MalformedEntry>;

/// Entries of a page, and the cursor of the next one.
type ListPage<T> = (Vec<T>, Option<String>);

/// Returns the entries of a page. A malformed entry makes the kind of the result unknown. The page is then listed again,
/// and each entry of its `member` is parsed separately.
async fn entries<T: DeserializeOwned>(
    peer: &Peer<RoleClient>,
    listed: Result<ListPage<T>, ServiceError>,
    request: ClientRequest,
    member: &str,
) -> Result<ListPage<ListEntry<T>>, ServiceError> {
    match listed {
        Ok((entries, cursor)) => return Ok((entries.into_iter().map(Ok).collect(), cursor)),
        Err(ServiceError::UnexpectedResponse) => {}
        Err(error) => return Err(error),
    }
    let ServerResult::CustomResult(CustomResult(mut listed)) = peer.send_request(request).await? else {
        return Err(ServiceError::UnexpectedResponse);
    };
    let Some(Value::Array(entries)) = listed.get_mut(member).map(Value::take) else {
        return Err(ServiceError::UnexpectedResponse);
    };
    let cursor = listed.get("nextCursor").and_then(Value::as_str).filter(|cursor| !cursor.is_empty());
    Ok((entries.iter().map(MalformedEntry::check).collect(), cursor.map(str::to_owned)))
}

/// Returns the entries of all pages of a list. A repeated cursor ends the list.
async fn all<T, F>(page: impl Fn(PaginatedRequestParams) -> F) -> Result<Vec<T>, ServiceError>
where
    F: Future<Output = Result<ListPage<T>, ServiceError>>,
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
