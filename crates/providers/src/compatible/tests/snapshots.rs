//! Snapshots of requests and responses of Chat Completions, by feature.

use pintle_llm::{
    AudioData, ContentPart, DocumentData, ImageData, Message, Origin, ReasoningEffort, Request,
    ResponseFormat, Role, ThinkingData, ToolCall, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use super::{chunk, dialect};
use crate::tests::snapshot::{decoded, local_file, next, refused, sent, sent_of, streamed};

const MODEL: &str = "llama";

fn ask(message: Message) -> Request {
    Request::new(MODEL, [message])
}

fn document(value: Value) -> ContentPart {
    let document: DocumentData = serde_json::from_value(value).unwrap();
    ContentPart::Document(document)
}

fn audio(value: Value) -> ContentPart {
    let audio: AudioData = serde_json::from_value(value).unwrap();
    ContentPart::Audio(audio)
}

/// Builds a stream with these deltas.
fn deltas(reason: &str, deltas: &[Value]) -> Vec<Value> {
    let end = chunk(&json!({}), Some(reason));
    let chunks = deltas.iter().map(|delta| chunk(delta, None)).chain([end]);
    chunks.map(|text| serde_json::from_str(&text).unwrap()).collect()
}

#[test]
fn images_by_url_bytes_and_local_path() {
    let file = local_file(".webp", b"webp");
    let mut close = ImageData::url("https://example.com/a.png");
    close.detail = Some("low".into());
    let request = ask(Message::user("What is this?")
        .with_part(close.into())
        .with_part(ImageData::data(b"gif".to_vec(), "image/gif").into())
        .with_part(ImageData::path(file.path().to_string_lossy()).into()));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["messages"]), @r#"messages[] {"content":[{"text":"What is this?","type":"text"},{"image_url":{"detail":"low","url":"https://example.com/a.png"},"type":"image_url"},{"image_url":{"url":"data:image/gif;base64,Z2lm"},"type":"image_url"},{"image_url":{"url":"data:image/webp;base64,d2VicA=="},"type":"image_url"}],"role":"user"}"#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &deltas("stop", &[json!({"content": "A cat."})])).0, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"A cat.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"stop","reason":"stop"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let large = ImageData::data(vec![0; 20 * 1024 * 1024 + 1], "image/png");
    insta::assert_snapshot!(refused(&dialect(), &ask(Message::user("").with_part(large.into()))), @"InvalidRequest: an image of 20971521 bytes is too large; the limit is 20971520");
}

#[test]
fn documents_and_audio() {
    let request = ask(Message::user("Sum up.")
        .with_part(document(json!({"data": "cGRm", "media_type": "application/pdf", "file_name": "b.pdf"})))
        .with_part(audio(json!({"data": "AQID", "media_type": "audio/mpeg"})))
        .with_part(audio(json!({"data": "AQID"}))));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["messages"]), @r#"messages[] {"content":[{"text":"Sum up.","type":"text"},{"file":{"file_data":"data:application/pdf;base64,cGRm","filename":"b.pdf"},"type":"file"},{"input_audio":{"data":"AQID","format":"mp3"},"type":"input_audio"},{"input_audio":{"data":"AQID","format":"wav"},"type":"input_audio"}],"role":"user"}"#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &deltas("stop", &[json!({"content": "Short."})])).0, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Short.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"stop","reason":"stop"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let parts = [
        document(json!({"url": "https://example.com/a.pdf"})),
        audio(json!({"url": "https://example.com/a.wav"})),
    ];
    let refusals = parts.map(|part| refused(&dialect(), &ask(Message::user("").with_part(part))));
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    InvalidRequest: documents by URL are not supported; pass the data or a local path
    InvalidRequest: audio by URL is not supported; pass the data or a local path
    "#);
}

#[test]
fn reasoning_is_returned_in_its_field() {
    let request = ask(Message::user("Look.")).with_reasoning_effort(ReasoningEffort::Low);
    let call =
        json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}]});
    let reasoned = |field: &str| {
        let stream = deltas("tool_calls", &[json!({field: "Hm"}), json!({field: "."}), call.clone()]);
        streamed(&dialect(), &request, &stream)
    };
    let (events, response) = reasoned("reasoning_content");
    insta::assert_snapshot!(events, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"reasoning_id":"0","type":"REASONING_START"}
    {"reasoning_delta":"Hm","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_delta":".","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_id":"0","thinking":{"raw":{"field":"reasoning_content"},"redacted":false,"text":"Hm."},"type":"REASONING_END"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{}","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{},"id":"c1","name":"look","raw_arguments":"{}","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"tool_calls","reason":"tool_calls"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let results = || vec![ToolResult::new("c1", "seen", false)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results()), &["messages", "reasoning"]), @r#"
    messages[] {"content":"Look.","role":"user"}
    messages[] {"content":null,"reasoning_content":"Hm.","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"look"},"id":"c1","type":"function"}]}
    messages[] {"content":"seen","role":"tool","tool_call_id":"c1"}
    messages[] {"content":"Go on.","role":"user"}
    reasoning_effort "low"
    "#);
    // Reasoning in another field is not returned.
    let (_, response) = reasoned("reasoning");
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results()), &["messages[] {\"content\":null"]), @r#"messages[] {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"look"},"id":"c1","type":"function"}]}"#);
    // It is returned without a call as well.
    let complete = json!({"choices": [{"finish_reason": "stop", "message": {"content": "So.", "reasoning_content": "Hm."}}]});
    let (shown, response) = decoded(&dialect(), &request, &complete);
    insta::assert_snapshot!(shown, @r#"
    {"raw":"stop","reason":"stop"}
    {"kind":"THINKING","thinking":{"raw":{"field":"reasoning_content"},"redacted":false,"text":"Hm."}}
    {"kind":"TEXT","text":"So."}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["messages"]), @r#"
    messages[] {"content":"Look.","role":"user"}
    messages[] {"content":"So.","reasoning_content":"Hm.","role":"assistant"}
    messages[] {"content":"Go on.","role":"user"}
    "#);
}

