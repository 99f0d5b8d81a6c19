mod snapshots;

use std::time::Duration;

use pintle_llm::{
    AudioData, ContentPart, Error, ErrorKind, Finish, FinishReason, HistoryItem, ImageData, Message,
    OpaqueData, Origin, ReasoningEffort, Request, Response, ResponseFormat, Role, StreamAccumulator,
    StreamEvent, TextData, ThinkingData, ToolCall, ToolChoice, ToolDefinition, ToolResult,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::dialect::{Decoder as _, SseEvent};
use crate::tests::snapshot::KEEP_ALIVES;

const MODEL: &str = "gemini-3.1-pro-preview";
const OLDER: &str = "gemini-2.5-flash";
const SKIPPED: &str = "skip_thought_signature_validator";

fn dialect() -> GenerateContent {
    GenerateContent { api_key: Secret::new("key-test") }
}

fn encode(request: &Request) -> Result<HttpRequest, Error> {
    dialect().encode(request, false)
}

fn body(request: &Request) -> Value {
    serde_json::from_slice(&encode(request).unwrap().body.to_vec()).unwrap()
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
    message.with_origin(Origin::new("gemini", MODEL))
}

fn call(id: &str, argument: &str, signature: Option<&str>) -> ContentPart {
    let arguments = json!({"path": argument}).as_object().unwrap().clone();
    ToolCall::new(id, "read_file", arguments).with_signature(signature.map(str::to_owned)).into()
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
                ThinkingData::new("A summary for people.").into(),
                ContentPart::text("I read both."),
                call("c1", "a.txt", Some("c2ln")),
                call("c2", "b.txt", None),
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
    let mut request = request().with_reasoning_effort(ReasoningEffort::High).with_max_tokens(9_000);
    request.stop_sequences = vec!["END".into()];
    request.temperature = Some(0.5);
    request.top_p = Some(0.9);
    request.tool_choice = Some(ToolChoice::Auto);
    let sent = dialect().encode(&request, true).unwrap();
    assert_eq!(sent.path, "/v1beta/models/gemini-3.1-pro-preview:streamGenerateContent?alt=sse");
    assert_eq!(sent.headers, [("x-goog-api-key", "key-test".to_owned())]);
    insta::assert_snapshot!(lines(&sent.body.to_vec()), @r##"
    contents[] {"parts":[{"text":"What is in these?"},{"fileData":{"fileUri":"https://example.com/a.png"}}],"role":"user"}
    contents[] {"parts":[{"text":"I read both."},{"functionCall":{"args":{"path":"a.txt"},"id":"c1","name":"read_file"},"thoughtSignature":"c2ln"},{"functionCall":{"args":{"path":"b.txt"},"id":"c2","name":"read_file"}}],"role":"model"}
    contents[] {"parts":[{"functionResponse":{"id":"c1","name":"read_file","parts":[{"inlineData":{"data":"AQID","mimeType":"image/jpeg"}}],"response":{"result":"alpha"}}},{"functionResponse":{"id":"c2","name":"read_file","response":{"error":"no such file"}}}],"role":"user"}
    contents[] {"parts":[{"text":"Never mind b."}],"role":"user"}
    generationConfig {"maxOutputTokens":9000,"stopSequences":["END"],"temperature":0.5,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"},"topP":0.9}
    systemInstruction {"parts":[{"text":"Be brief."},{"text":"Use tools."}]}
    toolConfig {"functionCallingConfig":{"mode":"AUTO"}}
    tools[] {"functionDeclarations":[{"description":"Reads a file.","name":"read_file","parametersJsonSchema":{"properties":{"path":{"type":"string"}},"type":"object"}}]}
    "##);
}

#[test]
fn models_and_paths() {
    for (model, path) in [
        (OLDER, "/v1beta/models/gemini-2.5-flash:generateContent"),
        ("models/gemini-2.5-pro", "/v1beta/models/gemini-2.5-pro:generateContent"),
        ("tunedModels/mine", "/v1beta/tunedModels/mine:generateContent"),
        ("odd?key=1#x", "/v1beta/models/odd%3Fkey%3D1%23x:generateContent"),
    ] {
        assert_eq!(encode(&Request::new(model, [Message::user("x")])).unwrap().path, path);
    }
    for (model, third) in [
        ("gemini-3-flash-preview", true),
        (MODEL, true),
        ("models/gemini-10-pro", true),
        ("gemini-flash-latest", true),
        (OLDER, false),
        ("gemini-2.0-flash-001", false),
        ("learnlm-2.0", false),
    ] {
        assert_eq!(is_third_generation(model), third, "{model}");
    }
}

#[test]
fn reasoning_effort_by_generation() {
    let config = |model: &str, effort: &str| {
        let effort = ReasoningEffort::from(effort.to_owned());
        body(&Request::new(model, [Message::user("x")]).with_reasoning_effort(effort))["generationConfig"]["thinkingConfig"]
            .clone()
    };
    let least = ["minimal", "none"];
    let levels = [("low", "LOW"), ("medium", "MEDIUM"), ("high", "HIGH"), ("xhigh", "HIGH"), ("max", "HIGH")];
    for (model, least_level) in [(MODEL, "LOW"), ("gemini-3-flash-preview", "MINIMAL")] {
        for (effort, level) in least.map(|effort| (effort, least_level)).into_iter().chain(levels) {
            let expected = json!({"includeThoughts": true, "thinkingLevel": level});
            assert_eq!(config(model, effort), expected, "{effort} of {model}");
        }
    }
    for (effort, budget) in [("low", 1_024), ("medium", 8_192), ("high", 24_576)] {
        assert_eq!(config(OLDER, effort), json!({"includeThoughts": true, "thinkingBudget": budget}));
    }
    assert_eq!(config(OLDER, "none"), json!({"includeThoughts": false, "thinkingBudget": 0}));
    assert_eq!(config("gemini-2.5-pro", "none")["thinkingBudget"], 128);
    let odd = Request::new(OLDER, [Message::user("x")])
        .with_reasoning_effort(ReasoningEffort::Other("vast".into()));
    assert!(encode(&odd).unwrap_err().message().contains("`vast`"));
    assert_eq!(body(&Request::new(MODEL, [Message::user("x")])).get("generationConfig"), None);
}

#[test]
fn tool_choice_and_options() {
    let cases = [
        (ToolChoice::Auto, json!({"mode": "AUTO"})),
        (ToolChoice::None, json!({"mode": "NONE"})),
        (ToolChoice::Required, json!({"mode": "ANY"})),
        (
            ToolChoice::Named("read_file".into()),
            json!({"mode": "ANY", "allowedFunctionNames": ["read_file"]}),
        ),
    ];
    for (choice, expected) in cases {
        assert_eq!(
            body(&request().with_tool_choice(choice))["toolConfig"]["functionCallingConfig"],
            expected
        );
    }
    assert_eq!(body(&request()).get("toolConfig"), None);
    let options = json!({
        "tools": [{"googleSearch": {}}],
        "safetySettings": [{"category": "c", "threshold": "t"}],
        "generationConfig": {"topK": 3},
    });
    let merged = body(&request().with_max_tokens(5).with_provider_options("gemini", options.clone()));
    assert_eq!(merged["tools"].as_array().unwrap().len(), 2);
    assert_eq!(merged["tools"][1], options["tools"][0]);
    assert_eq!(merged["safetySettings"], options["safetySettings"]);
    assert_eq!(merged["generationConfig"], json!({"maxOutputTokens": 5, "topK": 3}));
    let cached =
        body(&request().with_provider_options("gemini", json!({"cachedContent": "cachedContents/1"})));
    let keys: Vec<&String> = cached.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["cachedContent", "contents"]);
    let error = encode(&request().with_provider_options("gemini", json!({"tools": 1}))).unwrap_err();
    assert!(error.message().contains("provider_options.gemini.tools"), "{error}");
}

#[test]
fn response_formats() {
    let config = |format| {
        let mut request = Request::new(MODEL, [Message::user("x")]);
        request.response_format = Some(format);
        body(&request).get("generationConfig").cloned().unwrap_or_default()
    };
    let schema = json!({"type": "object", "additionalProperties": false});
    assert_eq!(
        config(ResponseFormat::JsonSchema { json_schema: schema.clone(), strict: true }),
        json!({"responseMimeType": "application/json", "responseJsonSchema": schema})
    );
    assert_eq!(config(ResponseFormat::Json), json!({"responseMimeType": "application/json"}));
    assert_eq!(config(ResponseFormat::Text), Value::Null);
}

#[test]
fn signatures_go_back_to_their_own_model_only() {
    let parts = |origin: Option<Origin>, model: &str| {
        let mut message = Message::new(
            Role::Assistant,
            vec![
                ThinkingData::new("signed").with_signature(Some("s0".into())).into(),
                ContentPart::Text(TextData { text: "a".into(), signature: Some("s1".into()) }),
                ContentPart::Text(TextData { text: String::new(), signature: Some("s2".into()) }),
                ContentPart::Opaque(OpaqueData {
                    kind: "executableCode".into(),
                    data: json!({"executableCode": {}}),
                }),
                call("c1", "x", Some("s3")),
                call("c2", "y", None),
            ],
        );
        message.origin = origin;
        let results = vec![ToolResult::new("c1", "1", false), ToolResult::new("c2", "2", false)];
        let request = Request::new(model, [Message::user("go"), message, Message::tool_results(results)]);
        body(&request)["contents"][1]["parts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| {
                let kind = ["thought", "text", "executableCode", "functionCall"]
                    .into_iter()
                    .find(|kind| part.get(kind).is_some());
                (kind.unwrap(), part["thoughtSignature"].as_str().unwrap_or_default().to_owned())
            })
            .collect::<Vec<_>>()
    };
    let row = |kind: &'static str, signature: &str| (kind, signature.to_owned());
    let all = [
        row("thought", "s0"),
        row("text", "s1"),
        row("text", "s2"),
        row("executableCode", ""),
        row("functionCall", "s3"),
        row("functionCall", ""),
    ];
    assert_eq!(parts(Some(Origin::new("gemini", MODEL)), MODEL), all);
    assert_eq!(parts(None, MODEL), all, "built by the caller");
    let foreign = [row("text", ""), row("functionCall", SKIPPED), row("functionCall", "")];
    assert_eq!(parts(Some(Origin::new("anthropic", "claude")), MODEL), foreign);
    assert_eq!(parts(Some(Origin::new("gemini", OLDER)), MODEL), foreign);
    let older = [row("text", ""), row("functionCall", ""), row("functionCall", "")];
    assert_eq!(parts(Some(Origin::new("gemini", MODEL)), OLDER), older);
}

#[test]
fn results_of_a_round_are_grouped_and_named() {
    let messages = [
        Message::user("a"),
        Message::new(Role::Assistant, vec![ToolCall::new("1", "f", Map::new()).into()]),
        Message::new(Role::Assistant, vec![ToolCall::from_raw("2", "2 odd!", "[cut").into()]),
        Message::tool_result("1", "one", false).with_part(ImageData::data(vec![1], "image/png").into()),
        Message::tool_result("2", "two", true),
        Message::user("steer"),
        Message::user("again"),
    ];
    let contents = body(&Request::new(OLDER, messages))["contents"].clone();
    let roles: Vec<&str> = contents.as_array().unwrap().iter().map(|c| c["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "model", "user", "user", "user"]);
    assert_eq!(
        contents[1]["parts"],
        json!([
            {"functionCall": {"id": "1", "name": "f", "args": {}}},
            {"functionCall": {"id": "2", "name": "_2_odd_", "args": {"input": "[cut"}}},
        ])
    );
    assert_eq!(
        contents[2]["parts"],
        json!([
            {"functionResponse": {"name": "f", "id": "1", "response": {"result": "one"}}},
            {"functionResponse": {"name": "_2_odd_", "id": "2", "response": {"error": "two"}}},
            {"inlineData": {"mimeType": "image/png", "data": "AQ=="}},
        ])
    );
}

#[test]
fn plain_text_results_answer_their_call() {
    let mut result = Message::new(Role::Tool, vec![ContentPart::text("found")]);
    result.tool_call_id = Some("c1".into());
    let step = own(Message::new(Role::Assistant, vec![call("c1", "a", None)]));
    let body = body(&Request::new(MODEL, [Message::user("go"), step, result]));
    let expected =
        json!({"functionResponse": {"name": "read_file", "id": "c1", "response": {"result": "found"}}});
    assert_eq!(body["contents"][2]["parts"], json!([expected]));
}

#[test]
fn structured_results_and_media() {
    let result = |content: Value| {
        let mut result = ToolResult::new("c1", "", false);
        result.content = content;
        let step = Message::new(Role::Assistant, vec![call("c1", "x", None)]);
        let request = Request::new(OLDER, [Message::user("a"), step, Message::tool_results(vec![result])]);
        body(&request)["contents"][2]["parts"][0]["functionResponse"]["response"].clone()
    };
    assert_eq!(result(json!({"a": 1})), json!({"a": 1}));
    assert_eq!(result(json!([1, 2])), json!({"result": [1, 2]}));
    assert_eq!(result(Value::Null), json!({"result": ""}));
    let audio: AudioData =
        serde_json::from_value(json!({"data": "AQID", "media_type": "audio/mp3"})).unwrap();
    let request = Request::new(OLDER, [Message::user("hear").with_part(ContentPart::Audio(audio))]);
    let expected = json!({"inlineData": {"mimeType": "audio/mp3", "data": "AQID"}});
    assert_eq!(body(&request)["contents"][0]["parts"][1], expected);
}

#[test]
fn invalid_requests_are_refused_before_sending() {
    let cases = [
        (vec![Message::system("only")], "the conversation is empty"),
        (vec![Message::user("a"), Message::tool_result("c9", "x", false)], "`c9`"),
        (vec![Message::user("").with_part(call("c1", "x", None))], "TOOL_CALL"),
        (vec![Message::system("").with_part(ImageData::url("u").into())], "IMAGE"),
        (vec![Message::user("").with_part(ImageData::data(vec![0], "image/bmp").into())], "image/bmp"),
    ];
    for (messages, words) in cases {
        let error = encode(&Request::new(MODEL, messages)).unwrap_err();
        assert_eq!((error.kind(), error.provider()), (ErrorKind::InvalidRequest, Some("gemini")));
        assert!(error.message().contains(words), "{error}");
    }
}

#[test]
fn growing_conversations_only_append() {
    let mut items: Vec<HistoryItem> = conversation().into_iter().map(Into::into).collect();
    let mut last: Option<String> = None;
    for turn in 0..50 {
        let id = format!("t{turn}");
        // Every third step is foreign and has the placeholder signature.
        let step = Message::new(Role::Assistant, vec![call(&id, "a", Some("sig"))]);
        items.push(
            if turn % 3 == 0 { step.with_origin(Origin::new("openai", "gpt")) } else { own(step) }.into(),
        );
        let image = ImageData::data(vec![turn, 1], "image/png");
        items.push(Message::tool_results(vec![ToolResult::new(id, "x", false).with_image(image)]).into());
        if turn % 7 == 0 {
            items.push(Message::user("steer").into());
        }
        let request = Request::new(MODEL, items.clone()).with_tools(vec![tool()]);
        let body = String::from_utf8(encode(&request).unwrap().body.to_vec()).unwrap();
        if let Some(last) = &last {
            assert!(body.starts_with(last.strip_suffix("]}]}").unwrap()), "turn {turn}");
        }
        last = Some(body);
    }
}

fn run(chunks: &[Value]) -> Result<(Vec<StreamEvent>, Response), Error> {
    let mut decoder = dialect().decoder(&request(), 7);
    let mut out = Vec::new();
    for chunk in chunks {
        decoder.feed(SseEvent { name: "", data: &chunk.to_string() }, &mut out)?;
    }
    decoder.end(&mut out)?;
    let mut accumulator = StreamAccumulator::new("gemini", MODEL);
    out.iter().for_each(|event| accumulator.process(event));
    Ok((out, accumulator.response()?))
}

fn chunk(parts: impl Into<Value>) -> Value {
    let parts: Value = parts.into();
    json!({"candidates": [{"content": {"role": "model", "parts": parts}}], "modelVersion": "gemini-x", "responseId": "r1"})
}

fn last(parts: impl Into<Value>, reason: &str) -> Value {
    let mut chunk = chunk(parts);
    chunk["candidates"][0]["finishReason"] = reason.into();
    chunk["usageMetadata"] = json!({
        "promptTokenCount": 10, "candidatesTokenCount": 4, "thoughtsTokenCount": 6, "totalTokenCount": 20,
        "cachedContentTokenCount": 8,
    });
    chunk
}

#[test]
fn stream_with_every_part_type() {
    let (events, response) = run(&[
        chunk(json!([{"text": "Let me ", "thought": true}])),
        chunk(json!([{"text": "see.", "thought": true}, {"text": "Hel"}])),
        chunk(json!([{"text": "lo"}])),
        chunk(json!([{"text": "", "thoughtSignature": "s1"}])),
        chunk(json!([{"executableCode": {"code": "1"}, "thoughtSignature": "s2"}])),
        chunk(json!([
            {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": "s3"},
            {"functionCall": {"id": "given", "name": "f"}},
        ])),
        last(json!([{"text": ""}]), "STOP"),
    ])
    .unwrap();
    let calls: Vec<&ToolCall> = response.tool_calls().collect();
    let generated = calls[0].id.clone();
    assert!(generated.starts_with("call_") && generated.len() == 21, "{generated}");
    let code = json!({"executableCode": {"code": "1"}, "thoughtSignature": "s2"});
    assert_eq!(
        response.message.content,
        [
            ThinkingData::new("Let me see.").into(),
            ContentPart::text("Hello"),
            ContentPart::Text(TextData { text: String::new(), signature: Some("s1".into()) }),
            ContentPart::Opaque(OpaqueData { kind: "executableCode".into(), data: code }),
            ToolCall::new(generated, "f", json!({"a": 1}).as_object().unwrap().clone())
                .with_signature(Some("s3".into()))
                .into(),
            ToolCall::new("given", "f", Map::new()).into(),
        ]
    );
    assert_eq!((response.id.as_str(), response.model.as_str()), ("r1", "gemini-x"));
    assert_eq!(response.finish_reason, FinishReason::new(Finish::ToolCalls).with_raw("STOP"));
    let usage = &response.usage;
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (10, 10, 20));
    assert_eq!((usage.reasoning_tokens, usage.cache_read_tokens), (Some(6), Some(8)));
    let starts = events.iter().filter(|e| matches!(e, StreamEvent::StreamStart { .. })).count();
    assert!(starts == 1 && matches!(events.last(), Some(StreamEvent::Finish { .. })));
}

#[test]
fn ids_are_derived_from_the_seed() {
    let ids = |seed: u64| {
        let mut decoder = dialect().decoder(&request(), seed);
        let mut out = Vec::new();
        let part = json!({"functionCall": {"name": "f"}});
        let data = last(json!([part, part, part]), "STOP").to_string();
        decoder.feed(SseEvent { name: "", data: &data }, &mut out).unwrap();
        out.iter()
            .filter_map(|event| {
                if let StreamEvent::ToolCallEnd { tool_call } = event { Some(&tool_call.id) } else { None }
            })
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(1), ids(1));
    let mut all = [ids(1), ids(2)].concat();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6);
}

#[test]
fn partial_arguments_are_assembled() {
    let piece = |text: &str| json!({"jsonPath": "$.path", "stringValue": text, "willContinue": true});
    let (_, response) = run(&[
        chunk(json!([{"functionCall": {"name": "f", "willContinue": true}, "thoughtSignature": "s"}])),
        chunk(json!([{"functionCall": {"partialArgs": [piece("src/")], "willContinue": true}}])),
        chunk(json!([{"functionCall": {"partialArgs": [piece("lib.rs")], "willContinue": true}}])),
        chunk(json!([{"functionCall": {}}])),
        chunk(json!([{"functionCall": {"name": "g"}}])),
        chunk(json!([{"functionCall": {"name": "h", "willContinue": true}}])),
        last(json!([{"functionCall": {}}]), "STOP"),
    ])
    .unwrap();
    let calls: Vec<(String, Value, Option<String>)> = response
        .tool_calls()
        .map(|c| (c.name.clone(), Value::clone(&c.arguments), c.signature.clone()))
        .collect();
    assert_eq!(
        calls,
        [
            ("f".into(), json!({"path": "src/lib.rs"}), Some("s".into())),
            ("g".into(), json!({}), None),
            ("h".into(), json!({}), None),
        ]
    );
}

#[test]
fn calls_without_arguments_and_placeholders_are_accepted() {
    let started = json!({"functionCall": {"name": "f", "args": {}, "willContinue": true}});
    let rest = json!({"functionCall": {"args": {"a": 1}}});
    let cases = [
        (json!([{"functionCall": {"name": "f", "args": null}}]), json!({})),
        (json!([{"functionCall": {"name": "f", "args": null, "partialArgs": null}}]), json!({})),
        (json!([{"text": "x", "functionCall": null}, {"functionCall": {"name": "f"}}]), json!({})),
        (json!([started, rest]), json!({"a": 1})),
    ];
    for (parts, expected) in cases {
        let (events, response) = run(&[last(parts.clone(), "STOP")]).unwrap();
        assert_well_formed(&events);
        let found: Vec<Value> = response.tool_calls().map(|call| Value::clone(&call.arguments)).collect();
        assert_eq!(found, [expected], "{parts}");
    }
}

#[test]
fn keep_alives_are_skipped() {
    let all = [chunk(json!([{"text": "Hel"}])), last(json!([{"text": "lo"}]), "STOP")];
    let (_, complete) = run(&all).unwrap();
    for (name, data) in KEEP_ALIVES {
        let mut decoder = dialect().decoder(&request(), 7);
        let mut out = Vec::new();
        let alive = SseEvent { name, data };
        decoder.feed(alive, &mut out).unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        assert_eq!(out, [], "{alive:?}");
        for event in &all {
            decoder.feed(SseEvent { name: "", data: &event.to_string() }, &mut out).unwrap();
            decoder.feed(alive, &mut out).unwrap_or_else(|error| panic!("{alive:?}: {error:?}"));
        }
        decoder.end(&mut out).unwrap();
        assert_well_formed(&out);
        let mut accumulator = StreamAccumulator::new("gemini", MODEL);
        out.iter().for_each(|event| accumulator.process(event));
        assert_eq!(accumulator.response().unwrap(), complete, "{alive:?}");
    }
}

#[test]
fn lists_of_chunks_equal_streams() {
    let all = [chunk(json!([{"text": "Hel"}])), last(json!([{"text": "lo"}]), "STOP")];
    let (_, streamed) = run(&all).unwrap();
    let listed = dialect().decode(&request(), json!(all).to_string().as_bytes()).unwrap();
    assert_eq!((&listed.message, &listed.usage), (&streamed.message, &streamed.usage));
    for list in ["[]", "[1]", r#"[{"candidates": []}]"#] {
        assert_eq!(dialect().decode(&request(), list.as_bytes()).unwrap_err().kind(), ErrorKind::Stream);
    }
}

#[test]
fn complete_responses_equal_streamed_ones() {
    let chunk = last(
        json!([{"text": "hm", "thought": true}, {"text": "Hello"}, {"functionCall": {"name": "f"}}]),
        "STOP",
    );
    let decode = |request: &Request| dialect().decode(request, chunk.to_string().as_bytes()).unwrap();
    let complete = decode(&request());
    let (_, streamed) = run(std::slice::from_ref(&chunk)).unwrap();
    assert_eq!((complete.text(), complete.reasoning()), (streamed.text(), streamed.reasoning()));
    assert_eq!((&complete.usage, &complete.finish_reason), (&streamed.usage, &streamed.finish_reason));
    assert_eq!(complete.raw, Some(chunk.clone()));
    assert_eq!(complete.message, decode(&request()).message, "the same response has the same ids");
    let longer = Request::new(MODEL, [conversation(), vec![Message::user("more")]].concat());
    assert_ne!(complete.message, decode(&longer).message, "at another position it has other ids");
}

#[test]
fn finish_reasons() {
    for (raw, reason) in [
        ("STOP", Finish::Stop),
        ("MAX_TOKENS", Finish::Length),
        ("SAFETY", Finish::ContentFilter),
        ("RECITATION", Finish::ContentFilter),
        ("BLOCKLIST", Finish::ContentFilter),
        ("PROHIBITED_CONTENT", Finish::ContentFilter),
        ("SPII", Finish::ContentFilter),
        ("LANGUAGE", Finish::ContentFilter),
        ("MALFORMED_FUNCTION_CALL", Finish::Error),
        ("UNEXPECTED_TOOL_CALL", Finish::Error),
        ("MALFORMED_RESPONSE", Finish::Error),
        ("TOO_MANY_TOOL_CALLS", Finish::Error),
        ("MISSING_THOUGHT_SIGNATURE", Finish::Error),
        ("OTHER", Finish::Other),
        ("UNHEARD_OF", Finish::Other),
    ] {
        let (_, response) = run(&[last(json!([{"text": "x"}]), raw)]).unwrap();
        assert_eq!(response.finish_reason, FinishReason::new(reason).with_raw(raw));
    }
    let call = json!([{"functionCall": {"name": "f"}}]);
    let (_, late) = run(&[chunk(call.clone()), last(json!([]), "STOP")]).unwrap();
    assert_eq!(late.finish_reason.reason, Finish::ToolCalls, "the call is in an earlier chunk");
    let (_, cut) = run(&[last(call, "MAX_TOKENS")]).unwrap();
    assert_eq!(cut.finish_reason.reason, Finish::Length);
    let (_, blocked) = run(&[json!({"promptFeedback": {"blockReason": "OTHER"}})]).unwrap();
    assert_eq!(blocked.finish_reason, FinishReason::new(Finish::ContentFilter).with_raw("OTHER"));
    let mut malformed = last(json!([]), "MALFORMED_FUNCTION_CALL");
    malformed["candidates"][0]["finishMessage"] = "call f(".into();
    let (events, _) = run(&[malformed]).unwrap();
    let expected = StreamEvent::ProviderEvent { raw: json!({"finishMessage": "call f("}), part: None };
    assert!(events.contains(&expected), "{events:?}");
}

#[test]
fn broken_streams_are_errors() {
    let cases = [
        (vec![], ErrorKind::Stream, true),
        (vec![chunk(json!([{"text": "x"}]))], ErrorKind::Stream, true),
        (vec![json!("x")], ErrorKind::Stream, true),
        (vec![chunk(json!([{"functionCall": {"args": {"a": 1}}}]))], ErrorKind::Stream, true),
        (vec![chunk(json!([{"functionCall": {"name": "f", "args": [1]}}]))], ErrorKind::Stream, true),
        (
            vec![chunk(json!([{"functionCall": {"name": "f", "partialArgs": [{"jsonPath": "f"}]}}]))],
            ErrorKind::Stream,
            true,
        ),
        (
            vec![
                chunk(json!([{"text": "x"}])),
                json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}),
            ],
            ErrorKind::Server,
            true,
        ),
        (
            vec![json!({"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}})],
            ErrorKind::InvalidRequest,
            false,
        ),
    ];
    for (chunks, kind, retryable) in cases {
        let error = run(&chunks).unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "{chunks:?}");
        assert_eq!(error.provider(), Some("gemini"));
    }
    for body in ["<html>", "{}"] {
        assert_eq!(dialect().decode(&request(), body.as_bytes()).unwrap_err().kind(), ErrorKind::Stream);
    }
}

#[test]
fn error_responses_are_classified() {
    let bad_key = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}]);
    let quota = |id: &str| {
        json!([
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
        ])
    };
    let wait = Some(Duration::from_millis(34_500));
    let minute = quota("GenerateRequestsPerMinutePerProjectPerModel");
    let day = quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier");
    let none = || json!([]);
    let cases = [
        (400, "INVALID_ARGUMENT", "API key not valid.", bad_key, ErrorKind::Authentication, None),
        (400, "INVALID_ARGUMENT", "bad", none(), ErrorKind::InvalidRequest, None),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (9) exceeds the maximum number of tokens allowed (5).",
            none(),
            ErrorKind::ContextLength,
            None,
        ),
        (403, "PERMISSION_DENIED", "no", none(), ErrorKind::AccessDenied, None),
        (404, "NOT_FOUND", "models/x is not found", none(), ErrorKind::NotFound, None),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", minute, ErrorKind::RateLimit, wait),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota", day, ErrorKind::QuotaExceeded, None),
        (500, "INTERNAL", "oops", none(), ErrorKind::Server, None),
        (503, "UNAVAILABLE", "overloaded", none(), ErrorKind::Server, None),
    ];
    for (code, status, message, details, kind, wait) in cases {
        let error =
            json!({"error": {"code": code, "message": message, "status": status, "details": details}});
        for body in [error.to_string(), json!([error]).to_string()] {
            let error = dialect().classify(code, &Headers::default(), body.as_bytes());
            assert_eq!((error.kind(), error.retry_after()), (kind, wait), "{code} {message}");
            assert_eq!((error.status(), error.message()), (Some(code), message));
        }
    }
}

