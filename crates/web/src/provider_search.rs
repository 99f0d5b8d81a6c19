//! Web search through a model's provider: one small request with the provider's own search tool.

mod sources;

use std::time::Duration;

use async_trait::async_trait;
use pintle_llm::{AdapterTimeout, Client, HistoryItem, Message, Request, Response};
use pintle_tools::builtin::{SearchQuery, SearchResults, WebError, WebErrorKind, WebSearchClient};
use serde_json::{Map, Value, json};

use self::sources::extract_hits;

/// Maximum total time of a search: models read pages before they answer.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Maximum number of times that a paused response is continued.
const MAX_PAUSES: usize = 3;

/// Stop reason with which Anthropic pauses a response that the next request continues.
const PAUSED: &str = "pause_turn";

/// Maximum number of output tokens of a response.
const MAX_TOKENS: u64 = 4_096;

/// Maximum number of searches per response, where the dialect has such a limit.
const MAX_SEARCHES: u32 = 3;

/// Searches the web by asking a model whose provider can: OpenAI with `web_search`, Anthropic with
/// `web_search_20250305`, Gemini with `googleSearch`.
///
/// [`SearchResults::answer`] is the model's text, and the hits are the pages that it cites or read. Each search is a
/// separate request at the provider's price; the query is the only part of the session in it.
///
/// Its tokens count towards neither the usage nor the budget of the session whose tool searches. To limit them, put a
/// [budget](pintle_llm::Budget) around `client`.
#[derive(Clone, Debug)]
pub struct ProviderSearch {
    client: Client,
    provider: SearchDialect,
    name: String,
    model: String,
}

/// Dialect of the search request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SearchDialect {
    OpenAi,
    Anthropic,
    Gemini,
}

impl ProviderSearch {
    /// Creates a search through the provider of `client` that is named `provider`: `openai`, `anthropic` or `gemini`.
    /// Returns `None` for any other name, because no search tool of other providers is known.
    #[must_use]
    pub fn new(client: Client, provider: &str, model: impl Into<String>) -> Option<Self> {
        let dialect = match provider {
            "openai" => SearchDialect::OpenAi,
            "anthropic" => SearchDialect::Anthropic,
            "gemini" => SearchDialect::Gemini,
            _ => return None,
        };
        Some(Self { client, provider: dialect, name: provider.to_owned(), model: model.into() })
    }

    fn request(&self, query: &SearchQuery, messages: Vec<HistoryItem>) -> Request {
        Request::new(&self.model, messages)
            .with_provider(&self.name)
            .with_max_tokens(MAX_TOKENS)
            .with_timeout(AdapterTimeout::patient().with_request(Some(TIME_LIMIT)))
            .with_provider_options(&self.name, self.provider.options(query))
    }

    async fn ask(&self, query: &SearchQuery) -> Result<SearchResults, WebError> {
        let mut messages = vec![HistoryItem::from(Message::user(prompt(query)))];
        let mut results = SearchResults::default();
        let mut answer = String::new();
        for _ in 0..=MAX_PAUSES {
            let response =
                self.client.complete(self.request(query, messages.clone())).await.map_err(failed)?;
            answer.push_str(&response.text());
            for hit in extract_hits(self.provider, response.raw.as_ref().unwrap_or(&Value::Null)) {
                if results.hits.iter().all(|known| known.url != hit.url) {
                    results.hits.push(hit);
                }
            }
            if !is_paused(&response) {
                break;
            }
            messages.push(response.message.into());
        }
        results.answer = Some(answer).filter(|answer| !answer.trim().is_empty());
        Ok(results)
    }
}

#[async_trait]
impl WebSearchClient for ProviderSearch {
    async fn search(&self, query: SearchQuery) -> Result<SearchResults, WebError> {
        match tokio::time::timeout(TIME_LIMIT, self.ask(&query)).await {
            Ok(results) => results,
            Err(_elapsed) => {
                let message = format!("the search got no response after {} s", TIME_LIMIT.as_secs());
                Err(WebError::new(WebErrorKind::Timeout, message))
            }
        }
    }
}

impl SearchDialect {
    /// Returns the provider options with the search tool, including domain filters where the dialect has them.
    fn options(self, query: &SearchQuery) -> Value {
        let SearchQuery { allowed_domains: allowed, blocked_domains: blocked, .. } = query;
        match self {
            Self::OpenAi => {
                let tool = if allowed.is_empty() {
                    json!({"type": "web_search"})
                } else {
                    json!({"type": "web_search", "filters": {"allowed_domains": allowed}})
                };
                json!({"tools": [tool], "include": ["web_search_call.action.sources"]})
            }
            Self::Anthropic => {
                let mut tool = Map::new();
                tool.insert("type".to_owned(), "web_search_20250305".into());
                tool.insert("name".to_owned(), "web_search".into());
                tool.insert("max_uses".to_owned(), MAX_SEARCHES.into());
                // The API accepts only one of the two.
                if !allowed.is_empty() {
                    tool.insert("allowed_domains".to_owned(), json!(allowed));
                } else if !blocked.is_empty() {
                    tool.insert("blocked_domains".to_owned(), json!(blocked));
                }
                json!({"tools": [tool]})
            }
            Self::Gemini => json!({"tools": [{"googleSearch": {}}]}),
        }
    }
}

/// Start of the prompt; a blank line and the query follow.
const INSTRUCTION: &str = include_str!("../prompts/search.md");

/// Returns the prompt. It repeats the domains, since not every dialect has filters for them.
fn prompt(query: &SearchQuery) -> String {
    let mut text = format!("{INSTRUCTION}\n{}", query.query);
    if !query.allowed_domains.is_empty() {
        text.push_str(&format!("\n\nUse pages of these domains only: {}", query.allowed_domains.join(", ")));
    }
    if !query.blocked_domains.is_empty() {
        text.push_str(&format!("\n\nUse no pages of these domains: {}", query.blocked_domains.join(", ")));
    }
    text
}

fn is_paused(response: &Response) -> bool {
    response.finish_reason.raw.as_deref() == Some(PAUSED)
}

fn failed(error: pintle_llm::Error) -> WebError {
    WebError::new(WebErrorKind::Failed, format!("the search failed: {error}")).with_source(error)
}

#[cfg(test)]
mod tests;
