//! Decoding of complete responses of the Responses API.

use pintle_llm::{
    ContentPart, Error, Finish, FinishReason, Message, OpaqueData, Origin, Request, Response, Role,
    ThinkingData, ToolCall, Usage, Warning,
};
use serde_json::Value;

use super::PROVIDER;
use crate::dialect::response_seed;
use crate::failure::{Failure, malformed};
use crate::input_tokens;
use crate::openai_common::error::failure_of;

pub(super) fn decode(request: &Request, body: &[u8]) -> Result<Response, Error> {
    let raw: Value = serde_json::from_slice(body)
        .map_err(|error| malformed(PROVIDER, "a JSON response", body).with_source(error))?;
    if raw.get("status").and_then(Value::as_str) == Some("failed") {
        return Err(failed(&raw));
    }
    let Some(output) = raw.get("output").and_then(Value::as_array) else {
        if raw.get("error").is_some_and(Value::is_object) {
            // Some servers send errors with status 200.
            return Err(failed(&raw));
        }
        return Err(malformed(PROVIDER, "a response with an `output` list", body));
    };
    let seed = response_seed(request, body);
    let parts = output.iter().enumerate().flat_map(|(position, item)| parts_of(item, seed, position));
    let content: Vec<ContentPart> = parts.collect();
    let message = Message::new(Role::Assistant, content).with_origin(Origin::new(PROVIDER, &request.model));
    let text = |name: &str| raw.get(name).and_then(Value::as_str);
    let mut response = Response::new(PROVIDER, text("model").unwrap_or(&request.model), message);
    response.id = text("id").unwrap_or_default().to_owned();
    let stop = StopFacts {
        status: text("status"),
        details: raw.get("incomplete_details").unwrap_or(&Value::Null),
        called: response.tool_calls().next().is_some(),
        refused: response.message.content.iter().any(|part| part.kind() == "refusal"),
    };
    response.finish_reason = stop.finish_reason();
    response.usage = raw.get("usage").map(usage).unwrap_or_default();
    response.warnings = warnings(request);
    response.raw = Some(raw);
    Ok(response)
}

/// Converts one output item to content parts.
fn parts_of(item: &Value, seed: u64, position: usize) -> Vec<ContentPart> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default();
    match text("type") {
        "message" => list(item, "content").filter_map(content_part).collect(),
        "reasoning" => vec![thinking(item, reasoning_text(item)).into()],
        "function_call" => {
            let arguments = arguments_text(item.get("arguments").cloned());
            vec![ToolCall::from_raw(call_id(item, seed, position), text("name"), arguments).into()]
        }
        "custom_tool_call" => {
            let input = arguments_text(item.get("input").cloned());
            vec![ToolCall::custom(call_id(item, seed, position), text("name"), input).into()]
        }
        _ => vec![opaque(item)],
    }
}

/// Converts a part of a message. A refusal is kept verbatim, because it is not the requested text.
pub(super) fn content_part(part: &Value) -> Option<ContentPart> {
    match part.get("type").and_then(Value::as_str) {
        Some("output_text") => part.get("text").and_then(Value::as_str).map(ContentPart::text),
        Some(_) | None => Some(opaque(part)),
    }
}

/// Converts an item that the unified model does not represent.
pub(super) fn opaque(item: &Value) -> ContentPart {
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    ContentPart::Opaque(OpaqueData { kind, data: item.clone() })
}

/// Converts a reasoning item with this readable text.
pub(super) fn thinking(item: &Value, text: String) -> ThinkingData {
    let encrypted = item.get("encrypted_content").and_then(Value::as_str).map(str::to_owned);
    let thinking = ThinkingData::new(text).with_signature(encrypted);
    if item.is_object() { thinking.with_raw(item.clone()) } else { thinking }
}

/// Returns the readable text of a reasoning item: summaries, and the reasoning itself if the server shows it.
pub(super) fn reasoning_text(item: &Value) -> String {
    let parts = list(item, "summary").chain(list(item, "content"));
    let texts: Vec<&str> = parts.filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
    texts.join("\n\n")
}