/// Asserts that starts and ends pair up, and that a complete response starts and finishes once.
#[expect(clippy::wildcard_enum_match_arm, reason = "only events that open or close something matter here")]
fn assert_well_formed(events: &[StreamEvent]) {
    let mut open: Vec<(&str, &str)> = Vec::new();
    for event in events {
        let (start, end) = match event {
            StreamEvent::TextStart { text_id } => (Some(("text", text_id)), None),
            StreamEvent::TextEnd { text_id, .. } => (None, Some(("text", text_id))),
            StreamEvent::ReasoningStart { reasoning_id } => (Some(("reasoning", reasoning_id)), None),
            StreamEvent::ReasoningEnd { reasoning_id, .. } => (None, Some(("reasoning", reasoning_id))),
            StreamEvent::ToolCallStart { tool_call } => (Some(("call", &tool_call.id)), None),
            StreamEvent::ToolCallEnd { tool_call } => (None, Some(("call", &tool_call.id))),
            _ => (None, None),
        };
        open.extend(start.map(|(kind, id)| (kind, id.as_str())));
        if let Some((kind, id)) = end {
            let place = open.iter().position(|known| *known == (kind, id.as_str()));
            open.remove(place.unwrap_or_else(|| panic!("{kind} {id} ends without a start in {events:?}")));
        }
    }
    assert_eq!(open, [], "without an end in {events:?}");
    let count = |wanted: fn(&StreamEvent) -> bool| events.iter().filter(|event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, StreamEvent::StreamStart { .. })), 1);
    assert_eq!(count(|event| matches!(event, StreamEvent::Finish { .. })), 1);
    assert!(matches!(events.last(), Some(StreamEvent::Finish { .. })));
}

