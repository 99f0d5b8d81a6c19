//! Context of a request: everything in it besides the history.

use std::collections::BTreeMap;

use pintle_llm::{ModelInfo, ToolList};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallKind, LoadedProject};

/// All parts of a request besides the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnContext {
    /// Provider that requests are sent to.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Complete system prompt.
    pub system_prompt: String,
    /// Length in bytes of the part of the system prompt that stays the same while the working tree changes, where a
    /// provider's cache may end. `None` if there is no such part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_prompt: Option<usize>,
    /// Project documents and skills in the prompt.
    #[serde(default, skip_serializing_if = "LoadedProject::is_empty")]
    pub project: LoadedProject,
    /// Tools, in order.
    pub tools: ToolList,
    /// Kinds of the calls of these tools, by tool name. Tools of kind [`CallKind::Other`] are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub call_kinds: BTreeMap<String, CallKind>,
    /// Parameters that only one provider understands.
    pub provider_options: Map<String, Value>,
    /// Output limit in tokens; the provider's default if `None`.
    pub max_tokens: Option<u64>,
    /// Whether the calls of one round may run concurrently.
    pub parallel_tool_calls: bool,
    /// Whether the model can reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub supports_reasoning: bool,
    /// Context window of the model, in tokens.
    pub context_window: u64,
    /// Prices of the model; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Box<ModelInfo>>,
    /// Bounds for the reservations of calls under a budget.
    #[serde(default, skip_serializing_if = "TokenBounds::is_default")]
    pub bounds: TokenBounds,
}

/// Bounds on the size of requests and responses, for the reservations of calls under [`Limits`](super::Limits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TokenBounds {
    /// Minimum bytes of text per token, on average over a text. Default 2.
    pub bytes_per_token: u64,
    /// Maximum tokens of an image. Default 5,000.
    pub image: u64,
    /// Minimum output tokens of a useful request. Default 1.
    pub least_output: u64,
    /// Minimum output tokens of a useful request with reasoning. Default 1.
    pub least_output_reasoning: u64,
}

impl Default for TokenBounds {
    fn default() -> Self {
        Self { bytes_per_token: 2, image: 5_000, least_output: 1, least_output_reasoning: 1 }
    }
}

impl TokenBounds {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl TurnContext {
    /// Creates a context without tools, options or limits.
    #[must_use]
    pub fn new(
        provider: impl Into<String>,
        model: impl Into<String>,
        system_prompt: impl Into<String>,
        context_window: u64,
    ) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            system_prompt: system_prompt.into(),
            stable_prompt: None,
            project: LoadedProject::default(),
            tools: ToolList::default(),
            call_kinds: BTreeMap::new(),
            provider_options: Map::new(),
            max_tokens: None,
            parallel_tool_calls: true,
            supports_reasoning: false,
            context_window,
            pricing: None,
            bounds: TokenBounds::default(),
        }
    }

    /// Returns the kind of the calls of this tool.
    pub(crate) fn call_kind(&self, tool_name: &str) -> CallKind {
        self.call_kinds.get(tool_name).copied().unwrap_or_default()
    }
}
