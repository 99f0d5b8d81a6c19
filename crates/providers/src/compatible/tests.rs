mod quirks;
mod snapshots;

use std::collections::BTreeMap;

use pintle_llm::{
    ContentPart, ErrorKind, Finish, Grammar, HistoryItem, ImageData, Message, Origin, ReasoningEffort,
    ResponseFormat, Role, StreamAccumulator, StreamEvent, ThinkingData, ToolCall, ToolChoice, ToolDefinition,
    ToolResult,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::dialect::{Decoder as _, SseEvent};
use crate::tests::snapshot::KEEP_ALIVES;

fn dialect() -> Chat {
    Chat { provider: "local".into(), api_key: Some(Secret::new("sk-test")), host: String::new() }
}

fn text(request: &Request) -> String {
    String::from_utf8(dialect().encode(request, true).unwrap().body.to_vec()).unwrap()
}

fn body(request: &Request) -> Value {
    serde_json::from_str(&text(request)).unwrap()
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::new(name, "Does it.", json!({"type": "object", "properties": {}})).unwrap()
}

fn conversation() -> Vec<HistoryItem> {
    let reply = Message::assistant("I will look.")
        .with_part(ToolCall::from_raw("call_1", "read_file", r#"{"path": "a.rs"}"#).into())
        .with_part(ToolCall::custom("call_2", "apply_patch", "*** Begin Patch").into());
    let first = ToolResult::new("call_1", "fn main() {}", false)
        .with_image(ImageData::data(b"png".to_vec(), "image/png"));
    vec![
        Message::system("Be brief.").into(),
        Message::developer("Answer in English.").into(),
        Message::user("What is in a.rs?")
            .with_part(ImageData::url("https://example.com/a.png").into())
            .into(),
        reply.into(),
        Message::tool_results(vec![first]).into(),
        Message::tool_result("call_2", "no such file", true).into(),
        Message::user("And quickly.").into(),
    ]
}

#[test]
fn conversations_become_messages() {
    let grammar = Grammar { syntax: "lark".into(), definition: "start: /.+/".into() };
    let request = Request::new("llama", conversation())
        .with_tools(vec![tool("read_file"), tool("apply_patch").with_grammar(grammar)])
        .with_reasoning_effort(ReasoningEffort::Low)
        .with_max_tokens(1000);
    insta::assert_snapshot!(serde_json::to_string_pretty(&body(&request)).unwrap(), @r#"
    {
      "max_tokens": 1000,
      "messages": [
        {
          "content": "Be brief.",
          "role": "system"
        },
        {
          "content": "Answer in English.",
          "role": "system"
        },
        {
          "content": [
            {
              "text": "What is in a.rs?",
              "type": "text"
            },
            {
              "image_url": {
                "url": "https://example.com/a.png"
              },
              "type": "image_url"
            }
          ],
          "role": "user"
        },
        {
          "content": "I will look.",
          "role": "assistant",
          "tool_calls": [
            {
              "function": {
                "arguments": "{\"path\": \"a.rs\"}",
                "name": "read_file"
              },
              "id": "call_1",
              "type": "function"
            },
            {
              "function": {
                "arguments": "{\"input\":\"*** Begin Patch\"}",
                "name": "apply_patch"
              },
              "id": "call_2",
              "type": "function"
            }
          ]
        },
        {
          "content": "fn main() {}",
          "role": "tool",
          "tool_call_id": "call_1"
        },
        {
          "content": "no such file",
          "role": "tool",
          "tool_call_id": "call_2"
        },
        {
          "content": [
            {
              "text": "Images of the result of call call_1:",
              "type": "text"
            },
            {
              "image_url": {
                "url": "data:image/png;base64,cG5n"
              },
              "type": "image_url"
            }
          ],
          "role": "user"
        },
        {
          "content": "And quickly.",
          "role": "user"
        }
      ],
      "model": "llama",
      "reasoning_effort": "low",
      "stream": true,
      "stream_options": {
        "include_usage": true
      },
      "tools": [
        {
          "function": {
            "description": "Does it.",
            "name": "read_file",
            "parameters": {
              "properties": {},
              "type": "object"
            }
          },
          "type": "function"
        },
        {
          "function": {
            "description": "Does it.",
            "name": "apply_patch",
            "parameters": {
              "properties": {},
              "type": "object"
            }
          },
          "type": "function"
        }
      ]
    }
    "#);
    let sent = dialect().encode(&request, true).unwrap();
    assert_eq!(sent.path, "/chat/completions");
    assert_eq!(sent.headers, [("authorization", "Bearer sk-test".to_owned())]);
    let keyless = Chat { api_key: None, ..dialect() };
    assert!(keyless.encode(&request, true).unwrap().headers.is_empty());
}

#[test]
fn all_parameters_are_encoded() {
    let mut request = Request::new("llama", [Message::user("hi")])
        .with_tools(vec![tool("t")])
        .with_provider_options("local", json!({"seed": 7, "stream_options": {"extra": true}}));
    request.temperature = Some(0.5);
    request.top_p = Some(0.9);
    request.stop_sequences.push("END".into());
    request.response_format = Some(ResponseFormat::Json);
    let found = body(&request);
    assert_eq!(
        (&found["temperature"], &found["top_p"], &found["seed"]),
        (&json!(0.5), &json!(0.9), &json!(7))
    );
    assert_eq!(found["stop"], json!(["END"]));
    assert_eq!(found["response_format"], json!({"type": "json_object"}));
    assert_eq!(found["stream_options"], json!({"include_usage": true, "extra": true}));
    let complete: Value = serde_json::from_slice(
        &dialect().encode(&Request::new("m", [Message::user("x")]), false).unwrap().body.to_vec(),
    )
    .unwrap();
    assert_eq!((complete.get("stream_options"), &complete["stream"]), (None, &json!(false)));

    let schema = json!({"type": "object"});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema.clone(), strict: false });
    assert_eq!(
        body(&request)["response_format"],
        json!({"type": "json_schema", "json_schema": {"name": "response", "schema": schema, "strict": false}})
    );
    let cases = [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (ToolChoice::Named("t".into()), json!({"type": "function", "function": {"name": "t"}})),
    ];
    for (choice, expected) in cases {
        assert_eq!(body(&request.clone().with_tool_choice(choice))["tool_choice"], expected);
    }
}

#[test]
fn participant_names_are_sent() {
    let messages = [
        Message::system("Be brief.").with_name("host"),
        Message::user("Hi").with_name("Ann B."),
        Message::new(Role::Assistant, vec![ContentPart::text("Hello")]).with_name("bot"),
        Message::user("Bye").with_name(""),
    ];
    let found = body(&Request::new("llama", messages));
    let names: Vec<_> =
        found["messages"].as_array().unwrap().iter().map(|message| &message["name"]).collect();
    assert_eq!(names, [&json!("host"), &json!("Ann_B_"), &json!("bot"), &Value::Null]);
}

#[test]
fn encoded_items_are_reused_in_longer_conversations() {
    let items = conversation();
    let short = text(&Request::new("llama", items[..4].to_vec()));
    let long = text(&Request::new("llama", items.clone()));
    assert!(long.starts_with(&short[..short.len() - 2]), "{short}\n{long}");
    let mut runs = 0;
    let _ = items[3].encoding("openai-chat", "local/llama", |_| runs += 1);
    assert_eq!(runs, 1, "a value of another type is encoded again, so the slot was in use");
}

#[test]
fn reasoning_is_returned_to_servers_that_use_it() {
    let details = json!({"reasoning_details": [{"type": "reasoning.text", "text": "r", "signature": "s"}]});
    let thinking = ThinkingData::new("r").with_raw(details.clone());
    let content = vec![thinking.into(), ContentPart::text("a")];
    let message = Message::new(Role::Assistant, content).with_origin(Origin::new("local", "llama"));
    let sent = |model: &str| body(&Request::new(model, [message.clone()]))["messages"][0].clone();
    assert_eq!(
        sent("llama"),
        json!({"role": "assistant", "content": "a", "reasoning_details": details["reasoning_details"]})
    );
    assert_eq!(sent("other"), json!({"role": "assistant", "content": "a"}));
    let only = Message::new(Role::Assistant, vec![ThinkingData::new("r").into()]);
    let messages = body(&Request::new("m", [Message::user("a"), only]))["messages"].clone();
    assert_eq!(messages, json!([{"role": "user", "content": "a"}]), "no empty message");
}

fn request() -> Request {
    Request::new("llama", [Message::user("hi")])
}

#[test]
fn complete_response_is_decoded() {
    let reply = json!({
        "id": "c1", "model": "llama-3", "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "Look", "reasoning_content": "Hm.", "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "a", "arguments": "{\"x\":1}"}},
                {"id": "", "type": "function", "function": {"name": "b", "arguments": {"y": 2}}}]}}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    });
    let response = dialect().decode(&request(), reply.to_string().as_bytes()).unwrap();
    assert_eq!(
        (response.id.as_str(), response.model.as_str(), response.provider.as_str()),
        ("c1", "llama-3", "local")
    );
    assert_eq!((response.text().as_str(), response.reasoning().as_deref()), ("Look", Some("Hm.")));
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    assert_eq!((calls[0].id.as_str(), &*calls[0].arguments), ("call_1", &json!({"x": 1})));
    assert_eq!((calls[1].id.is_empty(), &*calls[1].arguments), (false, &json!({"y": 2})));
    assert_eq!(response.finish_reason.reason, Finish::ToolCalls);
    assert_eq!((response.usage.input_tokens, response.usage.output_tokens), (10, 5));
    assert_eq!(response.message.origin, Some(Origin::new("local", "llama")));
    assert_eq!(response.raw, Some(reply));
}

