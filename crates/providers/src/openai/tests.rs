mod snapshots;

use pintle_llm::{
    ContentPart, ErrorKind, Finish, Grammar, HistoryItem, ImageData, Message, Origin, ReasoningEffort,
    ResponseFormat, Role, StreamAccumulator, StreamEvent, ThinkingData, ToolCall, ToolChoice, ToolDefinition,
    ToolResult,
};
use serde_json::{Value, json};

use super::stream::{LARGE_ITEM, ResponsesDecoder};
use super::*;
use crate::dialect::{Decoder as _, SseEvent};
use crate::tests::snapshot::KEEP_ALIVES;

fn dialect() -> Responses {
    Responses { api_key: Secret::new("sk-test") }
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&dialect().encode(request, true).unwrap().body.to_vec()).unwrap()
}

fn text(request: &Request) -> String {
    String::from_utf8(dialect().encode(request, true).unwrap().body.to_vec()).unwrap()
}

fn origin() -> Origin {
    Origin::new("openai", "gpt-5.2")
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "Does it.", json!({"type": "object", "properties": {}})).unwrap()
}

/// System, user, a response with reasoning, text and two calls, their results, a steering message.
fn conversation() -> Vec<HistoryItem> {
    let raw = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "enc",
        "summary": [{"type": "summary_text", "text": "Look first."}]});
    let thinking = ThinkingData::new("Look first.").with_signature(Some("enc".into())).with_raw(raw);
    let reply = Message::new(Role::Assistant, vec![thinking.into(), ContentPart::text("I will look.")])
        .with_part(ToolCall::from_raw("call_1", "read_file", r#"{"path": "a.rs"}"#).into())
        .with_part(ToolCall::custom("call_2", "apply_patch", "*** Begin Patch\n*** End Patch").into())
        .with_origin(origin());
    let results = vec![
        ToolResult::new("call_1", "fn main() {}", false)
            .with_image(ImageData::data(b"png".to_vec(), "image/png")),
        ToolResult::new("call_2", "no such file", true),
    ];
    vec![
        Message::system("Be brief.").into(),
        Message::developer("Answer in English.").into(),
        Message::user("What is in a.rs?")
            .with_part(ImageData::url("https://example.com/a.png").into())
            .into(),
        reply.into(),
        Message::tool_results(results).into(),
        Message::user("And quickly.").into(),
    ]
}

#[test]
fn conversations_become_input_items() {
    let grammar = Grammar { syntax: "lark".into(), definition: "start: /.+/".into() };
    let request = Request::new("gpt-5.2", conversation())
        .with_tools(vec![tool("read_file"), tool("apply_patch").with_grammar(grammar)])
        .with_reasoning_effort(ReasoningEffort::High)
        .with_max_tokens(1000);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body(&request)).unwrap(), @r#"
    {
      "include": [
        "reasoning.encrypted_content"
      ],
      "input": [
        {
          "content": [
            {
              "text": "Answer in English.",
              "type": "input_text"
            }
          ],
          "role": "developer",
          "type": "message"
        },
        {
          "content": [
            {
              "text": "What is in a.rs?",
              "type": "input_text"
            },
            {
              "detail": "auto",
              "image_url": "https://example.com/a.png",
              "type": "input_image"
            }
          ],
          "role": "user",
          "type": "message"
        },
        {
          "encrypted_content": "enc",
          "summary": [
            {
              "text": "Look first.",
              "type": "summary_text"
            }
          ],
          "type": "reasoning"
        },
        {
          "content": [
            {
              "text": "I will look.",
              "type": "output_text"
            }
          ],
          "role": "assistant",
          "type": "message"
        },
        {
          "arguments": "{\"path\": \"a.rs\"}",
          "call_id": "call_1",
          "name": "read_file",
          "type": "function_call"
        },
        {
          "call_id": "call_2",
          "input": "*** Begin Patch\n*** End Patch",
          "name": "apply_patch",
          "type": "custom_tool_call"
        },
        {
          "call_id": "call_1",
          "output": [
            {
              "text": "fn main() {}",
              "type": "input_text"
            },
            {
              "detail": "auto",
              "image_url": "data:image/png;base64,cG5n",
              "type": "input_image"
            }
          ],
          "type": "function_call_output"
        },
        {
          "call_id": "call_2",
          "output": "no such file",
          "type": "custom_tool_call_output"
        },
        {
          "content": [
            {
              "text": "And quickly.",
              "type": "input_text"
            }
          ],
          "role": "user",
          "type": "message"
        }
      ],
      "instructions": "Be brief.",
      "max_output_tokens": 1000,
      "model": "gpt-5.2",
      "parallel_tool_calls": true,
      "reasoning": {
        "effort": "high",
        "summary": "auto"
      },
      "store": false,
      "stream": true,
      "tools": [
        {
          "description": "Does it.",
          "name": "read_file",
          "parameters": {
            "properties": {},
            "type": "object"
          },
          "strict": false,
          "type": "function"
        },
        {
          "description": "Does it.",
          "format": {
            "definition": "start: /.+/",
            "syntax": "lark",
            "type": "grammar"
          },
          "name": "apply_patch",
          "type": "custom"
        }
      ]
    }
    "#);
    let sent = dialect().encode(&request, true).unwrap();
    assert_eq!(sent.path, "/responses");
    assert_eq!(sent.headers, [("authorization", "Bearer sk-test".to_owned())]);
    assert!(!format!("{sent:?} {:?}", dialect()).contains("sk-test"));
}

