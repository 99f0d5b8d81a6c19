//! Section 8.9: the cells of the parity matrix that need one call.

use std::collections::BTreeMap;

use pintle_llm::{
    ContentPart, ErrorKind, Finish, HistoryItem, ImageData, Message, StreamEvent, ToolCall, Usage,
};
use pintle_testkit::{Call, Dialect, Failure, Script, Turn};
use serde_json::{Value, json};

use super::caching::session;
use super::content::{PNG, last_content, png_on_the_wire, without_cache_point};
use super::harness::{ClientHarness, adapter, client_of, read_file, response_of};

per_provider!(
    simple_text,
    streaming_text,
    image_base64,
    image_url,
    streaming_tool_calls,
    reasoning_tokens,
    invalid_key,
    rate_limit,
    usage,
    prompt_caching,
    provider_options,
);

async fn simple_text(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("A haiku about the sea.")).await;
    let response = harness.complete(harness.question().with_max_tokens(100)).await;
    assert_eq!(response.text(), "A haiku about the sea.");
    assert_eq!(response.finish_reason.reason, Finish::Stop);
    assert!(response.usage.input_tokens > 0 && response.usage.output_tokens > 0);

    let harness = ClientHarness::responding(
        dialect,
        Turn::text("A haiku ab").with_finish(pintle_testkit::Finish::Length),
    )
    .await;
    let cut_short = harness.complete(harness.question().with_max_tokens(3)).await;
    assert_eq!((cut_short.text().as_str(), cut_short.finish_reason.reason), ("A haiku ab", Finish::Length));
}

async fn streaming_text(dialect: Dialect) {
    let text = "Waves fold into waves,\nthe harbour keeps no ledger —\na gull 🕊 tips its wing.";
    let harness = ClientHarness::responding(dialect, Turn::text(text)).await;
    let events = harness.events(harness.question()).await;
    let deltas: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            StreamEvent::TextDelta { delta, .. } => Some(delta.as_str()),
            _ => None,
        })
        .collect();
    assert!(deltas.len() > 3, "it comes in pieces: {deltas:?}");
    assert_eq!(deltas.concat(), text);
}

async fn image_base64(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("A picture.")).await;
    let image = ImageData::data(PNG.to_vec(), "image/png");
    let question = Message::user("What is in it?").with_part(image.into());
    assert_eq!(harness.complete(harness.request([question])).await.text(), "A picture.");
    let body = harness.body();
    assert_eq!(without_cache_point(&last_content(dialect, &body)[1]), png_on_the_wire(dialect));

    let tiff = ImageData::data(b"II*\0".to_vec(), "image/tiff");
    let refused =
        harness.error(harness.request([Message::user("And in this?").with_part(tiff.into())])).await;
    assert_eq!(refused.kind(), ErrorKind::InvalidRequest);
    assert!(refused.message().contains("image/tiff"), "{refused}");
    assert_eq!(harness.server.requests().len(), 1, "a type that is not taken is not sent");
}

async fn image_url(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("A picture.")).await;
    let url = "https://example.com/a.png?size=2";
    let question = Message::user("What is in it?").with_part(ImageData::url(url).into());
    assert_eq!(harness.complete(harness.request([question])).await.text(), "A picture.");
    let expected = match dialect {
        Dialect::OpenAiResponses => json!({"type": "input_image", "image_url": url, "detail": "auto"}),
        Dialect::AnthropicMessages => json!({"type": "image", "source": {"type": "url", "url": url}}),
        Dialect::Gemini => json!({"fileData": {"fileUri": url}}),
        Dialect::ChatCompletions => json!({"type": "image_url", "image_url": {"url": url}}),
    };
    let body = harness.body();
    assert_eq!(without_cache_point(&last_content(dialect, &body)[1]), expected);
}

