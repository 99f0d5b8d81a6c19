//! Section 8.3: content of every kind, in both directions.

use std::sync::Arc;

use futures_util::StreamExt as _;
use pintle_llm::{
    AudioData, ContentPart, DocumentData, ErrorKind, HistoryItem, ImageData, Message, Request, Role,
    ThinkingData, ToolResult,
};
use pintle_providers::Anthropic;
use pintle_testkit::{Call, Dialect, Expectation, FaultScript, FaultServer, Script, Turn};
use serde_json::{Value, json};

use super::harness::{ClientHarness, client_of, each, model, read_file, response_of};

per_provider!(
    text_round_trips,
    an_image_is_read_from_a_local_path,
    a_data_url_is_sent_as_bytes,
    text_and_images_keep_their_order,
    audio_is_sent_or_refused,
    documents_are_sent,
    a_tool_call_round_trips,
    an_image_of_a_tool_result_is_sent,
);

/// The signature of PNG files; the server checks nothing else.
pub(super) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The same in base64.
pub(super) const PNG_BASE64: &str = "iVBORw0KGgo=";

/// Returns the content of the user's last message, in the provider's format.
pub(super) fn last_content(dialect: Dialect, body: &Value) -> &Value {
    let (list, content) = match dialect {
        Dialect::OpenAiResponses => ("input", "content"),
        Dialect::AnthropicMessages | Dialect::ChatCompletions => ("messages", "content"),
        Dialect::Gemini => ("contents", "parts"),
    };
    &body[list].as_array().and_then(|list| list.last()).expect("a message")[content]
}

/// Returns a PNG image in the provider's format.
pub(super) fn png_on_the_wire(dialect: Dialect) -> Value {
    let data_uri = format!("data:image/png;base64,{PNG_BASE64}");
    match dialect {
        Dialect::OpenAiResponses => json!({"type": "input_image", "image_url": data_uri, "detail": "auto"}),
        Dialect::AnthropicMessages => {
            let source = json!({"type": "base64", "media_type": "image/png", "data": PNG_BASE64});
            json!({"type": "image", "source": source})
        }
        Dialect::Gemini => json!({"inlineData": {"mimeType": "image/png", "data": PNG_BASE64}}),
        Dialect::ChatCompletions => json!({"type": "image_url", "image_url": {"url": data_uri}}),
    }
}

/// Removes the cache point of a part, which depends on where the conversation ends.
pub(super) fn without_cache_point(part: &Value) -> Value {
    let mut part = part.clone();
    if let Some(fields) = part.as_object_mut() {
        fields.remove("cache_control");
    }
    part
}

fn user(parts: Vec<ContentPart>) -> Message {
    Message::new(Role::User, parts)
}

async fn text_round_trips(dialect: Dialect) {
    let script = Script::new("two answers").with_turn(Turn::text("Héllo, wörld 👋.")).with_turn(
        Turn::text("As I said.").with_expectation(Expectation::request_contains("And again? — «ja» 日本")),
    );
    let harness = ClientHarness::start(dialect, script).await;
    let mut history: Vec<HistoryItem> = vec![Message::user("Say hello.").into()];
    let first = harness.complete(harness.request(history.clone())).await;
    assert_eq!(first.text(), "Héllo, wörld 👋.");
    history.extend([first.message.into(), Message::user("And again? — «ja» 日本").into()]);
    assert_eq!(harness.streamed(harness.request(history)).await.text(), "As I said.");
    let sent = String::from_utf8(harness.sent().raw_body).unwrap();
    assert!(sent.contains("Héllo, wörld 👋."), "{sent}");
}

