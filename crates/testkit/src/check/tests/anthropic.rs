use serde_json::{Value, json};

use super::{Case, Dialect, assert_cases, violations};

fn legal() -> Value {
    json!({
        "model": "claude-opus-4-6",
        "max_tokens": 4096,
        "stream": true,
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "tools": [{
            "name": "read_file", "description": "reads", "cache_control": {"type": "ephemeral", "ttl": "5m"},
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        }],
        "tool_choice": {"type": "auto"},
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "opaque"},
                {"type": "text", "text": "reading"},
                {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}},
                {"type": "tool_use", "id": "toolu_2", "name": "read_file", "input": {"path": "b"}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"},
                {"type": "tool_result", "tool_use_id": "toolu_2", "is_error": true,
                 "content": [{"type": "text", "text": "text", "cache_control": {"type": "ephemeral"}}]},
                {"type": "text", "text": "steering", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
    })
}

fn results(body: &mut Value) -> &mut Vec<Value> {
    body["messages"][2]["content"].as_array_mut().unwrap()
}

fn image(media_type: &str, data: &str) -> Value {
    json!([{"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}])
}

const CASES: &[Case] = &[
    (|body| drop(body.as_object_mut().unwrap().remove("max_tokens")), "max_tokens", "required"),
    (|body| body["max_tokens"] = json!(0), "max_tokens", "at least 1"),
    (|body| body["input"] = json!([]), "input", "unknown field"),
    (|body| body["top_p"] = Value::Null, "top_p", "found null, expected a number"),
    (|body| body["system"][0]["text"] = json!(" "), "system.0.text", "non-empty"),
    (|body| body["messages"] = json!([]), "messages", "at least one message"),
    (
        |body| body["messages"][0]["role"] = json!("system"),
        "messages.0.role",
        "expected one of user, assistant",
    ),
    (|body| body["messages"][0]["role"] = json!("assistant"), "messages.0.role", "roles alternate"),
    (|body| body["messages"][0]["content"] = json!(""), "messages.0.content", "blank"),
    (|body| body["messages"][0]["content"] = json!([]), "messages.0.content", "empty list"),
    (|body| body["messages"][1]["content"][1]["text"] = json!(""), "messages.1.content.1.text", "non-empty"),
    (
        |body| body["messages"][1]["content"][1]["type"] = json!("output_text"),
        "messages.1.content.1.type",
        "may not",
    ),
    (
        |body| body["messages"][1]["content"][2]["input"] = json!("{}"),
        "messages.1.content.2.input",
        "an object",
    ),
    (|body| body["messages"][1]["content"][3]["id"] = json!("toolu_1"), "messages.1.content", "twice"),
    (
        |body| body["messages"][1]["content"][0]["signature"] = json!(""),
        "messages.1.content.0.signature",
        "received",
    ),
    (
        |body| body["messages"][1]["content"][2]["id"] = json!("call:1"),
        "messages.1.content.2.id",
        "expected one or more of",
    ),
    (|body| results(body)[0]["tool_use_id"] = json!(""), "messages.2.content.0.tool_use_id", "one or more"),
    (|body| drop(results(body).remove(1)), "messages.1", "`tool_use` ids were found without `tool_result`"),
    (|body| results(body).rotate_right(1), "messages.2.content.1", "results first"),
    (|body| results(body)[0]["tool_use_id"] = json!("x"), "messages.2.content.0", "no such `tool_use`"),
    (
        |body| results(body)[0]["tool_use_id"] = json!("toolu_2"),
        "messages.2.content.1",
        "second `tool_result`",
    ),
    (|body| results(body)[1]["content"] = json!([]), "messages.2.content.1.content", "is_error is true"),
    (|body| results(body)[0]["output"] = json!("x"), "messages.2.content.0.output", "unknown field"),
    (
        |body| drop(body["messages"][1]["content"].as_array_mut().unwrap().remove(0)),
        "messages.1.content.0.type",
        "expected `thinking` or `redacted_thinking`, but found \"text\"",
    ),
    (
        |body| body["thinking"]["budget_tokens"] = json!(4096),
        "thinking.budget_tokens",
        "less than max_tokens (4096)",
    ),
    (|body| body["thinking"]["budget_tokens"] = json!(1023), "thinking.budget_tokens", "at least 1024"),
    (|body| body["output_config"] = json!({"effort": "hard"}), "output_config.effort", "low, medium"),
    (
        |body| body["output_config"] = json!({"format": {"type": "json_schema"}}),
        "output_config.format.schema",
        "required",
    ),
    (|body| body["temperature"] = json!(0.5), "temperature", "when thinking is enabled"),
    (|body| body["tool_choice"] = json!({"type": "any"}), "tool_choice.type", "when thinking is enabled"),
    (|body| body["tool_choice"] = json!("auto"), "tool_choice", "expected an object"),
    (|body| body["tool_choice"] = json!({"type": "tool", "name": "x"}), "tool_choice.name", "`tools`"),
    (|body| body["tools"] = json!([]), "tool_choice", "without tools"),
    (|body| body["tools"][0]["parameters"] = json!({}), "tools.0.parameters", "unknown field"),
    (|body| body["tools"][0]["input_schema"] = json!({}), "tools.0.input_schema.type", "no type"),
    (
        |body| body["tools"][0]["input_schema"]["anyOf"] = json!([]),
        "tools.0.input_schema.anyOf",
        "no such keyword",
    ),
    (
        |body| results(body)[0]["cache_control"] = json!({"type": "ephemeral"}),
        "cache_control",
        "found 5 blocks",
    ),
    (
        |body| body["system"][0]["cache_control"] = json!({"type": "x"}),
        "system.0.cache_control.type",
        "ephemeral",
    ),
    (
        |body| body["messages"][1]["content"][2]["name"] = json!("read file"),
        "messages.1.content.2.name",
        "legal characters",
    ),
    (
        |body| body["messages"][1]["content"][0] = json!({"type": "redacted_thinking", "data": ""}),
        "messages.1.content.0.data",
        "received",
    ),
    (
        |body| body["messages"][0]["content"] = image("image/tiff", "AA=="),
        "messages.0.content.0.source.media_type",
        "expected one of image/jpeg",
    ),
    (
        |body| body["messages"][0]["content"] = image("image/png", "A"),
        "messages.0.content.0.source.data",
        "base64",
    ),
    (
        |body| {
            let source = json!({"type": "base64", "media_type": "text/csv", "data": "AA=="});
            body["messages"][0]["content"] = json!([{"type": "document", "source": source}]);
        },
        "messages.0.content.0.source.media_type",
        "application/pdf",
    ),
    (
        |body| body["messages"][0]["content"] = json!([{"type": "document", "source": {"type": "path"}}]),
        "messages.0.content.0.source.type",
        "base64, text, url",
    ),
];

#[test]
fn illegal_requests_are_reported() {
    assert_cases(Dialect::AnthropicMessages, &legal(), CASES);
}

#[test]
fn typed_definitions_are_accepted() {
    let mut body = legal();
    body["system"][0]["cache_control"] = Value::Null;
    body["output_config"] = json!({"effort": null});
    body["messages"][1]["content"].as_array_mut().unwrap().insert(
        1,
        json!({"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "f", "server_name": "s", "input": {}}),
    );
    for server in ["one", "two"] {
        let toolset = json!({"type": "mcp_toolset", "mcp_server_name": server});
        body["tools"].as_array_mut().unwrap().push(toolset);
    }
    let tool = body["tools"][0]["input_schema"].as_object_mut().unwrap();
    tool.insert("required".to_owned(), json!(["no_property"]));
    assert_eq!(violations(Dialect::AnthropicMessages, &body), []);
}

#[test]
fn leading_thinking_is_required_with_budgets_only() {
    for thinking in [json!({"type": "adaptive"}), json!({"type": "disabled"})] {
        let mut body = legal();
        body["thinking"] = thinking;
        body["messages"][1]["content"].as_array_mut().unwrap().remove(0);
        assert_eq!(violations(Dialect::AnthropicMessages, &body), []);
    }
}

#[test]
fn only_the_start_of_an_open_turn_must_think() {
    let mut body = legal();
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "toolu_3", "name": "read_file", "input": {}},
    ]}));
    messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_3"}]}));
    assert_eq!(violations(Dialect::AnthropicMessages, &body), []);
}