#[test]
fn all_parameters_are_encoded() {
    let mut request = Request::new("gpt-4.1", [Message::user("hi")])
        .with_tools(vec![tool("read_file")])
        .with_tool_choice(ToolChoice::Named("read_file".into()))
        .with_provider_options(
            "openai",
            json!({"prompt_cache_key": "s1", "tools": [{"type": "web_search"}], "text": {"verbosity": "low"}}),
        );
    request.temperature = Some(0.5);
    request.top_p = Some(0.9);
    request.metadata.insert("session".into(), "s1".into());
    let schema = json!({"type": "object", "title": "Weather Report"});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema.clone(), strict: true });
    let body = body(&request);
    assert_eq!(body["tool_choice"], json!({"type": "function", "name": "read_file"}));
    assert_eq!(body["tools"][1], json!({"type": "web_search"}));
    assert_eq!(
        body["text"],
        json!({"format": {"type": "json_schema", "name": "WeatherReport", "schema": schema, "strict": true}, "verbosity": "low"})
    );
    assert_eq!((&body["temperature"], &body["top_p"]), (&json!(0.5), &json!(0.9)));
    assert_eq!((&body["metadata"], &body["prompt_cache_key"]), (&json!({"session": "s1"}), &json!("s1")));
    assert_eq!((body.get("include"), body.get("reasoning")), (None, None), "gpt-4.1 does not reason");
    assert_eq!(body["store"], json!(false));

    for (choice, expected) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::None, "none"), (ToolChoice::Required, "required")]
    {
        let request = request.clone().with_tool_choice(choice);
        assert_eq!(self::body(&request)["tool_choice"], json!(expected));
    }
    let error =
        dialect().encode(&request.with_provider_options("openai", json!({"input": []})), false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
}

#[test]
fn encrypted_reasoning_is_requested_from_reasoning_models() {
    for (model, expected) in
        [("gpt-5.2", true), ("gpt-99", true), ("o3", true), ("gpt-4o-mini", false), ("gpt-3.5-turbo", false)]
    {
        let included = body(&Request::new(model, [Message::user("hi")])).get("include").is_some();
        assert_eq!(included, expected, "{model}");
    }
}

#[test]
fn opaque_content_is_sent_to_its_origin_only() {
    let opaque = ContentPart::Opaque(pintle_llm::OpaqueData {
        kind: "web_search_call".into(),
        data: json!({"type": "web_search_call", "id": "ws_1", "status": "completed"}),
    });
    let thinking = ThinkingData::new("").with_signature(Some("enc".into()));
    let content = vec![thinking.into(), opaque, ContentPart::text("done")];
    let message = Message::new(Role::Assistant, content);
    let input = |origin: Option<Origin>| {
        let mut message = message.clone();
        message.origin = origin;
        body(&Request::new("gpt-5.2", [message]))["input"].clone()
    };
    let text =
        json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]});
    let complete = json!([
        {"type": "reasoning", "summary": [], "encrypted_content": "enc"},
        {"type": "web_search_call", "status": "completed"},
        text
    ]);
    assert_eq!(input(Some(origin())), complete);
    assert_eq!(input(None), complete, "built by the caller");
    assert_eq!(input(Some(Origin::new("openai", "gpt-5.1"))), json!([text]));
    assert_eq!(input(Some(Origin::new("anthropic", "gpt-5.2"))), json!([text]));
}

