//! Decoding of complete Chat Completions responses.

use std::collections::HashSet;

use pintle_llm::{
    ContentPart, Error, Message, OpaqueData, Origin, Request, Response, Role, ThinkingData, ToolCall,
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::delta::{
    CallDelta, Chunk, Delta, FIELD, Piece, REASONING_CONTENT, REASONING_DETAILS, finish_reason, merge_details,
};
use crate::dialect::response_seed;
use crate::failure::{Failure, malformed};
use crate::lenient::Object;
use crate::openai_common::error::failure_of;

pub(super) fn decode(request: &Request, provider: &str, body: &[u8]) -> Result<Response, Error> {
    let malformed_json = |error| malformed(provider, "a JSON completion", body).with_source(error);
    let raw: Value = serde_json::from_slice(body).map_err(malformed_json)?;
    let mut completion =
        Object::<Chunk<'_>>::deserialize(&raw).map_err(malformed_json)?.0.unwrap_or_default();
    if completion.is_error() {
        // Some servers send errors with status 200.
        return Err(failure_of(Failure { provider, body, ..Failure::default() }));
    }
    if raw.pointer("/choices/0/message").is_none() {
        return Err(malformed(provider, "a completion with `choices[0].message`", body));
    }
    let usage = completion.take_usage().unwrap_or_default();
    let choice = completion.choices.0.unwrap_or_default();
    let message = *choice.message.0.unwrap_or_default();
    let content = content_of(message, response_seed(request, body));
    let message = Message::new(Role::Assistant, content).with_origin(Origin::new(provider, &request.model));
    let mut response =
        Response::new(provider, completion.model.non_empty().unwrap_or(&request.model), message);
    response.id = completion.id.non_empty().unwrap_or_default().to_owned();
    let called = response.tool_calls().next().is_some();
    let refused = response.message.content.iter().any(|part| part.kind() == "refusal");
    response.finish_reason = finish_reason(choice.finish_reason.0.as_deref(), called, refused);
    response.usage = usage;
    response.raw = Some(raw);
    Ok(response)
}

/// Returns a refusal as an opaque part, because it is not the requested text.
pub(super) fn refusal_part(text: &str) -> ContentPart {
    let data = json!({"type": "refusal", "refusal": text});
    ContentPart::Opaque(OpaqueData { kind: "refusal".to_owned(), data })
}

/// Returns the id for a call without one.
pub(super) fn generated_id(seed: u64, position: usize) -> String {
    format!("call_{seed:016x}_{position}")
}

fn content_of(message: Delta<'_>, seed: u64) -> Vec<ContentPart> {
    let mut reasoning = String::new();
    let mut text = String::new();
    for piece in message.pieces() {
        match piece {
            Piece::Reasoning(piece) => reasoning.push_str(piece),
            Piece::Text(piece) => text.push_str(piece),
        }
    }
    let mut content = Vec::new();
    let (refusal, has_reasoning_content) =
        (message.refusal().map(refusal_part), message.has_reasoning_content());
    let mut details = Vec::new();
    merge_details(&mut details, message.reasoning_details.0);
    if !reasoning.is_empty() || !details.is_empty() {
        content.push(thinking(reasoning, details, has_reasoning_content).into());
    }
    if !text.is_empty() {
        content.push(ContentPart::text(text));
    }
    content.extend(refusal);
    let mut used = HashSet::new();
    for (position, Object(raw)) in message.tool_calls.0.iter().enumerate() {
        // Two calls with one id could not be answered separately.
        let given = raw.as_ref().and_then(|raw| raw.id.non_empty()).filter(|id| used.insert(*id));
        let id = given.map_or_else(|| generated_id(seed, position), str::to_owned);
        content.push(call(raw.as_ref(), id).into());
    }
    content
}

/// Returns a reasoning part with the data that the server expects to be returned: its `reasoning_details`, and the field of
/// the text.
pub(super) fn thinking(text: String, details: Vec<Value>, has_reasoning_content: bool) -> ThinkingData {
    let mut raw = Map::new();
    if !details.is_empty() {
        raw.insert(REASONING_DETAILS.to_owned(), details.into());
    }
    if has_reasoning_content {
        raw.insert(FIELD.to_owned(), REASONING_CONTENT.into());
    }
    let thinking = ThinkingData::new(text);
    if raw.is_empty() { thinking } else { thinking.with_raw(Value::Object(raw)) }
}

fn call(raw: Option<&CallDelta<'_>>, id: String) -> ToolCall {
    let function = raw.and_then(|raw| raw.function.0.as_ref());
    let name = function.and_then(|function| function.name.0.as_deref()).unwrap_or_default();
    ToolCall::from_raw(id, name, function.map(|function| function.arguments.0.as_ref()).unwrap_or_default())
        .with_signature(raw.and_then(|raw| signature_of(raw.extra_content.0.as_ref())))
}

/// Returns the `extra_content` of a call as text, which is the signature of the unified call.
pub(super) fn signature_of(extra_content: Option<&Map<String, Value>>) -> Option<String> {
    let fields = extra_content.filter(|fields| !fields.is_empty())?;
    serde_json::to_string(fields).ok()
}
