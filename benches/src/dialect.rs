//! Model responses as streamed in each dialect, made from the same parts.

use serde_json::{Value, json};

/// The wire formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Responses,
    Messages,
    Gemini,
    Chat,
}

/// A part of a response.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    Text {
        deltas: Vec<String>,
    },
    Call {
        id: String,
        name: String,
        deltas: Vec<String>,
    },
    /// A call with plain text input, which only the Responses API supports.
    Custom {
        id: String,
        name: String,
        deltas: Vec<String>,
    },
}

impl Dialect {
    pub(crate) const ALL: [Self; 4] = [Self::Responses, Self::Messages, Self::Gemini, Self::Chat];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic",
            Self::Gemini => "gemini",
            Self::Chat => "openai-chat",
        }
    }

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Returns the complete stream of a response with these parts.
    pub(crate) fn stream(self, parts: &[Part]) -> Vec<u8> {
        let mut events = Events::default();
        match self {
            Self::Responses => responses(parts, &mut events),
            Self::Messages => messages(parts, &mut events),
            Self::Gemini => gemini(parts, &mut events),
            Self::Chat => chat(parts, &mut events),
        }
        events.bytes
    }

    /// Returns whether an event of a recorded response may be repeated without making the response invalid.
    pub(crate) fn may_repeat(self, payload: &Value) -> bool {
        let is_text = |path: &str| payload.pointer(path).is_some_and(Value::is_string);
        match self {
            Self::Responses => payload.get("type").is_some_and(|kind| kind == "response.output_text.delta"),
            Self::Messages => is_text("/delta/text") || is_text("/delta/thinking"),
            Self::Gemini => {
                let is_last = payload.pointer("/candidates/0/finishReason").is_some();
                is_text("/candidates/0/content/parts/0/text") && !is_last
            }
            Self::Chat => is_text("/choices/0/delta/content"),
        }
    }
}

impl Part {
    pub(crate) fn text(delta: &str) -> Self {
        Self::Text { deltas: vec![delta.to_owned()] }
    }

    pub(crate) fn call(id: impl Into<String>, name: &str, arguments: &str) -> Self {
        Self::Call { id: id.into(), name: name.to_owned(), deltas: vec![arguments.to_owned()] }
    }

    fn whole(&self) -> String {
        match self {
            Self::Text { deltas } | Self::Call { deltas, .. } | Self::Custom { deltas, .. } => {
                deltas.concat()
            }
        }
    }
}

#[derive(Default)]
struct Events {
    bytes: Vec<u8>,
    count: u64,
}

impl Events {
    fn push(&mut self, payload: &Value) {
        if let Some(kind) = payload.get("type").and_then(Value::as_str) {
            self.bytes.extend_from_slice(format!("event: {kind}\n").as_bytes());
        }
        self.line(&payload.to_string());
    }

    fn line(&mut self, data: &str) {
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(data.as_bytes());
        self.bytes.extend_from_slice(b"\n\n");
        self.count += 1;
    }

    /// Pushes an event with a sequence number, as in the Responses API.
    fn numbered(&mut self, mut payload: Value) {
        if let Some(fields) = payload.as_object_mut() {
            fields.insert("sequence_number".to_owned(), self.count.into());
        }
        self.push(&payload);
    }
}

fn responses(parts: &[Part], events: &mut Events) {
    let response = |status: &str, output: &[Value]| {
        json!({"id": "resp_bench", "object": "response", "created_at": 1_762_790_185, "status": status,
               "model": "gpt-bench", "output": output,
               "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 20,
                         "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 120}})
    };
    events.numbered(json!({"type": "response.created", "response": response("in_progress", &[])}));
    let mut output = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let whole = part.whole();
        let (item_id, started, done) = match part {
            Part::Text { .. } => {
                let id = format!("msg_{index}");
                let item = |status: &str, content: Value| json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content});
                let content = json!([{"type": "output_text", "annotations": [], "text": whole}]);
                (id.clone(), item("in_progress", json!([])), item("completed", content))
            }
            Part::Call { id: call_id, name, .. } => {
                let id = format!("fc_{index}");
                let item = |status: &str, arguments: &str| {
                    json!({"id": id, "type": "function_call", "status": status, "arguments": arguments,
                           "call_id": call_id, "name": name})
                };
                (id.clone(), item("in_progress", ""), item("completed", &whole))
            }
            Part::Custom { id: call_id, name, .. } => {
                let id = format!("ctc_{index}");
                let item = |status: &str, input: &str| {
                    json!({"id": id, "type": "custom_tool_call", "status": status, "input": input,
                           "call_id": call_id, "name": name})
                };
                (id.clone(), item("in_progress", ""), item("completed", &whole))
            }
        };
        events
            .numbered(json!({"type": "response.output_item.added", "output_index": index, "item": started}));
        match part {
            Part::Text { deltas } => {
                for delta in deltas {
                    events.numbered(json!({"type": "response.output_text.delta", "item_id": item_id,
                        "output_index": index, "content_index": 0, "delta": delta, "logprobs": []}));
                }
                events.numbered(json!({"type": "response.output_text.done", "item_id": item_id,
                    "output_index": index, "content_index": 0, "text": whole}));
            }
            Part::Call { deltas, .. } => {
                for delta in deltas {
                    events.numbered(
                        json!({"type": "response.function_call_arguments.delta", "item_id": item_id,
                        "output_index": index, "delta": delta}),
                    );
                }
                events.numbered(json!({"type": "response.function_call_arguments.done", "item_id": item_id,
                    "output_index": index, "arguments": whole}));
            }
            Part::Custom { deltas, .. } => {
                for delta in deltas {
                    events.numbered(json!({"type": "response.custom_tool_call_input.delta",
                        "item_id": item_id, "output_index": index, "delta": delta}));
                }
                events.numbered(json!({"type": "response.custom_tool_call_input.done", "item_id": item_id,
                    "output_index": index, "input": whole}));
            }
        }
        events.numbered(json!({"type": "response.output_item.done", "output_index": index, "item": done}));
        output.push(done);
    }
    events.numbered(json!({"type": "response.completed", "response": response("completed", &output)}));
}

