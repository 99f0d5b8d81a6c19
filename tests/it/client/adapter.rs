//! Section 8.2, once per provider: requests that an adapter sends, and responses that it decodes.

use pintle_llm::{
    ContentPart, ErrorKind, Finish, Message, Origin, Request, Response, Role, StreamAccumulator, ToolCall,
    ToolChoice,
};
use pintle_testkit::{Call, Dialect, Expectation, Script, ServerOptions, Turn};
use serde_json::{Value, json};

use super::harness::{ClientHarness, KEY, adapter, client_of, each, model, read_file, response_of, types};

per_provider!(
    uses_the_native_api,
    sends_the_key_only_in_its_header,
    returns_a_complete_response,
    streams_typed_events,
    places_system_messages_natively,
    translates_all_five_roles,
    sends_beta_headers,
    translates_tool_choices,
);

async fn uses_the_native_api(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello.")).await;
    harness.complete(harness.question()).await;
    harness.events(harness.question()).await;
    let (whole, streamed, conversation) = match dialect {
        Dialect::OpenAiResponses => ("/v1/responses", "/v1/responses", "input"),
        Dialect::AnthropicMessages => ("/v1/messages", "/v1/messages", "messages"),
        Dialect::Gemini => (
            "/v1beta/models/gemini-3.1-pro-preview:generateContent",
            "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse",
            "contents",
        ),
        Dialect::ChatCompletions => ("/v1/chat/completions", "/v1/chat/completions", "messages"),
    };
    let requests = harness.server.requests();
    assert_eq!(requests.iter().map(|request| request.path.as_str()).collect::<Vec<_>>(), [whole, streamed]);
    for request in requests {
        assert_eq!((request.method.as_str(), request.status), ("POST", Some(200)));
        assert_eq!(request.violations, []);
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.body[conversation].as_array().map(Vec::len), Some(1));
        let version = (dialect == Dialect::AnthropicMessages).then_some("2023-06-01");
        assert_eq!(request.header("anthropic-version"), version);
        if dialect != Dialect::Gemini {
            assert_eq!(request.body["model"], model(dialect));
        }
    }
}

async fn sends_the_key_only_in_its_header(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello.")).await;
    harness.complete(harness.question()).await;
    let its_own = match dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => "authorization",
        Dialect::AnthropicMessages => "x-api-key",
        Dialect::Gemini => "x-goog-api-key",
    };
    // The server does not record keys, but it only answers requests with the right one.
    let sent = harness.sent();
    for name in ["authorization", "x-api-key", "x-goog-api-key"] {
        let expected = (name == its_own).then_some("[redacted]");
        assert_eq!(sent.header(name), expected, "{name}");
    }
    assert!(!sent.path.contains(KEY));
    assert!(!String::from_utf8_lossy(&sent.raw_body).contains(KEY));
}

/// A response with every kind of content.
fn rich_turn() -> Turn {
    Turn::text("Let me look at the file.")
        .with_reasoning("A file is asked for, and there is a tool that reads files.")
        .with_call(Call::new("read_file", json!({"file_path": "src/lib.rs"})))
}

async fn rich_bench(dialect: Dialect) -> (ClientHarness, Request) {
    let script = Script::new("rich").with_turn(rich_turn());
    // With ids in the script, a response is the same in both modes.
    let harness =
        ClientHarness::start_with(dialect, script, ServerOptions::new().with_gemini_call_ids(true)).await;
    let request = harness.question().with_tools(vec![read_file()]);
    (harness, request)
}

async fn returns_a_complete_response(dialect: Dialect) {
    let (harness, request) = rich_bench(dialect).await;
    let response = harness.complete(request).await;
    assert_eq!((response.provider.as_str(), response.model.as_str()), (dialect.name(), model(dialect)));
    assert!(!response.id.is_empty());
    assert_eq!(response.message.role, Role::Assistant);
    assert_eq!(response.message.origin, Some(Origin::new(dialect.name(), model(dialect))));
    let kinds: Vec<&str> = response.message.content.iter().map(ContentPart::kind).collect();
    assert_eq!(kinds, ["THINKING", "TEXT", "TOOL_CALL"]);
    assert_eq!(response.text(), "Let me look at the file.");
    assert_eq!(
        response.reasoning().as_deref(),
        Some("A file is asked for, and there is a tool that reads files.")
    );
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    assert_eq!((calls.len(), calls[0].name.as_str()), (1, "read_file"));
    assert_eq!(calls[0].arguments, json!({"file_path": "src/lib.rs"}));
    assert!(!calls[0].id.is_empty());
    let raw_reason = match dialect {
        Dialect::OpenAiResponses => "completed",
        Dialect::AnthropicMessages => "tool_use",
        Dialect::Gemini => "STOP",
        Dialect::ChatCompletions => "tool_calls",
    };
    assert_eq!(response.finish_reason.reason, Finish::ToolCalls);
    assert_eq!(response.finish_reason.raw.as_deref(), Some(raw_reason));
    assert!(response.usage.input_tokens > 0 && response.usage.output_tokens > 0, "{:?}", response.usage);
    assert!(response.usage.raw.is_some() && response.raw.is_some());
    assert_eq!(response.warnings, []);
}

