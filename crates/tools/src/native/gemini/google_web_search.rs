//! `google_web_search`: searches the web.

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
    pub struct GoogleWebSearch(Arc<dyn WebSearchClient>);
}

/// The arguments of `google_web_search`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct GoogleWebSearchInput {
    /// The words to search for.
    #[schemars(description = "")]
    pub query: String,
}

impl Tool for GoogleWebSearch {
    type Input = GoogleWebSearchInput;

    tool_properties! {
        name: "google_web_search",
        description: include_str!("../../../prompts/gemini/google_web_search.md"),
        effect: Effect::Network,
        // Searching has no side effect.
        repeatable: true,
        kind: "web_search",
    }

    async fn call(&self, input: GoogleWebSearchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let query = SearchQuery::new(input.query.trim(), MAX_HITS);
        let found = search(self.client.as_ref(), &query, cx).await?;
        if found.is_empty() {
            let message = format!("No search results or information found for query: \"{}\"", query.query);
            return Ok(ToolOutput::new(message));
        }
        let title = format!("Web search results for \"{}\":", query.query);
        Ok(ToolOutput::new(format!("{title}\n\n{}", found.join("\n\n"))))
    }
}
