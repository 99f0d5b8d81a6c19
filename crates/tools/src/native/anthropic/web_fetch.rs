//! `WebFetch`: fetches a web page as text.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{WebClient, fetch, page_text};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{client_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

client_tool! {
    /// Fetches a page, like [`WebFetch`](crate::builtin::WebFetch). The calling model reads the page itself; no second
    /// model answers the `prompt`.
    pub struct WebFetch(Arc<dyn WebClient>);
}

/// The arguments of `WebFetch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WebFetchInput {
    /// With `https://` or `http://`.
    pub url: String,
    /// What you look for, for the user. You get the whole page.
    pub prompt: String,
}

impl Tool for WebFetch {
    type Input = WebFetchInput;

    tool_properties! {
        name: "WebFetch",
        description: include_str!("../../../prompts/anthropic/web_fetch.md"),
        effect: Effect::Network,
        // Fetching has no side effect.
        repeatable: true,
        kind: "web_fetch",
    }

    fn hosts(&self, input: &WebFetchInput) -> Option<Vec<String>> {
        Some(vec![self.client.host(&input.url)?])
    }

    async fn call(&self, input: WebFetchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let page = fetch(self.client.as_ref(), &input.url, cx).await?;
        Ok(ToolOutput::new(page_text(&page)).with_error(page.status >= 400))
    }
}
