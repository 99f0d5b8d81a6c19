//! Encoding of responses for Chat Completions.

use serde_json::{Value, json};

use super::{
    CREATED, ErrorBody, Frame, ModelResponse, event_message, event_status, openai, pieces, with_members,
};
use crate::dialect::Dialect;
use crate::script::{ErrorEvent, Finish};

pub(super) fn frames(response: &ModelResponse<'_>) -> Vec<Frame> {
    let delta = |delta: Value| Frame::without_event(&chunk(response, &delta, None));
    let mut frames = vec![delta(json!({"role": "assistant", "content": ""}))];
    let thoughts = response.reasoning.as_ref().map_or("", |reasoning| reasoning.text);
    frames.extend(pieces(thoughts).into_iter().map(|piece| delta(json!({"reasoning_content": piece}))));
    frames.extend(pieces(response.text()).into_iter().map(|piece| delta(json!({"content": piece}))));
    for (index, (id, call)) in response.calls.iter().enumerate() {
        let begin = json!({"index": index, "id": id, "type": "function", "function": {"name": call.tool, "arguments": ""}});
        frames.push(delta(json!({"tool_calls": [begin]})));
        for piece in pieces(&call.input_text()) {
            frames.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
    }
    frames.push(Frame::without_event(&chunk(response, &json!({}), Some(finish_reason(response)))));
    if response.stream_usage {
        let last =
            with_members(chunk(response, &json!({}), None), json!({"choices": [], "usage": usage(response)}));
        frames.push(Frame::without_event(&last));
    }
    frames.push(Frame { event: None, data: "[DONE]".to_owned() });
    frames
}

pub(super) fn complete(response: &ModelResponse<'_>) -> Value {
    let text = response.text();
    let mut message =
        json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { json!(text) }});
    if let Some(reasoning) = &response.reasoning {
        message = with_members(message, json!({"reasoning_content": reasoning.text}));
    }
    if !response.calls.is_empty() {
        let calls = response.calls.iter().map(|(id, call)| {
            let function = json!({"name": call.tool, "arguments": call.input_text()});
            json!({"id": id, "type": "function", "function": function})
        });
        message = with_members(message, json!({"tool_calls": calls.collect::<Value>()}));
    }
    json!({
        "id": format!("chatcmpl-{}", response.key),
        "object": "chat.completion",
        "created": CREATED,
        "model": response.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(response)}],
        "usage": usage(response),
    })
}

pub(super) fn error_frame(event: ErrorEvent) -> Frame {
    let status = event_status(Dialect::ChatCompletions, event);
    Frame::without_event(&openai::error(&ErrorBody {
        status,
        message: event_message(event),
        field: None,
        retry_after: None,
    }))
}

fn finish_reason(response: &ModelResponse<'_>) -> &'static str {
    match response.finish() {
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Stop if response.calls.is_empty() => "stop",
        Finish::Stop => "tool_calls",
    }
}

fn chunk(response: &ModelResponse<'_>, delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", response.key),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": response.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        "usage": null,
    })
}

fn usage(response: &ModelResponse<'_>) -> Value {
    let output = response.visible_tokens() + response.reasoning_tokens();
    json!({
        "prompt_tokens": response.input.total(),
        "completion_tokens": output,
        "total_tokens": response.input.total() + output,
        "prompt_tokens_details": {"cached_tokens": response.input.cached},
        "completion_tokens_details": {"reasoning_tokens": response.reasoning_tokens()},
    })
}