#[test]
fn dangling_reasoning_is_dropped() {
    let thinking = |text: &str| {
        ContentPart::Thinking(ThinkingData::new(text).with_signature(Some(format!("enc-{text}"))))
    };
    let sent = |content: Vec<ContentPart>| {
        let reply = Message::new(Role::Assistant, content).with_origin(origin());
        let request = Request::new("gpt-5.2", [Message::user("a"), reply, Message::user("b")]);
        let input = body(&request)["input"].clone();
        let kinds = input.as_array().unwrap().iter().map(|item| item["type"].as_str().unwrap().to_owned());
        kinds.collect::<Vec<_>>()[1..].join(" ")
    };
    assert_eq!(sent(vec![thinking("a")]), "message");
    assert_eq!(sent(vec![thinking("a"), thinking("b"), ContentPart::text("")]), "message");
    assert_eq!(sent(vec![thinking("a"), ContentPart::text("x")]), "reasoning message message");
    let call = ToolCall::from_raw("c", "t", "{}");
    assert_eq!(
        sent(vec![thinking("a"), thinking("b"), call.into(), thinking("c")]),
        "reasoning reasoning function_call message"
    );
}

#[test]
fn non_reasoning_models_get_no_reasoning_parameters() {
    let body = |model: &str| {
        body(&Request::new(model, [Message::user("x")]).with_reasoning_effort(ReasoningEffort::High))
    };
    assert_eq!(body("gpt-4.1").get("reasoning"), None);
    assert_eq!(body("gpt-5.2")["reasoning"]["effort"], "high");
    assert_eq!(body("gpt-of-tomorrow")["reasoning"]["effort"], "high");
}

#[test]
fn built_in_tools_must_be_a_list() {
    let request = Request::new("gpt-5.2", [Message::user("x")])
        .with_provider_options("openai", json!({"tools": {"type": "web_search"}}));
    let error = dialect().encode(&request, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.message().contains("must be a list"), "{error}");
}

