//! Partial messages: the events of a stream of Claude's API.

use pintle_llm::{FinishReason, Usage};
use serde_json::{Value, json};

use super::usage::{stop_reason, usage};

/// Kind of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
    /// Arguments of the call with this id.
    Call(String),
}

/// The blocks of the response that is being streamed.
#[derive(Clone, Debug, Default)]
pub(super) struct PartialMessage {
    is_open: bool,
    /// Blocks that have started and not ended, with their indices.
    open: Vec<(u64, BlockKind)>,
    next: u64,
}

impl PartialMessage {
    /// Starts a block, and the message before its first block.
    pub(super) fn begin(&mut self, block: BlockKind, content: &Value, id: &str, model: &str) -> Vec<Value> {
        let mut events = Vec::new();
        if !self.is_open {
            self.is_open = true;
            self.next = 0;
            let usage = usage(&Usage::default());
            events.push(json!({"type": "message_start", "message": {
                "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": usage,
            }}));
        }
        let index = self.next;
        self.next = self.next.saturating_add(1);
        self.open.push((index, block));
        events.push(json!({"type": "content_block_start", "index": index, "content_block": content}));
        events
    }

    /// Continues a block, if it is open.
    pub(super) fn delta(&self, block: &BlockKind, delta: &str) -> Option<Value> {
        let (index, _) = self.open.iter().rev().find(|(_, open)| open == block)?;
        let delta = match block {
            BlockKind::Text => json!({"type": "text_delta", "text": delta}),
            BlockKind::Thinking => json!({"type": "thinking_delta", "thinking": delta}),
            BlockKind::Call(_) => json!({"type": "input_json_delta", "partial_json": delta}),
        };
        Some(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    }

    /// Ends a block, if it is open.
    pub(super) fn end(&mut self, block: &BlockKind) -> Option<Value> {
        let at = self.open.iter().rposition(|(_, open)| open == block)?;
        let (index, _) = self.open.remove(at);
        Some(json!({"type": "content_block_stop", "index": index}))
    }

    /// Ends the message of a complete response, if it is open.
    pub(super) fn complete(&mut self, reason: &FinishReason, tokens: &Usage) -> Vec<Value> {
        if !self.is_open {
            return Vec::new();
        }
        let mut events = self.stop_blocks();
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(reason), "stop_sequence": null},
            "usage": usage(tokens),
        }));
        events.push(json!({"type": "message_stop"}));
        events
    }

    /// Ends the message of a response that failed or was stopped, if it is open.
    pub(super) fn abandon(&mut self) -> Vec<Value> {
        if !self.is_open {
            return Vec::new();
        }
        let mut events = self.stop_blocks();
        events.push(json!({"type": "message_stop"}));
        events
    }

    fn stop_blocks(&mut self) -> Vec<Value> {
        self.is_open = false;
        let stop = |(index, _)| json!({"type": "content_block_stop", "index": index});
        self.open.drain(..).map(stop).collect()
    }
}
