//! Contents of conversations, logged only on request.

use serde_json::{Value, json};

use crate::content::ContentPart;
use crate::history::HistoryItem;
use crate::message::{Message, Role};

/// Emits an event with the prompt.
pub(super) fn log_input(messages: &[HistoryItem], limit: usize) {
    let contents: Vec<Value> = messages.iter().map(|item| message(item)).collect();
    let contents = truncate(Value::Array(contents).to_string(), limit);
    tracing::debug!(gen_ai.input.messages = contents, "model request");
}

/// Emits an event with the response.
pub(super) fn log_output(response: &Message, limit: usize) {
    let contents = truncate(Value::Array(vec![message(response)]).to_string(), limit);
    tracing::debug!(gen_ai.output.messages = contents, "model response");
}

/// A message in the convention's format: a role and typed parts.
fn message(message: &Message) -> Value {
    json!({"role": role(message.role), "parts": message.content.iter().map(part).collect::<Vec<Value>>()})
}

/// The convention has no developer role.
fn role(role: Role) -> &'static str {
    match role {
        Role::System | Role::Developer => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text(data) => json!({"type": "text", "content": data.text}),
        ContentPart::Thinking(data) => json!({"type": "reasoning", "content": data.text}),
        ContentPart::ToolCall(call) => {
            json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments})
        }
        ContentPart::ToolResult(result) => {
            json!({"type": "tool_call_response", "id": result.tool_call_id, "response": result.content})
        }
        ContentPart::Image(_) => json!({"type": "blob", "modality": "image"}),
        ContentPart::Audio(_) => json!({"type": "blob", "modality": "audio"}),
        ContentPart::Document(_) => json!({"type": "blob", "modality": "document"}),
        ContentPart::Opaque(data) => json!({"type": data.kind}),
    }
}

fn truncate(mut text: String, limit: usize) -> String {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