#[test]
fn encoded_items_are_reused_in_longer_conversations() {
    let items = conversation();
    let short = text(&Request::new("gpt-5.2", items[..4].to_vec()));
    let long = text(&Request::new("gpt-5.2", items.clone()));
    assert!(long.starts_with(&short[..short.len() - 2]), "{short}\n{long}");

    // A memoised encoding is reused for its own model only.
    let marker = vec![bytes::Bytes::from_static(b"\"memo\"")];
    type Encoded = Result<Vec<bytes::Bytes>, Box<pintle_llm::ErrorInfo>>;
    let item = HistoryItem::from(Message::assistant("hi"));
    let _ = item.encoding("openai-responses", "gpt-5.2", |_| -> Encoded { Ok(marker) });
    assert!(text(&Request::new("gpt-5.2", [item.clone()])).ends_with(r#""input":["memo"]}"#));
    assert!(text(&Request::new("gpt-5.1", [item])).contains("output_text"));
}

#[test]
fn unsupported_content_is_refused() {
    let audio: ContentPart =
        serde_json::from_value(json!({"kind": "AUDIO", "audio": {"url": "https://x/a.wav"}})).unwrap();
    let large = ContentPart::Image(ImageData::data(vec![0; 20 * 1024 * 1024 + 1], "image/png"));
    let tiff = ContentPart::Image(ImageData::data(vec![0], "image/tiff"));
    for (part, words) in
        [(audio, "not support audio"), (large, "too large"), (tiff, "image/tiff are not supported")]
    {
        let request = Request::new("gpt-5.2", [Message::user("see").with_part(part)]);
        let error = dialect().encode(&request, false).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (ErrorKind::InvalidRequest, Some("openai")));
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn documents_are_sent_as_files() {
    let part: ContentPart = serde_json::from_value(
        json!({"kind": "DOCUMENT", "document": {"data": "cGRm", "media_type": "application/pdf", "file_name": "a.pdf"}}),
    )
    .unwrap();
    let body = body(&Request::new("gpt-5.2", [Message::new(Role::User, vec![part])]));
    let file =
        json!({"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"});
    assert_eq!(body["input"][0]["content"], json!([file]));
}

fn decode(reply: &Value) -> Result<Response, Error> {
    dialect().decode(&Request::new("gpt-5.2", [Message::user("hi")]), reply.to_string().as_bytes())
}

/// Returns a response with every kind of item.
fn full_response() -> Value {
    json!({
        "id": "resp_1", "model": "gpt-5.2-2025-12-11", "status": "completed",
        "output": [
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "enc", "summary": [
                {"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [
                {"type": "output_text", "text": "Look", "annotations": []}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file", "arguments": "{\"path\":\"a\"}"},
            {"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin"}
        ],
        "usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 30},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 8}, "total_tokens": 120}
    })
}

#[test]
fn complete_response_is_decoded() {
    let response = decode(&full_response()).unwrap();
    assert_eq!((response.id.as_str(), response.model.as_str()), ("resp_1", "gpt-5.2-2025-12-11"));
    assert_eq!(response.message.origin, Some(origin()), "the requested model");
    let kinds: Vec<&str> = response.message.content.iter().map(ContentPart::kind).collect();
    assert_eq!(kinds, ["THINKING", "TEXT", "web_search_call", "TOOL_CALL", "TOOL_CALL"]);
    assert_eq!(response.reasoning().as_deref(), Some("One.\n\nTwo."));
    assert_eq!(response.message.content[0].as_thinking().unwrap().signature.as_deref(), Some("enc"));
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    assert_eq!((calls[0].id.as_str(), &*calls[0].arguments), ("call_1", &json!({"path": "a"})));
    assert_eq!((calls[1].id.as_str(), &*calls[1].arguments), ("call_2", &json!("*** Begin")));
    assert_eq!(response.finish_reason.reason, Finish::ToolCalls);
    let usage = &response.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (100, 20, 120));
    assert_eq!((usage.reasoning_tokens, usage.cache_read_tokens), (Some(8), Some(64)));
    assert_eq!(usage.cache_write_tokens, Some(30));
    assert_eq!(response.raw, Some(full_response()));
}

#[test]
fn calls_without_id_get_one() {
    let call = json!({"type": "function_call", "name": "a", "arguments": "{}"});
    let ids = |id: &str| -> Vec<String> {
        let reply = json!({"id": id, "status": "completed", "output": [call, call]});
        decode(&reply).unwrap().tool_calls().map(|call| call.id.clone()).collect()
    };
    let (first, second) = (ids("r1"), ids("r2"));
    assert_eq!(first, ids("r1"));
    let all: std::collections::BTreeSet<&String> = first.iter().chain(&second).collect();
    assert!(all.len() == 4 && all.iter().all(|id| id.starts_with("call_")), "{all:?}");
}

#[test]
fn finish_reasons_are_mapped() {
    let text = json!([{"type": "message", "content": [{"type": "output_text", "text": "x"}]}]);
    let call = json!([{"type": "function_call", "call_id": "c", "name": "t", "arguments": "{\"a\":"}]);
    let refusal = json!([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]);
    let cut = |reason: &str| json!({"reason": reason});
    let cases = [
        ("completed", Value::Null, &text, Finish::Stop, "completed"),
        ("completed", Value::Null, &call, Finish::ToolCalls, "completed"),
        ("completed", Value::Null, &refusal, Finish::ContentFilter, "completed"),
        ("incomplete", cut("max_output_tokens"), &text, Finish::Length, "max_output_tokens"),
        ("incomplete", cut("max_output_tokens"), &call, Finish::Length, "max_output_tokens"),
        ("incomplete", cut("max_tokens"), &text, Finish::Length, "max_tokens"),
        ("incomplete", cut("length"), &call, Finish::Length, "length"),
        (
            "incomplete",
            cut("model_context_window_exceeded"),
            &text,
            Finish::Length,
            "model_context_window_exceeded",
        ),
        ("incomplete", cut("content_filter"), &text, Finish::ContentFilter, "content_filter"),
        ("incomplete", cut("new"), &text, Finish::Other, "new"),
        ("incomplete", Value::Null, &text, Finish::Other, "incomplete"),
        ("cancelled", Value::Null, &text, Finish::Error, "cancelled"),
    ];
    for (status, details, output, reason, raw) in cases {
        let reply = json!({"status": status, "incomplete_details": details, "output": output});
        let found = decode(&reply).unwrap().finish_reason;
        assert_eq!((found.reason, found.raw.as_deref()), (reason, Some(raw)), "{reply}");
        let terminal = if status == "incomplete" { "response.incomplete" } else { "response.completed" };
        let streamed = stream(&[json!({"type": terminal, "response": reply})]).unwrap();
        assert_eq!(streamed.finish_reason, found, "{reply}");
        assert_eq!(streamed.message.content.len(), 1, "{reply}");
    }
}

#[test]
fn malformed_responses_are_errors() {
    let error =
        decode(&json!({"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "Slow"}}))
            .unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimit, "Slow"));
    let error = decode(&json!({"error": {"code": "rate_limit_exceeded", "message": "Slow"}})).unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::RateLimit, "Slow"));
    for body in ["<html>", "{}", "[]", "", r#"{"error": null}"#] {
        let request = Request::new("gpt-5.2", [Message::user("hi")]);
        let error = dialect().decode(&request, body.as_bytes()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stream, "{body}");
    }
    let error = dialect().classify(
        401,
        &Headers::default(),
        br#"{"error": {"message": "Bad key", "code": "invalid_api_key"}}"#,
    );
    assert_eq!((error.kind(), error.provider()), (ErrorKind::Authentication, Some("openai")));
}

/// Accumulates a stream of these events, after checking that its events pair up.
fn stream(events: &[Value]) -> Result<Response, Error> {
    let request = Request::new("gpt-5.2", [Message::user("hi")]);
    let mut decoder = dialect().decoder(&request, 7);
    let mut out = Vec::new();
    for event in events {
        let name = event["name"].as_str().unwrap_or_default();
        decoder.feed(SseEvent { name, data: &event.to_string() }, &mut out)?;
    }
    decoder.end(&mut out)?;
    let mut accumulator = StreamAccumulator::new("openai", "gpt-5.2");
    out.iter().for_each(|event| accumulator.process(event));
    let count = |wanted: fn(&StreamEvent) -> bool| out.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, StreamEvent::StreamStart { .. })), 1);
    assert_eq!(count(|event| matches!(event, StreamEvent::Finish { .. })), 1);
    let starts = |event: &StreamEvent| {
        matches!(
            event,
            StreamEvent::TextStart { .. }
                | StreamEvent::ReasoningStart { .. }
                | StreamEvent::ToolCallStart { .. }
        )
    };
    let ends = |event: &StreamEvent| {
        matches!(
            event,
            StreamEvent::TextEnd { .. } | StreamEvent::ReasoningEnd { .. } | StreamEvent::ToolCallEnd { .. }
        )
    };
    assert_eq!(count(starts), count(ends), "{out:?}");
    let mut response = accumulator.response()?;
    // As the driver does it.
    if let Some(StreamEvent::Finish { response: last, .. }) = out.last() {
        response.id.clone_from(&last.id);
        response.model.clone_from(&last.model);
    }
    Ok(response)
}

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn completed(response: &Value) -> Value {
    json!({"type": "response.completed", "response": response})
}

