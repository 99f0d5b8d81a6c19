//! Encoding of responses for the Responses API.

use serde_json::{Value, json};

use super::{CREATED, ErrorBody, Frame, ModelResponse, event_message, pieces, with_members};
use crate::script::{Call, CallInput, ErrorEvent, Finish};

pub(super) fn frames(response: &ModelResponse<'_>) -> Vec<Frame> {
    let mut stream = Stream::default();
    let started = response_object(response, "in_progress", &[]);
    stream.push("response.created", json!({"response": started}));
    stream.push("response.in_progress", json!({"response": started}));
    if response.reasoning.is_some() {
        push_reasoning(response, &mut stream);
    }
    if !response.text().is_empty() {
        push_text(response, &mut stream);
    }
    for (index, (id, call)) in response.calls.iter().enumerate() {
        push_call(response, index, id, call, &mut stream);
    }
    let status = status(response);
    let name = if status == "completed" { "response.completed" } else { "response.incomplete" };
    stream.push(name, json!({"response": response_object(response, status, &output(response))}));
    stream.frames
}

pub(super) fn complete(response: &ModelResponse<'_>) -> Value {
    response_object(response, status(response), &output(response))
}

pub(super) fn error(error: &ErrorBody<'_>) -> Value {
    let (kind, code) = match error.status {
        401 => ("invalid_request_error", json!("invalid_api_key")),
        404 => ("invalid_request_error", json!("not_found")),
        429 => ("rate_limit_error", json!("rate_limit_exceeded")),
        400..=499 => ("invalid_request_error", Value::Null),
        _ => ("server_error", json!("server_error")),
    };
    json!({"error": {"message": error.text(), "type": kind, "param": error.field, "code": code}})
}

pub(super) fn error_frame(event: ErrorEvent, sequence: usize) -> Frame {
    let code = match event {
        ErrorEvent::RateLimit => "rate_limit_exceeded",
        ErrorEvent::Overloaded => "server_is_overloaded",
        ErrorEvent::ServerError => "server_error",
    };
    let data = json!({
        "type": "error", "sequence_number": sequence, "code": code, "message": event_message(event), "param": null,
    });
    Frame::with_event("error", &data)
}

/// Events so far. The data of each contains its number and its name.
#[derive(Default)]
struct Stream {
    frames: Vec<Frame>,
    /// Number of output items so far.
    items: usize,
}

impl Stream {
    fn push(&mut self, name: &str, data: Value) {
        let data = with_members(data, json!({"type": name, "sequence_number": self.frames.len()}));
        self.frames.push(Frame::with_event(name, &data));
    }

    fn item(&mut self, name: &str, item: &Value) {
        self.push(name, json!({"output_index": self.items, "item": item}));
    }

    /// Pushes the deltas of one text and its end, all with the same address.
    fn text(&mut self, names: (&str, &str), key: &str, text: &str, address: &Value) {
        for piece in pieces(text) {
            self.push(names.0, with_members(address.clone(), json!({"delta": piece})));
        }
        self.push(names.1, with_members(address.clone(), json!({key: text})));
    }
}

fn push_reasoning(response: &ModelResponse<'_>, stream: &mut Stream) {
    let Some(done) = reasoning_item(response) else {
        return;
    };
    stream.item("response.output_item.added", &with_members(done.clone(), json!({"summary": []})));
    let text = response.reasoning.as_ref().map_or("", |reasoning| reasoning.text);
    let address = json!({"item_id": done.get("id"), "output_index": stream.items, "summary_index": 0});
    let part =
        |text: &str| with_members(address.clone(), json!({"part": {"type": "summary_text", "text": text}}));
    stream.push("response.reasoning_summary_part.added", part(""));
    let names = ("response.reasoning_summary_text.delta", "response.reasoning_summary_text.done");
    stream.text(names, "text", text, &address);
    stream.push("response.reasoning_summary_part.done", part(text));
    stream.item("response.output_item.done", &done);
    stream.items += 1;
}