#[test]
fn call_ids_are_unique_in_a_history() {
    let calls = |ids: [Value; 2], text: &str| -> Vec<String> {
        let calls = ids.map(|id| json!({"id": id, "function": {"name": "a", "arguments": "{}"}}));
        let reply = json!({"choices": [{"message": {"content": text, "tool_calls": calls}}]});
        let response = dialect().decode(&request(), reply.to_string().as_bytes()).unwrap();
        response.tool_calls().map(|call| call.id.clone()).collect()
    };
    let none = || [json!(null), json!("")];
    let all: Vec<String> = [calls(none(), "1"), calls(none(), "2")].concat();
    assert_eq!(all.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{all:?}");
    let twice = calls([json!("x"), json!("x")], "3");
    assert!(twice[0] == "x" && twice[1] != "x", "{twice:?}");
}

#[test]
fn truncated_arguments_are_sent_as_valid_json() {
    let cut = ToolCall::from_raw("c", "t", r#"{"path": "#);
    let messages = [
        Message::user("a"),
        Message::new(Role::Assistant, vec![cut.into()]),
        Message::tool_result("c", "x", true),
    ];
    let body = body(&Request::new("llama", messages));
    let arguments = body["messages"][1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(arguments).unwrap(), json!({"input": r#"{"path": "#}));
}

#[test]
fn malformed_responses_are_errors() {
    for body in ["<html>", "{}", r#"{"choices": []}"#, ""] {
        let error = dialect().decode(&request(), body.as_bytes()).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (ErrorKind::Stream, Some("local")), "{body}");
    }
    let error = dialect().decode(&request(), br#"{"error": {"message": "Busy", "code": 503}}"#).unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Server, Some(503)));
    let error = dialect().classify(404, &Headers::default(), br#"{"error": "model not found"}"#);
    assert_eq!((error.kind(), error.message()), (ErrorKind::NotFound, "model not found"));
}

/// Decodes a stream of these data lines to events.
fn events(data: &[&str]) -> Result<Vec<StreamEvent>, Error> {
    let mut decoder = dialect().decoder(&request(), 7);
    let mut out = Vec::new();
    for data in data {
        decoder.feed(SseEvent { name: "", data }, &mut out)?;
    }
    decoder.end(&mut out)?;
    Ok(out)
}

fn stream(data: &[&str]) -> Result<Response, Error> {
    let out = events(data)?;
    let mut accumulator = StreamAccumulator::new("local", "llama");
    out.iter().for_each(|event| accumulator.process(event));
    accumulator.response()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    json!({"id": "c1", "model": "llama-3", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).to_string()
}

#[test]
fn text_reasoning_and_usage_after_the_finish_reason() {
    let data = [
        r#"{"id": "", "model": "", "choices": [], "prompt_filter_results": []}"#.to_owned(),
        chunk(&json!({"role": "assistant", "content": ""}), None),
        chunk(&json!({"reasoning_content": "Hm"}), None),
        chunk(&json!({"reasoning_content": "."}), None),
        chunk(&json!({"content": "He"}), None),
        chunk(&json!({"content": "llo"}), None),
        chunk(&json!({}), Some("stop")),
        r#"{"id": "c1", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}"#.to_owned(),
        r#"{"id": "c1", "choices": [], "usage": null}"#.to_owned(),
        "[DONE]".to_owned(),
    ];
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    insta::assert_snapshot!(lines(&events(&data).unwrap()), @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"reasoning_id":"0","type":"REASONING_START"}
    {"reasoning_delta":"Hm","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_delta":".","reasoning_id":"0","type":"REASONING_DELTA"}
    {"reasoning_id":"0","thinking":{"raw":{"field":"reasoning_content"},"redacted":false,"text":"Hm."},"type":"REASONING_END"}
    {"text_id":"1","type":"TEXT_START"}
    {"delta":"He","text_id":"1","type":"TEXT_DELTA"}
    {"delta":"llo","text_id":"1","type":"TEXT_DELTA"}
    {"text_id":"1","type":"TEXT_END"}
    {"finish_reason":{"raw":"stop","reason":"stop"},"type":"FINISH","usage":{"input_tokens":3,"output_tokens":2,"raw":{"completion_tokens":2,"prompt_tokens":3,"total_tokens":5},"total_tokens":5}}
    "#);
    // The response is the same without the last line.
    assert_eq!(stream(&data[..data.len() - 1]).unwrap(), stream(&data).unwrap());
    // Truncation after the finish reason loses only the usage; before it, it is an error.
    assert_eq!(stream(&data[..7]).unwrap().text(), "Hello");
    for end in 0..7 {
        assert_eq!(stream(&data[..end]).unwrap_err().kind(), ErrorKind::Stream, "{end}");
    }
}

#[test]
fn streamed_call_deltas_are_assembled() {
    let piece = |value: Value| chunk(&json!({"tool_calls": [value]}), None);
    let parallel = vec![
        piece(
            json!({"index": 0, "id": "a", "type": "function", "function": {"name": "one", "arguments": ""}}),
        ),
        piece(json!({"index": 1, "id": "b", "function": {"name": "two", "arguments": "{\"y\""}})),
        piece(json!({"index": 0, "function": {"arguments": "{\"x\":1}"}})),
        piece(json!({"index": 1, "id": "b", "function": {"name": "two", "arguments": ":2}"}})),
    ];
    let late_name = vec![
        piece(json!({"index": 0, "id": "a", "function": {"arguments": "{\"x\""}})),
        piece(json!({"index": 0, "function": {"name": "one", "arguments": ":1}"}})),
        piece(json!({"index": 1, "id": "b", "function": {"name": "two", "arguments": "{\"y\":2}"}})),
    ];
    let same_index = vec![
        piece(json!({"index": 0, "id": "a", "function": {"name": "one", "arguments": "{\"x\":1}"}})),
        piece(json!({"index": 0, "id": "b", "function": {"name": "two", "arguments": "{\"y\":2}"}})),
    ];
    let no_index = vec![
        piece(json!({"id": "a", "function": {"name": "one", "arguments": {"x": 1}}})),
        piece(json!({"id": "b", "function": {"name": "two", "arguments": "{\"y\""}})),
        piece(json!({"function": {"arguments": ":2}"}})),
    ];
    for pieces in [parallel, late_name, same_index, no_index] {
        // Some servers send `stop` nevertheless.
        for reason in ["tool_calls", "stop"] {
            let mut data: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let end = chunk(&json!({}), Some(reason));
            data.push(&end);
            let response = stream(&data).unwrap();
            let calls: Vec<_> = response
                .tool_calls()
                .map(|call| (call.id.as_str(), call.name.as_str(), Value::clone(&call.arguments)))
                .collect();
            assert_eq!(calls, [("a", "one", json!({"x": 1})), ("b", "two", json!({"y": 2}))], "{data:?}");
            assert_eq!(response.finish_reason.reason, Finish::ToolCalls);
        }
    }
}

#[test]
fn calls_with_the_same_index_and_no_ids_are_separate() {
    let piece = |name: Value, arguments: Value| {
        chunk(
            &json!({"tool_calls": [{"index": 0, "function": {"name": name, "arguments": arguments}}]}),
            None,
        )
    };
    let named = |name: &str, arguments: &str| piece(name.into(), arguments.into());
    let more = |arguments: &str| piece(Value::Null, arguments.into());
    let with_empty_id =
        |name: &str, arguments: &str| named(name, arguments).replace(r#""index":0"#, r#""id":"","index":0"#);
    let without_index =
        |name: &str, arguments: &str| named(name, arguments).replace(r#""index":0"#, r#""type":"function""#);
    let (x, y) = (r#"{"x":1}"#, r#"{"y":2}"#);
    type Calls = Vec<(&'static str, Value)>;
    let cases: Vec<(&str, Vec<String>, Calls)> = vec![
        (
            "one tool",
            vec![named("one", x), named("one", y)],
            vec![("one", json!({"x": 1})), ("one", json!({"y": 2}))],
        ),
        (
            "two tools",
            vec![named("one", x), named("two", y)],
            vec![("one", json!({"x": 1})), ("two", json!({"y": 2}))],
        ),
        (
            "empty ids",
            vec![with_empty_id("one", x), with_empty_id("one", y)],
            vec![("one", json!({"x": 1})), ("one", json!({"y": 2}))],
        ),
        (
            "no index",
            vec![without_index("one", x), without_index("one", y)],
            vec![("one", json!({"x": 1})), ("one", json!({"y": 2}))],
        ),
        (
            "names before arguments",
            vec![
                named("one", ""),
                more(r#"{"x""#),
                more(":1}"),
                named("one", ""),
                more(r#"{"y""#),
                more(":2}"),
            ],
            vec![("one", json!({"x": 1})), ("one", json!({"y": 2}))],
        ),
        (
            "no arguments",
            vec![named("one", "{}"), named("one", "{}"), named("two", "")],
            vec![("one", json!({})), ("one", json!({})), ("two", json!({}))],
        ),
        (
            "a repeated name",
            vec![named("one", r#"{"x""#), named("one", ":"), named("one", "1}"), named("one", "")],
            vec![("one", json!({"x": 1}))],
        ),
        (
            "a name in two pieces",
            vec![named("on", ""), named("e", ""), more(x)],
            vec![("one", json!({"x": 1}))],
        ),
        (
            "braces in a string",
            vec![named("one", r#"{"x":"}"#), named("one", r#"{"}"#)],
            vec![("one", json!({"x": "}{"}))],
        ),
        (
            "a placeholder",
            vec![named("one", "{}"), more(r#"{"x":"#), more("1}")],
            vec![("one", json!({"x": 1}))],
        ),
        ("a null placeholder", vec![named("one", "null"), more(x)], vec![("one", json!({"x": 1}))]),
        ("null as text", vec![named("one", "null")], vec![("one", json!({}))]),
        (
            "null",
            vec![piece("one".into(), Value::Null), piece(Value::Null, Value::Null), more(x)],
            vec![("one", json!({"x": 1}))],
        ),
    ];
    for (name, mut data, expected) in cases {
        data.push(chunk(&json!({}), Some("stop")));
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        assert_pairs(&events(&data).unwrap());
        let response = stream(&data).unwrap();
        let calls: Vec<(&str, Value)> =
            response.tool_calls().map(|call| (call.name.as_str(), Value::clone(&call.arguments))).collect();
        assert_eq!(calls, expected, "{name}");
        let ids: std::collections::BTreeSet<&str> =
            response.tool_calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), expected.len(), "{name}");
    }
    let data = [named("one", x), named("one", y), chunk(&json!({}), Some("stop"))];
    insta::assert_snapshot!(lines(&events(&data.each_ref().map(String::as_str)).unwrap()), @r#"
    {"id":"c1","model":"llama-3","type":"STREAM_START"}
    {"tool_call":{"id":"call_0000000000000007_0","name":"one"},"type":"TOOL_CALL_START"}
    {"delta":"{\"x\":1}","tool_call":{"id":"call_0000000000000007_0","name":"one"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"id":"call_0000000000000007_1","name":"one"},"type":"TOOL_CALL_START"}
    {"delta":"{\"y\":2}","tool_call":{"id":"call_0000000000000007_1","name":"one"},"type":"TOOL_CALL_DELTA"}
    {"tool_call":{"arguments":{"x":1},"id":"call_0000000000000007_0","name":"one","raw_arguments":"{\"x\":1}","type":"function"},"type":"TOOL_CALL_END"}
    {"tool_call":{"arguments":{"y":2},"id":"call_0000000000000007_1","name":"one","raw_arguments":"{\"y\":2}","type":"function"},"type":"TOOL_CALL_END"}
    {"finish_reason":{"raw":"stop","reason":"tool_calls"},"type":"FINISH","usage":{"input_tokens":0,"output_tokens":0,"total_tokens":0}}
    "#);
}

#[test]
fn keep_alives_are_skipped() {
    let text = chunk(&json!({"content": "hello"}), None);
    let end = chunk(&json!({}), Some("stop"));
    let complete = stream(&[&text, &end]).unwrap();
    for (name, data) in KEEP_ALIVES {
        let mut decoder = dialect().decoder(&request(), 7);
        let mut out = Vec::new();
        let alive = SseEvent { name, data };
        for event in
            [alive, SseEvent { name: "", data: &text }, alive, SseEvent { name: "", data: &end }, alive]
        {
            decoder.feed(event, &mut out).unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        }
        decoder.end(&mut out).unwrap();
        let mut accumulator = StreamAccumulator::new("local", "llama");
        out.iter().for_each(|event| accumulator.process(event));
        assert_eq!(accumulator.response().unwrap(), complete, "{alive:?}");
    }
}

#[test]
fn calls_without_id_or_arguments_are_completed() {
    let data = [
        chunk(&json!({"tool_calls": [{"index": 0, "function": {"name": "one"}}]}), None),
        chunk(
            &json!({"tool_calls": [{"index": 1, "function": {"name": "two", "arguments": ""}}]}),
            Some("tool_calls"),
        ),
    ];
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let response = stream(&data).unwrap();
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    assert_eq!(calls[0].id, "call_0000000000000007_0");
    assert_eq!(calls[1].id, "call_0000000000000007_1");
    assert!(calls.iter().all(|call| call.arguments == json!({})));
    assert_eq!(stream(&data).unwrap(), response, "the same seed gives the same ids");
}

#[test]
fn refusals_and_list_content_are_decoded() {
    let data =
        [chunk(&json!({"refusal": "I will "}), None), chunk(&json!({"refusal": "not."}), Some("stop"))];
    let response = stream(&data.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!((response.text().as_str(), response.finish_reason.reason), ("", Finish::ContentFilter));
    assert_eq!(response.message.content[0].kind(), "refusal");

    let thinking = json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "4"}]});
    let data = [chunk(&thinking, None), chunk(&json!({"content": "2"}), Some("stop"))];
    let response = stream(&data.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    assert_eq!((response.text().as_str(), response.reasoning().as_deref()), ("42", Some("r")));
}

#[test]
fn errors_inside_a_stream_are_classified() {
    let start = chunk(&json!({"content": "half"}), None);
    let cases = [
        (
            r#"{"error": {"message": "No call", "type": "invalid_request_error", "code": "tool_use_failed"}}"#,
            ErrorKind::InvalidRequest,
        ),
        (
            r#"{"id": "c1", "choices": [{"delta": {}, "finish_reason": "error"}], "error": {"code": 502, "message": "Up"}}"#,
            ErrorKind::Server,
        ),
        (r#"{"object": "error", "message": "bad", "code": 400}"#, ErrorKind::InvalidRequest),
        (r#"{"error": "overloaded"}"#, ErrorKind::Server),
        (r#"{"id": "c1", "cho"#, ErrorKind::Stream),
    ];
    for (data, kind) in cases {
        let error = stream(&[&start, data]).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (kind, Some("local")), "{data}");
    }
}

/// Asserts that every start has one end, and that reasoning ends with the text of its deltas.
#[expect(clippy::wildcard_enum_match_arm, reason = "the other events belong to no segment")]
fn assert_pairs(events: &[StreamEvent]) {
    let mut open: BTreeMap<String, String> = BTreeMap::new();
    let call = |id: &str| format!("call {id}");
    for event in events {
        match event {
            StreamEvent::TextStart { text_id: id } | StreamEvent::ReasoningStart { reasoning_id: id } => {
                assert!(open.insert(id.clone(), String::new()).is_none(), "{events:?}");
            }
            StreamEvent::ToolCallStart { tool_call } => {
                // Even if the server reuses an id.
                assert!(open.insert(call(&tool_call.id), String::new()).is_none(), "{events:?}");
            }
            StreamEvent::TextDelta { text_id, .. } => assert!(open.contains_key(text_id), "{events:?}"),
            StreamEvent::ReasoningDelta { reasoning_id, reasoning_delta } => {
                open.get_mut(reasoning_id).unwrap().push_str(reasoning_delta);
            }
            StreamEvent::ToolCallDelta { tool_call, delta } => {
                open.get_mut(&call(&tool_call.id)).unwrap().push_str(delta);
            }
            StreamEvent::TextEnd { text_id, .. } => assert!(open.remove(text_id).is_some(), "{events:?}"),
            StreamEvent::ReasoningEnd { reasoning_id, thinking } => {
                assert_eq!(open.remove(reasoning_id), Some(thinking.text.clone()), "{events:?}");
            }
            StreamEvent::ToolCallEnd { tool_call } => {
                assert_eq!(
                    open.remove(&call(&tool_call.id)).as_deref(),
                    tool_call.raw_arguments.as_deref(),
                    "{events:?}"
                );
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Generates a delta as some server might send it.
fn any_delta() -> impl Strategy<Value = Value> {
    let call = (0..3_u64, "[ab]?", "[xy]?", "[{}]{0,2}")
        .prop_map(|(index, id, name, arguments)| {
            json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})
        });
    let text = "[a-c]{0,3}".prop_map(|text| json!({"content": text}));
    let reasoning =
        "[a-c]{0,3}".prop_map(|text| json!({"reasoning": text, "reasoning_details": [{"text": text}]}));
    prop_oneof![call, text, reasoning, Just(json!({"refusal": "no"})), Just(json!({})), Just(Value::Null)]
}

proptest! {
    #[test]
    fn deltas_in_any_order_yield_paired_events(deltas in proptest::collection::vec(any_delta(), 0..20)) {
        let mut data: Vec<String> = deltas.iter().map(|delta| chunk(delta, None)).collect();
        data.push(chunk(&json!({}), Some("stop")));
        let events = events(&data.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        assert_pairs(&events);
        let ends = (events.first().unwrap(), events.last().unwrap());
        prop_assert!(matches!(ends, (StreamEvent::StreamStart { .. }, StreamEvent::Finish { .. })), "{:?}", ends);
    }

    #[test]
    fn arbitrary_data_does_not_panic(data in any::<String>()) {
        let mut decoder = dialect().decoder(&request(), 1);
        let _ = decoder.feed(SseEvent { name: "", data: &data }, &mut Vec::new());
        let _ = dialect().decode(&request(), data.as_bytes());
        dialect().classify(400, &Headers::default(), data.as_bytes());
    }
}

/// Renders events as text, one per line.
fn lines(events: &[StreamEvent]) -> String {
    let shown = events.iter().map(|event| {
        let mut value = serde_json::to_value(event).unwrap();
        value.as_object_mut().unwrap().remove("response");
        value.to_string()
    });
    shown.collect::<Vec<_>>().join("\n")
}
