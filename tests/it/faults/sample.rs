//! Complete responses of each dialect in the format of the providers, and parts of HTTP messages.

use pintle_testkit::Dialect;
use serde_json::{Value, json};

/// Visible text of every sample, with characters of one to four bytes.
pub(super) const TEXT: &str = "Größe: 3 € 🦀.";
/// A character of that text in which a cut may fall.
pub(super) const CHARACTER: &str = "🦀";

/// Returns the events of a streamed response with reasoning, text, a call and usage, each with its blank line.
pub(super) fn events(dialect: Dialect) -> Vec<String> {
    match dialect {
        Dialect::OpenAiResponses => named(responses()),
        Dialect::AnthropicMessages => named(messages()),
        Dialect::Gemini => gemini().iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect(),
        Dialect::ChatCompletions => {
            let done = ["data: [DONE]\n\n".to_owned()];
            chat().iter().map(|chunk| format!("data: {chunk}\n\n")).chain(done).collect()
        }
    }
}

/// Returns the number of events before a response can be complete: those before the terminal event, and for Chat
/// Completions those before the finish reason, since the rest may be missing.
pub(super) fn unfinished(dialect: Dialect) -> usize {
    match dialect {
        Dialect::OpenAiResponses | Dialect::AnthropicMessages | Dialect::Gemini => events(dialect).len() - 1,
        Dialect::ChatCompletions => events(dialect).len() - 3,
    }
}

/// Returns the same response in one piece.
pub(super) fn whole(dialect: Dialect) -> String {
    let answer = match dialect {
        Dialect::OpenAiResponses => {
            responses().pop().and_then(|mut last| last.get_mut("response").map(Value::take)).unwrap()
        }
        Dialect::AnthropicMessages => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [
                {"type": "thinking", "thinking": "Look.", "signature": "c2ln"},
                {"type": "text", "text": TEXT},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "é"}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 9, "output_tokens": 7},
        }),
        Dialect::Gemini => json!({
            "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
                {"text": "Look.", "thought": true},
                {"text": TEXT},
                {"functionCall": {"name": "look", "args": {"at": "é"}}, "thoughtSignature": "c2ln"},
            ]}}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16},
            "modelVersion": "gemini-3.1-pro-preview", "responseId": "r1",
        }),
        Dialect::ChatCompletions => json!({
            "id": "c1", "object": "chat.completion", "created": 1, "model": "local-model",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": TEXT, "reasoning_content": "Look.",
                "tool_calls": [{"id": "call_1", "type": "function",
                    "function": {"name": "look", "arguments": "{\"at\": \"é\"}"}}],
            }}],
            "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16},
        }),
    };
    answer.to_string()
}

/// Returns the head of a response.
pub(super) fn head(status: &str, headers: &[&str]) -> String {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    format!("HTTP/1.1 {status}\r\n{lines}\r\n")
}

/// Returns a response with a content length.
pub(super) fn sized(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let length = format!("content-length: {}", body.len());
    [head(status, &[headers, &[length.as_str()]].concat()).as_bytes(), body].concat()
}

/// Returns the head of a chunked response.
pub(super) fn chunked_head() -> String {
    head("200 OK", &["content-type: text/event-stream", "transfer-encoding: chunked"])
}

/// Returns one chunk of a body, or nothing for no bytes, since an empty chunk is the last one.
pub(super) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    if bytes.is_empty() {
        return Vec::new();
    }
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// End of a chunked body.
pub(super) const LAST_CHUNK: &str = "0\r\n\r\n";

/// Returns a chunked response with its head and these events, without the end of the body.
pub(super) fn stream_of<'a>(events: impl IntoIterator<Item = &'a String>) -> Vec<u8> {
    let chunks = events.into_iter().flat_map(chunk);
    chunked_head().into_bytes().into_iter().chain(chunks).collect()
}