#[test]
fn refusals_and_incomplete_responses() {
    let request = ask(Message::user("Do harm."));
    let stream = deltas("stop", &[json!({"refusal": "I will "}), json!({"refusal": "not."})]);
    let (events, response) = streamed(&dialect(), &request, &stream);
    insta::assert_snapshot!(events, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"part":{"data":{"refusal":"I will not.","type":"refusal"},"kind":"refusal"},"raw":{"refusal":"I will not."},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"stop","reason":"content_filter"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["messages"]), @r#"
    messages[] {"content":"Do harm.","role":"user"}
    messages[] {"content":null,"refusal":"I will not.","role":"assistant"}
    messages[] {"content":"Go on.","role":"user"}
    "#);
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{\"at\": "}}]});
    let (events, response) =
        streamed(&dialect(), &request, &deltas("length", &[json!({"content": "Half"}), call]));
    insta::assert_snapshot!(events, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Half","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{\"at\": ","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":"{\"at\": ","id":"c1","name":"look","raw_arguments":"{\"at\": ","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"length","reason":"length"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let results = vec![ToolResult::new("c1", "the arguments were cut off", true)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["messages"]), @r#"
    messages[] {"content":"Do harm.","role":"user"}
    messages[] {"content":"Half","role":"assistant","tool_calls":[{"function":{"arguments":"{\"input\":\"{\\\"at\\\": \"}","name":"look"},"id":"c1","type":"function"}]}
    messages[] {"content":"the arguments were cut off","role":"tool","tool_call_id":"c1"}
    messages[] {"content":"Go on.","role":"user"}
    "#);
}

#[test]
fn parallel_streamed_calls_and_results_with_images() {
    let request = ask(Message::user("Look."));
    let piece = |value: Value| json!({"tool_calls": [value]});
    let stream = deltas(
        "tool_calls",
        &[
            piece(json!({"index": 0, "id": "c1", "function": {"name": "look", "arguments": ""}})),
            piece(json!({"index": 1, "id": "c2", "function": {"name": "look", "arguments": "{}"}})),
            piece(json!({"index": 0, "function": {"arguments": "{\"at\""}})),
            piece(json!({"index": 0, "function": {"arguments": ": 1}"}})),
        ],
    );
    let (events, response) = streamed(&dialect(), &request, &stream);
    insta::assert_snapshot!(events, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"tool_call":{"id":"c2","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{\"at\"","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"delta":": 1}","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{"at":1},"id":"c1","name":"look","raw_arguments":"{\"at\": 1}","type":"function"},"type":"TOOL_CALL_END"}
    {"delta":"{}","tool_call":{"id":"c2","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{},"id":"c2","name":"look","raw_arguments":"{}","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"tool_calls","reason":"tool_calls"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let seen = ToolResult::new("c1", "seen", false).with_image(ImageData::data(b"png".to_vec(), "image/png"));
    let results = vec![seen, ToolResult::new("c2", "no such place", true)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["messages"]), @r#"
    messages[] {"content":"Look.","role":"user"}
    messages[] {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"at\": 1}","name":"look"},"id":"c1","type":"function"},{"function":{"arguments":"{}","name":"look"},"id":"c2","type":"function"}]}
    messages[] {"content":"seen","role":"tool","tool_call_id":"c1"}
    messages[] {"content":"no such place","role":"tool","tool_call_id":"c2"}
    messages[] {"content":[{"text":"Images of the result of call c1:","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"}],"role":"user"}
    messages[] {"content":"Go on.","role":"user"}
    "#);
}