async fn streaming_tool_calls(dialect: Dialect) {
    let long = "src/a/rather/deep/path/that/takes/several/pieces.rs";
    let turn = Turn::text("Both.")
        .with_call(Call::new("read_file", json!({"file_path": long})))
        .with_call(Call::new("read_file", json!({"file_path": "b.rs"})));
    let harness = ClientHarness::responding(dialect, turn).await;
    let events = harness.events(harness.question().with_tools(vec![read_file()])).await;
    // Calls may be interleaved, so their pieces are matched by id.
    let mut forming: BTreeMap<String, String> = BTreeMap::new();
    let mut calls: Vec<ToolCall> = Vec::new();
    for event in &events {
        match event {
            StreamEvent::ToolCallStart { tool_call } => {
                assert_eq!(tool_call.name, "read_file");
                let before = forming.insert(tool_call.id.clone(), String::new());
                assert_eq!(before, None, "a call starts once");
            }
            StreamEvent::ToolCallDelta { tool_call, delta } => {
                forming.get_mut(&tool_call.id).expect("a call that has started").push_str(delta);
            }
            StreamEvent::ToolCallEnd { tool_call } => {
                let written = forming.remove(&tool_call.id).expect("a call that has started");
                // Gemini sends a call in one piece.
                if dialect != Dialect::Gemini {
                    let arguments: Value = serde_json::from_str(&written).unwrap();
                    assert_eq!(arguments, tool_call.arguments, "the pieces make the arguments");
                }
                calls.push(tool_call.clone());
            }
            _ => {}
        }
    }
    assert!(forming.is_empty(), "{forming:?}");
    let paths: Vec<&str> = calls.iter().filter_map(|call| call.arguments["file_path"].as_str()).collect();
    assert_eq!(paths, [long, "b.rs"]);
    assert_ne!(calls[0].id, calls[1].id);
    let response = response_of(&events);
    assert_eq!(response.tool_calls().cloned().collect::<Vec<_>>(), calls);
    assert_eq!(response.finish_reason.reason, Finish::ToolCalls);
}

async fn reasoning_tokens(dialect: Dialect) {
    // Forty characters, at four per token.
    let turn = Turn::text("Yes.").with_reasoning("The question is whether, and it is so. ..");
    for streaming in [false, true] {
        let harness = ClientHarness::responding(dialect, turn.clone()).await;
        let request = harness.question();
        let usage =
            if streaming { harness.streamed(request).await } else { harness.complete(request).await }.usage;
        assert_eq!(usage.reasoning_tokens, Some(11));
        assert_eq!(usage.output_tokens, 12, "of which one is the answer");
    }
    let harness = ClientHarness::responding(dialect, Turn::text("Yes.")).await;
    let usage = harness.complete(harness.question()).await.usage;
    assert_eq!((usage.reasoning_tokens.unwrap_or_default(), usage.output_tokens), (0, 1));
}

async fn invalid_key(dialect: Dialect) {
    let wrong = "sk-a-wrong-key-1234";
    let mut harness = ClientHarness::responding(dialect, Turn::text("never said")).await;
    harness.client = client_of(adapter(dialect, &harness.server, wrong, &[]));
    let error = harness.error(harness.question()).await;
    // Gemini reports a wrong key with status 400; the kind is the same.
    let status = if dialect == Dialect::Gemini { 400 } else { 401 };
    assert_eq!((error.kind(), error.status()), (ErrorKind::Authentication, Some(status)));
    assert_eq!(error.provider(), Some(dialect.name()));
    assert!(!error.is_retryable());
    assert!(!format!("{error} {error:?} {:?}", harness.client).contains(wrong));

    let failures = [Failure::status(401), Failure::status(401)];
    let turn = failures.into_iter().fold(Turn::text("Hello."), Turn::with_failure);
    let harness = ClientHarness::responding(dialect, turn).await;
    let error = harness.error(harness.question()).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::Authentication, Some(401)));
}

async fn rate_limit(dialect: Dialect) {
    let failures = [Failure::status(429), Failure::status(429)];
    let turn = failures.into_iter().fold(Turn::text("Hello."), Turn::with_failure);
    let harness = ClientHarness::responding(dialect, turn).await;
    let error = harness.error(harness.question()).await;
    assert_eq!((error.kind(), error.status()), (ErrorKind::RateLimit, Some(429)));
    assert_eq!(error.provider(), Some(dialect.name()));
    assert!(error.is_retryable());
    assert_eq!(harness.complete(harness.question()).await.text(), "Hello.", "later it may go through");
}

