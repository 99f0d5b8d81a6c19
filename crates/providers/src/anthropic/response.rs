//! Decoding of complete responses.

use pintle_llm::{
    ContentPart, Error, Finish, FinishReason, Message, OpaqueData, Origin, Request, Response, Role,
    ThinkingData, ToolCall,
};
use serde_json::{Map, Value};

use super::usage::Counts;
use super::{NAME, error};

/// Decodes a complete response. The caller adds the warnings.
pub(super) fn decode(request: &Request, body: &[u8]) -> Result<Response, Error> {
    let raw: Value =
        serde_json::from_slice(body).map_err(|source| error::unreadable("a message", body, source))?;
    if text_of(&raw, "type") == Some("error") {
        return Err(error::reported(body));
    }
    let Some(blocks) = raw.get("content").and_then(Value::as_array) else {
        return Err(error::unreadable("a message", body, "the response has no list `content`"));
    };
    let content: Vec<ContentPart> = blocks.iter().map(part).collect();
    let mut counts = Counts::default();
    if let Some(usage) = raw.get("usage").and_then(Value::as_object) {
        counts.restate(usage.clone());
    }
    for thinking in content.iter().filter_map(ContentPart::as_thinking) {
        counts.add_thinking(&thinking.text);
    }
    let message =
        Message::new(Role::Assistant, content).with_origin(Origin::new(NAME, request.model.clone()));
    let model = text_of(&raw, "model").unwrap_or(&request.model);
    let mut response = Response::new(NAME, model, message)
        .with_finish_reason(finish_reason(text_of(&raw, "stop_reason")))
        .with_usage(counts.usage());
    response.id = text_of(&raw, "id").unwrap_or_default().to_owned();
    response.raw = Some(raw);
    Ok(response)
}

/// Converts a complete content block. Blocks of server tools are kept verbatim.
pub(super) fn part(block: &Value) -> ContentPart {
    let text = |name: &str| text_of(block, name).unwrap_or_default();
    match text("type") {
        "text" => ContentPart::text(text("text")),
        "thinking" => {
            let signature = Some(text("signature")).filter(|signature| !signature.is_empty());
            ThinkingData::new(text("thinking")).with_signature(signature.map(str::to_owned)).into()
        }
        "redacted_thinking" => ThinkingData::redacted(text("data")).into(),
        "tool_use" => call(text("id"), text("name"), block.get("input")).into(),
        kind => ContentPart::Opaque(OpaqueData { kind: kind.to_owned(), data: block.clone() }),
    }
}

/// Converts a call whose arguments are JSON.
pub(super) fn call(id: &str, name: &str, input: Option<&Value>) -> ToolCall {
    match input {
        Some(Value::Object(arguments)) => ToolCall::new(id, name, arguments.clone()),
        None | Some(Value::Null) => ToolCall::new(id, name, Map::new()),
        Some(other) => ToolCall::from_raw(id, name, other.to_string()),
    }
}

/// Returns the unified finish reason (client specification, section 3.8).
pub(super) fn finish_reason(raw: Option<&str>) -> FinishReason {
    let reason = match raw {
        Some("end_turn" | "stop_sequence") => Finish::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
        Some("tool_use") => Finish::ToolCalls,
        Some("refusal") => Finish::ContentFilter,
        // With `pause_turn` and `compaction` the turn continues in the next request.
        Some(_) | None => Finish::Other,
    };
    FinishReason { reason, raw: raw.map(str::to_owned) }
}

fn text_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