fn named(events: Vec<Value>) -> Vec<String> {
    let frame = |event: Value| {
        let name = event.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("event: {name}\ndata: {event}\n\n")
    };
    events.into_iter().map(frame).collect()
}

/// The text in two pieces.
fn pieces() -> [&'static str; 2] {
    let (first, second) = TEXT.split_at(TEXT.find('3').unwrap());
    [first, second]
}

fn responses() -> Vec<Value> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "c2VhbGVk",
        "summary": [{"type": "summary_text", "text": "Look."}]});
    let message = json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": TEXT, "annotations": []}]});
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
        "arguments": "{\"at\": \"é\"}", "status": "completed"});
    let response = |status: &str, output: &[&Value]| {
        json!({"id": "resp_1", "object": "response",
        "created_at": 1, "model": "gpt-5.2", "status": status, "output": output})
    };
    let mut completed = response("completed", &[&reasoning, &message, &call]);
    completed["usage"] = json!({"input_tokens": 9, "output_tokens": 7, "total_tokens": 16});
    let [first, second] = pieces();
    vec![
        json!({"type": "response.created", "response": response("in_progress", &[])}),
        json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1", "summary": []}}),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs_1",
            "summary_index": 0, "delta": "Look."}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": reasoning}),
        json!({"type": "response.output_item.added", "output_index": 1,
            "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []}}),
        json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1",
            "content_index": 0, "delta": first}),
        json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1",
            "content_index": 0, "delta": second}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": message}),
        json!({"type": "response.output_item.added", "output_index": 2,
            "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": ""}}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_1",
            "delta": "{\"at\": "}),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_1",
            "delta": "\"é\"}"}),
        json!({"type": "response.output_item.done", "output_index": 2, "item": call}),
        json!({"type": "response.completed", "response": completed}),
    ]
}

fn messages() -> Vec<Value> {
    let start = |index: u32, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u32, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u32| json!({"type": "content_block_stop", "index": index});
    let [first, second] = pieces();
    vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 9, "output_tokens": 1}}}),
        start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
        json!({"type": "ping"}),
        delta(0, json!({"type": "thinking_delta", "thinking": "Look."})),
        delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": first})),
        delta(1, json!({"type": "text_delta", "text": second})),
        stop(1),
        start(2, json!({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "{\"at\": "})),
        delta(2, json!({"type": "input_json_delta", "partial_json": "\"é\"}"})),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
            "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]
}

fn gemini() -> Vec<Value> {
    let chunk = |part: Value| {
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}],
        "modelVersion": "gemini-3.1-pro-preview", "responseId": "r1"})
    };
    let [first, second] = pieces();
    vec![
        chunk(json!({"text": "Look.", "thought": true})),
        chunk(json!({"text": first})),
        chunk(json!({"text": second})),
        chunk(json!({"functionCall": {"name": "look", "args": {"at": "é"}}, "thoughtSignature": "c2ln"})),
        json!({"candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": ""}]}}],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 7, "totalTokenCount": 16},
            "modelVersion": "gemini-3.1-pro-preview", "responseId": "r1"}),
    ]
}

fn chat() -> Vec<Value> {
    let chunk = |delta: Value, reason: Value| {
        json!({"id": "c1", "object": "chat.completion.chunk",
        "created": 1, "model": "local-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
    };
    let piece = |delta: Value| chunk(delta, Value::Null);
    let [first, second] = pieces();
    vec![
        piece(json!({"role": "assistant", "content": ""})),
        piece(json!({"reasoning_content": "Look."})),
        piece(json!({"content": first})),
        piece(json!({"content": second})),
        piece(json!({"tool_calls": [{"index": 0, "id": "call_1", "type": "function",
            "function": {"name": "look", "arguments": "{\"at\": "}}]})),
        piece(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"é\"}"}}]})),
        chunk(json!({}), json!("tool_calls")),
        json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "local-model", "choices": [],
            "usage": {"prompt_tokens": 9, "completion_tokens": 7, "total_tokens": 16}}),
    ]
}