fn delta(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "content_index": 0, "delta": delta})
}

/// Returns the response of [`full_response`] as a stream.
fn streamed_response() -> Vec<Value> {
    let reply = full_response();
    let item = |index: usize| &reply["output"][index];
    let summary = |part: u64, text: &str| json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": part, "delta": text});
    vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "gpt-5.2-2025-12-11", "output": []}}),
        added(0, &json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        summary(0, "On"),
        summary(0, "e."),
        summary(1, "Two."),
        done(0, item(0)),
        added(1, &json!({"type": "message", "id": "msg_1", "content": []})),
        delta("output_text", 1, "Lo"),
        delta("output_text", 1, "ok"),
        json!({"type": "response.output_text.done", "output_index": 1, "content_index": 0, "text": "Look"}),
        done(1, item(1)),
        added(2, item(2)),
        json!({"type": "response.web_search_call.searching", "output_index": 2}),
        done(2, item(2)),
        added(
            3,
            &json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read_file", "arguments": ""}),
        ),
        delta("function_call_arguments", 3, "{\"path\""),
        added(
            4,
            &json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "call_2", "name": "apply_patch", "input": ""}),
        ),
        delta("custom_tool_call_input", 4, "*** "),
        delta("function_call_arguments", 3, ":\"a\"}"),
        delta("custom_tool_call_input", 4, "Begin"),
        done(3, item(3)),
        done(4, item(4)),
        completed(&reply),
    ]
}

/// The end of an item repeats its arguments, which are not parsed again if they equal the streamed ones.
#[test]
fn long_arguments_are_taken_from_the_final_item() {
    let streamed = "a line, \"quoted\", é\n".repeat(LARGE_ITEM / 20);
    let other = streamed.replace("line", "LINE");
    for (kind, field, event) in [
        ("function_call", "arguments", "function_call_arguments"),
        ("custom_tool_call", "input", "custom_tool_call_input"),
    ] {
        let item = |text: &str| json!({"type": kind, "id": "i", "call_id": "c", "name": "t", field: text});
        for (end, expected) in [(&streamed, &streamed), (&other, &other), (&String::new(), &streamed)] {
            let done = done(0, &item(end)).to_string();
            // A server may escape more than necessary.
            for done in [done.clone(), done.replace('é', r"\u00e9")] {
                let mut decoder = dialect().decoder(&Request::new("m", [Message::user("hi")]), 7);
                let mut out = Vec::new();
                let (half, rest) = streamed.split_at(streamed.find("quoted").unwrap());
                let events = [added(0, &item("")), delta(event, 0, half), delta(event, 0, rest)];
                for data in events.iter().map(Value::to_string).chain([done]) {
                    decoder.feed(SseEvent { name: "", data: &data }, &mut out).unwrap();
                }
                let Some(StreamEvent::ToolCallEnd { tool_call }) = out.last() else {
                    panic!("the call ends")
                };
                assert_eq!((tool_call.id.as_str(), tool_call.name.as_str()), ("c", "t"));
                assert!(tool_call.arguments_text() == **expected, "{kind}");
            }
        }
    }
}

