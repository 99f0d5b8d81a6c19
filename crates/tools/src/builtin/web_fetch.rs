//! `web_fetch`: fetches a web page as text.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::web::{FetchRequest, WebClient, WebPage};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{client_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

client_tool! {
    /// Fetches a page through a [`WebClient`], which limits addresses and time.
    ///
    /// The result contains the URL and the status, followed by the text. A status of 400 or above counts as an error.
    pub struct WebFetch(Arc<dyn WebClient>);
}

/// The arguments of `web_fetch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WebFetchInput {
    /// With `https://` or `http://`.
    pub url: String,
}

impl Tool for WebFetch {
    type Input = WebFetchInput;

    tool_properties! {
        name: "web_fetch",
        description: include_str!("../../prompts/builtin/web_fetch.md"),
        effect: Effect::Network,
        // Fetching has no side effect.
        repeatable: true,
    }

    fn hosts(&self, input: &WebFetchInput) -> Option<Vec<String>> {
        Some(vec![self.client.host(&input.url)?])
    }

    async fn call(&self, input: WebFetchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let page = fetch(self.client.as_ref(), &input.url, cx).await?;
        Ok(ToolOutput::new(page_text(&page)).with_error(page.status >= 400))
    }
}

/// Fetches a page, unless the call is cancelled first.
pub(crate) async fn fetch(client: &dyn WebClient, url: &str, cx: &ToolContext) -> Result<WebPage, ToolError> {
    let stopped = "the request was stopped before its answer was whole";
    cx.until_cancelled(stopped, client.fetch(FetchRequest::new(url))).await
}

/// Formats a page for the model: URL and status, then the text.
pub(crate) fn page_text(page: &WebPage) -> String {
    let media_type = if page.media_type.is_empty() { "no media type" } else { &page.media_type };
    let mut text = format!("{} (status {}, {media_type})\n\n", page.url, page.status);
    text.push_str(if page.text.trim().is_empty() { "(no text)" } else { page.text.trim_end() });
    if let Some(bytes) = page.cut_at {
        let _infallible = write!(text, "\n\n[The page is longer: only its first {bytes} bytes were read.]");
    }
    text
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::builtin::web::{WebError, WebErrorKind};
    use crate::error::ToolErrorKind;
    use crate::tests::harness::Harness;

    /// A client whose response depends on the last part of the URL.
    #[derive(Debug)]
    struct FakeWeb;

    #[async_trait]
    impl WebClient for FakeWeb {
        async fn fetch(&self, request: FetchRequest) -> Result<WebPage, WebError> {
            let page = |status, text: &str| WebPage::new("https://example.com/", status, "text/html", text);
            match request.url.rsplit('/').next() {
                Some("page") => Ok(page(200, "# Title\n\ntext\n")),
                Some("long") => Ok(page(200, "text").with_cut_at(Some(4))),
                Some("empty") => Ok(WebPage::new("https://example.com/", 204, "", "\n")),
                Some("gone") => Ok(page(410, "It is gone.")),
                Some("slow") => std::future::pending().await,
                _ => Err(WebError::new(WebErrorKind::Refused, format!("{} may not be reached", request.url))),
            }
        }
    }

    #[tokio::test]
    async fn a_page_has_its_url_and_status() {
        let harness = Harness::new();
        let cases = [
            ("page", "ok: https://example.com/ (status 200, text/html)\n\n# Title\n\ntext"),
            (
                "long",
                "ok: https://example.com/ (status 200, text/html)\n\ntext\n\n\
                 [The page is longer: only its first 4 bytes were read.]",
            ),
            ("empty", "ok: https://example.com/ (status 204, no media type)\n\n(no text)"),
            ("gone", "error: https://example.com/ (status 410, text/html)\n\nIt is gone."),
            ("secret", "error: Tool error (web_fetch): http://a/secret may not be reached"),
        ];
        for (page, expected) in cases {
            let arguments = json!({"url": format!("http://a/{page}")}).to_string();
            assert_eq!(harness.call(WebFetch::new(Arc::new(FakeWeb)), &arguments).await, expected);
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_does_not_wait_for_the_response() {
        let harness = Harness::new();
        let cx = harness.context();
        cx.cancel.cancel();
        let tool = WebFetch::new(Arc::new(FakeWeb));
        let execution = harness.execute_in(&cx, tool, r#"{"url": "http://a/slow"}"#).await;
        assert_eq!(execution.error, Some(ToolErrorKind::Cancelled));
    }
}
