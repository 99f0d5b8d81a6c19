//! Snapshots of requests and responses of the Messages API, by feature.

use pintle_llm::{
    AudioData, ContentPart, DocumentData, Grammar, ImageData, MediaSource, Message, ReasoningEffort, Request,
    ResponseFormat, ToolCall, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

use super::streams::{block, start, stop};
use super::{MODEL, messages_dialect as dialect};
use crate::dialect::Dialect as _;
use crate::tests::snapshot::{decoded, local_file, next, refused, sent, sent_of, streamed};

/// Disables cache points, which have their own tests.
fn ask(message: Message) -> Request {
    Request::new(MODEL, [message]).with_provider_options("anthropic", json!({"auto_cache": false}))
}

fn document(value: Value) -> ContentPart {
    let document: DocumentData = serde_json::from_value(value).unwrap();
    ContentPart::Document(document)
}

fn text_delta(text: &str) -> Value {
    json!({"type": "text_delta", "text": text})
}

fn piece(json: &str) -> Value {
    json!({"type": "input_json_delta", "partial_json": json})
}

/// Builds a stream with these blocks, each with its deltas.
fn blocks(reason: &str, content: &[(Value, Vec<Value>)]) -> Vec<Value> {
    let blocks = (0..).zip(content).flat_map(|(index, (head, deltas))| block(index, head, deltas));
    [start()].into_iter().chain(blocks).chain(stop(reason)).collect()
}

fn text_block(text: &str) -> (Value, Vec<Value>) {
    (json!({"type": "text", "text": ""}), vec![text_delta(text)])
}

#[test]
fn images_by_url_bytes_and_local_path() {
    let file = local_file(".webp", b"webp");
    let request = ask(Message::user("What is this?")
        .with_part(ImageData::url("https://example.com/a.png").into())
        .with_part(ImageData::data(b"gif".to_vec(), "image/gif").into())
        .with_part(ImageData::path(file.path().to_string_lossy()).into()));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["messages"]), @r#"messages[] {"content":[{"text":"What is this?","type":"text"},{"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"},{"source":{"data":"Z2lm","media_type":"image/gif","type":"base64"},"type":"image"},{"source":{"data":"d2VicA==","media_type":"image/webp","type":"base64"},"type":"image"}],"role":"user"}"#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &blocks("end_turn", &[text_block("A cat.")])).0, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"A cat.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
}

