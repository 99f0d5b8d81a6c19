//! Answers of Chat Completions.

use serde_json::{Value, json};

use super::{Answer, CREATED, ErrorBody, Frame, event_message, event_status, openai, pieces, with};
use crate::dialect::Dialect;
use crate::script::{ErrorEvent, Finish};

pub(super) fn frames(answer: &Answer<'_>) -> Vec<Frame> {
    let delta = |delta: Value| Frame::unnamed(&chunk(answer, &delta, None));
    let mut frames = vec![delta(json!({"role": "assistant", "content": ""}))];
    let thoughts = answer.reasoning.as_ref().map_or("", |reasoning| reasoning.text);
    frames.extend(pieces(thoughts).into_iter().map(|piece| delta(json!({"reasoning_content": piece}))));
    frames.extend(pieces(answer.text()).into_iter().map(|piece| delta(json!({"content": piece}))));
    for (index, (id, call)) in answer.calls.iter().enumerate() {
        let begin = json!({"index": index, "id": id, "type": "function", "function": {"name": call.tool, "arguments": ""}});
        frames.push(delta(json!({"tool_calls": [begin]})));
        for piece in pieces(&call.input_text()) {
            frames.push(delta(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
    }
    frames.push(Frame::unnamed(&chunk(answer, &json!({}), Some(finish_reason(answer)))));
    if answer.stream_usage {
        let last = with(chunk(answer, &json!({}), None), json!({"choices": [], "usage": usage(answer)}));
        frames.push(Frame::unnamed(&last));
    }
    frames.push(Frame { event: None, data: "[DONE]".to_owned() });
    frames
}

pub(super) fn whole(answer: &Answer<'_>) -> Value {
    let text = answer.text();
    let mut message =
        json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { json!(text) }});
    if let Some(reasoning) = &answer.reasoning {
        message = with(message, json!({"reasoning_content": reasoning.text}));
    }
    if !answer.calls.is_empty() {
        let calls = answer.calls.iter().map(|(id, call)| {
            let function = json!({"name": call.tool, "arguments": call.input_text()});
            json!({"id": id, "type": "function", "function": function})
        });
        message = with(message, json!({"tool_calls": calls.collect::<Value>()}));
    }
    json!({
        "id": format!("chatcmpl-{}", answer.key),
        "object": "chat.completion",
        "created": CREATED,
        "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer)}],
        "usage": usage(answer),
    })
}

pub(super) fn error_frame(event: ErrorEvent) -> Frame {
    let status = event_status(Dialect::ChatCompletions, event);
    Frame::unnamed(&openai::error(&ErrorBody {
        status,
        message: event_message(event),
        field: None,
        retry_after: None,
    }))
}

fn finish_reason(answer: &Answer<'_>) -> &'static str {
    match answer.finish() {
        Finish::Length => "length",
        Finish::ContentFilter => "content_filter",
        Finish::Stop if answer.calls.is_empty() => "stop",
        Finish::Stop => "tool_calls",
    }
}

fn chunk(answer: &Answer<'_>, delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", answer.key),
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": answer.model,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        "usage": null,
    })
}

fn usage(answer: &Answer<'_>) -> Value {
    let output = answer.visible_tokens() + answer.reasoning_tokens();
    json!({
        "prompt_tokens": answer.input.total(),
        "completion_tokens": output,
        "total_tokens": answer.input.total() + output,
        "prompt_tokens_details": {"cached_tokens": answer.input.cached},
        "completion_tokens_details": {"reasoning_tokens": answer.reasoning_tokens()},
    })
}