proptest! {
    #[test]
    fn parts_in_any_order_yield_valid_events(order in prop::collection::vec((0..12_usize, any::<bool>()), 0..30)) {
        let pool = [
            json!({"text": "a"}),
            json!({"text": ""}),
            json!({"text": "b", "thoughtSignature": "s"}),
            json!({"text": "c", "thought": true}),
            json!({"text": "", "thought": true, "thoughtSignature": "s"}),
            json!({"functionCall": {"name": "f", "args": {"a": 1}}}),
            json!({"functionCall": {"name": "g", "willContinue": true}}),
            json!({"functionCall": {"partialArgs": [{"jsonPath": "$.x", "stringValue": "y"}], "willContinue": true}}),
            json!({"functionCall": {}}),
            json!({"executableCode": {"code": "1"}}),
            json!({"thoughtSignature": "alone"}),
            json!({}),
        ];
        let mut chunks = vec![chunk(json!([]))];
        for (place, fresh) in order {
            if fresh {
                chunks.push(chunk(json!([])));
            }
            let parts = chunks.last_mut().unwrap()["candidates"][0]["content"]["parts"].as_array_mut().unwrap();
            parts.push(pool[place].clone());
        }
        chunks.push(last(json!([]), "STOP"));
        if let Ok((events, _)) = run(&chunks) {
            assert_well_formed(&events);
        }
    }

    #[test]
    fn arbitrary_data_does_not_panic(data in any::<String>()) {
        let mut decoder = dialect().decoder(&request(), 1);
        let _ = decoder.feed(SseEvent { name: "", data: &data }, &mut Vec::new());
        let _ = dialect().decode(&request(), data.as_bytes());
        dialect().classify(400, &Headers::default(), data.as_bytes());
    }
}

#[test]
fn a_definition_at_the_root_of_parameters_is_resolved() {
    let definition = json!({"properties": {"path": {"type": "string"}}, "required": ["path"]});
    let by_reference = json!({"type": "object", "$ref": "#/$defs/args", "$defs": {"args": definition}});
    let resolved = json!({
        "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"],
        "$defs": {"args": definition},
    });
    let choices = json!({"type": "object", "anyOf": [{"required": ["path"]}]});
    for (parameters, sent) in [(by_reference, resolved), (choices.clone(), choices)] {
        let tool = ToolDefinition::new("read_file", "Reads a file.", parameters).unwrap();
        let request = Request::new(MODEL, [Message::user("Read.")]).with_tools(vec![tool]);
        let body = body(&request);
        assert_eq!(body.pointer("/tools/0/functionDeclarations/0/parametersJsonSchema"), Some(&sent));
    }
}