#[test]
fn documents_and_unsupported_content() {
    let request = ask(Message::user("Sum up.")
        .with_part(document(json!({"url": "https://example.com/a.pdf"})))
        .with_part(document(json!({"data": "cGRm", "media_type": "application/pdf", "file_name": "b.pdf"})))
        .with_part(document(json!({"data": "aGk=", "media_type": "text/markdown"}))));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["messages"]), @r#"messages[] {"content":[{"text":"Sum up.","type":"text"},{"source":{"type":"url","url":"https://example.com/a.pdf"},"type":"document"},{"source":{"data":"cGRm","media_type":"application/pdf","type":"base64"},"title":"b.pdf","type":"document"},{"source":{"data":"hi","media_type":"text/plain","type":"text"},"type":"document"}],"role":"user"}"#);
    let cited = json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "hi"}});
    let reply = blocks("end_turn", &[(json!({"type": "text", "text": ""}), vec![text_delta("Hi."), cited])]);
    insta::assert_snapshot!(streamed(&dialect(), &request, &reply).0, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Hi.","text_id":"0","type":"TEXT_DELTA"}
    {"raw":{"delta":{"citation":{"cited_text":"hi","type":"char_location"},"type":"citations_delta"},"index":0,"type":"content_block_delta"},"type":"PROVIDER_EVENT"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);

    let audio: AudioData =
        serde_json::from_value(json!({"data": "AQID", "media_type": "audio/wav"})).unwrap();
    let mut large: DocumentData = serde_json::from_value(json!({"data": ""})).unwrap();
    large.source = MediaSource::Data(vec![0; 24_000_001].into());
    let parts = [
        ContentPart::Audio(audio),
        document(json!({"data": "AP8=", "media_type": "text/plain"})),
        document(json!({"data": "AQID", "media_type": "application/msword"})),
        ContentPart::Document(large),
    ];
    let refusals: Vec<String> =
        parts.map(|part| refused(&dialect(), &ask(Message::user("").with_part(part)))).to_vec();
    insta::assert_snapshot!(refusals.join("\n"), @r#"
    InvalidRequest: audio is not supported
    InvalidRequest: documents of type text/plain are not supported; supported are application/pdf and UTF-8 text
    InvalidRequest: documents of type application/msword are not supported; supported are application/pdf and UTF-8 text
    InvalidRequest: a document of 24000001 bytes is too large; the limit is 24000000
    "#);
}

#[test]
fn signed_and_redacted_thinking() {
    let request = ask(Message::user("Why?")).with_reasoning_effort(ReasoningEffort::Low);
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    max_tokens 4096
    messages[] {"content":[{"text":"Why?","type":"text"}],"role":"user"}
    model "claude-sonnet-4-5"
    stream true
    thinking {"budget_tokens":1024,"type":"enabled"}
    "#);
    let thoughts = vec![
        json!({"type": "thinking_delta", "thinking": "Beca"}),
        json!({"type": "thinking_delta", "thinking": "use."}),
        json!({"type": "signature_delta", "signature": "SIG"}),
    ];
    let reply = blocks(
        "end_turn",
        &[
            (json!({"type": "thinking", "thinking": "", "signature": ""}), thoughts),
            (json!({"type": "redacted_thinking", "data": "OPAQUE"}), vec![]),
            text_block("So."),
        ],
    );
    let (events, response) = streamed(&dialect(), &request, &reply);
    insta::assert_snapshot!(events, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"reasoning_id":"0","type":"REASONING_START"}
    {"reasoning_delta":"Beca","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_delta":"use.","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_id":"0","thinking":{"redacted":false,"signature":"SIG","text":"Because."},"type":"REASONING_END"}
    {"reasoning_id":"1","type":"REASONING_START"}
    {"reasoning_id":"1","thinking":{"redacted":true,"signature":"OPAQUE","text":""},"type":"REASONING_END"}
    {"text_id":"2","type":"TEXT_START"}
    {"delta":"So.","text_id":"2","type":"TEXT_DELTA"}
    {"text_id":"2","type":"TEXT_END"}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"reasoning_tokens":2,"total_tokens":92}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["messages"]), @r#"
    messages[] {"content":[{"text":"Why?","type":"text"}],"role":"user"}
    messages[] {"content":[{"signature":"SIG","thinking":"Because.","type":"thinking"},{"data":"OPAQUE","type":"redacted_thinking"},{"text":"So.","type":"text"}],"role":"assistant"}
    messages[] {"content":[{"text":"Go on.","type":"text"}],"role":"user"}
    "#);
    let complete = json!({"content": [
        {"type": "thinking", "thinking": "Because.", "signature": "SIG"},
        {"type": "redacted_thinking", "data": "OPAQUE"},
        {"type": "text", "text": "So."}], "stop_reason": "end_turn"});
    let (shown, complete) = decoded(&dialect(), &request, &complete);
    insta::assert_snapshot!(shown, @r#"
    {"raw":"end_turn","reason":"stop"}
    {"kind":"THINKING","thinking":{"redacted":false,"signature":"SIG","text":"Because."}}
    {"kind":"REDACTED_THINKING","thinking":{"redacted":true,"signature":"OPAQUE","text":""}}
    {"kind":"TEXT","text":"So."}
    "#);
    assert_eq!(complete.message, response.message);
}