#[test]
fn streamed_text_is_not_repeated_from_the_final_item() {
    let streamed = "a line, \"quoted\", é\n".repeat(LARGE_ITEM / 20);
    let item = |text: &str| json!({"type": "custom_tool_call", "call_id": "c", "name": "t", "input": text});
    let mut decoder = ResponsesDecoder::new(Vec::new(), 7);
    let mut out = Vec::new();
    for event in [added(0, &item("")), delta("custom_tool_call_input", 0, &streamed)] {
        decoder.feed(SseEvent { name: "", data: &event.to_string() }, &mut out).unwrap();
    }
    for (text, is_left_out) in
        [(streamed.clone(), true), (format!("{streamed}."), false), (streamed[1..].to_owned(), false)]
    {
        let raw = serde_json::value::to_raw_value(&item(&text)).unwrap();
        let ended = decoder.ended_item(&raw).unwrap();
        assert_eq!((ended.get("input").is_none(), &ended["call_id"]), (is_left_out, &json!("c")));
    }
}

#[test]
fn arguments_may_be_in_any_event() {
    let (function, custom) = (("function_call", "arguments"), ("custom_tool_call", "input"));
    let full = || json!("{\"x\":1}");
    let cases = [
        // Kind, deltas, the event that ends the arguments, the end of the item.
        ("in the end of the arguments", function, vec![], full(), json!("")),
        ("and a placeholder in the end of the item", function, vec![], full(), json!("{}")),
        ("and null in the end of the item", function, vec![], full(), Value::Null),
        ("in the end of the item", function, vec![], Value::Null, full()),
        ("as an object in the end of the item", function, vec![], Value::Null, json!({"x": 1})),
        ("as an object in the end of the arguments", function, vec![], json!({"x": 1}), Value::Null),
        ("in deltas", function, vec!["{\"x\"", ":1}"], Value::Null, json!("")),
        (
            "in deltas, and a placeholder at the end",
            function,
            vec!["{\"x\"", ":1}"],
            json!("{}"),
            json!("{}"),
        ),
        ("a part in deltas", function, vec!["{\"x\""], full(), json!("")),
        ("after a placeholder in a delta", function, vec!["{}"], full(), json!("")),
        ("in deltas after a placeholder", function, vec!["{}", "{\"x\"", ":1}"], Value::Null, json!("")),
        ("after a placeholder in two deltas", function, vec!["{", "}"], full(), json!("{}")),
        ("other deltas", function, vec!["{\"y\":2}"], full(), json!("")),
        ("everywhere", function, vec!["{\"x\":1}"], full(), full()),
        ("input in its end", custom, vec![], full(), json!("")),
        ("input in the end of the item", custom, vec![], Value::Null, full()),
        ("input that begins with braces", custom, vec!["{", "\"x\":1}"], Value::Null, json!("")),
    ];
    for (name, (kind, field), deltas, end, item_end) in cases {
        let event = if field == "input" { "custom_tool_call_input" } else { "function_call_arguments" };
        let item = |arguments: &Value| json!({"type": kind, "id": "i", "call_id": "c", "name": "t", field: arguments});
        let ended =
            json!({"type": format!("response.{event}.done"), "output_index": 0, "item_id": "i", field: end});
        // With and without the start of the item.
        for start in [vec![added(0, &item(&json!("")))], vec![]] {
            let deltas = deltas.iter().map(|text| delta(event, 0, text));
            let end = [ended.clone(), done(0, &item(&item_end))];
            let last = completed(&json!({"status": "completed", "output": [item(&item_end)]}));
            let data: Vec<Value> = start.into_iter().chain(deltas).chain(end).chain([last]).collect();
            let response = stream(&data).unwrap();
            let calls: Vec<&ToolCall> = response.tool_calls().collect();
            assert_eq!(calls.len(), 1, "{name}");
            assert_eq!((calls[0].id.as_str(), calls[0].name.as_str()), ("c", "t"), "{name}");
            assert_eq!(calls[0].arguments_text(), "{\"x\":1}", "{name}");
        }
    }
}