/// Returns a conversation with these assistant blocks, followed by a user message if `is_continued`.
fn conversation(blocks: &Value, is_continued: bool) -> Value {
    let mut messages = vec![
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "content": blocks}),
        json!({"role": "user", "content": "next"}),
    ];
    messages.truncate(if is_continued { 3 } else { 2 });
    json!({"model": "claude-opus-4-6", "max_tokens": 4096, "messages": messages})
}

fn found(body: &Value) -> Vec<String> {
    violations(Dialect::AnthropicMessages, body).iter().map(ToString::to_string).collect()
}

#[test]
fn messages_must_not_end_with_thinking() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let text = json!({"type": "text", "text": "so"});
    assert_eq!(found(&conversation(&json!([thinking, text]), true)), [""; 0]);
    for last in [thinking, json!({"type": "redacted_thinking", "data": "d"})] {
        let violations = found(&conversation(&json!([text, last]), true));
        assert_eq!(violations.len(), 1);
        assert!(violations[0].starts_with("messages.1: the final block"), "{violations:?}");
    }
}

#[test]
fn last_assistant_message_must_not_end_with_white_space() {
    for (blocks, is_continued, legal) in [
        (json!("so "), true, true),
        (json!("so "), false, false),
        (json!([{"type": "text", "text": "so\n"}]), false, false),
        (json!([{"type": "text", "text": "so"}]), false, true),
    ] {
        let violations = found(&conversation(&blocks, is_continued));
        assert_eq!(violations.is_empty(), legal, "{violations:?}");
    }
}

#[test]
fn server_tool_results_need_a_call() {
    let call = |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}});
    let result = |id: &str| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []});
    assert_eq!(found(&conversation(&json!([call("a"), result("a"), call("b"), result("b")]), true)), [""; 0]);
    assert_eq!(
        found(&conversation(&json!([call("a")]), false)),
        [""; 0],
        "a paused turn waits for its result"
    );
    for (blocks, expected) in [
        (json!([result("a")]), "messages.1.content.0: unexpected `tool_use_id` \"a\""),
        (json!([call("a"), result("b")]), "messages.1.content.1: unexpected `tool_use_id` \"b\""),
        (json!([result("a"), call("a")]), "messages.1.content.0: unexpected `tool_use_id` \"a\""),
        (json!([call("a")]), "messages.1.content.0: found the call \"a\" without its result"),
    ] {
        let violations = found(&conversation(&blocks, true));
        assert!(violations[0].starts_with(expected), "{violations:?}");
    }
}
