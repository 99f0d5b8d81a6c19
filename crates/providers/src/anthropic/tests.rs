mod snapshots;
mod streams;

use pintle_llm::{
    ContentPart, Error, ErrorKind, Finish, FinishReason, HistoryItem, ImageData, Message, OpaqueData, Origin,
    ReasoningEffort, Request, Response, ResponseFormat, Role, StreamAccumulator, StreamEvent, ThinkingData,
    ToolCall, ToolChoice, ToolDefinition, ToolResult, Usage,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::dialect::{Decoder as _, SseEvent};
use crate::tests::snapshot::KEEP_ALIVES;

const MODEL: &str = "claude-sonnet-4-5";

fn messages_dialect() -> Messages {
    Messages { api_key: Secret::new("sk-test"), host: String::new() }
}

fn encode(request: &Request) -> Result<HttpRequest, Error> {
    messages_dialect().encode(request, false)
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&encode(request).unwrap().body.to_vec()).unwrap()
}

fn header(request: &Request, name: &str) -> Option<String> {
    let headers = encode(request).unwrap().headers;
    headers.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

/// Renders a body with one line per field and per list element.
fn lines(body: &[u8]) -> String {
    let body: Map<String, Value> = serde_json::from_slice(body).unwrap();
    let line = |(key, value): (&String, &Value)| match value.as_array() {
        Some(list) => list.iter().map(|element| format!("{key}[] {element}\n")).collect(),
        None => format!("{key} {value}\n"),
    };
    body.iter().map(line).collect()
}

fn own(message: Message) -> Message {
    message.with_origin(Origin::new("anthropic", MODEL))
}

fn thinking(signature: &str) -> ContentPart {
    ThinkingData::new("I look first.").with_signature(Some(signature.into())).into()
}

fn call(id: &str, argument: &str) -> ContentPart {
    let arguments = json!({"path": argument}).as_object().unwrap().clone();
    ToolCall::new(id, "read_file", arguments).into()
}

fn tool() -> ToolDefinition {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ToolDefinition::new("read_file", "Reads a file.", schema).unwrap()
}

/// Returns a conversation with every kind of content that a session sends.
fn conversation() -> Vec<Message> {
    vec![
        Message::system("Be brief."),
        Message::developer("Use tools."),
        Message::user("What is in these?").with_part(ImageData::url("https://example.com/a.png").into()),
        own(Message::new(
            Role::Assistant,
            vec![
                thinking("sig-1"),
                ContentPart::text("I read both."),
                call("c1", "a.txt"),
                call("c2", "b.txt"),
            ],
        )),
        Message::tool_results(vec![
            ToolResult::new("c1", "alpha", false).with_image(ImageData::data(vec![1, 2, 3], "image/jpeg")),
            ToolResult::new("c2", "no such file", true),
        ]),
        Message::user("Never mind b."),
    ]
}

fn request() -> Request {
    Request::new(MODEL, conversation()).with_tools(vec![tool()])
}

#[test]
fn full_conversation_on_the_wire() {
    let mut request = request().with_reasoning_effort(ReasoningEffort::Low).with_max_tokens(9_000);
    request.stop_sequences = vec!["END".into()];
    request.metadata.insert("user_id".into(), "u1".into());
    request.metadata.insert("job".into(), "not for this provider".into());
    let sent = messages_dialect().encode(&request, true).unwrap();
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!(
        sent.headers,
        [
            ("x-api-key", "sk-test".to_owned()),
            ("anthropic-version", "2023-06-01".to_owned()),
            ("anthropic-beta", "prompt-caching-2024-07-31".to_owned()),
        ]
    );
    insta::assert_snapshot!(lines(&sent.body.to_vec()), @r##"
    max_tokens 9000
    messages[] {"content":[{"text":"What is in these?","type":"text"},{"cache_control":{"type":"ephemeral"},"source":{"type":"url","url":"https://example.com/a.png"},"type":"image"}],"role":"user"}
    messages[] {"content":[{"signature":"sig-1","thinking":"I look first.","type":"thinking"},{"text":"I read both.","type":"text"},{"id":"c1","input":{"path":"a.txt"},"name":"read_file","type":"tool_use"},{"id":"c2","input":{"path":"b.txt"},"name":"read_file","type":"tool_use"}],"role":"assistant"}
    messages[] {"content":[{"content":[{"text":"alpha","type":"text"},{"source":{"data":"AQID","media_type":"image/jpeg","type":"base64"},"type":"image"}],"is_error":false,"tool_use_id":"c1","type":"tool_result"},{"content":"no such file","is_error":true,"tool_use_id":"c2","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"text":"Never mind b.","type":"text"}],"role":"user"}
    metadata {"user_id":"u1"}
    model "claude-sonnet-4-5"
    stop_sequences[] "END"
    stream true
    system[] {"text":"Be brief.","type":"text"}
    system[] {"cache_control":{"type":"ephemeral"},"text":"Use tools.","type":"text"}
    thinking {"budget_tokens":1024,"type":"enabled"}
    tools[] {"cache_control":{"type":"ephemeral"},"description":"Reads a file.","input_schema":{"properties":{"path":{"type":"string"}},"type":"object"},"name":"read_file"}
    "##);
}

#[test]
fn caching_can_be_disabled_and_betas_are_joined() {
    let with = |options: Value| request().with_provider_options("anthropic", options);
    let off = with(json!({"auto_cache": false}));
    assert!(!String::from_utf8(encode(&off).unwrap().body.to_vec()).unwrap().contains("cache_control"));
    assert_eq!(header(&off, "anthropic-beta"), None);
    let betas = with(json!({"beta_headers": ["interleaved-thinking-2025-05-14", "b"]}));
    assert_eq!(
        header(&betas, "anthropic-beta").unwrap(),
        "interleaved-thinking-2025-05-14,b,prompt-caching-2024-07-31"
    );
    let by_hand = with(json!({"auto_cache": false, "cache_control": {"type": "ephemeral"}}));
    assert_eq!(header(&by_hand, "anthropic-beta").unwrap(), "prompt-caching-2024-07-31");
    for (options, named) in [
        (json!({"auto_cache": "no"}), "provider_options.anthropic.auto_cache"),
        (json!({"beta_headers": "b"}), "provider_options.anthropic.beta_headers"),
        (json!({"beta_headers": [1]}), "provider_options.anthropic.beta_headers"),
        (json!({"tools": {}}), "provider_options.anthropic.tools"),
    ] {
        let error = encode(&with(options)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.message().contains(named), "{error}");
    }
}

#[test]
fn options_are_merged_into_the_body() {
    let request = request().with_reasoning_effort(ReasoningEffort::High).with_provider_options(
        "anthropic",
        json!({
            "thinking": {"type": "disabled"},
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
            "top_k": 5,
        }),
    );
    let body = body(&request);
    assert_eq!((&body["thinking"], &body["top_k"]), (&json!({"type": "disabled"}), &json!(5)));
    let names: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_file", "web_search"]);
    assert!(
        body["tools"][0].get("cache_control").is_none() && body["tools"][1].get("cache_control").is_some()
    );
    assert_eq!(body["max_tokens"], 4_096, "the specification's default");
}

#[test]
fn tool_choice_modes() {
    let cases = [
        (None, Value::Null),
        (Some(ToolChoice::Auto), json!({"type": "auto"})),
        (Some(ToolChoice::Required), json!({"type": "any"})),
        (Some(ToolChoice::Named("read_file".into())), json!({"type": "tool", "name": "read_file"})),
    ];
    for (choice, expected) in cases {
        let mut request = request();
        request.tool_choice = choice;
        assert_eq!(body(&request).get("tool_choice").cloned().unwrap_or_default(), expected);
        assert_eq!(body(&request)["tools"].as_array().unwrap().len(), 1);
    }
    let none = body(&request().with_tool_choice(ToolChoice::None));
    assert!(none.get("tools").is_none() && none.get("tool_choice").is_none());
}

#[test]
fn response_formats_become_instructions() {
    let mut request = Request::new(MODEL, [Message::system("Be brief."), Message::user("x")]);
    let schema = json!({"type": "object", "required": ["a"]});
    request.response_format = Some(ResponseFormat::JsonSchema { json_schema: schema.clone(), strict: true });
    let system = body(&request)["system"].as_array().unwrap().clone();
    assert_eq!(system.len(), 2);
    assert!(system[1]["text"].as_str().unwrap().ends_with(&schema.to_string()), "{system:?}");
    request.response_format = Some(ResponseFormat::Text);
    assert_eq!(body(&request)["system"].as_array().unwrap().len(), 1);
}

#[test]
fn multi_part_system_prompts_have_an_inner_cache_point() {
    let marks = |request: &Request| {
        let body = body(request);
        let marked = |name: &str| -> Vec<bool> {
            let list = body[name].as_array().into_iter().flatten();
            list.map(|element| element.get("cache_control").is_some()).collect()
        };
        (marked("tools"), marked("system"))
    };
    let in_parts = |texts: &[&str]| {
        let parts = texts.iter().map(|text| ContentPart::text(*text)).collect();
        let mut request = request();
        request.messages = vec![Message::new(Role::System, parts).into(), Message::user("x").into()].into();
        request
    };
    assert_eq!(marks(&in_parts(&["stays"])), (vec![true], vec![true]));
    assert_eq!(marks(&in_parts(&["stays", "changes"])), (vec![false], vec![true, true]));
    assert_eq!(marks(&in_parts(&["a", "b", "changes"])), (vec![false], vec![false, true, true]));
    assert_eq!(marks(&in_parts(&["stays", " \n"])), (vec![true], vec![true]), "a blank part does not count");
    let mut off = in_parts(&["stays", "changes"]);
    off.provider_options.insert("anthropic".into(), json!({"auto_cache": false}));
    assert_eq!(marks(&off), (vec![false], vec![false, false]));
    let mut formatted = in_parts(&["stays", "changes"]);
    formatted.response_format = Some(ResponseFormat::Json);
    assert_eq!(marks(&formatted), (vec![false], vec![true, false, true]));
}

#[test]
fn roles_alternate_and_results_come_first() {
    let request = Request::new(
        MODEL,
        [
            Message::user("a"),
            Message::user("b"),
            Message::assistant("c").with_part(call("1", "x")),
            Message::assistant("").with_part(call("2", "y")),
            Message::user("steer"),
            Message::tool_result("2", "", false),
            Message::tool_result("1", "", true),
            Message::assistant("  \n"),
            Message::user("d"),
        ],
    );
    let kinds: Vec<(String, Vec<String>)> = body(&request)["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| {
            let blocks = message["content"].as_array().unwrap();
            let kinds = blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect();
            (message["role"].as_str().unwrap().to_owned(), kinds)
        })
        .collect();
    let row = |role: &str, kinds: &[&str]| (role.to_owned(), kinds.iter().map(|k| (*k).to_owned()).collect());
    assert_eq!(
        kinds,
        [
            row("user", &["text", "text"]),
            row("assistant", &["text", "tool_use", "tool_use"]),
            row("user", &["tool_result", "tool_result", "text", "text"]),
        ]
    );
}

#[test]
fn invalid_requests_are_refused_before_sending() {
    let cases = [
        (vec![], "the conversation is empty"),
        (vec![Message::system("only")], "the conversation is empty"),
        (vec![Message::user("a"), Message::tool_result("c9", "x", false)], "`c9`"),
        (
            vec![
                Message::user("a"),
                Message::assistant("").with_part(call("c1", "x")),
                Message::tool_result("c1", "x", false),
                Message::assistant("done"),
                Message::tool_result("c1", "x", false),
            ],
            "`c1`",
        ),
        (
            vec![Message::user("").with_part(call("c1", "x"))],
            "a user message cannot contain a part of kind TOOL_CALL",
        ),
        (vec![Message::system("").with_part(ImageData::url("u").into())], "IMAGE"),
        (
            vec![Message::user("").with_part(ImageData::data(vec![0; 4_000_000], "image/png").into())],
            "too large",
        ),
        (vec![Message::user("").with_part(ImageData::data(vec![0], "image/bmp").into())], "image/bmp"),
    ];
    for (messages, words) in cases {
        let error = encode(&Request::new(MODEL, messages)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidRequest);
        assert!(error.message().contains(words), "{error}");
        assert_eq!(error.provider(), Some("anthropic"));
    }
}

#[test]
fn reasoning_returns_to_its_own_model_only() {
    let reply = |origin: Option<Origin>| {
        let mut message = Message::new(
            Role::Assistant,
            vec![
                thinking("sig"),
                ThinkingData::redacted("opaque").into(),
                ThinkingData::new("unsigned").into(),
                ContentPart::Opaque(OpaqueData {
                    kind: "server_tool_use".into(),
                    data: json!({"type": "server_tool_use", "id": "s1"}),
                }),
                ContentPart::Opaque(OpaqueData {
                    kind: "web_search_tool_result".into(),
                    data: json!({"type": "web_search_tool_result", "tool_use_id": "s1"}),
                }),
                ContentPart::text("ok"),
                thinking("last"),
            ],
        );
        message.origin = origin;
        let request = Request::new(MODEL, [Message::user("a"), message, Message::user("b")]);
        let blocks = body(&request)["messages"][1]["content"].as_array().unwrap().clone();
        blocks.iter().map(|block| block["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["thinking", "redacted_thinking", "server_tool_use", "web_search_tool_result", "text"];
    assert_eq!(reply(Some(Origin::new("anthropic", MODEL))), all);
    assert_eq!(reply(None), all, "built by the caller");
    assert_eq!(reply(Some(Origin::new("anthropic", "claude-opus-4-6"))), ["text"]);
    assert_eq!(reply(Some(Origin::new("openai", MODEL))), ["text"]);
}

#[test]
fn the_host_is_that_of_the_parsed_base_url() {
    let adapter =
        Anthropic::builder("k").with_base_url("https://user:password@API.moonshot.ai:443").build().unwrap();
    assert_eq!(adapter.http.dialect().host, "api.moonshot.ai");
}

#[test]
fn unsigned_thinking_returns_to_servers_that_require_it() {
    let unsigned = json!({"type": "thinking", "thinking": "Hm.", "signature": ""});
    let signed = json!({"type": "thinking", "thinking": "I look first.", "signature": "sig"});
    let text = json!({"type": "text", "text": "ok"});
    let sent = |host: &str, model: &str, origin: &str, options: Value| {
        let content = vec![
            ThinkingData::new("Hm.").into(),
            ThinkingData::new("").into(),
            thinking("sig"),
            ContentPart::text("ok"),
        ];
        let reply = Message::new(Role::Assistant, content).with_origin(Origin::new("anthropic", origin));
        let request = Request::new(model, [Message::user("a"), reply, Message::user("b")])
            .with_provider_options("anthropic", options);
        let dialect = Messages { host: host.to_owned(), ..messages_dialect() };
        let sent: Value =
            serde_json::from_slice(&dialect.encode(&request, true).unwrap().body.to_vec()).unwrap();
        assert_eq!(sent.get("quirks"), None);
        sent["messages"][1]["content"].as_array().unwrap().clone()
    };
    let with_unsigned = [unsigned, signed.clone(), text.clone()];
    for (host, model) in [
        ("api.deepseek.com", "deepseek-chat"),
        ("api.moonshot.ai", "kimi-latest"),
        ("api.kimi.com", "k2"),
        ("api.minimax.io", "MiniMax-M2"),
        ("gateway.example", "moonshotai/kimi-k2-thinking"),
    ] {
        assert_eq!(sent(host, model, model, json!({})), with_unsigned, "{model} on {host}");
        assert_eq!(sent(host, model, "other", json!({})), std::slice::from_ref(&text), "of another model");
    }
    assert_eq!(sent("api.anthropic.com", MODEL, MODEL, json!({})), [signed.clone(), text.clone()]);
    assert_eq!(sent("gateway.example", "m", "m", json!({})), [signed.clone(), text.clone()]);
    let option = |unsigned: bool| json!({"quirks": {"unsigned_thinking": unsigned}});
    assert_eq!(sent("gateway.example", "m", "m", option(true)), with_unsigned);
    assert_eq!(sent("api.deepseek.com", "m", "m", option(false)), [signed, text]);
}

#[test]
fn thinking_only_responses_are_dropped() {
    let request = Request::new(
        MODEL,
        [Message::user("a"), own(Message::new(Role::Assistant, vec![thinking("s")])), Message::user("b")],
    );
    let messages = body(&request)["messages"].as_array().unwrap().clone();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["content"].as_array().unwrap().len(), 2);
}

#[test]
fn thinking_stays_off_in_turns_begun_without_it() {
    let step = |origin: &str| {
        Message::new(Role::Assistant, vec![thinking("s"), call("c1", "a")])
            .with_origin(Origin::new(origin, MODEL))
    };
    let thinks = |tail: Vec<Message>| {
        let messages = [vec![Message::user("go")], tail].concat();
        let request = Request::new(MODEL, messages).with_reasoning_effort(ReasoningEffort::Low);
        body(&request).get("thinking").is_some()
    };
    let result = || Message::tool_result("c1", "x", false);
    assert!(thinks(vec![]));
    assert!(thinks(vec![step("anthropic"), result()]));
    assert!(!thinks(vec![step("openai"), result()]));
    assert!(!thinks(vec![step("openai"), result(), Message::user("steer")]));
    assert!(thinks(vec![step("openai"), result(), Message::assistant("done"), Message::user("next")]));

    // The model thinks before its first call only.
    let second = || own(Message::new(Role::Assistant, vec![call("c2", "b")]));
    let result_of_second = || Message::tool_result("c2", "y", false);
    assert!(thinks(vec![step("anthropic"), result(), second(), result_of_second()]));
    let steer = Message::user("steer");
    assert!(thinks(vec![step("anthropic"), result(), steer, second(), result_of_second()]));
    // The first response of the turn decides.
    let later = own(Message::new(Role::Assistant, vec![thinking("s"), call("c2", "b")]));
    assert!(!thinks(vec![step("openai"), result(), later, result_of_second()]));
}

#[test]
fn adaptive_thinking_is_unchanged_within_a_turn() {
    let model = "claude-opus-4-6";
    let without_thinking =
        Message::new(Role::Assistant, vec![call("c1", "a")]).with_origin(Origin::new("anthropic", model));
    let messages = [Message::user("go"), without_thinking, Message::tool_result("c1", "x", false)];
    for length in [1, 3] {
        let request =
            Request::new(model, messages[..length].to_vec()).with_reasoning_effort(ReasoningEffort::Low);
        assert_eq!(body(&request)["thinking"], json!({"type": "adaptive"}), "{length} messages");
    }
}

#[test]
fn plain_text_results_answer_their_call() {
    let mut result = Message::new(Role::Tool, vec![ContentPart::text("found")]);
    result.tool_call_id = Some("c1".into());
    let step = own(Message::new(Role::Assistant, vec![call("c1", "a")]));
    let body = body(&Request::new(MODEL, [Message::user("go"), step, result]));
    let block = &body["messages"][2]["content"][0];
    assert_eq!((&block["tool_use_id"], &block["content"]), (&json!("c1"), &json!("found")));
}

#[test]
fn manual_cache_points_are_not_duplicated() {
    let marked_block =
        json!({"type": "text", "text": "long", "cache_control": {"type": "ephemeral", "ttl": "1h"}});
    let opaque = |data: Value| ContentPart::Opaque(OpaqueData { kind: "text".into(), data });
    let request = Request::new(MODEL, [Message::new(Role::User, vec![opaque(marked_block.clone())])]);
    let text = String::from_utf8(encode(&request).unwrap().body.to_vec()).unwrap();
    assert_eq!(text.matches("cache_control").count(), 1, "{text}");
    assert_eq!(body(&request)["messages"][0]["content"][0], marked_block);

    let empty = Request::new(MODEL, [Message::new(Role::User, vec![opaque(json!({}))])]);
    assert_eq!(encode(&empty).unwrap_err().kind(), ErrorKind::InvalidRequest);
}

#[test]
fn foreign_ids_names_and_arguments_are_sanitized() {
    let messages = [
        Message::user("a"),
        Message::new(
            Role::Assistant,
            vec![
                ToolCall::from_raw("functions.grep:0", "my tool!", r#"{"cut": "#).into(),
                ToolCall::custom("", "", "free text").into(),
            ],
        ),
        Message::tool_results(vec![
            ToolResult::new("functions.grep:0", "x", false),
            ToolResult::new("", "y", false),
        ]),
    ];
    let messages = body(&Request::new(MODEL, messages))["messages"].clone();
    for index in 0..2 {
        let call = &messages[1]["content"][index];
        let id = call["id"].as_str().unwrap();
        assert!(
            id.starts_with("toolu_") && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'),
            "{id}"
        );
        assert_eq!(messages[2]["content"][index]["tool_use_id"], id);
    }
    assert_eq!(messages[1]["content"][0]["name"], "my_tool_");
    assert_eq!(messages[1]["content"][0]["input"], json!({"input": r#"{"cut": "#}));
    assert_eq!(messages[1]["content"][1]["name"], "unnamed");
    assert_eq!(messages[1]["content"][1]["input"], json!({"input": "free text"}));
}

/// Returns the raw content blocks of a body, without cache points.
fn blocks(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).unwrap().replace(r#","cache_control":{"type":"ephemeral"}"#, "")
}

#[test]
fn growing_conversations_only_append() {
    let mut items: Vec<HistoryItem> = conversation().into_iter().map(Into::into).collect();
    let mut last: Option<String> = None;
    for turn in 0..50 {
        let id = format!("t{turn}");
        let step = own(Message::new(Role::Assistant, vec![thinking(&id), call(&id, "a")]));
        let image = ImageData::data(vec![turn, 1], "image/png");
        items.push(step.into());
        items.push(Message::tool_results(vec![ToolResult::new(id, "x", false).with_image(image)]).into());
        if turn % 7 == 0 {
            items.push(Message::user("steer").into());
        }
        let request = Request::new(MODEL, items.clone()).with_tools(vec![tool()]);
        let body = encode(&request).unwrap().body.to_vec();
        assert_eq!(body, encode(&request).unwrap().body.to_vec());
        let body = blocks(&body);
        if let Some(last) = &last {
            assert!(body.starts_with(last.strip_suffix("]}]}").unwrap()), "turn {turn}");
        }
        last = Some(body);
    }
}
