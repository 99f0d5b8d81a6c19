//! Answers of the Gemini API.

use serde_json::{Value, json};

use super::{Answer, ErrorBody, Frame, event_message, event_status, pieces, with};
use crate::dialect::Dialect;
use crate::script::{ErrorEvent, Finish};
use crate::seal::Seal;

pub(super) fn frames(answer: &Answer<'_>) -> Vec<Frame> {
    let thoughts = answer.reasoning.as_ref().map_or("", |reasoning| reasoning.text);
    let mut chunks: Vec<Vec<Value>> =
        pieces(thoughts).into_iter().map(|piece| vec![json!({"text": piece, "thought": true})]).collect();
    chunks.extend(pieces(answer.text()).into_iter().map(|piece| vec![json!({"text": piece})]));
    // All calls of a turn come in one chunk, and the reason to finish in the next.
    let calls = calls(answer);
    if !calls.is_empty() {
        chunks.push(calls);
    }
    let mut frames: Vec<Frame> =
        chunks.iter().map(|parts| Frame::unnamed(&chunk(answer, parts, None))).collect();
    frames.push(Frame::unnamed(&chunk(answer, &closing(answer), Some(finish_reason(answer)))));
    frames
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let mut parts = Vec::new();
    if let Some(reasoning) = answer.reasoning.as_ref().filter(|reasoning| !reasoning.text.is_empty()) {
        parts.push(json!({"text": reasoning.text, "thought": true}));
    }
    if !answer.text().is_empty() {
        parts.push(json!({"text": answer.text()}));
    }
    parts.extend(calls(answer));
    parts.extend(closing(answer).into_iter().filter(|part| part.get("thoughtSignature").is_some()));
    chunk(answer, &parts, Some(finish_reason(answer)))
}

pub(super) fn error(error: &ErrorBody<'_>) -> Value {
    let mut body =
        json!({"code": error.status, "message": error.text(), "status": status_word(error.status)});
    if let Some(seconds) = error.retry_after {
        let retry =
            json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": format!("{seconds}s")});
        body = with(body, json!({"details": [retry]}));
    }
    json!({"error": body})
}

/// The answer to a key that is wrong: unlike other providers, not a 401.
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
    Frame::unnamed(&error(&ErrorBody {
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

fn needs_signature(answer: &Answer<'_>) -> bool {
    answer.reasoning.is_some() || answer.model.starts_with("gemini-3")
}

fn signature(answer: &Answer<'_>) -> String {
    match &answer.reasoning {
        Some(reasoning) => reasoning.seal.clone(),
        None => Seal::new(Dialect::Gemini, answer.index, "").close(),
    }
}

/// The calls as parts; the first carries the signature of the step. Nothing if one of them cannot be said.
fn calls(answer: &Answer<'_>) -> Vec<Value> {
    let said = answer.calls.iter().map(|(id, call)| {
        let mut function = json!({"name": call.tool, "args": call.input_object()?});
        if !id.is_empty() {
            function = with(function, json!({"id": id}));
        }
        Some(json!({"functionCall": function}))
    });
    let mut parts: Vec<Value> = said.collect::<Option<_>>().unwrap_or_default();
    if let Some(first) = parts.first_mut().filter(|_| needs_signature(answer)) {
        *first = with(first.take(), json!({"thoughtSignature": signature(answer)}));
    }
    parts
}

/// The part of the last chunk: empty text, with the signature where no call carries it.
fn closing(answer: &Answer<'_>) -> Vec<Value> {
    let part = json!({"text": ""});
    if answer.calls.is_empty() && needs_signature(answer) {
        return vec![with(part, json!({"thoughtSignature": signature(answer)}))];
    }
    vec![part]
}

fn finish_reason(answer: &Answer<'_>) -> &'static str {
    match answer.finish() {
        Finish::Stop if calls(answer).len() < answer.calls.len() => "MALFORMED_FUNCTION_CALL",
        Finish::Stop => "STOP",
        Finish::Length => "MAX_TOKENS",
        Finish::ContentFilter => "SAFETY",
    }
}

fn chunk(answer: &Answer<'_>, parts: &[Value], finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut usage = json!({
        "promptTokenCount": answer.input.total(),
        "totalTokenCount": answer.input.total(),
    });
    if answer.input.cached > 0 {
        usage = with(usage, json!({"cachedContentTokenCount": answer.input.cached}));
    }
    if let Some(finish) = finish {
        candidate = with(candidate, json!({"finishReason": finish}));
        let (visible, thoughts) = (answer.visible_tokens(), answer.reasoning_tokens());
        let total = answer.input.total() + visible + thoughts;
        usage = with(usage, json!({"candidatesTokenCount": visible, "totalTokenCount": total}));
        if thoughts > 0 {
            usage = with(usage, json!({"thoughtsTokenCount": thoughts}));
        }
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": answer.model,
        "responseId": answer.key,
    })
}
