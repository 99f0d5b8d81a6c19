use serde_json::{Value, json};

use super::{Case, Dialect, assert_cases};

fn legal() -> Value {
    json!({
        "model": "llama",
        "stream": true,
        "stream_options": {"include_usage": true},
        "max_tokens": 100,
        "tool_choice": "auto",
        "tools": [{"type": "function", "function": {
            "name": "read_file", "description": "reads",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
        }}],
        "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
                {"id": "call_2", "type": "function", "function": {"name": "read_file", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "text"},
            {"role": "tool", "tool_call_id": "call_2", "content": "text"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "next"},
        ],
    })
}

const CASES: &[Case] = &[
    (|body| drop(body.as_object_mut().unwrap().remove("messages")), "messages", "required"),
    (|body| body["messages"] = json!([]), "messages", "at least one message"),
    (|body| body["input"] = json!("x"), "input", "unknown field"),
    (|body| body["max_completion_tokens"] = json!(1), "max_tokens", "expected one of them"),
    (|body| body["stream"] = json!(false), "stream_options", "beside stream: true"),
    (|body| body["messages"][0]["role"] = json!("model"), "messages[0].role", "expected one of system"),
    (
        |body| body["messages"][1]["content"][0]["type"] = json!("input_text"),
        "messages[1].content[0].type",
        "image_url",
    ),
    (
        |body| body["messages"][1]["content"][0]["text"] = Value::Null,
        "messages[1].content[0].text",
        "a string",
    ),
    (|body| body["messages"][2]["tool_calls"] = json!([]), "messages[2].tool_calls", "empty list"),
    (
        |body| body["messages"][5]["content"] = Value::Null,
        "messages[5].content",
        "neither content nor tool_calls",
    ),
    (
        |body| drop(body["messages"][2]["tool_calls"][0].as_object_mut().unwrap().remove("type")),
        "messages[2].tool_calls[0].type",
        "required",
    ),
    (
        |body| body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!({}),
        "messages[2].tool_calls[0].function.arguments",
        "found an object, expected a string",
    ),
    (|body| body["messages"][2]["tool_calls"][1]["id"] = json!("call_1"), "messages[2].tool_calls", "twice"),
    (|body| body["messages"].as_array_mut().unwrap().swap(3, 4), "messages[3].tool_call_id", "in the order"),
    (|body| drop(body["messages"].as_array_mut().unwrap().remove(4)), "messages[4]", "no response messages"),
    (|body| drop(body["messages"].as_array_mut().unwrap().drain(3..)), "messages", "call_1, call_2"),
    (|body| drop(body["messages"].as_array_mut().unwrap().remove(2)), "messages[2]", "preceding message"),
    (|body| body["messages"][3]["is_error"] = json!(true), "messages[3].is_error", "unknown field"),
    (|body| body["tools"] = json!([]), "tools", "empty list"),
    (|body| body["tools"][0]["name"] = json!("x"), "tools[0].name", "unknown field"),
    (|body| body["tools"][0]["function"]["name"] = json!(""), "tools[0].function.name", "1 to 64"),
    (
        |body| body["tools"][0]["function"]["parameters"] = json!([]),
        "tools[0].function.parameters",
        "an object",
    ),
    (|body| body["tool_choice"] = json!("any"), "tool_choice", "none, auto, required"),
    (
        |body| body["tool_choice"] = json!({"type": "function", "function": {"name": "x"}}),
        "tool_choice",
        "a declared name",
    ),
    (
        |body| body["response_format"] = json!({"type": "json_schema"}),
        "response_format.json_schema",
        "required",
    ),
    (
        |body| body["messages"][2]["tool_calls"][0]["id"] = json!("c".repeat(41)),
        "messages[2].tool_calls[0].id",
        "found 41 characters, expected 1 to 40",
    ),
    (|body| body["messages"][3]["tool_call_id"] = json!(""), "messages[3].tool_call_id", "found 0"),
    (
        |body| body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("[]"),
        "messages[2].tool_calls[0].function.arguments",
        "not a JSON object",
    ),
    (
        |body| body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("{\"a\":"),
        "messages[2].tool_calls[0].function.arguments",
        "not a JSON object",
    ),
    (
        |body| body["messages"][2]["tool_calls"][0]["function"]["name"] = json!("n".repeat(65)),
        "messages[2].tool_calls[0].function.name",
        "1 to 64",
    ),
    (|body| body["messages"][1]["content"] = json!([]), "messages[1].content", "at least one part"),
    (
        |body| {
            drop(body.as_object_mut().unwrap().remove("tools"));
            drop(body.as_object_mut().unwrap().remove("tool_choice"));
            body["parallel_tool_calls"] = json!(true);
        },
        "parallel_tool_calls",
        "without tools",
    ),
    (
        |body| {
            body["messages"][1]["content"][0] =
                json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,A"}})
        },
        "messages[1].content[0].image_url.url",
        "base64",
    ),
    (
        |body| {
            body["messages"][1]["content"][0] =
                json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "ogg"}})
        },
        "messages[1].content[0].input_audio.format",
        "wav, mp3",
    ),
    (
        |body| body["messages"][1]["content"][0] = json!({"type": "file", "file": "paper.pdf"}),
        "messages[1].content[0].file",
        "an object",
    ),
];

#[test]
fn illegal_requests_are_reported() {
    assert_cases(Dialect::ChatCompletions, &legal(), CASES);
}