fn messages(parts: &[Part], events: &mut Events) {
    let usage = json!({"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
                       "output_tokens": 20});
    events.push(&json!({"type": "message_start", "message": {"id": "msg_bench", "type": "message",
        "role": "assistant", "model": "claude-bench", "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": usage}}));
    for (index, part) in parts.iter().enumerate() {
        let (block, deltas, kind, field) = match part {
            Part::Text { deltas } => (json!({"type": "text", "text": ""}), deltas, "text_delta", "text"),
            Part::Call { id, name, deltas } | Part::Custom { id, name, deltas } => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                deltas,
                "input_json_delta",
                "partial_json",
            ),
        };
        events.push(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        for delta in deltas {
            events.push(&json!({"type": "content_block_delta", "index": index,
                                "delta": {"type": kind, field: delta}}));
        }
        events.push(&json!({"type": "content_block_stop", "index": index}));
    }
    let reason = if calls(parts) { "tool_use" } else { "end_turn" };
    events.push(&json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
                        "usage": {"output_tokens": 20}}));
    events.push(&json!({"type": "message_stop"}));
}

fn gemini(parts: &[Part], events: &mut Events) {
    let chunk = |part: Value, last: bool| {
        let mut candidate = json!({"content": {"role": "model", "parts": [part]}, "index": 0});
        if last {
            candidate =
                json!({"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0});
        }
        json!({"candidates": [candidate], "modelVersion": "gemini-bench", "responseId": "bench",
               "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 20, "totalTokenCount": 120}})
    };
    for part in parts {
        match part {
            Part::Text { deltas } => {
                deltas.iter().for_each(|delta| events.push(&chunk(json!({"text": delta}), false)));
            }
            // Gemini sends a call in one piece.
            Part::Call { name, .. } | Part::Custom { name, .. } => {
                let args: Value = serde_json::from_str(&part.whole()).unwrap_or_default();
                events.push(&chunk(json!({"functionCall": {"name": name, "args": args}}), false));
            }
        }
    }
    events.push(&chunk(json!({"text": ""}), true));
}

fn chat(parts: &[Part], events: &mut Events) {
    let chunk = |delta: Value, reason: Option<&str>| {
        json!({"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_719_816_565,
               "model": "chat-bench", "system_fingerprint": null,
               "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]})
    };
    events.push(&chunk(json!({"role": "assistant", "content": null}), None));
    let mut index = 0;
    for part in parts {
        match part {
            Part::Text { deltas } => {
                deltas.iter().for_each(|delta| events.push(&chunk(json!({"content": delta}), None)));
            }
            Part::Call { id, name, deltas } | Part::Custom { id, name, deltas } => {
                let first = json!({"index": index, "id": id, "type": "function",
                                   "function": {"name": name, "arguments": ""}});
                events.push(&chunk(json!({"tool_calls": [first]}), None));
                for delta in deltas {
                    let more = json!({"index": index, "function": {"arguments": delta}});
                    events.push(&chunk(json!({"tool_calls": [more]}), None));
                }
                index += 1;
            }
        }
    }
    let reason = if calls(parts) { "tool_calls" } else { "stop" };
    events.push(&chunk(json!({}), Some(reason)));
    events.push(&json!({"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_719_816_565,
        "model": "chat-bench", "choices": [],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}}));
    events.line("[DONE]");
}

fn calls(parts: &[Part]) -> bool {
    parts.iter().any(|part| !matches!(part, Part::Text { .. }))
}
