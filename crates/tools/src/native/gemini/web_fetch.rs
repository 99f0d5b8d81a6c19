//! `web_fetch`: fetches the web pages whose URLs are in a text.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::builtin::{WebClient, WebPage, fetch, page_text};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{client_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};
use crate::truncate::{TruncationMarker, TruncationMode, TruncationRule, truncate_to};

/// Maximum number of URLs per call.
const MAX_PAGES: usize = 20;

/// Maximum number of characters of all pages in total, divided equally.
const MAX_CHARS: usize = 100_000;

/// Maximum number of additional characters per page, for its URL, truncation marker and separator.
const OVERHEAD: usize = 1_000;

client_tool! {
    /// Fetches every page that the prompt names, like [`WebFetch`](crate::builtin::WebFetch). The calling model reads
    /// the pages itself. No second model summarizes them.
    pub struct WebFetch(Arc<dyn WebClient>);
}

/// The arguments of `web_fetch`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WebFetchInput {
    /// The addresses, with `https://` or `http://`, and what you want of them.
    pub prompt: String,
}

impl Tool for WebFetch {
    type Input = WebFetchInput;

    tool_properties! {
        name: "web_fetch",
        description: include_str!("../../../prompts/gemini/web_fetch.md"),
        effect: Effect::Network,
        // Fetching has no side effect.
        repeatable: true,
        truncation: TruncationRule::new(MAX_CHARS + MAX_PAGES * OVERHEAD, TruncationMode::HeadTail)
            .with_marker(TruncationMarker::Characters),
    }

    fn hosts(&self, input: &WebFetchInput) -> Option<Vec<String>> {
        addresses_in(&input.prompt).into_iter().map(|url| self.client.host(url)).collect()
    }

    async fn call(&self, input: WebFetchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let addresses = addresses_in(&input.prompt);
        if addresses.is_empty() || addresses.len() > MAX_PAGES {
            let found = addresses.len();
            let message = format!(
                "`prompt`: expected 1 to {MAX_PAGES} addresses that begin with https:// or http://, found {found}"
            );
            return Err(ToolError::invalid_arguments(message));
        }
        let pages = self.fetch_all(&addresses, cx).await?;
        let part = TruncationRule::new(MAX_CHARS / pages.len().max(1), TruncationMode::HeadTail);
        let shown = |page: &WebPage| {
            truncate_to(&page_text(page).into(), part.with_marker(TruncationMarker::Characters))
        };
        let failed = !pages.iter().flatten().any(|page| page.status < 400);
        let texts: Vec<String> = addresses
            .iter()
            .zip(&pages)
            .map(|(address, page)| match page {
                Ok(page) => shown(page),
                Err(error) => format!("{address} was not fetched: {error}"),
            })
            .collect();
        match pages.into_iter().next() {
            // The error of a single page is the error of the call.
            Some(Err(error)) if texts.len() == 1 => Err(error),
            _ => Ok(ToolOutput::new(texts.join("\n\n---\n\n")).with_error(failed)),
        }
    }
}

impl WebFetch {
    /// Fetches pages concurrently; the results are in the order of the URLs. Dropping the future cancels the requests.
    async fn fetch_all(
        &self,
        addresses: &[&str],
        cx: &ToolContext,
    ) -> Result<Vec<Result<WebPage, ToolError>>, ToolError> {
        let mut fetches = JoinSet::new();
        for (at, address) in addresses.iter().enumerate() {
            let (client, address, cx) = (Arc::clone(&self.client), (*address).to_owned(), cx.clone());
            fetches.spawn(async move { (at, fetch(client.as_ref(), &address, &cx).await) });
        }
        let mut pages = Vec::new();
        while let Some(ended) = fetches.join_next().await {
            pages.push(
                ended.map_err(|error| ToolError::failed("the web client panicked").with_source(error))?,
            );
        }
        pages.sort_by_key(|(at, _)| *at);
        Ok(pages.into_iter().map(|(_, page)| page).collect())
    }
}

/// Returns the URLs in a text, each once, without surrounding punctuation.
fn addresses_in(text: &str) -> Vec<&str> {
    let mut addresses = Vec::new();
    for word in text.split_whitespace() {
        let start = ["https://", "http://"].iter().filter_map(|scheme| word.find(scheme)).min();
        let Some(address) = start.and_then(|start| word.get(start..)) else { continue };
        let end = address.find(['<', '>', '"', '`']).unwrap_or(address.len());
        let address = address.get(..end).unwrap_or_default();
        let address = address.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'', ')', ']', '}']);
        let names_host = address.split_once("://").is_some_and(|(_scheme, rest)| !rest.is_empty());
        if names_host && !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_found_in_prose_and_markup() {
        let cases: [(&str, &[&str]); 6] = [
            (
                "Sum up https://a.example/x, and http://b.example.",
                &["https://a.example/x", "http://b.example"],
            ),
            ("(see <https://a.example/x?y=1#z>)", &["https://a.example/x?y=1#z"]),
            ("[here](https://a.example/) https://a.example/", &["https://a.example/"]),
            ("\"https://a.example\" `https://b.example`", &["https://a.example", "https://b.example"]),
            ("https:// www.example.com ftp://a.example", &[]),
            ("nothing", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(addresses_in(text), expected, "{text}");
        }
    }
}