fn push_text(response: &ModelResponse<'_>, stream: &mut Stream) {
    let done = message_item(response);
    let added = with_members(done.clone(), json!({"status": "in_progress", "content": []}));
    stream.item("response.output_item.added", &added);
    let address = json!({"item_id": done.get("id"), "output_index": stream.items, "content_index": 0});
    let part = |text: &str| with_members(address.clone(), json!({"part": text_part(text)}));
    stream.push("response.content_part.added", part(""));
    stream.text(
        ("response.output_text.delta", "response.output_text.done"),
        "text",
        response.text(),
        &address,
    );
    stream.push("response.content_part.done", part(response.text()));
    stream.item("response.output_item.done", &done);
    stream.items += 1;
}

fn push_call(response: &ModelResponse<'_>, index: usize, id: &str, call: &Call, stream: &mut Stream) {
    let done = call_item(response, index, id, call);
    let (key, names) = match &call.input {
        CallInput::Freeform(_) => {
            ("input", ("response.custom_tool_call_input.delta", "response.custom_tool_call_input.done"))
        }
        CallInput::Arguments(_) | CallInput::Raw(_) => {
            ("arguments", ("response.function_call_arguments.delta", "response.function_call_arguments.done"))
        }
    };
    let added = with_members(done.clone(), json!({"status": "in_progress", key: ""}));
    stream.item("response.output_item.added", &added);
    let address = json!({"item_id": done.get("id"), "output_index": stream.items});
    stream.text(names, key, &call.input_text(), &address);
    stream.item("response.output_item.done", &done);
    stream.items += 1;
}

fn output(response: &ModelResponse<'_>) -> Vec<Value> {
    let mut items: Vec<Value> = reasoning_item(response).into_iter().collect();
    if !response.text().is_empty() {
        items.push(message_item(response));
    }
    let calls = response.calls.iter().enumerate();
    items.extend(calls.map(|(index, (id, call))| call_item(response, index, id, call)));
    items
}

fn reasoning_item(response: &ModelResponse<'_>) -> Option<Value> {
    let reasoning = response.reasoning.as_ref()?;
    Some(json!({
        "id": format!("rs_{}", response.key),
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": reasoning.text}],
        "encrypted_content": reasoning.seal,
    }))
}

fn message_item(response: &ModelResponse<'_>) -> Value {
    json!({
        "id": format!("msg_{}", response.key),
        "type": "message",
        "role": "assistant",
        "status": status(response),
        "content": [text_part(response.text())],
    })
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn call_item(response: &ModelResponse<'_>, index: usize, id: &str, call: &Call) -> Value {
    match &call.input {
        CallInput::Freeform(input) => json!({
            "id": format!("ctc_{}{index:02}", response.key),
            "type": "custom_tool_call",
            "status": "completed",
            "call_id": id,
            "name": call.tool,
            "input": input,
        }),
        CallInput::Arguments(_) | CallInput::Raw(_) => json!({
            "id": format!("fc_{}{index:02}", response.key),
            "type": "function_call",
            "status": "completed",
            "call_id": id,
            "name": call.tool,
            "arguments": call.input_text(),
        }),
    }
}

fn status(response: &ModelResponse<'_>) -> &'static str {
    match response.finish() {
        Finish::Stop => "completed",
        Finish::Length | Finish::ContentFilter => "incomplete",
    }
}

/// Encodes the response object. The provider repeats instructions and tools of the request in it; this server does not.
fn response_object(response: &ModelResponse<'_>, status: &str, output: &[Value]) -> Value {
    let details = match (status, response.finish()) {
        ("incomplete", Finish::Length) => json!({"reason": "max_output_tokens"}),
        ("incomplete", Finish::ContentFilter) => json!({"reason": "content_filter"}),
        _ => Value::Null,
    };
    json!({
        "id": format!("resp_{}", response.key),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": details,
        "instructions": null,
        "metadata": {},
        "model": response.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "tool_choice": "auto",
        "tools": [],
        "truncation": "disabled",
        "usage": if status == "in_progress" { Value::Null } else { usage(response) },
    })
}

fn usage(response: &ModelResponse<'_>) -> Value {
    let output = response.visible_tokens() + response.reasoning_tokens();
    json!({
        "input_tokens": response.input.total(),
        "input_tokens_details": {"cached_tokens": response.input.cached},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": response.reasoning_tokens()},
        "total_tokens": response.input.total() + output,
    })
}