async fn an_image_is_read_from_a_local_path(dialect: Dialect) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("screenshot.png");
    std::fs::write(&path, PNG).unwrap();
    let harness = ClientHarness::responding(dialect, Turn::text("A picture.")).await;
    let image = ImageData::path(path.to_string_lossy());
    harness.complete(harness.request([user(vec![image.into()])])).await;
    let body = harness.body();
    assert_eq!(without_cache_point(&last_content(dialect, &body)[0]), png_on_the_wire(dialect));

    let missing = ImageData::path(directory.path().join("missing.png").to_string_lossy());
    let error = harness.error(harness.request([user(vec![missing.into()])])).await;
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(error.message().contains("missing.png"), "{error}");
    assert_eq!(harness.server.requests().len(), 1, "what cannot be read is not sent");

    let error =
        harness.error(harness.request([user(vec![ImageData::url(path.to_string_lossy()).into()])])).await;
    assert_eq!(error.kind(), ErrorKind::InvalidRequest);
    assert!(error.message().contains("is a local path, not a URL"), "{error}");
    assert_eq!(harness.server.requests().len(), 1, "a URL never reads a file");
}

async fn a_data_url_is_sent_as_bytes(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("A picture.")).await;
    let encoded = pintle_llm::Blob::from(PNG.to_vec()).to_base64();
    let image = ImageData::url(format!("data:image/png;base64,{encoded}"));
    harness.complete(harness.request([user(vec![image.into()])])).await;
    let body = harness.body();
    assert_eq!(without_cache_point(&last_content(dialect, &body)[0]), png_on_the_wire(dialect));
}

async fn text_and_images_keep_their_order(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Two pictures.")).await;
    let question = user(vec![
        ContentPart::text("Compare this"),
        ImageData::data(PNG.to_vec(), "image/png").into(),
        ContentPart::text("with this:"),
        ImageData::url("https://example.com/b.png").into(),
    ]);
    assert_eq!(harness.complete(harness.request([question])).await.text(), "Two pictures.");
    let body = harness.body();
    let content = last_content(dialect, &body);
    assert_eq!(each(content, "text"), ["Compare this", "", "with this:", ""]);
    assert_eq!(content[1], png_on_the_wire(dialect));
    assert!(content[3].to_string().contains("https://example.com/b.png"));
}

async fn audio_is_sent_or_refused(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("A voice.")).await;
    let audio: AudioData =
        serde_json::from_value(json!({"data": "UklGRg==", "media_type": "audio/wav"})).unwrap();
    let request = harness.request([user(vec![ContentPart::text("Listen:"), ContentPart::Audio(audio)])]);
    let expected = match dialect {
        Dialect::OpenAiResponses | Dialect::AnthropicMessages => {
            let error = harness.error(request).await;
            assert_eq!((error.kind(), error.provider()), (ErrorKind::InvalidRequest, Some(dialect.name())));
            assert!(error.message().contains("audio"), "{error}");
            assert!(harness.server.requests().is_empty(), "it is refused before it is sent");
            return;
        }
        Dialect::Gemini => json!({"inlineData": {"mimeType": "audio/wav", "data": "UklGRg=="}}),
        Dialect::ChatCompletions => {
            json!({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})
        }
    };
    harness.complete(request).await;
    assert_eq!(last_content(dialect, &harness.body())[1], expected);
}

