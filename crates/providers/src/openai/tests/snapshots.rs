//! Snapshots of requests and responses of the Responses API, by feature.

use pintle_llm::{
    AudioData, ContentPart, DocumentData, Grammar, ImageData, Message, ReasoningEffort, Request,
    ResponseFormat, Role, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use super::{added, completed, delta, dialect, done};
use crate::tests::snapshot::{decoded, local_file, next, refused, sent, sent_of, streamed};

const MODEL: &str = "gpt-5.2";

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

/// Builds a stream with the end events of these items.
fn items(status: &str, items: &[Value]) -> Vec<Value> {
    let created = json!({"type": "response.created", "response": {"id": "r1", "model": MODEL}});
    let ends = (0..).zip(items).map(|(index, item)| done(index, item));
    let usage = json!({"input_tokens": 9, "output_tokens": 7, "total_tokens": 16,
        "output_tokens_details": {"reasoning_tokens": 3}, "input_tokens_details": {"cached_tokens": 4}});
    let end =
        completed(&json!({"id": "r1", "model": MODEL, "status": status, "output": items, "usage": usage}));
    [created].into_iter().chain(ends).chain([end]).collect()
}

fn text_item(text: &str) -> Value {
    json!({"type": "message", "id": "m1", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

#[test]
fn images_by_url_bytes_and_local_path() {
    let file = local_file(".webp", b"webp");
    let mut close = ImageData::url("https://example.com/a.png");
    close.detail = Some("high".into());
    let request = ask(Message::user("What is this?")
        .with_part(close.into())
        .with_part(ImageData::data(b"gif".to_vec(), "image/gif").into())
        .with_part(ImageData::path(file.path().to_string_lossy()).into()));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["input"]), @r#"input[] {"content":[{"text":"What is this?","type":"input_text"},{"detail":"high","image_url":"https://example.com/a.png","type":"input_image"},{"detail":"auto","image_url":"data:image/gif;base64,Z2lm","type":"input_image"},{"detail":"auto","image_url":"data:image/webp;base64,d2VicA==","type":"input_image"}],"role":"user","type":"message"}"#);
    let drawn =
        json!({"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "cG5n"});
    let (events, response) =
        streamed(&dialect(), &request, &items("completed", &[drawn, text_item("A cat.")]));
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gpt-5.2","type":"STREAM_START"}
    {"part":{"data":{"id":"ig_1","result":"cG5n","status":"completed","type":"image_generation_call"},"kind":"image_generation_call"},"raw":{"id":"ig_1","result":"cG5n","status":"completed","type":"image_generation_call"},"type":"PROVIDER_EVENT"}
    {"text_id":"1.0","type":"TEXT_START"}
    {"delta":"A cat.","text_id":"1.0","type":"TEXT_DELTA"}
    {"text_id":"1.0","type":"TEXT_END"}
    {"finish_reason":{"raw":"completed","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":4,"input_tokens":9,"output_tokens":7,"reasoning_tokens":3,"total_tokens":16}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&ask(Message::user("Draw.")), &response, vec![]), &["input"]), @r#"
    input[] {"content":[{"text":"Draw.","type":"input_text"}],"role":"user","type":"message"}
    input[] {"result":"cG5n","status":"completed","type":"image_generation_call"}
    input[] {"content":[{"text":"A cat.","type":"output_text"}],"role":"assistant","type":"message"}
    input[] {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#);
}

#[test]
fn documents_and_unsupported_audio() {
    let request = ask(Message::user("Sum up.")
        .with_part(document(json!({"url": "https://example.com/a.pdf"})))
        .with_part(document(json!({"data": "cGRm", "media_type": "application/pdf", "file_name": "b.pdf"}))));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["input"]), @r#"input[] {"content":[{"text":"Sum up.","type":"input_text"},{"file_url":"https://example.com/a.pdf","type":"input_file"},{"file_data":"data:application/pdf;base64,cGRm","filename":"b.pdf","type":"input_file"}],"role":"user","type":"message"}"#);
    let request =
        ask(Message::user("Hear.").with_part(audio(json!({"data": "AQID", "media_type": "audio/wav"}))));
    insta::assert_snapshot!(refused(&dialect(), &request), @"InvalidRequest: the Responses API does not support audio");
    let cited = json!({"type": "response.output_text.annotation.added", "output_index": 0, "content_index": 0,
        "annotation": {"type": "file_citation", "filename": "b.pdf"}});
    let mut events = items("completed", &[text_item("Short.")]);
    events.splice(1..1, [delta("output_text", 0, "Short."), cited]);
    insta::assert_snapshot!(streamed(&dialect(), &request, &events).0, @r#"
    {"id":"r1","model":"gpt-5.2","type":"STREAM_START"}
    {"text_id":"0.0","type":"TEXT_START"}
    {"delta":"Short.","text_id":"0.0","type":"TEXT_DELTA"}
    {"raw":{"annotation":{"filename":"b.pdf","type":"file_citation"},"content_index":0,"output_index":0,"type":"response.output_text.annotation.added"},"type":"PROVIDER_EVENT"}
    {"text_id":"0.0","type":"TEXT_END"}
    {"finish_reason":{"raw":"completed","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":4,"input_tokens":9,"output_tokens":7,"reasoning_tokens":3,"total_tokens":16}}
    "#);
}

#[test]
fn encrypted_reasoning_without_storage() {
    let request = ask(Message::user("Why?")).with_reasoning_effort(ReasoningEffort::Medium);
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    include[] "reasoning.encrypted_content"
    input[] {"content":[{"text":"Why?","type":"input_text"}],"role":"user","type":"message"}
    model "gpt-5.2"
    reasoning {"effort":"medium","summary":"auto"}
    store false
    stream true
    "#);
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ENC",
        "summary": [{"type": "summary_text", "text": "**Why**"}, {"type": "summary_text", "text": "Because."}]});
    let hidden = json!({"type": "reasoning", "id": "rs_2", "encrypted_content": "HIDDEN", "summary": []});
    let reply = items("completed", &[reasoning, hidden, text_item("So.")]);
    let (events, response) = streamed(&dialect(), &request, &reply);
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gpt-5.2","type":"STREAM_START"}
    {"reasoning_id":"0","type":"REASONING_START"}
    {"reasoning_delta":"**Why**\n\nBecause.","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_id":"0","thinking":{"raw":{"encrypted_content":"ENC","id":"rs_1","summary":[{"text":"**Why**","type":"summary_text"},{"text":"Because.","type":"summary_text"}],"type":"reasoning"},"redacted":false,"signature":"ENC","text":"**Why**\n\nBecause."},"type":"REASONING_END"}
    {"reasoning_id":"1","type":"REASONING_START"}
    {"reasoning_id":"1","thinking":{"raw":{"encrypted_content":"HIDDEN","id":"rs_2","summary":[],"type":"reasoning"},"redacted":false,"signature":"HIDDEN","text":""},"type":"REASONING_END"}
    {"text_id":"2.0","type":"TEXT_START"}
    {"delta":"So.","text_id":"2.0","type":"TEXT_DELTA"}
    {"text_id":"2.0","type":"TEXT_END"}
    {"finish_reason":{"raw":"completed","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":4,"input_tokens":9,"output_tokens":7,"reasoning_tokens":3,"total_tokens":16}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["input"]), @r#"
    input[] {"content":[{"text":"Why?","type":"input_text"}],"role":"user","type":"message"}
    input[] {"encrypted_content":"ENC","summary":[{"text":"**Why**","type":"summary_text"},{"text":"Because.","type":"summary_text"}],"type":"reasoning"}
    input[] {"encrypted_content":"HIDDEN","summary":[],"type":"reasoning"}
    input[] {"content":[{"text":"So.","type":"output_text"}],"role":"assistant","type":"message"}
    input[] {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#);
}

#[test]
fn custom_tools_with_grammar() {
    let schema = json!({"type": "object", "properties": {}});
    let grammar = Grammar { syntax: "lark".into(), definition: "start: /.+/".into() };
    let tool = ToolDefinition::new("apply_patch", "Edits.", schema).unwrap().with_grammar(grammar);
    let request = ask(Message::user("Fix it.")).with_tools(vec![tool]);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tool", "parallel"]), @r#"
    parallel_tool_calls true
    tools[] {"description":"Edits.","format":{"definition":"start: /.+/","syntax":"lark","type":"grammar"},"name":"apply_patch","type":"custom"}
    "#);
    let call = json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "c1", "name": "apply_patch", "input": ""});
    let mut ended = call.clone();
    ended["input"] = "*** Begin\n".into();
    let stream = [
        added(0, &call),
        delta("custom_tool_call_input", 0, "*** "),
        delta("custom_tool_call_input", 0, "Begin\n"),
        done(0, &ended),
        completed(&json!({"id": "r1", "status": "completed", "output": [ended]})),
    ];
    let (events, response) = streamed(&dialect(), &request, &stream);
    insta::assert_snapshot!(events, @r#"
    {"type":"STREAM_START"}
    {"tool_call":{"id":"c1","name":"apply_patch"},"type":"TOOL_CALL_START"}
    {"delta":"*** ","tool_call":{"id":"c1","name":"apply_patch"},"type":"TOOL_CALL_DELTA"}
    {"delta":"Begin\n","tool_call":{"id":"c1","name":"apply_patch"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":"*** Begin\n","id":"c1","name":"apply_patch","type":"custom"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"completed","reason":"tool_calls"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let results = vec![ToolResult::new("c1", "done", false)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["input"]), @r#"
    input[] {"content":[{"text":"Fix it.","type":"input_text"}],"role":"user","type":"message"}
    input[] {"call_id":"c1","input":"*** Begin\n","name":"apply_patch","type":"custom_tool_call"}
    input[] {"call_id":"c1","output":"done","type":"custom_tool_call_output"}
    input[] {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#);
}

#[test]
fn provider_tool_items() {
    let request = ask(Message::user("Search.")).with_provider_options(
        "openai",
        json!({"tools": [{"type": "web_search"}, {"type": "mcp", "server_label": "d"}]}),
    );
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tool", "parallel"]), @r#"
    parallel_tool_calls true
    tools[] {"type":"web_search"}
    tools[] {"server_label":"d","type":"mcp"}
    "#);
    let search =
        json!({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}});
    let approval = json!({"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "d", "name": "n", "arguments": "{}"});
    let (streamed, response) = decoded(
        &dialect(),
        &request,
        &json!({"status": "completed", "output": [search, text_item("Found."), approval]}),
    );
    insta::assert_snapshot!(streamed, @r#"
    {"raw":"completed","reason":"stop"}
    {"data":{"action":{"type":"search"},"id":"ws_1","status":"completed","type":"web_search_call"},"kind":"web_search_call"}
    {"kind":"TEXT","text":"Found."}
    {"data":{"arguments":"{}","id":"mcpr_1","name":"n","server_label":"d","type":"mcp_approval_request"},"kind":"mcp_approval_request"}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["input"]), @r#"
    input[] {"content":[{"text":"Search.","type":"input_text"}],"role":"user","type":"message"}
    input[] {"action":{"type":"search"},"status":"completed","type":"web_search_call"}
    input[] {"content":[{"text":"Found.","type":"output_text"}],"role":"assistant","type":"message"}
    input[] {"arguments":"{}","id":"mcpr_1","name":"n","server_label":"d","type":"mcp_approval_request"}
    input[] {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#);
}

#[test]
fn refusals_and_incomplete_responses() {
    let request = ask(Message::user("Do harm."));
    let refusal =
        json!({"type": "message", "id": "m1", "content": [{"type": "refusal", "refusal": "I will not."}]});
    let (events, response) = streamed(&dialect(), &request, &items("completed", &[refusal]));
    insta::assert_snapshot!(events, @r#"
    {"id":"r1","model":"gpt-5.2","type":"STREAM_START"}
    {"part":{"data":{"refusal":"I will not.","type":"refusal"},"kind":"refusal"},"raw":{"refusal":"I will not.","type":"refusal"},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"completed","reason":"content_filter"},"type":"FINISH","usage":{"cache_read_tokens":4,"input_tokens":9,"output_tokens":7,"reasoning_tokens":3,"total_tokens":16}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["input"]), @r#"
    input[] {"content":[{"text":"Do harm.","type":"input_text"}],"role":"user","type":"message"}
    input[] {"content":[{"refusal":"I will not.","type":"refusal"}],"role":"assistant","type":"message"}
    input[] {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#);
    let cut = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"},
        "output": [text_item("Half"), {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{\"at\": "}]});
    insta::assert_snapshot!(decoded(&dialect(), &request, &cut).0, @r#"
    {"raw":"max_output_tokens","reason":"length"}
    {"kind":"TEXT","text":"Half"}
    {"kind":"TOOL_CALL","tool_call":{"arguments":"{\"at\": ","id":"c1","name":"look","raw_arguments":"{\"at\": ","type":"function"}}
    "#);
}

#[test]
fn parallel_streamed_calls_and_results_with_images() {
    let request = ask(Message::user("Look."));
    let call = |id: &str, arguments: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "look", "arguments": arguments});
    let stream = [
        added(0, &call("c1", "")),
        added(1, &call("c2", "")),
        delta("function_call_arguments", 0, "{\"at\""),
        delta("function_call_arguments", 1, "{}"),
        delta("function_call_arguments", 0, ": 1}"),
        done(1, &call("c2", "{}")),
        done(0, &call("c1", "{\"at\": 1}")),
        completed(&json!({"id": "r1", "status": "completed"})),
    ];
    let (events, response) = streamed(&dialect(), &request, &stream);
    insta::assert_snapshot!(events, @r#"
    {"type":"STREAM_START"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"tool_call":{"id":"c2","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{\"at\"","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"delta":": 1}","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"delta":"{}","tool_call":{"id":"c2","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{},"id":"c2","name":"look","raw_arguments":"{}","type":"function"},"type":"TOOL_CALL_END"}
    {"tool_call":{"arguments":{"at":1},"id":"c1","name":"look","raw_arguments":"{\"at\": 1}","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"completed","reason":"tool_calls"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
    let seen = ToolResult::new("c1", "seen", false).with_image(ImageData::data(b"png".to_vec(), "image/png"));
    let results = vec![seen, ToolResult::new("c2", "no such place", true)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["input"]), @r#"
    input[] {"content":[{"text":"Look.","type":"input_text"}],"role":"user","type":"message"}
    input[] {"arguments":"{\"at\": 1}","call_id":"c1","name":"look","type":"function_call"}
    input[] {"arguments":"{}","call_id":"c2","name":"look","type":"function_call"}
    input[] {"call_id":"c1","output":[{"text":"seen","type":"input_text"},{"detail":"auto","image_url":"data:image/png;base64,cG5n","type":"input_image"}],"type":"function_call_output"}
    input[] {"call_id":"c2","output":"no such place","type":"function_call_output"}
    input[] {"content":[{"text":"Go on.","type":"input_text"}],"role":"user","type":"message"}
    "#);
}

#[test]
fn structured_output() {
    let mut request = ask(Message::user("Who?"));
    let schema = json!({"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema, strict: true });
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["text"]), @r#"text {"format":{"name":"Person","schema":{"properties":{"name":{"type":"string"}},"title":"Person","type":"object"},"strict":true,"type":"json_schema"}}"#);
    request.response_format = Some(ResponseFormat::Json);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["text"]), @r#"text {"format":{"type":"json_object"}}"#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &items("completed", &[text_item(r#"{"name": "Ada"}"#)])).0, @r#"
    {"id":"r1","model":"gpt-5.2","type":"STREAM_START"}
    {"text_id":"0.0","type":"TEXT_START"}
    {"delta":"{\"name\": \"Ada\"}","text_id":"0.0","type":"TEXT_DELTA"}
    {"text_id":"0.0","type":"TEXT_END"}
    {"finish_reason":{"raw":"completed","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":4,"input_tokens":9,"output_tokens":7,"reasoning_tokens":3,"total_tokens":16}}
    "#);
}

#[test]
fn provider_options() {
    let options = json!({
        "include": ["web_search_call.action.sources", "reasoning.encrypted_content"],
        "prompt_cache_key": "session-1",
        "reasoning": {"summary": "detailed"},
        "service_tier": "flex",
    });
    let request = ask(Message::user("Hi"))
        .with_reasoning_effort(ReasoningEffort::Low)
        .with_provider_options("openai", options)
        .with_provider_options("anthropic", json!({"top_k": 5}));
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    include[] "reasoning.encrypted_content"
    include[] "web_search_call.action.sources"
    input[] {"content":[{"text":"Hi","type":"input_text"}],"role":"user","type":"message"}
    model "gpt-5.2"
    prompt_cache_key "session-1"
    reasoning {"effort":"low","summary":"detailed"}
    service_tier "flex"
    store false
    stream true
    "#);
    for (options, expected) in [
        (json!("fast"), "provider_options.openai must be an object; found \"fast\""),
        (json!({"include": "x"}), "provider_options.openai.include must be a list; found \"x\""),
        (json!({"tools": {}}), "provider_options.openai.tools must be a list; found {}"),
    ] {
        let request = ask(Message::user("Hi")).with_provider_options("openai", options);
        assert_eq!(refused(&dialect(), &request), format!("Configuration: {expected}"));
    }
}

#[test]
fn invalid_requests_are_refused_before_sending() {
    let call = || ContentPart::from(pintle_llm::ToolCall::from_raw("c1", "look", "{}"));
    let image = || ContentPart::from(ImageData::url("https://example.com/a.png"));
    let cases: Vec<(Vec<Message>, &str)> = vec![
        (vec![], "the conversation is empty: expected at least one message with content"),
        (
            vec![Message::system("only")],
            "the conversation is empty: expected at least one message with content",
        ),
        (
            vec![Message::user("a"), Message::tool_result("c9", "x", false)],
            "the result of call `c9` has no call before it",
        ),
        (
            vec![Message::tool_result("c1", "x", false), Message::assistant("").with_part(call())],
            "the result of call `c1` has no call before it",
        ),
        (vec![Message::user("").with_part(call())], "a user message cannot contain a part of kind TOOL_CALL"),
        (
            vec![Message::system("").with_part(image())],
            "a system message cannot contain a part of kind IMAGE",
        ),
    ];
    for (messages, expected) in cases {
        assert_eq!(
            refused(&dialect(), &Request::new(MODEL, messages)),
            format!("InvalidRequest: {expected}")
        );
    }
    let large = document(json!({"data": "", "media_type": "application/pdf"}));
    let ContentPart::Document(mut large) = large else { panic!("no document") };
    large.source = pintle_llm::MediaSource::Data(vec![0; 50 * 1024 * 1024 + 1].into());
    let request = ask(Message::user("").with_part(ContentPart::Document(large)));
    assert_eq!(
        refused(&dialect(), &request),
        "InvalidRequest: a document of 52428801 bytes is too large; the limit is 52428800"
    );
    // The rest of the conversation is stored at the provider.
    let request = Request::new(MODEL, [Message::tool_result("c9", "x", false)])
        .with_provider_options("openai", json!({"previous_response_id": "r1"}));
    assert_eq!(
        sent_of(&dialect(), &request, &["input"]),
        "input[] {\"call_id\":\"c9\",\"output\":\"x\",\"type\":\"function_call_output\"}\n"
    );
}

#[test]
fn invalid_tools_are_refused_before_sending() {
    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object"})).unwrap();
    let request = ask(Message::user("Hi")).with_tools(vec![tool.clone(), tool]);
    assert_eq!(refused(&dialect(), &request), "InvalidRequest: two tools are named `look`");
}

#[test]
fn media_beside_plain_results_are_kept() {
    let call = ContentPart::from(pintle_llm::ToolCall::custom("c1", "look", "here"));
    let image = ContentPart::from(ImageData::url("https://example.com/a.png"));
    let mut plain = Message::new(Role::Tool, vec![ContentPart::text("seen"), image]);
    plain.tool_call_id = Some("c1".into());
    let messages = [Message::user("a"), Message::assistant("").with_part(call), plain];
    insta::assert_snapshot!(sent_of(&dialect(), &Request::new(MODEL, messages), &["input"]), @r#"
    input[] {"content":[{"text":"a","type":"input_text"}],"role":"user","type":"message"}
    input[] {"call_id":"c1","input":"here","name":"look","type":"custom_tool_call"}
    input[] {"call_id":"c1","output":"seen","type":"custom_tool_call_output"}
    input[] {"content":[{"detail":"auto","image_url":"https://example.com/a.png","type":"input_image"}],"role":"user","type":"message"}
    "#);
}

#[test]
fn arguments_in_the_event_that_ends_them() {
    let request = ask(Message::user("Look."));
    let item = |arguments: &str| json!({"type": "function_call", "id": "fc1", "call_id": "c1", "name": "look", "arguments": arguments});
    let end = json!({"type": "response.function_call_arguments.done", "output_index": 0, "item_id": "fc1", "arguments": "{\"at\":1}"});
    let data = [
        added(0, &item("")),
        delta("function_call_arguments", 0, "{}"),
        end,
        done(0, &item("{}")),
        completed(&json!({"id": "r1", "model": MODEL, "status": "completed", "output": [item("{}")]})),
    ];
    insta::assert_snapshot!(streamed(&dialect(), &request, &data).0, @r#"
    {"type":"STREAM_START"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{\"at\":1}","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{"at":1},"id":"c1","name":"look","raw_arguments":"{\"at\":1}","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"completed","reason":"tool_calls"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
}
