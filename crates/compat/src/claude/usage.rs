//! Token counts in Claude's format, in which the input does not include cached tokens.

use pintle_llm::{Finish, FinishReason, Usage};
use serde_json::{Value, json};

/// Returns the counts of one or several model calls.
pub(super) fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.uncached_input_tokens(),
        "cache_creation_input_tokens": usage.cache_write_tokens.unwrap_or(0),
        "cache_read_input_tokens": usage.cache_read_tokens.unwrap_or(0),
        "output_tokens": usage.output_tokens,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
    })
}

/// Returns the reason why a model stopped; `None` if Claude has no such reason.
pub(super) fn stop_reason(reason: &FinishReason) -> Option<&'static str> {
    match reason.reason {
        Finish::Stop => Some("end_turn"),
        Finish::Length => Some("max_tokens"),
        Finish::ToolCalls => Some("tool_use"),
        Finish::ContentFilter => Some("refusal"),
        Finish::Error | Finish::Other => None,
    }
}
