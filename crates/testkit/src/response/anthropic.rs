//! Encoding of responses for the Messages API.

use serde_json::{Value, json};

use super::{ErrorBody, Frame, ModelResponse, event_message, pieces, with_members};
use crate::script::{Call, ErrorEvent, Finish};

pub(super) fn frames(response: &ModelResponse<'_>) -> Vec<Frame> {
    let mut frames = Vec::new();
    // The output count is unknown at the start of a message; the provider sends 1.
    push(&mut frames, "message_start", json!({"message": message(response, &[], None, 1)}));
    push(&mut frames, "ping", json!({}));
    let mut index = 0;
    if let Some(reasoning) = &response.reasoning {
        let open = json!({"type": "thinking", "thinking": "", "signature": ""});
        let thoughts = pieces(reasoning.text)
            .into_iter()
            .map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
        let signature = json!({"type": "signature_delta", "signature": reasoning.seal});
        push_block(&mut frames, &mut index, &open, thoughts.chain([signature]));
    }
    if !response.text().is_empty() {
        let open = json!({"type": "text", "text": ""});
        let deltas =
            pieces(response.text()).into_iter().map(|piece| json!({"type": "text_delta", "text": piece}));
        push_block(&mut frames, &mut index, &open, deltas);
    }
    for (id, call) in &response.calls {
        let open = json!({"type": "tool_use", "id": id, "name": call.tool, "input": {}});
        let input = call.input_text();
        // The provider starts the stream of an input with an empty delta.
        let parts = std::iter::once("").chain(pieces(&input));
        let deltas = parts.map(|piece| json!({"type": "input_json_delta", "partial_json": piece}));
        push_block(&mut frames, &mut index, &open, deltas);
    }
    let delta = json!({"stop_reason": stop_reason(response), "stop_sequence": null});
    push(
        &mut frames,
        "message_delta",
        json!({"delta": delta, "usage": usage(response, output_tokens(response))}),
    );
    push(&mut frames, "message_stop", json!({}));
    frames
}

pub(super) fn complete(response: &ModelResponse<'_>) -> Value {
    let mut content = Vec::new();
    if let Some(reasoning) = &response.reasoning {
        content.push(json!({"type": "thinking", "thinking": reasoning.text, "signature": reasoning.seal}));
    }
    if !response.text().is_empty() {
        content.push(json!({"type": "text", "text": response.text()}));
    }
    content.extend(response.calls.iter().map(|(id, call)| tool_use(id, call)));
    message(response, &content, Some(stop_reason(response)), output_tokens(response))
}

pub(super) fn error(error: &ErrorBody<'_>) -> Value {
    let kind = match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        400..=499 => "invalid_request_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": error.text()}})
}

pub(super) fn error_frame(event: ErrorEvent) -> Frame {
    let kind = match event {
        ErrorEvent::Overloaded => "overloaded_error",
        ErrorEvent::RateLimit => "rate_limit_error",
        ErrorEvent::ServerError => "api_error",
    };
    Frame::with_event(
        "error",
        &json!({"type": "error", "error": {"type": kind, "message": event_message(event)}}),
    )
}

fn push(frames: &mut Vec<Frame>, name: &str, data: Value) {
    frames.push(Frame::with_event(name, &with_members(data, json!({"type": name}))));
}

fn push_block(frames: &mut Vec<Frame>, index: &mut usize, open: &Value, deltas: impl Iterator<Item = Value>) {
    push(frames, "content_block_start", json!({"index": *index, "content_block": open}));
    for delta in deltas {
        push(frames, "content_block_delta", json!({"index": *index, "delta": delta}));
    }
    push(frames, "content_block_stop", json!({"index": *index}));
    *index += 1;
}

fn tool_use(id: &str, call: &Call) -> Value {
    let input = call.input_object().map_or_else(|| json!(call.input_text()), Value::Object);
    json!({"type": "tool_use", "id": id, "name": call.tool, "input": input})
}

fn stop_reason(response: &ModelResponse<'_>) -> &'static str {
    match response.finish() {
        Finish::Length => "max_tokens",
        Finish::ContentFilter => "refusal",
        Finish::Stop if response.calls.is_empty() => "end_turn",
        Finish::Stop => "tool_use",
    }
}

fn message(
    response: &ModelResponse<'_>,
    content: &[Value],
    stop_reason: Option<&str>,
    output_tokens: usize,
) -> Value {
    json!({
        "id": format!("msg_01{}", response.key),
        "type": "message",
        "role": "assistant",
        "model": response.model,
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage(response, output_tokens),
    })
}

fn output_tokens(response: &ModelResponse<'_>) -> usize {
    response.visible_tokens() + response.reasoning_tokens()
}

fn usage(response: &ModelResponse<'_>, output_tokens: usize) -> Value {
    json!({
        "input_tokens": response.input.fresh,
        "cache_creation_input_tokens": response.input.created,
        "cache_read_input_tokens": response.input.cached,
        "output_tokens": output_tokens,
    })
}
