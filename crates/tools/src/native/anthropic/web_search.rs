//! `WebSearch`: searches the web.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{SearchQuery, WebSearchClient, search};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{client_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// Maximum number of hits that are shown.
const MAX_HITS: usize = 10;

client_tool! {
    /// Searches the web, like [`WebSearch`](crate::builtin::WebSearch).
    pub struct WebSearch(Arc<dyn WebSearchClient>);
}

/// The arguments of `WebSearch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WebSearchInput {
    /// The words to search for.
    #[schemars(description = "")]
    #[schemars(length(min = 2))]
    pub query: String,
    /// Only pages of these domains.
    pub allowed_domains: Option<Vec<String>>,
    /// No pages of these domains.
    pub blocked_domains: Option<Vec<String>>,
}

impl Tool for WebSearch {
    type Input = WebSearchInput;

    tool_properties! {
        name: "WebSearch",
        description: include_str!("../../../prompts/anthropic/web_search.md"),
        effect: Effect::Network,
        // Searching has no side effect.
        repeatable: true,
        kind: "web_search",
    }

    async fn call(&self, input: WebSearchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let allowed = input.allowed_domains.unwrap_or_default();
        let blocked = input.blocked_domains.unwrap_or_default();
        if !allowed.is_empty() && !blocked.is_empty() {
            let message = "give either `allowed_domains` or `blocked_domains`, not both";
            return Err(ToolError::invalid_arguments(message));
        }
        let query = SearchQuery::new(input.query.trim(), MAX_HITS).with_domains(allowed, blocked);
        let found = search(self.client.as_ref(), &query, cx).await?;
        let title = format!("Web search results for query: \"{}\"", query.query);
        if found.is_empty() {
            return Ok(ToolOutput::new(format!("{title}\n\nNo results found.")));
        }
        Ok(ToolOutput::new(format!("{title}\n\n{}", found.join("\n\n"))))
    }
}