async fn streams_typed_events(dialect: Dialect) {
    let (harness, request) = rich_bench(dialect).await;
    let events = harness.events(request.clone()).await;
    let segment = |name: &str| ["START", "DELTA", "END"].map(|step| format!("{name}_{step}"));
    let segments = ["REASONING", "TEXT", "TOOL_CALL"].map(segment).concat();
    let mut expected = [vec!["STREAM_START".to_owned()], segments, vec!["FINISH".to_owned()]].concat();
    // Gemini sends a call in one piece.
    expected.retain(|step| dialect != Dialect::Gemini || step != "TOOL_CALL_DELTA");
    assert_eq!(types(&events), expected);

    let mut accumulator = StreamAccumulator::new(dialect.name(), model(dialect));
    events.iter().for_each(|event| accumulator.process(event));
    let streamed = response_of(&events);
    assert_eq!(accumulator.partial().message, streamed.message);

    let (harness, request) = rich_bench(dialect).await;
    let whole = harness.complete(request).await;
    assert_eq!(without_spelling(streamed), without_spelling(whole));
}

/// Removes the parts of a response that depend on the mode: the raw body, and the text of arguments, which Anthropic
/// only has in streams.
fn without_spelling(mut response: Response) -> Response {
    response.raw = None;
    for part in &mut response.message.content {
        if let ContentPart::ToolCall(call) = part {
            call.raw_arguments = None;
        }
    }
    response
}

async fn places_system_messages_natively(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello.")).await;
    let prompts = [Message::system("Be brief."), Message::system("Be kind."), Message::user("Hello?")];
    harness.complete(harness.request(prompts)).await;
    let body = harness.body();
    match dialect {
        Dialect::OpenAiResponses => {
            assert_eq!(body["instructions"], "Be brief.\n\nBe kind.");
            assert_eq!(each(&body["input"], "role"), ["user"]);
        }
        Dialect::AnthropicMessages => {
            assert_eq!(each(&body["system"], "text"), ["Be brief.", "Be kind."]);
            assert_eq!(each(&body["messages"], "role"), ["user"]);
        }
        Dialect::Gemini => {
            assert_eq!(each(&body["systemInstruction"]["parts"], "text"), ["Be brief.", "Be kind."]);
            assert_eq!(each(&body["contents"], "role"), ["user"]);
        }
        Dialect::ChatCompletions => {
            assert_eq!(each(&body["messages"], "role"), ["system", "system", "user"]);
            assert_eq!(each(&body["messages"], "content"), ["Be brief.", "Be kind.", "Hello?"]);
        }
    }
}

