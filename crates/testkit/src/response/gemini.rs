//! Encoding of responses for the Gemini API.

use serde_json::{Value, json};

use super::{ErrorBody, Frame, ModelResponse, event_message, event_status, pieces, with_members};
use crate::dialect::Dialect;
use crate::script::{ErrorEvent, Finish};
use crate::seal::Seal;

pub(super) fn frames(response: &ModelResponse<'_>) -> Vec<Frame> {
    let thoughts = response.reasoning.as_ref().map_or("", |reasoning| reasoning.text);
    let mut chunks: Vec<Vec<Value>> =
        pieces(thoughts).into_iter().map(|piece| vec![json!({"text": piece, "thought": true})]).collect();
    chunks.extend(pieces(response.text()).into_iter().map(|piece| vec![json!({"text": piece})]));
    // All calls of a turn are in one chunk, and the finish reason is in the next.
    let calls = calls(response);
    if !calls.is_empty() {
        chunks.push(calls);
    }
    let mut frames: Vec<Frame> =
        chunks.iter().map(|parts| Frame::without_event(&chunk(response, parts, None))).collect();
    frames.push(Frame::without_event(&chunk(response, &closing(response), Some(finish_reason(response)))));
    frames
}

pub(super) fn complete(response: &ModelResponse<'_>) -> Value {
    let mut parts = Vec::new();
    if let Some(reasoning) = response.reasoning.as_ref().filter(|reasoning| !reasoning.text.is_empty()) {
        parts.push(json!({"text": reasoning.text, "thought": true}));
    }
    if !response.text().is_empty() {
        parts.push(json!({"text": response.text()}));
    }
    parts.extend(calls(response));
    parts.extend(closing(response).into_iter().filter(|part| part.get("thoughtSignature").is_some()));
    chunk(response, &parts, Some(finish_reason(response)))
}

pub(super) fn error(error: &ErrorBody<'_>) -> Value {
    let mut body =
        json!({"code": error.status, "message": error.text(), "status": status_word(error.status)});
    if let Some(seconds) = error.retry_after {
        let retry =
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")});
        body = with_members(body, json!({"details": [retry]}));
    }
    json!({"error": body})
}

/// Returns the error for an invalid key, which is not a 401 as with other providers.
pub(super) fn wrong_key() -> Value {
    let reason = json!({
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "API_KEY_INVALID",
        "domain": "googleapis.com",
    });
    json!({"error": {
        "code": 400,
        "message": "API key not valid. Please pass a valid API key.",
        "status": "INVALID_ARGUMENT",
        "details": [reason],
    }})
}

pub(super) fn error_frame(event: ErrorEvent) -> Frame {
    let status = event_status(Dialect::Gemini, event);
    Frame::without_event(&error(&ErrorBody {
        status,
        message: event_message(event),
        field: None,
        retry_after: None,
    }))
}

fn status_word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    }
}

fn needs_signature(response: &ModelResponse<'_>) -> bool {
    response.reasoning.is_some() || response.model.starts_with("gemini-3")
}

fn signature(response: &ModelResponse<'_>) -> String {
    match &response.reasoning {
        Some(reasoning) => reasoning.seal.clone(),
        None => Seal::new(Dialect::Gemini, response.index, "").close(),
    }
}

/// Encodes the calls. The first one has the signature of the step. Returns nothing if a call cannot be encoded.
fn calls(response: &ModelResponse<'_>) -> Vec<Value> {
    let encoded = response.calls.iter().map(|(id, call)| {
        let mut function = json!({"name": call.tool, "args": call.input_object()?});
        if !id.is_empty() {
            function = with_members(function, json!({"id": id}));
        }
        Some(json!({"functionCall": function}))
    });
    let mut parts: Vec<Value> = encoded.collect::<Option<_>>().unwrap_or_default();
    if let Some(first) = parts.first_mut().filter(|_| needs_signature(response)) {
        *first = with_members(first.take(), json!({"thoughtSignature": signature(response)}));
    }
    parts
}

/// Returns the part of the last chunk: empty text, with the signature if no call has it.
fn closing(response: &ModelResponse<'_>) -> Vec<Value> {
    let part = json!({"text": ""});
    if response.calls.is_empty() && needs_signature(response) {
        return vec![with_members(part, json!({"thoughtSignature": signature(response)}))];
    }
    vec![part]
}

fn finish_reason(response: &ModelResponse<'_>) -> &'static str {
    match response.finish() {
        Finish::Stop if calls(response).len() < response.calls.len() => "MALFORMED_FUNCTION_CALL",
        Finish::Stop => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
    }
}

fn chunk(response: &ModelResponse<'_>, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut usage = json!({
        "promptTokenCount": response.input.total(),
        "totalTokenCount": response.input.total(),
    });
    if response.input.cached > 0 {
        usage = with_members(usage, json!({"cachedContentTokenCount": response.input.cached}));
    }
    if let Some(finish) = finish {
        candidate = with_members(candidate, json!({"finishReason": finish}));
        let (visible, thoughts) = (response.visible_tokens(), response.reasoning_tokens());
        let total = response.input.total() + visible + thoughts;
        usage = with_members(usage, json!({"candidatesTokenCount": visible, "totalTokenCount": total}));
        if thoughts > 0 {
            usage = with_members(usage, json!({"thoughtsTokenCount": thoughts}));
        }
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": response.model,
        "responseId": response.key,
    })
}
