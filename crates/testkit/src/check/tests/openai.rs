use serde_json::{Value, json};

use super::{Case, Dialect, assert_cases, headers, path};
use crate::check::Checker;

fn legal() -> Value {
    json!({
        "model": "gpt-5.2-codex",
        "instructions": "be brief",
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "medium", "summary": "auto"},
        "parallel_tool_calls": true,
        "prompt_cache_key": "session",
        "tool_choice": "auto",
        "tools": [
            {"type": "function", "name": "read_file", "description": "reads", "strict": false,
             "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
            {"type": "custom", "name": "apply_patch", "format": {"type": "text"}},
        ],
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "opaque"},
            {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": "{}"},
            {"type": "custom_tool_call", "call_id": "call_2", "name": "apply_patch", "input": "text"},
            {"type": "function_call_output", "call_id": "call_1", "output": "text"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "text"},
        ],
    })
}

const CASES: &[Case] = &[
    (|body| drop(body.as_object_mut().unwrap().remove("model")), "model", "required"),
    (|body| body["messages"] = json!([]), "messages", "unknown field; expected one of model, input"),
    (
        |body| body["max_output_tokens"] = json!(-1),
        "max_output_tokens",
        "found a number, expected an integer",
    ),
    (|body| body["stream"] = json!("yes"), "stream", "found a string, expected a boolean"),
    (|body| body["previous_response_id"] = json!("resp_1"), "previous_response_id", "stores no responses"),
    (|body| body["reasoning"]["effort"] = json!("hard"), "reasoning.effort", "minimal, low, medium"),
    (|body| body["text"] = json!({"format": {"type": "json_schema"}}), "text.format.name", "required"),
    (|body| body["text"] = json!({"format": {"type": "yaml"}}), "text.format.type", "json_object"),
    (|body| body["include"] = json!([]), "include", "reasoning.encrypted_content"),
    (|body| body["input"] = json!([]), "input", "at least one item"),
    (|body| body["input"][0]["role"] = json!("tool"), "input[0].role", "expected one of user, assistant"),
    (|body| body["input"][0]["content"][0]["type"] = json!("text"), "input[0].content[0].type", "input_text"),
    (|body| body["input"][0]["content"][0]["text"] = json!(3), "input[0].content[0].text", "a string"),
    (|body| body["input"][1]["id"] = json!("rs_1"), "input[1].id", "not persisted"),
    (
        |body| body["input"][1]["encrypted_content"] = Value::Null,
        "input[1].encrypted_content",
        "not persisted",
    ),
    (|body| body["input"][2]["type"] = json!("tool_use"), "input[2].type", "found \"tool_use\""),
    (
        |body| body["input"][2]["arguments"] = json!({}),
        "input[2].arguments",
        "found an object, expected a string",
    ),
    (|body| body["input"][2]["call_id"] = json!("call_9"), "input[4].call_id", "no tool call found"),
    (|body| body["input"][3]["call_id"] = json!("call_1"), "input[3].call_id", "twice"),
    (
        |body| body["input"][4]["type"] = json!("custom_tool_call_output"),
        "input[4].type",
        "output of a function_call",
    ),
    (
        |body| drop(body["input"].as_array_mut().unwrap().remove(4)),
        "input[2].call_id",
        "no tool output found",
    ),
    (|body| body["input"][5] = body["input"][4].clone(), "input[5].call_id", "second output"),
    (|body| drop(body["input"].as_array_mut().unwrap().drain(2..)), "input[1]", "required following item"),
    (
        |body| body["input"][0] = json!({"type": "item_reference", "id": "msg_1"}),
        "input[0]",
        "`store` is false",
    ),
    (|body| body["tools"][0]["name"] = json!("read file"), "tools[0].name", "1 to 64"),
    (|body| body["tools"][0]["input_schema"] = json!({}), "tools[0].input_schema", "unknown field"),
    (
        |body| body["tools"][0]["parameters"] = json!({"type": "string"}),
        "tools[0].parameters.type",
        "\"object\"",
    ),
    (
        |body| {
            body["tools"][0]["strict"] = json!(true);
            body["tools"][0]["parameters"]["required"] = json!(["x"]);
        },
        "tools[0].parameters.required[0]",
        "property",
    ),
    (
        |body| body["tools"][0]["parameters"]["required"] = json!("path"),
        "tools[0].parameters.required",
        "a list",
    ),
    (|body| body["tools"][0]["strict"] = json!(true), "tools[0].parameters.additionalProperties", "false"),
    (|body| body["tools"][1]["name"] = json!("read_file"), "tools", "twice"),
    (|body| body["tool_choice"] = json!("any"), "tool_choice", "none, auto, required"),
    (|body| body["tool_choice"] = json!({"type": "function", "name": "x"}), "tool_choice.name", "`tools`"),
    (|body| body["input"][2]["name"] = json!("read file"), "input[2].name", "legal characters"),
    (|body| body["input"][3]["name"] = json!("n".repeat(129)), "input[3].name", "1 to 128"),
    (
        |body| {
            for index in [2, 4] {
                body["input"][index]["call_id"] = json!("c".repeat(65));
            }
        },
        "input[4].call_id",
        "found 65 characters, expected 1 to 64",
    ),
    (|body| body["input"][2]["call_id"] = json!(""), "input[2].call_id", "found 0 characters"),
    (|body| body["input"][0]["content"] = json!([]), "input[0].content", "at least one part"),
    (
        |body| {
            body["input"][0] = json!({"role": "assistant", "content": [{"type": "refusal", "text": "no"}]})
        },
        "input[0].content[0].refusal",
        "a string",
    ),
    (
        |body| body["input"][4]["output"] = json!([{"type": "output_text", "text": "x"}]),
        "input[4].output[0].type",
        "expected one of input_text",
    ),
    (
        |body| {
            body["input"][0]["content"][0] =
                json!({"type": "input_image", "image_url": "data:image/tiff;base64,AA=="})
        },
        "input[0].content[0].image_url",
        "image/tiff",
    ),
    (
        |body| {
            body["input"][0]["content"][0] = json!({"type": "input_image", "image_url": "data:image/png,A"})
        },
        "input[0].content[0].image_url",
        "data:TYPE;base64,BYTES",
    ),
    (
        |body| body["input"][0]["content"][0] = json!({"type": "input_file"}),
        "input[0].content[0]",
        "file_id, file_url, file_data",
    ),
    (
        |body| {
            body["input"][0]["content"][0] =
                json!({"type": "input_file", "file_data": "data:application/pdf;base64,AA=="})
        },
        "input[0].content[0].filename",
        "required",
    ),
];

#[test]
fn illegal_requests_are_reported() {
    assert_cases(Dialect::OpenAiResponses, &legal(), CASES);
}

#[test]
fn item_ids_are_allowed_by_option() {
    let dialect = Dialect::OpenAiResponses;
    let mut body = legal();
    body["input"][2]["id"] = json!("fc_1");
    let violations = |checker: &Checker, body: &Value| {
        checker.check(dialect, "POST", path(dialect), &headers(dialect), body.to_string().as_bytes())
    };
    assert_eq!(violations(&Checker::new(), &body).len(), 1);
    assert_eq!(violations(&Checker::new().with_item_ids(true), &body), []);
    body["store"] = json!(true);
    assert_eq!(violations(&Checker::new(), &body), []);
}
