//! Section 8.5: reasoning that is requested, counted, and sent back.

use pintle_llm::{ContentPart, HistoryItem, Message, ReasoningEffort, Request};
use pintle_testkit::{Call, Dialect, Script, ServerOptions, Turn};
use serde_json::{Value, json};

use super::harness::{ClientHarness, read_file};

per_provider!(separates_reasoning_from_the_text, returns_reasoning_to_its_model);

/// Twelve tokens of reasoning, three tokens of text.
fn turn() -> Turn {
    Turn::text("Forty-two.").with_reasoning("Six by nine, in the base of the thirteenth one.")
}

fn effort(word: &str) -> ReasoningEffort {
    ReasoningEffort::from(word.to_owned())
}

async fn separates_reasoning_from_the_text(dialect: Dialect) {
    for streaming in [false, true] {
        let harness = ClientHarness::responding(dialect, turn()).await;
        let request = harness.question();
        let response =
            if streaming { harness.streamed(request).await } else { harness.complete(request).await };
        assert_eq!((response.usage.reasoning_tokens, response.usage.output_tokens), (Some(12), 15));
        assert_eq!(response.text(), "Forty-two.");
        assert_eq!(response.reasoning().as_deref(), Some("Six by nine, in the base of the thirteenth one."));
    }
}

async fn returns_reasoning_to_its_model(dialect: Dialect) {
    let call = Call::new("read_file", json!({"file_path": "a.rs"}));
    let script = Script::new("reason").with_turn(turn().with_call(call)).with_turn(Turn::text("Done."));
    let harness = ClientHarness::start(dialect, script).await;
    let tools = || vec![read_file()];
    let question: HistoryItem = Message::user("Why?").into();
    let answer = harness.streamed(harness.request([question.clone()]).with_tools(tools())).await.message;
    let signatures = |part: &ContentPart| match part {
        ContentPart::Thinking(data) => data.signature.clone(),
        ContentPart::ToolCall(call) => call.signature.clone(),
        _ => None,
    };
    let signatures: Vec<String> = answer.content.iter().filter_map(signatures).collect();
    // Compatible servers sign nothing.
    assert_eq!(signatures.len(), usize::from(dialect != Dialect::ChatCompletions));
    let id = answer.tool_calls().next().expect("a call").id.clone();
    let history = [question, answer.into(), Message::tool_result(id, "fn a() {}", false).into()];
    harness.complete(harness.request(history).with_tools(tools())).await;
    let sent = harness.sent();
    let body = String::from_utf8(sent.raw_body).unwrap();
    for signature in signatures {
        assert_eq!(body.matches(&signature).count(), 1, "{body}");
    }
}

#[tokio::test]
async fn openai_counts_reasoning_tokens() {
    let harness = ClientHarness::responding(Dialect::OpenAiResponses, turn()).await;
    for streaming in [false, true] {
        let request = harness.question().with_reasoning_effort(effort("high"));
        let usage =
            if streaming { harness.streamed(request).await } else { harness.complete(request).await }.usage;
        let raw = usage.raw.as_ref().expect("the provider's own record");
        assert_eq!(raw["output_tokens_details"]["reasoning_tokens"], 12);
        assert_eq!(usage.reasoning_tokens, Some(12));
        assert_eq!(harness.sent().path, "/v1/responses");
        // The provider stores nothing, so the request must ask for the encrypted reasoning.
        assert_eq!(harness.body()["include"], json!(["reasoning.encrypted_content"]));
        assert_eq!(harness.body()["store"], false);
    }
}

#[tokio::test]
async fn openai_sends_the_effort_unchanged() {
    let harness = ClientHarness::responding(Dialect::OpenAiResponses, turn()).await;
    for word in ["none", "minimal", "low", "medium", "high", "xhigh"] {
        let request = harness.question().with_reasoning_effort(effort(word));
        harness.complete(request.clone()).await;
        assert_eq!(harness.body()["reasoning"]["effort"], word);
        harness.streamed(request).await;
        assert_eq!(harness.body()["reasoning"]["effort"], word);
    }
    harness.complete(harness.question()).await;
    assert!(harness.body().get("reasoning").is_none(), "not asked for, not sent");
    // The API rejects an effort for a model that does not reason.
    let mut old = harness.question().with_reasoning_effort(effort("high"));
    old.model = "gpt-4.1".to_owned();
    harness.complete(old).await;
    assert!(harness.body().get("reasoning").is_none());
}

/// The server sends thinking only to requests that enable it, as the provider does.
#[tokio::test]
async fn anthropic_thinks_when_enabled() {
    let options = ServerOptions::new().with_thinking_on_request(true);
    let script = Script::new("thinking").with_turn(turn());
    let harness = ClientHarness::start_with(Dialect::AnthropicMessages, script, options).await;
    let by_effort = |word| harness.question().with_max_tokens(32_000).with_reasoning_effort(effort(word));
    let by_option = |thinking: &Value| {
        let options = json!({"thinking": thinking});
        harness.question().with_max_tokens(4_000).with_provider_options("anthropic", options)
    };
    let mut adaptive = by_effort("high");
    adaptive.model = "claude-opus-4-6".to_owned();
    let enabled = |budget: u64| json!({"type": "enabled", "budget_tokens": budget});
    let disabled = json!({"type": "disabled"});
    let cases: [(Request, Value, &[&str]); 6] = [
        (by_effort("medium"), enabled(8_192), &["THINKING", "TEXT"]),
        (adaptive, json!({"type": "adaptive"}), &["THINKING", "TEXT"]),
        (by_option(&enabled(2_048)), enabled(2_048), &["THINKING", "TEXT"]),
        (by_option(&disabled), disabled, &["TEXT"]),
        (by_effort("none"), Value::Null, &["TEXT"]),
        (harness.question(), Value::Null, &["TEXT"]),
    ];
    for (request, thinking, kinds) in cases {
        for streaming in [false, true] {
            let request = request.clone();
            let response =
                if streaming { harness.streamed(request).await } else { harness.complete(request).await };
            assert_eq!(harness.body()["thinking"], thinking);
            let content = &response.message.content;
            assert_eq!(content.iter().map(ContentPart::kind).collect::<Vec<_>>(), kinds, "{thinking}");
            assert_eq!(response.text(), "Forty-two.");
            if let Some(part) = content[0].as_thinking() {
                assert_eq!(part.text, "Six by nine, in the base of the thirteenth one.");
                assert!(part.signature.as_ref().is_some_and(|signature| !signature.is_empty()));
            }
        }
    }
}

#[tokio::test]
async fn gemini_counts_thoughts() {
    let harness = ClientHarness::responding(Dialect::Gemini, turn()).await;
    for streaming in [false, true] {
        let request = harness.question().with_reasoning_effort(effort("low"));
        let usage =
            if streaming { harness.streamed(request).await } else { harness.complete(request).await }.usage;
        let raw = usage.raw.as_ref().expect("the provider's own record");
        assert_eq!((&raw["thoughtsTokenCount"], &raw["candidatesTokenCount"]), (&json!(12), &json!(3)));
        assert_eq!((usage.reasoning_tokens, usage.output_tokens), (Some(12), 15));
        let config = &harness.body()["generationConfig"]["thinkingConfig"];
        assert_eq!(*config, json!({"includeThoughts": true, "thinkingLevel": "LOW"}));
    }
}