#[test]
fn structured_output() {
    let mut request = ask(Message::user("Who?"));
    let schema = json!({"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema, strict: true });
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["response_format"]), @r#"response_format {"json_schema":{"name":"Person","schema":{"properties":{"name":{"type":"string"}},"title":"Person","type":"object"},"strict":true},"type":"json_schema"}"#);
    let reply =
        json!({"choices": [{"finish_reason": "stop", "message": {"content": "{\"name\": \"Ada\"}"}}]});
    insta::assert_snapshot!(decoded(&dialect(), &request, &reply).0, @r#"
    {"raw":"stop","reason":"stop"}
    {"kind":"TEXT","text":"{\"name\": \"Ada\"}"}
    "#);
}

#[test]
fn server_options() {
    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object", "properties": {}})).unwrap();
    let options =
        json!({"tools": [{"type": "builtin_function", "function": {"name": "$web_search"}}], "top_k": 5});
    let request = ask(Message::user("Hi")).with_tools(vec![tool]).with_provider_options("local", options);
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    messages[] {"content":"Hi","role":"user"}
    model "llama"
    stream true
    stream_options {"include_usage":true}
    tools[] {"function":{"description":"Looks.","name":"look","parameters":{"properties":{},"type":"object"}},"type":"function"}
    tools[] {"function":{"name":"$web_search"},"type":"builtin_function"}
    top_k 5
    "#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &deltas("stop", &[json!({"content": "Hi."})])).0, @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Hi.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"stop","reason":"stop"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    for (options, expected) in [
        (json!("fast"), "provider_options.local must be an object; found \"fast\""),
        (json!({"tools": {}}), "provider_options.local.tools must be a list; found {}"),
    ] {
        let request = ask(Message::user("Hi")).with_provider_options("local", options);
        assert_eq!(refused(&dialect(), &request), format!("Configuration: {expected}"));
    }
}

#[test]
fn foreign_media_and_reasoning_are_replaced_or_dropped() {
    let content = vec![
        ThinkingData::new("Hm.").with_raw(json!({"field": "reasoning_content"})).into(),
        audio(json!({"data": "AQID", "media_type": "audio/wav"})),
        ContentPart::text(" Hear."),
        ToolCall::from_raw("an-id-that-is-far-too-long-for-chat-completions", "my tool!", "{}").into(),
    ];
    let reply = Message::new(Role::Assistant, content).with_origin(Origin::new("gemini", "g"));
    let result = Message::tool_result("an-id-that-is-far-too-long-for-chat-completions", "x", false);
    let request = Request::new(MODEL, [Message::user("a"), reply, result]);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["messages"]), @r#"
    messages[] {"content":"a","role":"user"}
    messages[] {"content":"[audio/wav] Hear.","role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"my_tool_"},"id":"call_d833434d178a6206cf00edfbb560cb03","type":"function"}]}
    messages[] {"content":"x","role":"tool","tool_call_id":"call_d833434d178a6206cf00edfbb560cb03"}
    "#);
}

#[test]
fn invalid_requests_are_refused_before_sending() {
    let call = || ContentPart::from(ToolCall::from_raw("c1", "look", "{}"));
    let image = || ContentPart::from(ImageData::url("https://example.com/a.png"));
    let empty = "the conversation is empty: expected at least one message with content";
    let cases: Vec<(Vec<Message>, &str)> = vec![
        (vec![], empty),
        (vec![Message::new(Role::User, vec![])], empty),
        (
            vec![Message::user("a"), Message::tool_result("c9", "x", false)],
            "the result of call `c9` has no call before it",
        ),
        (
            vec![Message::user("").with_part(call())],
            "a message of role user cannot contain a part of kind TOOL_CALL",
        ),
        (
            vec![Message::system("").with_part(image())],
            "a message of role system cannot contain a part of kind IMAGE",
        ),
        (
            vec![Message::assistant("").with_part(ToolResult::new("c1", "x", false).into())],
            "the result of call `c1` has no call before it",
        ),
    ];
    for (messages, expected) in cases {
        assert_eq!(
            refused(&dialect(), &Request::new(MODEL, messages)),
            format!("InvalidRequest: {expected}")
        );
    }
}

#[test]
fn invalid_tools_are_refused_before_sending() {
    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object"})).unwrap();
    let request = ask(Message::user("Hi")).with_tools(vec![tool.clone(), tool]);
    assert_eq!(refused(&dialect(), &request), "InvalidRequest: two tools are named `look`");
}

#[test]
fn user_content_beside_results_follows_them() {
    let call = |id: &str| ContentPart::from(ToolCall::from_raw(id, "look", "{}"));
    let image = || ContentPart::from(ImageData::url("https://example.com/a.png"));
    let mut plain = Message::new(Role::Tool, vec![ContentPart::text("seen"), image()]);
    plain.tool_call_id = Some("c1".into());
    let by_user = Message::user("Look at this.").with_part(ToolResult::new("c2", "seen too", false).into());
    let messages = [
        Message::user("a"),
        Message::assistant("").with_part(call("c1")).with_part(call("c2")),
        plain,
        by_user,
    ];
    insta::assert_snapshot!(sent_of(&dialect(), &Request::new(MODEL, messages), &["messages"]), @r#"
    messages[] {"content":"a","role":"user"}
    messages[] {"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"look"},"id":"c1","type":"function"},{"function":{"arguments":"{}","name":"look"},"id":"c2","type":"function"}]}
    messages[] {"content":"seen","role":"tool","tool_call_id":"c1"}
    messages[] {"content":"seen too","role":"tool","tool_call_id":"c2"}
    messages[] {"content":[{"image_url":{"url":"https://example.com/a.png"},"type":"image_url"}],"role":"user"}
    messages[] {"content":[{"text":"Look at this.","type":"text"}],"role":"user"}
    "#);
}
