//! Quirks of servers: rules of a server or a model that its wire dialect does not have.
//!
//! The data is in `catalog/servers.json`; `catalog/README.md` describes format and sources.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Rules of a server or a model that its wire dialect does not have. `None` means the dialect's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ServerQuirks {
    /// Chat Completions: which assistant messages have `reasoning_content`. The default is
    /// [`ReasoningContent::Received`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<ReasoningContent>,
    /// Chat Completions: name of the limit on output tokens. The default is [`OutputLimit::MaxTokens`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<OutputLimit>,
    /// Chat Completions: legal ids of calls. The default is [`CallIds::Any`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_ids: Option<CallIds>,
    /// Chat Completions: a user message cannot follow the results of calls. An assistant message is sent between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_after_results: Option<bool>,
    /// Chat Completions: the field `stream_options` is accepted. The default is `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<bool>,
    /// Chat Completions: the first call of a message requires a thought signature in its `extra_content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_signatures: Option<bool>,
    /// The chat template contains `<think>`, so a response without a reasoning parser contains `</think>` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_thinking: Option<bool>,
    /// Messages API: thinking blocks without a signature are valid and must be sent back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsigned_thinking: Option<bool>,
}

/// Which assistant messages of a request have `reasoning_content`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReasoningContent {
    /// Those from the first message on whose reasoning was received in this field.
    Received,
    /// All of them.
    Always,
    /// None of them.
    Never,
}

/// Name of the limit on output tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputLimit {
    /// `max_tokens`.
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Legal ids of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallIds {
    /// Any id of up to 40 characters.
    Any,
    /// Nine ASCII letters and digits.
    NineAlphanumeric,
}

/// Entry of `catalog/servers.json`, without the fields for readers.
#[derive(Debug, Deserialize)]
struct Server<'a> {
    #[serde(borrow, default)]
    hosts: Vec<&'a str>,
    #[serde(borrow, default)]
    models: Vec<&'a str>,
    quirks: ServerQuirks,
}

const SHIPPED: &str = include_str!("../../catalog/servers.json");

/// A test parses the file, so the fallback is never used.
static SERVERS: LazyLock<Vec<Server<'static>>> =
    LazyLock::new(|| serde_json::from_str(SHIPPED).unwrap_or_default());

impl ServerQuirks {
    /// Returns the quirks of a model on this host, without a port. A model name may have a path, as on gateways.
    #[must_use]
    pub fn detect(host: &str, model: &str) -> Self {
        let host = host.to_ascii_lowercase();
        let model = model.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
        let entries = SERVERS.iter().filter(|server| server.matches(&host, &model));
        entries.fold(Self::default(), |found, server| found.or(&server.quirks))
    }

    /// Returns these quirks, with the values of `fallback` for absent ones.
    #[must_use]
    pub fn or(self, fallback: &Self) -> Self {
        Self {
            reasoning_content: self.reasoning_content.or(fallback.reasoning_content),
            output_limit: self.output_limit.or(fallback.output_limit),
            call_ids: self.call_ids.or(fallback.call_ids),
            answer_after_results: self.answer_after_results.or(fallback.answer_after_results),
            stream_options: self.stream_options.or(fallback.stream_options),
            call_signatures: self.call_signatures.or(fallback.call_signatures),
            opened_thinking: self.opened_thinking.or(fallback.opened_thinking),
            unsigned_thinking: self.unsigned_thinking.or(fallback.unsigned_thinking),
        }
    }
}

impl Server<'_> {
    /// Returns whether host and model match. An absent list matches everything.
    fn matches(&self, host: &str, model: &str) -> bool {
        let on_host = self.hosts.is_empty() || self.hosts.iter().any(|known| is_host(host, known));
        on_host && (self.models.is_empty() || self.models.iter().any(|pattern| is_model(model, pattern)))
    }
}