async fn usage(dialect: Dialect) {
    let prompt = "word ".repeat(800);
    let turn = Turn::text("Eight letters, and some more.")
        .with_reasoning("It wants words.")
        .with_call(Call::new("read_file", json!({"file_path": "a.rs"})));
    let arguments = r#"{"file_path":"a.rs"}"#;
    // The server counts four bytes per token, separately for each text.
    let texts = ["Eight letters, and some more.", "It wants words.", "read_file", arguments];
    let output: usize = texts.iter().map(|text| text.len().div_ceil(4)).sum();
    let mut seen: Vec<Usage> = Vec::new();
    for streaming in [false, true] {
        let harness = ClientHarness::responding(dialect, turn.clone()).await;
        let request = harness.request([Message::user(prompt.clone())]).with_tools(vec![read_file()]);
        let response =
            if streaming { harness.streamed(request).await } else { harness.complete(request).await };
        let usage = response.usage;
        assert_eq!(usage.output_tokens, output as u64);
        assert_eq!(usage.total_tokens, usage.input_tokens + usage.output_tokens);
        let (prompt, sent) = (usage.input_tokens, harness.sent().raw_body.len() as u64 / 4);
        assert!(prompt <= sent && prompt * 10 >= sent * 9, "{prompt} tokens for some {sent}");
        let raw = usage.raw.as_ref().expect("the provider's own record");
        let name = match dialect {
            Dialect::OpenAiResponses | Dialect::AnthropicMessages => "input_tokens",
            Dialect::Gemini => "promptTokenCount",
            Dialect::ChatCompletions => "prompt_tokens",
        };
        let reported = raw[name].as_u64();
        let expected = match dialect {
            Dialect::AnthropicMessages => usage.uncached_input_tokens(),
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::ChatCompletions => usage.input_tokens,
        };
        assert_eq!(reported, Some(expected));
        seen.push(usage);
    }
    assert_eq!(seen[0], seen[1], "both ways count the same");
}

async fn prompt_caching(dialect: Dialect) {
    let usages = session(dialect, 4, Value::Null).await.usages;
    assert_eq!(usages[0].cache_read_tokens.unwrap_or_default(), 0);
    for (turn, usage) in usages.iter().enumerate().skip(1) {
        assert!(usage.cache_read_tokens.unwrap_or_default() > 0, "turn {}: {usage:?}", turn + 1);
    }
}

async fn provider_options(dialect: Dialect) {
    let harness = ClientHarness::responding(dialect, Turn::text("Hello.")).await;
    let options = match dialect {
        Dialect::OpenAiResponses => json!({"service_tier": "flex", "reasoning": {"summary": "detailed"}}),
        Dialect::AnthropicMessages => json!({"service_tier": "standard_only", "top_k": 7}),
        Dialect::Gemini => json!({
            "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
            "generationConfig": {"seed": 7},
        }),
        Dialect::ChatCompletions => json!({"top_k": 7, "chat_template_kwargs": {"enable_thinking": false}}),
    };
    let mut request = harness.question().with_provider_options(dialect.name(), options.clone());
    for other in Dialect::ALL.into_iter().filter(|other| *other != dialect) {
        request = request.with_provider_options(other.name(), json!({"not_mine": true}));
    }
    for streaming in [false, true] {
        harness.respond(request.clone(), streaming).await;
        let body = harness.body();
        for (name, value) in options.as_object().unwrap() {
            assert_eq!(body[name], *value, "{name}");
        }
        assert!(body.get("not_mine").is_none());
    }

    let conversation = match dialect {
        Dialect::OpenAiResponses => "input",
        Dialect::AnthropicMessages | Dialect::ChatCompletions => "messages",
        Dialect::Gemini => "contents",
    };
    let stolen = harness.question().with_provider_options(dialect.name(), json!({conversation: []}));
    assert_eq!(harness.error(stolen).await.kind(), ErrorKind::Configuration);
}

#[tokio::test]
async fn a_history_continues_with_every_other_provider() {
    let call = Call::new("read_file", json!({"file_path": "a.rs"}));
    let script = Script::new("hand over")
        .with_turn(Turn::text("I'll look.").with_reasoning("It must be read.").with_call(call))
        .with_turn(Turn::text("It is empty."));
    for first in Dialect::ALL {
        let harness = ClientHarness::start(first, script.clone()).await;
        let question: HistoryItem = Message::user("What is in a.rs?").into();
        let tools = vec![read_file()];
        let answer =
            harness.streamed(harness.request([question.clone()]).with_tools(tools.clone())).await.message;
        assert!(answer.content.iter().any(|part| matches!(part, ContentPart::Thinking(_))));
        let id = answer.tool_calls().next().expect("a call").id.clone();
        let history = [question, answer.into(), Message::tool_result(id, "(no lines)", false).into()];
        for second in Dialect::ALL.into_iter().filter(|second| *second != first) {
            let other = ClientHarness::start(second, script.clone()).await;
            let request = other.request(history.clone()).with_tools(tools.clone());
            assert_eq!(other.complete(request).await.text(), "It is empty.", "{first} to {second}");
            assert!(!String::from_utf8_lossy(&other.sent().raw_body).contains("It must be read."));
        }
    }
}