async fn documents_are_sent(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("A paper.")).await;
    let document: DocumentData = serde_json::from_value(
        json!({"data": "JVBERg==", "media_type": "application/pdf", "file_name": "paper.pdf"}),
    )
    .unwrap();
    harness.complete(harness.request([user(vec![ContentPart::Document(document)])])).await;
    let data_uri = "data:application/pdf;base64,JVBERg==";
    let expected = match dialect {
        Dialect::OpenAiResponses => {
            json!({"type": "input_file", "filename": "paper.pdf", "file_data": data_uri})
        }
        Dialect::AnthropicMessages => {
            let source = json!({"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="});
            json!({"type": "document", "source": source, "title": "paper.pdf"})
        }
        Dialect::Gemini => json!({"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}}),
        Dialect::ChatCompletions => {
            json!({"type": "file", "file": {"filename": "paper.pdf", "file_data": data_uri}})
        }
    };
    let body = harness.body();
    assert_eq!(without_cache_point(&last_content(dialect, &body)[0]), expected);
}

/// Two rounds: parallel calls after reasoning, one of which fails, then a single call.
fn round_trip() -> Script {
    let call = |path: &str| Call::new("read_file", json!({"file_path": path}));
    let both_answered = Turn::text("One is missing; is there another?")
        .with_call(call("c.rs"))
        .with_expectation(Expectation::result_contains(0, "fn a() {}"))
        .with_expectation(Expectation::result_is_error(0, false))
        .with_expectation(Expectation::result_contains(1, "no such file"))
        .with_expectation(Expectation::result_is_error(1, true));
    Script::new("round trip")
        .with_turn(
            Turn::text("I'll read both.")
                .with_reasoning("Two files are asked for.")
                .with_call(call("a.rs"))
                .with_call(call("b.rs")),
        )
        .with_turn(both_answered)
        .with_turn(Turn::text("That is all.").with_expectation(Expectation::result_contains(0, "fn c() {}")))
}

async fn a_tool_call_round_trips(dialect: Dialect) {
    for streaming in [false, true] {
        let harness = ClientHarness::start(dialect, round_trip()).await;
        let mut history: Vec<HistoryItem> = vec![Message::user("Read a.rs and b.rs.").into()];
        let mut texts = Vec::new();
        for _ in 0..3 {
            let request = harness.request(history.clone()).with_tools(vec![read_file()]);
            let response =
                if streaming { harness.streamed(request).await } else { harness.complete(request).await };
            let results: Vec<ToolResult> = response
                .tool_calls()
                .map(|call| match call.arguments["file_path"].as_str() {
                    Some("b.rs") => ToolResult::new(&call.id, "no such file", true),
                    path => {
                        let name = path.and_then(|path| path.strip_suffix(".rs")).expect("a path");
                        ToolResult::new(&call.id, format!("fn {name}() {{}}"), false)
                    }
                })
                .collect();
            texts.push((response.text(), results.len()));
            history.push(response.message.into());
            history.push(Message::tool_results(results).into());
        }
        let expected =
            [("I'll read both.", 2), ("One is missing; is there another?", 1), ("That is all.", 0)];
        assert_eq!(texts, expected.map(|(text, results)| (text.to_owned(), results)));
        assert!(harness.server.finished(dialect));
        harness.sent();
    }
}

async fn an_image_of_a_tool_result_is_sent(dialect: Dialect) {
    let script = Script::new("look")
        .with_turn(Turn::new().with_call(Call::new("read_file", json!({"file_path": "a.png"}))))
        .with_turn(Turn::text("A picture."));
    let harness = ClientHarness::start(dialect, script).await;
    let question: HistoryItem = Message::user("What is in a.png?").into();
    let answer =
        harness.complete(harness.request([question.clone()]).with_tools(vec![read_file()])).await.message;
    let id = answer.tool_calls().next().expect("a call").id.clone();
    let result =
        ToolResult::new(id, "an image", false).with_image(ImageData::data(PNG.to_vec(), "image/png"));
    let history = [question, answer.into(), Message::tool_results(vec![result]).into()];
    let response = harness.complete(harness.request(history).with_tools(vec![read_file()])).await;
    assert_eq!(response.text(), "A picture.");
    let body = String::from_utf8(harness.sent().raw_body).unwrap();
    assert_eq!(body.matches(PNG_BASE64).count(), 1);
}

/// An Anthropic turn with thinking and a call, and the response to its result.
fn thinking() -> Script {
    Script::new("thinking")
        .with_turn(
            Turn::text("I'll look.")
                .with_reasoning("The file must be read first.")
                .with_call(Call::new("read_file", json!({"file_path": "a.rs"}))),
        )
        .with_turn(Turn::text("It is empty."))
}

#[tokio::test]
async fn thinking_is_returned_with_its_signature() {
    for streaming in [false, true] {
        let harness = ClientHarness::start(Dialect::AnthropicMessages, thinking()).await;
        let ask = |history: Vec<HistoryItem>| {
            let request = harness.request(history).with_max_tokens(8_000).with_tools(vec![read_file()]);
            request.with_reasoning_effort(pintle_llm::ReasoningEffort::Low)
        };
        let question: HistoryItem = Message::user("What is in a.rs?").into();
        let request = ask(vec![question.clone()]);
        let response =
            if streaming { harness.streamed(request).await } else { harness.complete(request).await };
        let thinking = response.message.content[0].as_thinking().expect("thinking comes first").clone();
        let signature = thinking.signature.clone().expect("a signature");
        let call = response.tool_calls().next().expect("a call").id.clone();
        let result: HistoryItem = Message::tool_result(call, "(no lines)", false).into();

        let history = vec![question.clone(), response.message.clone().into(), result.clone()];
        harness.complete(ask(history)).await;
        let expected = json!({
            "type": "thinking", "thinking": "The file must be read first.", "signature": signature,
        });
        assert_eq!(harness.body()["messages"][1]["content"][0], expected);

        // The server checks the signature: with another text it is invalid.
        let mut forged = response.message;
        forged.content[0] = ThinkingData::new("Something else.").with_signature(Some(signature)).into();
        let error = harness.error(ask(vec![question, forged.into(), result])).await;
        assert_eq!((error.kind(), error.status()), (ErrorKind::InvalidRequest, Some(400)));
    }
}

#[tokio::test]
async fn redacted_thinking_is_returned_verbatim() {
    let harness = ClientHarness::start(Dialect::AnthropicMessages, thinking()).await;
    let opaque = "ENCRYPTED+with/every=letter";
    let answer = Message::new(
        Role::Assistant,
        vec![ThinkingData::redacted(opaque).into(), ContentPart::text("I thought about it.")],
    )
    .with_origin(pintle_llm::Origin::new("anthropic", model(Dialect::AnthropicMessages)));
    let history = [Message::user("Think."), answer, Message::user("And?")];
    harness.complete(harness.request(history.clone())).await;
    assert_eq!(
        harness.body()["messages"][1]["content"][0],
        json!({"type": "redacted_thinking", "data": opaque})
    );

    // Another model cannot read it.
    let mut elsewhere = harness.request(history);
    elsewhere.model = "claude-opus-4-6".to_owned();
    harness.complete(elsewhere).await;
    assert_eq!(each(&harness.body()["messages"][1]["content"], "type"), ["text"]);
}

/// An Anthropic response with redacted thinking, in one piece.
fn redacted_response(block: &Value) -> Value {
    let usage = json!({"input_tokens": 3, "output_tokens": 9});
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model(Dialect::AnthropicMessages),
        "content": [block, {"type": "text", "text": "I thought about it."}],
        "stop_reason": "end_turn", "stop_sequence": null, "usage": usage,
    })
}