/// Returns whether a host is `known` or below it.
fn is_host(host: &str, known: &str) -> bool {
    host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns whether a name begins with a pattern. Its part after a `*` may be anywhere behind the part before it.
fn is_model(name: &str, pattern: &str) -> bool {
    let (start, rest) = pattern.split_once('*').unwrap_or((pattern, ""));
    name.strip_prefix(start).is_some_and(|behind| behind.contains(rest))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn every_entry_is_valid_and_has_a_source() {
        let servers: Vec<Server<'_>> = serde_json::from_str(SHIPPED).unwrap();
        let entries: Vec<Value> = serde_json::from_str(SHIPPED).unwrap();
        assert_eq!(servers.len(), entries.len());
        for (server, entry) in servers.iter().zip(entries) {
            assert!(server.quirks != ServerQuirks::default(), "{entry}");
            assert!(!server.hosts.is_empty() || !server.models.is_empty(), "{entry}");
            assert!(entry["name"].as_str().is_some_and(|name| !name.is_empty()), "{entry}");
            assert!(entry["sources"].as_array().is_some_and(|sources| !sources.is_empty()), "{entry}");
            for key in entry.as_object().unwrap().keys() {
                assert!(["name", "hosts", "models", "quirks", "sources"].contains(&key.as_str()), "{key}");
            }
        }
    }

    #[test]
    fn quirks_are_detected_by_host_and_by_model() {
        let max_completion_tokens = json!({"output_limit": "max_completion_tokens"});
        let mistral = json!({"call_ids": "nine_alphanumeric", "answer_after_results": true});
        let cases = [
            ("127.0.0.1", "llama", json!({})),
            ("", "", json!({})),
            ("127.0.0.1", "gpt-5.2", max_completion_tokens.clone()),
            ("127.0.0.1", "openai/GPT-6-sol", max_completion_tokens.clone()),
            ("127.0.0.1", "o3-mini", max_completion_tokens.clone()),
            ("127.0.0.1", "gpt-4.1", json!({})),
            ("127.0.0.1", "gpt-oss-120b", json!({})),
            ("me.openai.azure.com", "deployment", max_completion_tokens.clone()),
            ("API.OpenAI.com", "gpt-4.1", max_completion_tokens),
            ("not-api.openai.com.example", "gpt-4.1", json!({})),
            ("myapi.openai.com", "gpt-4.1", json!({})),
            ("openrouter.ai", "openai/gpt-5.2", json!({"output_limit": "max_tokens"})),
            (
                "api.deepseek.com",
                "deepseek-chat",
                json!({"reasoning_content": "always", "unsigned_thinking": true}),
            ),
            (
                "127.0.0.1",
                "deepseek-v4-pro",
                json!({"reasoning_content": "always", "unsigned_thinking": true}),
            ),
            ("127.0.0.1", "deepseek-r1:8b", json!({"unsigned_thinking": true, "opened_thinking": true})),
            ("127.0.0.1", "Qwen/Qwen3-235B-A22B-Thinking-2507", json!({"opened_thinking": true})),
            ("127.0.0.1", "Qwen/Qwen3-235B-A22B-Instruct-2507", json!({})),
            ("127.0.0.1", "mistralai/Devstral-Small", mistral),
            (
                "api.mistral.ai",
                "mistral-large-latest",
                json!({"call_ids": "nine_alphanumeric", "answer_after_results": true, "reasoning_content": "never", "stream_options": false}),
            ),
            (
                "api.groq.com",
                "moonshotai/kimi-k2-thinking",
                json!({"output_limit": "max_completion_tokens", "reasoning_content": "never", "unsigned_thinking": true}),
            ),
            ("generativelanguage.googleapis.com", "gemini-3-flash-preview", json!({"call_signatures": true})),
            ("generativelanguage.googleapis.com", "gemini-2.5-pro", json!({})),
            ("127.0.0.1", "gemini-3-flash-preview", json!({})),
        ];
        for (host, model, expected) in cases {
            let found = serde_json::to_value(ServerQuirks::detect(host, model)).unwrap();
            assert_eq!(found, expected, "{model} on {host}");
        }
    }

    #[test]
    fn given_quirks_take_precedence() {
        let given: ServerQuirks =
            serde_json::from_value(json!({"output_limit": "max_tokens", "stream_options": true})).unwrap();
        let found = given.or(&ServerQuirks::detect("api.mistral.ai", "mistral-small"));
        assert_eq!(found.output_limit, Some(OutputLimit::MaxTokens));
        assert_eq!((found.stream_options, found.call_ids), (Some(true), Some(CallIds::NineAlphanumeric)));
        for invalid in [json!({"unknown": true}), json!({"call_ids": "short"}), json!({"stream_options": 1})]
        {
            assert!(serde_json::from_value::<ServerQuirks>(invalid.clone()).is_err(), "{invalid}");
        }
    }
}
