use serde_json::json;

use super::*;

fn one(json: &Value) -> Message {
    let list = messages(&json!([json])).unwrap();
    assert_eq!(list.len(), 1);
    list.into_iter().next().unwrap()
}

#[test]
fn text_messages_keep_role_name_and_text() {
    for (role, expected) in [
        ("system", Role::System),
        ("developer", Role::Developer),
        ("user", Role::User),
        ("assistant", Role::Assistant),
    ] {
        let message = one(&json!({"role": role, "content": "hello", "name": "ann", "extra": 1}));
        assert_eq!((message.role, message.text().as_str()), (expected, "hello"));
        assert_eq!(message.name.as_deref(), Some("ann"));
    }
    let refusal = one(&json!({"role": "assistant", "content": null, "refusal": "No."}));
    assert_eq!(refusal.text(), "No.");
}

#[test]
fn media_parts_are_converted() {
    let message = one(&json!({"role": "user", "content": [
        {"type": "text", "text": "Compare"},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png", "detail": "low"}},
        {"type": "image_url", "image_url": "data:image/png;base64,AQ=="},
        {"type": "input_audio", "input_audio": {"data": "AQ==", "format": "mp3"}},
        {"type": "file", "file": {"file_data": "data:application/pdf;base64,AQ==", "filename": "a.pdf"}},
        {"type": "file", "file": {"file_data": "AQ=="}},
    ]}));
    let expected = [
        ContentPart::text("Compare"),
        ImageData::url("https://example.com/a.png").with_detail("low").into(),
        ImageData::url("data:image/png;base64,AQ==").into(),
        ContentPart::Audio(AudioData::data(vec![1], "audio/mp3")),
        ContentPart::Document(DocumentData::url("data:application/pdf;base64,AQ==").with_file_name("a.pdf")),
        ContentPart::Document(DocumentData::data(vec![1], "application/pdf")),
    ];
    assert_eq!(message.content, expected);
}

#[test]
fn calls_and_results_form_rounds() {
    let list = messages(&json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"x\": 1}"}},
            {"id": "c2", "function": {"name": "look", "arguments": {"x": 2}}},
            {"id": "c3", "type": "custom", "custom": {"name": "patch", "input": "free text"}},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "t"}, {"type": "text", "text": "wo"}]},
        {"role": "tool", "tool_call_id": "c3", "content": [{"type": "image_url", "image_url": {"url": "https://e.com/a"}}]},
        {"role": "assistant", "content": "done"},
    ]))
    .unwrap();
    assert_eq!(
        list.iter().map(|message| message.role).collect::<Vec<_>>(),
        [Role::User, Role::Assistant, Role::Tool, Role::Assistant]
    );
    let calls: Vec<&ToolCall> = list[1].tool_calls().collect();
    assert_eq!(*calls[0], ToolCall::from_raw("c1", "look", "{\"x\": 1}"));
    assert_eq!(calls[1].arguments["x"], 2);
    assert_eq!(*calls[2], ToolCall::custom("c3", "patch", "free text"));
    let results: Vec<(&str, String, usize)> = list[2]
        .results()
        .map(|result| (result.tool_call_id.as_str(), result.text(), result.images.len()))
        .collect();
    assert_eq!(results, [("c1", "one".into(), 0), ("c2", "two".into(), 0), ("c3", String::new(), 1)]);
    let request = crate::request::Request::new("m", list);
    assert!(matches!(request.in_order().unwrap(), std::borrow::Cow::Borrowed(_)), "a valid conversation");
}

#[test]
fn deprecated_function_calls_are_linked_by_name() {
    let list = messages(&json!([
        {"role": "assistant", "content": null, "function_call": {"name": "look", "arguments": "{}"}},
        {"role": "function", "name": "look", "content": "seen"},
    ]))
    .unwrap();
    assert_eq!(list[0].tool_calls().next().unwrap().id, "look");
    assert_eq!(list[1].results().next().unwrap().tool_call_id, "look");
}

#[test]
fn invalid_messages_are_reported_by_index() {
    for (json, expected) in [
        (json!({}), "expected an array of messages"),
        (json!([{"role": "user", "content": "a"}, {"role": "wizard"}]), "message 1: unknown role `wizard`"),
        (json!([{"content": "a"}]), "message 0: missing field `role`"),
        (json!([{"role": "user"}]), "message 0: no content"),
        (json!([{"role": "tool", "content": "a"}]), "message 0: expected `tool_call_id`"),
        (
            json!([{"role": "user", "content": [{"type": "video"}]}]),
            "message 0: unknown content part `video`",
        ),
        (json!([{"role": "user", "content": [{"type": "text"}]}]), "message 0: expected `text` in text"),
        (
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "*"}}]}]),
            "message 0: invalid base64",
        ),
        (
            json!([{"role": "assistant", "tool_calls": [{"id": "c1"}]}]),
            "message 0: expected `function` or `custom` in tool call `c1`",
        ),
    ] {
        let error = messages(&json).unwrap_err();
        assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidRequest, expected));
    }
}

#[test]
fn tools_are_converted() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let list = tools(&json!([
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema, "strict": true}},
        {"type": "function", "function": {"name": "now"}},
        {"name": "old", "parameters": schema},
        {"type": "custom", "custom": {"name": "patch", "format": {
            "type": "grammar", "grammar": {"syntax": "lark", "definition": "start: x"}}}},
    ]))
    .unwrap();
    assert_eq!(list[0], ToolDefinition::new("look", "Looks.", schema.clone()).unwrap());
    assert_eq!(list[1].parameters, json!({"type": "object", "properties": {}}));
    assert_eq!(list[2], ToolDefinition::new("old", "", schema).unwrap());
    let grammar = Grammar { syntax: "lark".into(), definition: "start: x".into() };
    assert_eq!((list[3].name.as_str(), list[3].grammar.as_ref()), ("patch", Some(&grammar)));
    for (json, expected) in [
        (json!("x"), "expected an array of tools".to_owned()),
        (json!([{"type": "function"}]), "tool 0: expected `name`".to_owned()),
        (
            json!([{"name": "a"}, {"name": "b", "parameters": {"type": "array"}}]),
            "tool 1: the parameters of tool `b` must be a JSON Schema with \"type\": \"object\" at the root"
                .to_owned(),
        ),
    ] {
        assert_eq!(tools(&json).unwrap_err().message(), expected);
    }
}

#[test]
fn tool_choices_are_converted() {
    for (json, expected) in [
        (json!("auto"), ToolChoice::Auto),
        (json!("none"), ToolChoice::None),
        (json!("required"), ToolChoice::Required),
        (json!({"type": "function", "function": {"name": "look"}}), ToolChoice::Named("look".into())),
        (json!({"type": "custom", "custom": {"name": "patch"}}), ToolChoice::Named("patch".into())),
        (json!({"name": "old"}), ToolChoice::Named("old".into())),
    ] {
        assert_eq!(tool_choice(&json).unwrap(), expected, "{json}");
    }
    for json in [json!("sometimes"), json!({}), json!(1)] {
        assert_eq!(tool_choice(&json).unwrap_err().kind(), ErrorKind::InvalidRequest);
    }
}