async fn translates_all_five_roles(dialect: Dialect) {
    let call = Call::new("read_file", json!({"file_path": "a.rs"}));
    let answered = Expectation::result_contains(0, "(no lines)");
    let script = Script::new("roles")
        .with_turn(Turn::new().with_call(call))
        .with_turn(Turn::text("It is empty.").with_expectation(answered));
    let harness = ClientHarness::start(dialect, script).await;
    let arguments = json!({"file_path": "a.rs"}).as_object().unwrap().clone();
    let call: ContentPart = ToolCall::new("call_1", "read_file", arguments).into();
    let request = harness.request([
        Message::system("Be brief."),
        Message::developer("The project is in Rust."),
        Message::user("What is in a.rs?"),
        Message::assistant("I'll read it.").with_part(call),
        Message::tool_result("call_1", "(no lines)", false),
    ]);
    assert_eq!(harness.complete(request.with_tools(vec![read_file()])).await.text(), "It is empty.");
    let body = harness.body();
    match dialect {
        Dialect::OpenAiResponses => {
            assert_eq!(each(&body["input"], "role"), ["developer", "user", "assistant", "", ""]);
            let types = ["message", "message", "message", "function_call", "function_call_output"];
            assert_eq!(each(&body["input"], "type"), types);
            assert_eq!(body["instructions"], "Be brief.");
        }
        Dialect::AnthropicMessages => {
            assert_eq!(each(&body["system"], "text"), ["Be brief.", "The project is in Rust."]);
            assert_eq!(each(&body["messages"], "role"), ["user", "assistant", "user"]);
            assert_eq!(each(&body["messages"][1]["content"], "type"), ["text", "tool_use"]);
            assert_eq!(each(&body["messages"][2]["content"], "type"), ["tool_result"]);
        }
        Dialect::Gemini => {
            let system = &body["systemInstruction"]["parts"];
            assert_eq!(each(system, "text"), ["Be brief.", "The project is in Rust."]);
            assert_eq!(each(&body["contents"], "role"), ["user", "model", "user"]);
            assert_eq!(body["contents"][1]["parts"][1]["functionCall"]["name"], "read_file");
            assert_eq!(body["contents"][2]["parts"][0]["functionResponse"]["name"], "read_file");
        }
        Dialect::ChatCompletions => {
            let roles = ["system", "system", "user", "assistant", "tool"];
            assert_eq!(each(&body["messages"], "role"), roles);
            assert_eq!(body["messages"][4]["tool_call_id"], "call_1");
        }
    }
}

async fn sends_beta_headers(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello.")).await;
    if dialect == Dialect::AnthropicMessages {
        let betas = json!({"beta_headers": ["context-1m-2025-08-07", "files-api-2025-04-14"]});
        let request = harness.question().with_provider_options("anthropic", betas);
        for streaming in [false, true] {
            harness.respond(request.clone(), streaming).await;
            let sent = harness.sent();
            let betas: Vec<&str> = sent.header("anthropic-beta").unwrap().split(',').collect();
            assert!(betas.starts_with(&["context-1m-2025-08-07", "files-api-2025-04-14"]), "{betas:?}");
            assert!(sent.body.get("beta_headers").is_none(), "it is no field of the body");
        }
    }
    // Other providers enable features by a header of the whole client.
    let headers = [("OpenAI-Beta", "one=v1"), ("x-goog-user-project", "mine")];
    let client = client_of(adapter(dialect, &harness.server, KEY, &headers));
    client.complete(harness.question()).await.unwrap();
    for (name, value) in headers {
        assert_eq!(harness.sent().header(name), Some(value));
    }
}

async fn translates_tool_choices(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello.")).await;
    let named = ToolChoice::Named("read_file".to_owned());
    let mut sent = Vec::new();
    for choice in [ToolChoice::Auto, ToolChoice::None, ToolChoice::Required, named] {
        let request = harness.question().with_tools(vec![read_file()]).with_tool_choice(choice);
        harness.complete(request).await;
        let body = harness.body();
        sent.push(match dialect {
            Dialect::Gemini => body["toolConfig"]["functionCallingConfig"].clone(),
            // Without tools a tool choice is not sent.
            Dialect::AnthropicMessages if body.get("tools").is_none() => json!("no tools"),
            _ => body["tool_choice"].clone(),
        });
    }
    let expected: [Value; 4] = match dialect {
        Dialect::OpenAiResponses => [
            json!("auto"),
            json!("none"),
            json!("required"),
            json!({"type": "function", "name": "read_file"}),
        ],
        Dialect::AnthropicMessages => [
            json!({"type": "auto"}),
            json!("no tools"),
            json!({"type": "any"}),
            json!({"type": "tool", "name": "read_file"}),
        ],
        Dialect::Gemini => [
            json!({"mode": "AUTO"}),
            json!({"mode": "NONE"}),
            json!({"mode": "ANY"}),
            json!({"mode": "ANY", "allowedFunctionNames": ["read_file"]}),
        ],
        Dialect::ChatCompletions => [
            json!("auto"),
            json!("none"),
            json!("required"),
            json!({"type": "function", "function": {"name": "read_file"}}),
        ],
    };
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_model_that_does_not_exist_is_not_found() {
    for dialect in Dialect::ALL {
        let script = Script::new("one model").with_turn(Turn::text("Hello.")).with_model("another-model");
        let harness = ClientHarness::start(dialect, script).await;
        let error = harness.error(harness.question()).await;
        assert_eq!((error.kind(), error.status()), (ErrorKind::NotFound, Some(404)), "{dialect}");
    }
}
