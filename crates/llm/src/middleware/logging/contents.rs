//! What was said, for logs whose readers may know it.

use serde_json::{Value, json};

use crate::content::ContentPart;
use crate::history::HistoryItem;
use crate::message::{Message, Role};

/// An event with the prompt.
pub(super) fn input(messages: &[HistoryItem], limit: usize) {
    let said: Vec<Value> = messages.iter().map(|item| message(item)).collect();
    let said = cut(Value::Array(said).to_string(), limit);
    tracing::debug!(gen_ai.input.messages = said, "asked");
}

/// An event with the answer.
pub(super) fn output(answer: &Message, limit: usize) {
    let said = cut(Value::Array(vec![message(answer)]).to_string(), limit);
    tracing::debug!(gen_ai.output.messages = said, "answered");
}

/// A message in the form of the convention: a role and typed parts.
fn message(message: &Message) -> Value {
    json!({"role": role(message.role), "parts": message.content.iter().map(part).collect::<Vec<Value>>()})
}

/// The convention has no developer: those are instructions too.
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

fn cut(mut text: String, limit: usize) -> String {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
