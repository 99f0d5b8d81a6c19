//! Responses (client specification, sections 3.7, 3.8, 3.11 and 3.12).

use std::time::SystemTime;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::ToolCall;
use crate::message::Message;
use crate::usage::Usage;

/// Complete response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Response {
    /// The provider's id of the response; empty if it gave none.
    pub id: String,
    /// Model that responded, which may differ from the requested one.
    pub model: String,
    /// Provider that responded.
    pub provider: String,
    /// Message of the model.
    pub message: Message,
    /// Finish reason.
    pub finish_reason: FinishReason,
    /// Token counts.
    pub usage: Usage,
    /// The provider's response body, for debugging; not set for streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// Warnings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// The provider's rate limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit: Option<RateLimitInfo>,
}

impl Response {
    /// Creates a response; everything else is empty.
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

    /// Sets the finish reason.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: FinishReason) -> Self {
        self.finish_reason = reason;
        self
    }

    /// Sets the token counts.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = usage;
        self
    }

    /// Returns the concatenation of all text.
    #[must_use]
    pub fn text(&self) -> String {
        self.message.text()
    }

    /// Tool calls, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.message.tool_calls()
    }

    /// Returns the readable reasoning.
    #[must_use]
    pub fn reasoning(&self) -> Option<String> {
        self.message.reasoning()
    }
}

/// Unified finish reason (section 3.8). Exhaustive: `Other` covers the reasons of individual providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model finished.
    Stop,
    /// Limit on the output tokens.
    Length,
    /// The model waits for tool results.
    ToolCalls,
    /// A safety filter, or the model refused.
    ContentFilter,
    /// Generation failed.
    Error,
    /// Reason of an individual provider.
    Other,
}

/// Finish reason, unified and in the spelling of the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FinishReason {
    /// Unified reason.
    pub reason: Finish,
    /// The provider's spelling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
}

impl FinishReason {
    /// Creates a reason without the provider's spelling.
    #[must_use]
    pub fn new(reason: Finish) -> Self {
        Self { reason, raw: None }
    }

    /// Sets the provider's spelling.
    #[must_use]
    pub fn with_raw(mut self, raw: impl Into<String>) -> Self {
        self.raw = Some(raw.into());
        self
    }
}

/// Warning about a request or response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Warning {
    /// Message for people.
    pub message: String,
    /// Code for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl Warning {
    /// Code of the warning that invalid characters of a response were replaced by U+FFFD.
    pub const REPLACED_CHARACTERS: &str = "replaced_characters";
}

/// The provider's rate limits; informational.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RateLimitInfo {
    /// Remaining requests in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_remaining: Option<u64>,
    /// Requests per window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_limit: Option<u64>,
    /// Remaining tokens in the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_remaining: Option<u64>,
    /// Tokens per window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_limit: Option<u64>,
    /// End of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_at: Option<SystemTime>,
}
