//! `web_search`: searches the web.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;

use super::web::{SearchHit, SearchQuery, SearchResults, WebSearchClient};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{client_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// The default number of hits.
const DEFAULT_RESULTS: usize = 8;

/// Maximum number of hits that a call may request.
const MAX_RESULTS: usize = 20;

/// Maximum number of characters of a title and of a snippet.
const MAX_TITLE: usize = 200;
const MAX_SNIPPET: usize = 500;

client_tool! {
    /// Searches the web through a [`WebSearchClient`].
    pub struct WebSearch(Arc<dyn WebSearchClient>);
}

/// The arguments of `web_search`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WebSearchInput {
    /// The words to search for.
    #[schemars(description = "")]
    pub query: String,
    /// At most 20. Default: 8.
    #[schemars(range(min = 1))]
    pub max_results: Option<usize>,
}

impl Tool for WebSearch {
    type Input = WebSearchInput;

    tool_properties! {
        name: "web_search",
        description: include_str!("../../prompts/builtin/web_search.md"),
        effect: Effect::Network,
        // Searching has no side effect.
        repeatable: true,
    }

    async fn call(&self, input: WebSearchInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let max_results = input.max_results.unwrap_or(DEFAULT_RESULTS).clamp(1, MAX_RESULTS);
        let query = SearchQuery::new(input.query.trim(), max_results);
        let found = search(self.client.as_ref(), &query, cx).await?;
        if found.is_empty() {
            return Ok(ToolOutput::new(format!("(nothing was found for: {})", query.query)));
        }
        Ok(ToolOutput::new(found.join("\n\n")))
    }
}

/// Searches, and returns paragraphs for the model: the engine's own answer if there is one, then the numbered hits that
/// the query allows.
pub(crate) async fn search(
    client: &dyn WebSearchClient,
    query: &SearchQuery,
    cx: &ToolContext,
) -> Result<Vec<String>, ToolError> {
    if query.query.is_empty() {
        return Err(ToolError::invalid_arguments("query is empty; give the words to search for"));
    }
    let results = cx.until_cancelled("the search was stopped", client.search(query.clone()));
    let SearchResults { answer, hits } = results.await?;
    let answer = answer.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let wanted = hits.iter().filter(|hit| query.wants(&hit.url)).take(query.max_results);
    Ok(answer.into_iter().chain(wanted.enumerate().map(|(at, hit)| format_hit(at + 1, hit))).collect())
}

fn format_hit(number: usize, hit: &SearchHit) -> String {
    let title = one_line(&hit.title, MAX_TITLE);
    let title = if title.is_empty() { "(no title)" } else { &title };
    let mut text = format!("{number}. {title}\n   {}", one_line(&hit.url, usize::MAX));
    let snippet = one_line(&hit.snippet, MAX_SNIPPET);
    if !snippet.is_empty() {
        text.push_str("\n   ");
        text.push_str(&snippet);
    }
    text
}

/// Joins the lines of a text and cuts it after `max_chars` characters.
fn one_line(text: &str, max_chars: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::builtin::web::{WebError, WebErrorKind};
    use crate::tests::harness::Harness;

    /// A client with twice the requested hits; none for `nothing`, and an error for `broken`.
    #[derive(Debug)]
    struct FakeEngine;

    #[async_trait]
    impl WebSearchClient for FakeEngine {
        async fn search(&self, query: SearchQuery) -> Result<SearchResults, WebError> {
            match query.query.as_str() {
                "nothing" => Ok(SearchResults::default()),
                "answered" => Ok(SearchResults::default().with_answer(" It is so.\n")),
                "broken" => Err(WebError::new(WebErrorKind::Failed, "the engine does not answer")),
                words => {
                    let hit = SearchHit::new(format!("About\n{words}"), "https://a/", "x".repeat(501));
                    let bare = SearchHit::new("", "https://b/", " ");
                    Ok(SearchResults::new(
                        [hit, bare].into_iter().cycle().take(query.max_results * 2).collect(),
                    ))
                }
            }
        }
    }

    async fn search(arguments: serde_json::Value) -> String {
        Harness::new().call(WebSearch::new(Arc::new(FakeEngine)), &arguments.to_string()).await
    }

    #[tokio::test]
    async fn hits_are_numbered_and_cut() {
        let expected = format!(
            "ok: 1. About pintles\n   https://a/\n   {}…\n\n2. (no title)\n   https://b/",
            "x".repeat(500)
        );
        assert_eq!(search(json!({"query": " pintles ", "max_results": 2})).await, expected);
        assert!(search(json!({"query": "a", "max_results": 9999})).await.contains("\n20. (no title)"));
        assert!(!search(json!({"query": "a", "max_results": 9999})).await.contains("\n21. "));
    }

    #[tokio::test]
    async fn searches_without_hits_explain_themselves() {
        let cases = [
            (json!({"query": "nothing"}), "ok: (nothing was found for: nothing)"),
            (json!({"query": "answered"}), "ok: It is so."),
            (
                json!({"query": " "}),
                "error: Tool error (web_search): query is empty; give the words to search for",
            ),
            (json!({"query": "broken"}), "error: Tool error (web_search): the engine does not answer"),
        ];
        for (arguments, expected) in cases {
            assert_eq!(search(arguments).await, expected);
        }
    }
}
