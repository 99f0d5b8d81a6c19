//! The model response of one session that is being written.

use pintle_llm::{FinishReason, Usage};
use serde_json::{Value, json};

use super::usage::{stop_reason, usage};

/// A response. Its blocks are written after its end, which has the reason and the token counts.
#[derive(Clone, Debug, Default)]
pub(super) struct ResponseMessage {
    /// Id; `None` before the first block.
    id: Option<String>,
    waiting: Vec<Value>,
    stop_reason: Option<&'static str>,
    usage: Usage,
}

impl ResponseMessage {
    /// Returns the id. `make` creates it at the first block.
    pub(super) fn id(&mut self, make: impl FnOnce() -> String) -> &str {
        self.id.get_or_insert_with(make)
    }

    /// Adds a block.
    pub(super) fn add(&mut self, block: Value) {
        self.waiting.push(block);
    }

    /// Ends the response, so that its blocks can be written.
    pub(super) fn end(&mut self, reason: &FinishReason, usage: &Usage) {
        self.stop_reason = stop_reason(reason);
        self.usage = usage.clone();
    }

    /// Drops the waiting blocks, since the model call is repeated.
    pub(super) fn discard(&mut self) {
        *self = Self::default();
    }

    /// Returns the waiting blocks.
    pub(super) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.waiting)
    }

    /// Returns the message with one block.
    pub(super) fn to_value(&self, block: &Value, model: &str) -> Value {
        json!({
            "id": self.id.as_deref().unwrap_or("msg_0"),
            "type": "message",
            "role": "assistant",
            "model": model,
            "content": [block],
            "stop_reason": self.stop_reason,
            "stop_sequence": null,
            "usage": usage(&self.usage),
        })
    }
}
