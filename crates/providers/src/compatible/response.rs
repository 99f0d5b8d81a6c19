//! From a whole Chat Completions answer to a unified one.

use std::collections::HashSet;

use pintle_llm::{
    ContentPart, Error, Message, OpaqueData, Origin, Request, Response, Role, ThinkingData, ToolCall,
};
use serde_json::{Map, Value, json};

use super::delta::{
    FIELD, Piece, REASONING_CONTENT, arguments, finish_reason, has_reasoning_content, merge_details, pieces,
    refusal, usage_of,
};
use crate::dialect::answer_seed;
use crate::failure::{Failure, malformed};
use crate::openai::failure_of;

pub(super) fn decode(request: &Request, provider: &str, body: &[u8]) -> Result<Response, Error> {
    let raw: Value = serde_json::from_slice(body)
        .map_err(|error| malformed(provider, "a JSON completion", body).with_source(error))?;
    if is_error(&raw) {
        // Some servers answer a failure with status 200.
        return Err(failure_of(Failure { provider, body, ..Failure::default() }));
    }
    let choice = raw.pointer("/choices/0");
    let Some(message) = choice.and_then(|choice| choice.get("message")) else {
        return Err(malformed(provider, "a completion with `choices[0].message`", body));
    };
    let finish = choice.and_then(|choice| choice.get("finish_reason")).and_then(Value::as_str);
    let text = |name: &str| raw.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let content = content_of(message, answer_seed(request, body));
    let message = Message::new(Role::Assistant, content).with_origin(Origin::new(provider, &request.model));
    let mut response = Response::new(provider, text("model").unwrap_or(&request.model), message);
    response.id = text("id").unwrap_or_default().to_owned();
    let called = response.tool_calls().next().is_some();
    let refused = response.message.content.iter().any(|part| part.kind() == "refusal");
    response.finish_reason = finish_reason(finish, called, refused);
    response.usage = usage_of(&raw).unwrap_or_default();
    response.raw = Some(raw);
    Ok(response)
}

/// Whether an answer, or a chunk, is a complaint.
pub(super) fn is_error(value: &Value) -> bool {
    let given = value.get("error").is_some_and(|error| !error.is_null());
    given || value.get("object").and_then(Value::as_str) == Some("error")
}

/// A refusal as a part: it is kept, but it is no text that was asked for.
pub(super) fn refusal_part(text: &str) -> ContentPart {
    let data = json!({"type": "refusal", "refusal": text});
    ContentPart::Opaque(OpaqueData { kind: "refusal".to_owned(), data })
}

/// An id for a call that has none of its own.
pub(super) fn made_id(seed: u64, position: usize) -> String {
    format!("call_{seed:016x}_{position}")
}

fn content_of(message: &Value, seed: u64) -> Vec<ContentPart> {
    let mut reasoning = String::new();
    let mut text = String::new();
    for piece in pieces(message) {
        match piece {
            Piece::Reasoning(piece) => reasoning.push_str(piece),
            Piece::Text(piece) => text.push_str(piece),
        }
    }
    let mut details = Vec::new();
    merge_details(&mut details, message);
    let mut content = Vec::new();
    if !reasoning.is_empty() || !details.is_empty() {
        content.push(thinking(reasoning, details, has_reasoning_content(message)).into());
    }
    if !text.is_empty() {
        content.push(ContentPart::text(text));
    }
    content.extend(refusal(message).map(refusal_part));
    let calls = message.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let mut used = HashSet::new();
    for (position, raw) in calls.enumerate() {
        // Two calls of one id could not be answered apart.
        let given = raw.get("id").and_then(Value::as_str).filter(|id| !id.is_empty() && used.insert(*id));
        let id = given.map_or_else(|| made_id(seed, position), str::to_owned);
        content.push(call(raw, id).into());
    }
    content
}

/// Reasoning, with what the server wants back of it: its own items, and the field that the text came in if it wants
/// the text.
pub(super) fn thinking(text: String, details: Vec<Value>, has_reasoning_content: bool) -> ThinkingData {
    let mut raw = Map::new();
    if !details.is_empty() {
        raw.insert("reasoning_details".to_owned(), details.into());
    }
    if has_reasoning_content {
        raw.insert(FIELD.to_owned(), REASONING_CONTENT.into());
    }
    let thinking = ThinkingData::new(text);
    if raw.is_empty() { thinking } else { thinking.with_raw(Value::Object(raw)) }
}

fn call(raw: &Value, id: String) -> ToolCall {
    let function = raw.get("function").unwrap_or(&Value::Null);
    let name = function.get("name").and_then(Value::as_str).unwrap_or_default();
    ToolCall::from_raw(id, name, arguments(function))
}