/// Returns the arguments of a call as text. Some servers send the object instead of its JSON text, or null.
pub(super) fn arguments_text(arguments: Option<Value>) -> String {
    match arguments {
        Some(Value::String(text)) => text,
        None | Some(Value::Null) => String::new(),
        Some(other) => other.to_string(),
    }
}

/// Returns the id that results refer to. It is generated if the server sends none.
pub(super) fn call_id(item: &Value, seed: u64, position: usize) -> String {
    given_call_id(item).map_or_else(|| format!("call_{seed:016x}_{position}"), str::to_owned)
}

/// Returns the id that the server sent for a call.
pub(super) fn given_call_id(item: &Value) -> Option<&str> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text("call_id").or_else(|| text("id"))
}

/// Facts that determine the finish reason.
pub(super) struct StopFacts<'a> {
    pub(super) status: Option<&'a str>,
    /// Object `incomplete_details`, or null.
    pub(super) details: &'a Value,
    pub(super) called: bool,
    pub(super) refused: bool,
}

impl StopFacts<'_> {
    /// Returns the finish reason. Its raw value is the status, or the reason for an incomplete response.
    pub(super) fn finish_reason(&self) -> FinishReason {
        let reason = match self.status {
            Some("incomplete") => return self.incomplete(),
            Some("completed") | None if self.called => Finish::ToolCalls,
            Some("completed") | None if self.refused => Finish::ContentFilter,
            Some("completed") | None => Finish::Stop,
            Some("failed" | "cancelled") => Finish::Error,
            Some(_) => Finish::Other,
        };
        FinishReason { reason, raw: self.status.map(str::to_owned) }
    }

    fn incomplete(&self) -> FinishReason {
        let raw = self.details.get("reason").and_then(Value::as_str).unwrap_or("incomplete");
        let reason = match raw {
            // Other servers of this API have the names of Chat Completions and of Anthropic.
            "max_output_tokens" | "length" | "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "content_filter" => Finish::ContentFilter,
            _ => Finish::Other,
        };
        FinishReason::new(reason).with_raw(raw)
    }
}

/// Returns the token counts of a `usage` object.
pub(super) fn usage(raw: &Value) -> Usage {
    // JSON pointers would allocate for each segment.
    let number = |name: &str| raw.get(name).and_then(Value::as_u64);
    let detail =
        |of: &str, name: &str| raw.get(of).and_then(|details| details.get(name)).and_then(Value::as_u64);
    let mut usage =
        Usage::new(number("input_tokens").unwrap_or_default(), number("output_tokens").unwrap_or_default());
    if let Some(total) = number("total_tokens") {
        usage.total_tokens = total;
    }
    usage.reasoning_tokens = detail("output_tokens_details", "reasoning_tokens");
    usage.cache_read_tokens = detail("input_tokens_details", "cached_tokens");
    let written = detail("input_tokens_details", "cache_write_tokens");
    usage.cache_write_tokens = written.filter(|written| *written > 0);
    input_tokens::include_cached_if_separate(&mut usage);
    usage.raw = raw.is_object().then(|| raw.clone().into());
    usage
}

/// Returns the error of a response with status `failed`.
pub(super) fn failed(response: &Value) -> Error {
    let body = response.get("error").map(Value::to_string).unwrap_or_default();
    failure_of(Failure { provider: PROVIDER, body: body.as_bytes(), ..Failure::default() })
}

/// Returns the warnings about parameters that the API does not have.
pub(super) fn warnings(request: &Request) -> Vec<Warning> {
    if request.stop_sequences.is_empty() {
        return Vec::new();
    }
    let message = "the Responses API has no stop sequences; they were not sent".to_owned();
    vec![Warning { message, code: Some("stop_sequences_ignored".to_owned()) }]
}

fn list<'a>(item: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    item.get(name).and_then(Value::as_array).into_iter().flatten()
}