/// The same response as events.
fn redacted_events(block: &Value) -> String {
    let mut message = redacted_response(block);
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let text = json!({"type": "text_delta", "text": "I thought about it."});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 1, "delta": text}),
        json!({"type": "content_block_stop", "index": 1}),
        json!({
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 9},
        }),
        json!({"type": "message_stop"}),
    ];
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(frame).collect()
}

#[tokio::test]
async fn redacted_thinking_round_trips_in_both_modes() {
    let block = json!({"type": "redacted_thinking", "data": "ENCRYPTED+with/every=letter"});
    for (streaming, media_type, body) in [
        (false, "application/json", redacted_response(&block).to_string()),
        (true, "text/event-stream", redacted_events(&block)),
    ] {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let script = FaultScript::new().read_request().write(head + &body);
        let provider = FaultServer::start([script]).await.unwrap();
        let adapter = Anthropic::builder("key").with_base_url(provider.url()).build().unwrap();
        let client = client_of(Arc::new(adapter));
        let request = Request::new(model(Dialect::AnthropicMessages), [Message::user("Think.")]);
        let response = if streaming {
            let events: Vec<_> = client.stream(request).await.unwrap().map(Result::unwrap).collect().await;
            response_of(&events)
        } else {
            client.complete(request).await.unwrap()
        };
        let kinds: Vec<&str> = response.message.content.iter().map(ContentPart::kind).collect();
        assert_eq!(kinds, ["REDACTED_THINKING", "TEXT"], "streaming: {streaming}");
        assert_eq!(response.reasoning(), None, "there is nothing to read");

        let harness = ClientHarness::start(Dialect::AnthropicMessages, thinking()).await;
        let history = [Message::user("Think."), response.message, Message::user("And?")];
        harness.complete(harness.request(history)).await;
        assert_eq!(harness.body()["messages"][1]["content"][0], block, "streaming: {streaming}");
    }
}