#[test]
fn calls_without_arguments_are_complete() {
    for none in [json!(""), json!("{}"), json!("null"), json!({}), Value::Null] {
        let call = json!({"type": "function_call", "call_id": "c", "name": "t", "arguments": none});
        let data = [
            added(0, &call),
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": null}),
            json!({"type": "response.function_call_arguments.done", "output_index": 0, "arguments": none}),
            done(0, &call),
            completed(&json!({"status": "completed", "output": [call]})),
        ];
        let streamed = stream(&data).unwrap();
        let complete = decode(&json!({"status": "completed", "output": [call]})).unwrap();
        for response in [streamed, complete] {
            let arguments: Vec<_> = response.tool_calls().map(|call| call.arguments.clone()).collect();
            assert_eq!(arguments, [json!({})], "{none}");
        }
    }
}

#[test]
fn keep_alives_are_skipped() {
    let all = streamed_response();
    let complete = stream(&all).unwrap();
    for (name, data) in KEEP_ALIVES {
        let mut decoder = dialect().decoder(&Request::new("gpt-5.2", [Message::user("hi")]), 7);
        let mut out = Vec::new();
        let alive = SseEvent { name, data };
        decoder.feed(alive, &mut out).unwrap();
        for event in &all {
            decoder.feed(SseEvent { name: "", data: &event.to_string() }, &mut out).unwrap();
            decoder.feed(alive, &mut out).unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        }
        decoder.end(&mut out).unwrap();
        let mut accumulator = StreamAccumulator::new("openai", "gpt-5.2");
        out.iter().for_each(|event| accumulator.process(event));
        assert_eq!(accumulator.response().unwrap().message, complete.message, "{alive:?}");
    }
    let mut decoder = dialect().decoder(&Request::new("m", [Message::user("hi")]), 7);
    let cut = SseEvent { name: "response.output_text.delta", data: "{\"type\": \"response.output" };
    assert!(decoder.feed(cut, &mut Vec::new()).is_err(), "a truncated event is not skipped");
}

#[test]
fn streams_accumulate_to_the_complete_response() {
    let mut complete = decode(&full_response()).unwrap();
    complete.raw = None;
    assert_eq!(stream(&streamed_response()).unwrap(), complete);
}

#[test]
fn sparse_streams_lose_nothing() {
    let mut complete = decode(&full_response()).unwrap();
    complete.raw = None;
    let all = streamed_response();
    let kind = |event: &Value| event["type"].as_str().unwrap().to_owned();
    let without = |dropped: &dyn Fn(&str) -> bool| -> Vec<Value> {
        all.iter().filter(|event| !dropped(&kind(event))).cloned().collect()
    };
    let cases: Vec<(&str, Vec<Value>)> = vec![
        ("no deltas", without(&|kind| kind.ends_with(".delta"))),
        ("no ends of items", without(&|kind| kind == "response.output_item.done")),
        (
            "no beginnings of items",
            without(&|kind| {
                kind == "response.output_item.added"
                    || kind.ends_with(".delta")
                    || kind.ends_with("text.done")
            }),
        ),
        ("only the snapshot", without(&|kind| kind != "response.completed")),
        ("a resumed stream", all[1..].to_vec()),
    ];
    for (name, events) in cases {
        let found = stream(&events).unwrap();
        assert_eq!(in_any_order(&found), in_any_order(&complete), "{name}");
        assert_eq!((found.id, found.usage), (complete.id.clone(), complete.usage.clone()), "{name}");
    }
}

/// Returns the content of a response in a canonical order: a server-side item without an end event is known only at the end
/// of the response, after later items.
fn in_any_order(response: &Response) -> Vec<String> {
    let mut parts: Vec<String> = response.message.content.iter().map(|part| format!("{part:?}")).collect();
    parts.sort();
    parts
}