#[test]
fn sampling_excluded_by_thinking_is_dropped_with_a_warning() {
    let mut request = ask(Message::user("Why?")).with_reasoning_effort(ReasoningEffort::Low);
    request.temperature = Some(0.2);
    request.top_p = Some(0.99);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["thinking", "temperature", "top_p"]), @r#"
    thinking {"budget_tokens":1024,"type":"enabled"}
    top_p 0.99
    "#);
    insta::assert_snapshot!(streamed(&dialect(), &request, &blocks("end_turn", &[])).0, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START","warnings":[{"code":"temperature_ignored","message":"temperature 0.2 was not sent: the API does not accept it together with thinking"}]}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    let complete = dialect().decode(&request, br#"{"content": []}"#).unwrap();
    assert_eq!(complete.warnings.len(), 1);
    request.reasoning_effort = None;
    request.top_p = None;
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["thinking", "temperature", "top_p"]), @"temperature 0.2");
    assert_eq!(dialect().decode(&request, br#"{"content": []}"#).unwrap().warnings, []);
}

#[test]
fn new_models_think_adaptively() {
    let request = Request::new("claude-novel-99", [Message::user("Why?")])
        .with_reasoning_effort(ReasoningEffort::High)
        .with_provider_options("anthropic", json!({"auto_cache": false}));
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    max_tokens 4096
    messages[] {"content":[{"text":"Why?","type":"text"}],"role":"user"}
    model "claude-novel-99"
    output_config {"effort":"high"}
    stream true
    thinking {"type":"adaptive"}
    "#);
}

#[test]
fn grammar_tools_become_ordinary_tools() {
    let schema = json!({"type": "object", "properties": {"input": {"type": "string"}}});
    let grammar = Grammar { syntax: "lark".into(), definition: "start: /.+/".into() };
    let tool = ToolDefinition::new("apply_patch", "Edits.", schema).unwrap().with_grammar(grammar);
    let request = ask(Message::user("Fix it.")).with_tools(vec![tool]);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tools"]), @r#"tools[] {"description":"Edits.","input_schema":{"properties":{"input":{"type":"string"}},"type":"object"},"name":"apply_patch"}"#);
    let call = (
        json!({"type": "tool_use", "id": "c1", "name": "apply_patch", "input": {}}),
        vec![piece(r#"{"input": "*"}"#)],
    );
    let (events, response) = streamed(&dialect(), &request, &blocks("tool_use", &[call]));
    insta::assert_snapshot!(events, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"tool_call":{"id":"c1","name":"apply_patch"},"type":"TOOL_CALL_START"}
    {"delta":"{\"input\": \"*\"}","tool_call":{"id":"c1","name":"apply_patch"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{"input":"*"},"id":"c1","name":"apply_patch","raw_arguments":"{\"input\": \"*\"}","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"tool_use","reason":"tool_calls"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    let results = vec![ToolResult::new("c1", "done", false)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["messages"]), @r#"
    messages[] {"content":[{"text":"Fix it.","type":"text"}],"role":"user"}
    messages[] {"content":[{"id":"c1","input":{"input":"*"},"name":"apply_patch","type":"tool_use"}],"role":"assistant"}
    messages[] {"content":[{"content":"done","is_error":false,"tool_use_id":"c1","type":"tool_result"},{"text":"Go on.","type":"text"}],"role":"user"}
    "#);
}

#[test]
fn server_tool_blocks() {
    let request = ask(Message::user("Search.")).with_provider_options(
        "anthropic",
        json!({"auto_cache": false, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}),
    );
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["tools"]), @r#"tools[] {"name":"web_search","type":"web_search_20250305"}"#);
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
        {"type": "web_search_result", "url": "https://example.com", "encrypted_content": "ENC"}]});
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let mut reply = blocks(
        "end_turn",
        &[(search, vec![piece(r#"{"query""#), piece(r#": "x"}"#)]), (found, vec![]), text_block("Found.")],
    );
    // Data that the unified model does not represent is passed through.
    let delta = reply.len() - 2;
    reply[delta]["delta"]["container"] = json!({"id": "container_1"});
    let (events, response) = streamed(&dialect(), &request, &reply);
    insta::assert_snapshot!(events, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"part":{"data":{"id":"s1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},"kind":"server_tool_use"},"raw":{"id":"s1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},"type":"PROVIDER_EVENT"}
    {"part":{"data":{"content":[{"encrypted_content":"ENC","type":"web_search_result","url":"https://example.com"}],"tool_use_id":"s1","type":"web_search_tool_result"},"kind":"web_search_tool_result"},"raw":{"content":[{"encrypted_content":"ENC","type":"web_search_result","url":"https://example.com"}],"tool_use_id":"s1","type":"web_search_tool_result"},"type":"PROVIDER_EVENT"}
    {"text_id":"2","type":"TEXT_START"}
    {"delta":"Found.","text_id":"2","type":"TEXT_DELTA"}
    {"text_id":"2","type":"TEXT_END"}
    {"raw":{"delta":{"container":{"id":"container_1"},"stop_reason":"end_turn"},"type":"message_delta","usage":{"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"input_tokens":40,"output_tokens":20}},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, vec![]), &["messages"]), @r#"
    messages[] {"content":[{"text":"Search.","type":"text"}],"role":"user"}
    messages[] {"content":[{"id":"s1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"},{"content":[{"encrypted_content":"ENC","type":"web_search_result","url":"https://example.com"}],"tool_use_id":"s1","type":"web_search_tool_result"},{"text":"Found.","type":"text"}],"role":"assistant"}
    messages[] {"content":[{"text":"Go on.","type":"text"}],"role":"user"}
    "#);
}

#[test]
fn refusals_and_incomplete_responses() {
    let request = ask(Message::user("Do harm."));
    let mut refusal = blocks("refusal", &[text_block("No")]);
    let delta = refusal.len() - 2;
    refusal[delta]["delta"]["stop_details"] = json!({"type": "refusal", "category": "cyber"});
    insta::assert_snapshot!(streamed(&dialect(), &request, &refusal).0, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"No","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"raw":{"delta":{"stop_details":{"category":"cyber","type":"refusal"},"stop_reason":"refusal"},"type":"message_delta","usage":{"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"input_tokens":40,"output_tokens":20}},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"refusal","reason":"content_filter"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    let call =
        (json!({"type": "tool_use", "id": "c1", "name": "look", "input": {}}), vec![piece(r#"{"at": "#)]);
    let (events, response) =
        streamed(&dialect(), &request, &blocks("max_tokens", &[text_block("Half"), call]));
    insta::assert_snapshot!(events, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Half","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{\"at\": ","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":"{\"at\": ","id":"c1","name":"look","raw_arguments":"{\"at\": ","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"max_tokens","reason":"length"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    let results = vec![ToolResult::new("c1", "the arguments were cut off", true)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["messages"]), @r#"
    messages[] {"content":[{"text":"Do harm.","type":"text"}],"role":"user"}
    messages[] {"content":[{"text":"Half","type":"text"},{"id":"c1","input":{"input":"{\"at\": "},"name":"look","type":"tool_use"}],"role":"assistant"}
    messages[] {"content":[{"content":"the arguments were cut off","is_error":true,"tool_use_id":"c1","type":"tool_result"},{"text":"Go on.","type":"text"}],"role":"user"}
    "#);
    let paused = json!({"content": [{"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}], "stop_reason": "pause_turn"});
    insta::assert_snapshot!(decoded(&dialect(), &request, &paused).0, @r#"
    {"raw":"pause_turn","reason":"other"}
    {"data":{"id":"s1","input":{},"name":"web_search","type":"server_tool_use"},"kind":"server_tool_use"}
    "#);
}

#[test]
fn parallel_streamed_calls_and_results_with_images() {
    let request = ask(Message::user("Look."));
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "look", "input": {}});
    let content = [
        text_block("I look."),
        (call("c1"), vec![piece(""), piece(r#"{"at""#), piece(": 1}")]),
        (call("c2"), vec![]),
    ];
    let (events, response) = streamed(&dialect(), &request, &blocks("tool_use", &content));
    insta::assert_snapshot!(events, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"I look.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_START"}
    {"delta":"{\"at\"","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"delta":": 1}","tool_call":{"id":"c1","name":"look"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{"at":1},"id":"c1","name":"look","raw_arguments":"{\"at\": 1}","type":"function"},"type":"TOOL_CALL_END"}
    {"tool_call":{"id":"c2","name":"look"},"type":"TOOL_CALL_START"}
    {"tool_call":{"arguments":{},"id":"c2","name":"look","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"tool_use","reason":"tool_calls"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    let seen = ToolResult::new("c1", "seen", false).with_image(ImageData::data(b"png".to_vec(), "image/png"));
    let results = vec![seen, ToolResult::new("c2", "no such place", true)];
    insta::assert_snapshot!(sent_of(&dialect(), &next(&request, &response, results), &["messages"]), @r#"
    messages[] {"content":[{"text":"Look.","type":"text"}],"role":"user"}
    messages[] {"content":[{"text":"I look.","type":"text"},{"id":"c1","input":{"at":1},"name":"look","type":"tool_use"},{"id":"c2","input":{},"name":"look","type":"tool_use"}],"role":"assistant"}
    messages[] {"content":[{"content":[{"text":"seen","type":"text"},{"source":{"data":"cG5n","media_type":"image/png","type":"base64"},"type":"image"}],"is_error":false,"tool_use_id":"c1","type":"tool_result"},{"content":"no such place","is_error":true,"tool_use_id":"c2","type":"tool_result"},{"text":"Go on.","type":"text"}],"role":"user"}
    "#);
}

#[test]
fn structured_output() {
    let mut request = ask(Message::user("Who?"));
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema, strict: true });
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["system"]), @r#"system[] {"text":"Answer with one JSON value and nothing else: no text around it, no Markdown fence. The value must be valid against this JSON Schema:\n{\"properties\":{\"name\":{\"type\":\"string\"}},\"type\":\"object\"}","type":"text"}"#);
    request.response_format = Some(ResponseFormat::Json);
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["system"]), @r#"system[] {"text":"Answer with one JSON value and nothing else: no text around it, no Markdown fence.","type":"text"}"#);
    let reply = blocks("end_turn", &[text_block(r#"{"name": "Ada"}"#)]);
    insta::assert_snapshot!(streamed(&dialect(), &request, &reply).0, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"{\"name\": \"Ada\"}","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
}

#[test]
fn provider_options_and_beta_headers() {
    let request = Request::new(MODEL, [Message::user("Hi")]).with_provider_options(
        "anthropic",
        json!({
            "beta_headers": ["context-management-2025-06-27", "interleaved-thinking-2025-05-14"],
            "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
            "container": "container_1",
            "service_tier": "auto",
        }),
    );
    insta::assert_snapshot!(sent(&dialect(), &request), @r#"
    container "container_1"
    context_management {"edits":[{"type":"clear_tool_uses_20250919"}]}
    max_tokens 4096
    messages[] {"content":[{"cache_control":{"type":"ephemeral"},"text":"Hi","type":"text"}],"role":"user"}
    model "claude-sonnet-4-5"
    service_tier "auto"
    stream true
    "#);
    let headers = dialect().encode(&request, true).unwrap().headers;
    insta::assert_snapshot!(headers.last().unwrap().1, @"context-management-2025-06-27,interleaved-thinking-2025-05-14,prompt-caching-2024-07-31");
    let mut reply = blocks("end_turn", &[text_block("Hi.")]);
    let delta = reply.len() - 2;
    reply[delta]["context_management"] = json!({"applied_edits": []});
    insta::assert_snapshot!(streamed(&dialect(), &request, &reply).0, @r#"
    {"id":"msg_1","model":"claude-x","type":"STREAM_START"}
    {"text_id":"0","type":"TEXT_START"}
    {"delta":"Hi.","text_id":"0","type":"TEXT_DELTA"}
    {"text_id":"0","type":"TEXT_END"}
    {"raw":{"context_management":{"applied_edits":[]},"delta":{"stop_reason":"end_turn"},"type":"message_delta","usage":{"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"input_tokens":40,"output_tokens":20}},"type":"PROVIDER_EVENT"}
    {"finish_reason":{"raw":"end_turn","reason":"stop"},"type":"FINISH","usage":{"cache_read_tokens":30,"cache_write_tokens":2,"input_tokens":72,"output_tokens":20,"total_tokens":92}}
    "#);
    let odd = Request::new(MODEL, [Message::user("Hi")]).with_provider_options("anthropic", json!([1]));
    assert_eq!(
        refused(&dialect(), &odd),
        "Configuration: provider_options.anthropic must be an object; found [1]"
    );
}

#[test]
fn foreign_free_text_arguments_become_an_object() {
    let call = ToolCall::custom("c1", "apply_patch", "*** Begin");
    let messages = [
        Message::user("a"),
        Message::assistant("").with_part(call.into()),
        Message::tool_result("c1", "x", false),
    ];
    let request =
        Request::new(MODEL, messages).with_provider_options("anthropic", json!({"auto_cache": false}));
    insta::assert_snapshot!(sent_of(&dialect(), &request, &["messages"]), @r#"
    messages[] {"content":[{"text":"a","type":"text"}],"role":"user"}
    messages[] {"content":[{"id":"c1","input":{"input":"*** Begin"},"name":"apply_patch","type":"tool_use"}],"role":"assistant"}
    messages[] {"content":[{"content":"x","is_error":false,"tool_use_id":"c1","type":"tool_result"}],"role":"user"}
    "#);
}

#[test]
fn invalid_tools_are_refused_before_sending() {
    let tool = ToolDefinition::new("look", "Looks.", json!({"type": "object"})).unwrap();
    let request = ask(Message::user("Hi")).with_tools(vec![tool.clone(), tool]);
    assert_eq!(refused(&dialect(), &request), "InvalidRequest: two tools are named `look`");
}
