//! The answer (client specification, sections 3.7, 3.8, 3.11 and 3.12).

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::ToolCall;
use crate::message::Message;
use crate::usage::Usage;

/// A complete answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// The provider's id for the answer; empty if it gave none.
    pub id: String,
    /// The model that answered, which may differ from the one asked for.
    pub model: String,
    /// The provider that answered.
    pub provider: String,
    /// What the model said.
    pub message: Message,
    /// Why it stopped.
    pub finish_reason: FinishReason,
    /// Tokens spent.
    pub usage: Usage,
    /// The provider's whole answer, for debugging. Whole answers only; a stream has its events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// What was odd but did no harm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// What the provider said of its limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitInfo>,
}

impl Response {
    /// An answer with these parts; everything else is empty.
    #[must_use]
    pub fn new(provider: impl Into<String>, model: impl Into<String>, message: Message) -> Self {
        Self {
            id: String::new(),
            model: model.into(),
            provider: provider.into(),
            message,
            finish_reason: FinishReason::new(Finish::Stop),
            usage: Usage::default(),
            raw: None,
            warnings: Vec::new(),
            rate_limit: None,
        }
    }

    /// With the reason it stopped.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: FinishReason) -> Self {
        self.finish_reason = reason;
        self
    }

    /// With the tokens spent.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// All text, joined.
    #[must_use]
    pub fn text(&self) -> String {
        self.message.text()
    }

    /// The calls that the model wants made, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.tool_calls()
    }

    /// The readable reasoning.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        self.message.reasoning()
    }
}

/// Why generation stopped, in the unified terms of section 3.8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was done.
    Stop,
    /// The limit of output tokens.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// A safety filter, or the model refused.
    ContentFilter,
    /// Generation failed.
    Error,
    /// Something that only this provider has.
    Other,
}

/// The reason in both vocabularies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinishReason {
    /// Unified.
    pub reason: Finish,
    /// As the provider spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

impl FinishReason {
    /// A unified reason alone.
    #[must_use]
    pub fn new(reason: Finish) -> Self {
        Self { reason, raw: None }
    }

    /// With the provider's spelling.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<String>) -> Self {
        self.raw = Some(raw.into());
        self
    }
}

/// Something odd that did no harm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// For a person.
    pub message: String,
    /// For a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Warning {
    /// The code of the warning that characters of an answer were no Unicode and were replaced by U+FFFD.
    pub const REPLACED_CHARACTERS: &str = "replaced_characters";
}

/// What the provider said of its limits; informational.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateLimitInfo {
    /// Requests left in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_remaining: Option<u64>,
    /// Requests per window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_limit: Option<u64>,
    /// Tokens left in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_remaining: Option<u64>,
    /// Tokens per window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_limit: Option<u64>,
    /// When the window ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<SystemTime>,
}