#[test]
fn items_are_matched_by_index_or_id() {
    let text = |id: &str, text: &str| json!({"type": "message", "id": id, "content": [{"type": "output_text", "text": text}]});
    // Ids change from event to event.
    let rotating = [
        added(0, &json!({"type": "message", "id": "x1", "content": []})),
        json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "x2", "content_index": 0, "delta": "one"}),
        done(0, &text("x3", "one")),
        completed(&json!({"id": "last", "status": "completed", "output": [text("x4", "one")]})),
    ];
    assert_eq!(stream(&rotating).unwrap().message.content, [ContentPart::text("one")]);
    // Without an index.
    let unnumbered = [
        json!({"type": "response.output_item.added", "item": {"type": "message", "id": "a", "content": []}}),
        json!({"type": "response.output_text.delta", "item_id": "a", "delta": "one"}),
        json!({"type": "response.output_item.done", "item": text("a", "one")}),
        json!({"type": "response.output_item.done", "item": text("b", "two")}),
        completed(&json!({"status": "completed", "output": [text("a", "one"), text("b", "two")]})),
    ];
    assert_eq!(
        stream(&unnumbered).unwrap().message.content,
        [ContentPart::text("one"), ContentPart::text("two")]
    );
}

#[test]
fn refusals_are_separate_from_text() {
    let item =
        json!({"type": "message", "id": "m", "content": [{"type": "refusal", "refusal": "I will not."}]});
    let events = [
        added(0, &json!({"type": "message", "id": "m", "content": []})),
        json!({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": "I will not."}),
        done(0, &item),
        completed(&json!({"status": "completed", "output": [item]})),
    ];
    let response = stream(&events).unwrap();
    assert_eq!((response.text().as_str(), response.finish_reason.reason), ("", Finish::ContentFilter));
    assert_eq!(response.message.content[0].kind(), "refusal");
    // It is returned to its own model.
    let request = Request::new("gpt-5.2", [response.message]);
    assert_eq!(body(&request)["input"][0]["content"], json!([{"type": "refusal", "refusal": "I will not."}]));
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let text = [
        json!({"type": "response.created", "response": {"id": "r", "model": "m"}}),
        delta("output_text", 0, "half"),
    ];
    let cases = [
        (json!({"type": "error", "code": "server_error", "message": "Oops"}), ErrorKind::Server, "Oops"),
        (
            json!({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "Slow"}}),
            ErrorKind::RateLimit,
            "Slow",
        ),
        (
            json!({"error": {"code": "context_length_exceeded", "message": "Long"}}),
            ErrorKind::ContextLength,
            "Long",
        ),
        (
            json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "Down"}}}),
            ErrorKind::Server,
            "Down",
        ),
    ];
    for (event, kind, message) in cases {
        let error = stream(&[&text[..], std::slice::from_ref(&event)].concat()).unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, message), "{event}");
    }
    let cut = stream(&text).unwrap_err();
    assert_eq!((cut.kind(), cut.is_retryable()), (ErrorKind::Stream, true));
    let mut decoder = dialect().decoder(&Request::new("m", [Message::user("hi")]), 0);
    for data in ["{\"type\": \"response.cr", "[1]", "{\"type\": \"response.output_text.delta\"}"] {
        let error = decoder.feed(SseEvent { name: "", data }, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Stream, "{data}");
    }
}

#[test]
fn streams_truncated_anywhere_are_errors() {
    let all = streamed_response();
    for end in 0..all.len() - 1 {
        assert_eq!(stream(&all[..end]).unwrap_err().kind(), ErrorKind::Stream, "after {end} events");
    }
}

#[test]
fn dropped_parameters_cause_a_warning() {
    let mut request = Request::new("gpt-5.2", [Message::user("hi")]);
    request.stop_sequences.push("END".into());
    let response = dialect().decode(&request, full_response().to_string().as_bytes()).unwrap();
    assert_eq!(response.warnings[0].code.as_deref(), Some("stop_sequences_ignored"));
    assert!(!text(&request).contains("END"));
}

proptest::proptest! {
    #[test]
    fn events_in_any_order_yield_valid_streams(order in proptest::collection::vec(0..25_usize, 0..40)) {
        let all = streamed_response();
        let end = all.len() - 1;
        let events: Vec<Value> = order.iter().filter_map(|place| all.get(*place)).chain([&all[end]]).cloned().collect();
        // The terminal event may be early; `stream` has the assertions.
        proptest::prop_assert!(stream(&events).is_ok());
    }

    #[test]
    fn arbitrary_data_does_not_panic(data in proptest::prelude::any::<String>()) {
        let request = Request::new("gpt-5.2", [Message::user("hi")]);
        let mut decoder = dialect().decoder(&request, 1);
        let _ = decoder.feed(SseEvent { name: "", data: &data }, &mut Vec::new());
        let _ = dialect().decode(&request, data.as_bytes());
        dialect().classify(400, &Headers::default(), data.as_bytes());
    }
}
