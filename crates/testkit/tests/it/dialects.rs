//! Every dialect, streamed and complete: two turns with parallel calls, returned results and usage.

use pintle_testkit::{Call, Dialect, Expectation, Script, ScriptedServer, ServerOptions, Turn};
use serde_json::{Value, json};

use crate::client::post;
use crate::conversation::{Conversation, ModelOutput};

fn script() -> Script {
    Script::new("two turns")
        .with_turn(
            Turn::text("I will read both files.")
                .with_reasoning("Two files matter here.")
                .with_call(Call::new("read_file", json!({"file_path": "a", "limit": 3})))
                .with_call(Call::new("read_file", json!({"file_path": "b \"quoted\" – ü"})))
                .with_expectation(Expectation::request_contains("system prompt")),
        )
        .with_turn(
            Turn::text("Both are fine.")
                .with_expectation(Expectation::result_contains(0, "text of a"))
                .with_expectation(Expectation::result_contains(1, "text of b"))
                .with_expectation(Expectation::request_contains("please look")),
        )
}

fn input_tokens(dialect: Dialect, usage: &Value) -> [u64; 2] {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    match dialect {
        Dialect::OpenAiResponses => [count("/input_tokens"), count("/input_tokens_details/cached_tokens")],
        Dialect::AnthropicMessages => [count("/input_tokens"), count("/cache_read_input_tokens")],
        Dialect::Gemini => [count("/promptTokenCount"), count("/cachedContentTokenCount")],
        Dialect::ChatCompletions => [count("/prompt_tokens"), count("/prompt_tokens_details/cached_tokens")],
    }
}

async fn two_turns(dialect: Dialect, stream: bool) -> [ModelOutput; 2] {
    let server = ScriptedServer::start(script(), ServerOptions::new()).await.unwrap();
    let mut conversation = Conversation::new(dialect, "please look");
    conversation.stream = stream;
    let first = conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
    assert!(!server.finished(dialect));
    conversation.continue_with(&first, &["text of a", "text of b"]);
    let second = conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
    assert!(server.finished(dialect));
    let requests = server.requests();
    assert_eq!(requests.iter().map(|request| request.status).collect::<Vec<_>>(), [Some(200); 2]);
    assert_eq!(requests[1].body, conversation.body());
    assert_eq!(requests[1].raw_body, conversation.body().to_string().into_bytes());
    assert!(!format!("{requests:?}").contains("Bearer key"), "keys are redacted");
    server.shutdown().await;
    [first, second]
}

#[tokio::test]
async fn two_turns_in_every_dialect() {
    let finishes = [
        (Dialect::OpenAiResponses, ["completed", "completed"], "call_"),
        (Dialect::AnthropicMessages, ["tool_use", "end_turn"], "toolu_"),
        (Dialect::Gemini, ["STOP", "STOP"], ""),
        (Dialect::ChatCompletions, ["tool_calls", "stop"], "call_"),
    ];
    for (dialect, finish, prefix) in finishes {
        let [first, second] = two_turns(dialect, true).await;
        assert_eq!(first.reasoning, "Two files matter here.", "{dialect}");
        assert_eq!(first.text, "I will read both files.", "{dialect}");
        let arguments: Vec<Value> =
            first.calls.iter().map(|(_, _, arguments)| serde_json::from_str(arguments).unwrap()).collect();
        assert_eq!(
            arguments,
            [json!({"file_path": "a", "limit": 3}), json!({"file_path": "b \"quoted\" – ü"})],
            "{dialect}"
        );
        assert!(
            first.calls.iter().all(|(id, name, _)| id.starts_with(prefix) && name == "read_file"),
            "{dialect}"
        );
        assert!(dialect == Dialect::Gemini || first.calls[0].0 != first.calls[1].0, "{dialect}");
        assert_eq!((second.reasoning.as_str(), second.text.as_str()), ("", "Both are fine."), "{dialect}");
        assert_eq!([first.finish.as_str(), second.finish.as_str()], finish, "{dialect}");

        let complete = two_turns(dialect, false).await;
        assert_eq!(complete[0].calls, first.calls, "{dialect}: ids do not depend on the form");
        assert_eq!((&complete[0].text, &complete[1].text), (&first.text, &second.text), "{dialect}");
    }
}

#[tokio::test]
async fn cached_tokens_are_the_common_prefix() {
    for dialect in [Dialect::OpenAiResponses, Dialect::Gemini, Dialect::ChatCompletions] {
        let [first, second] = two_turns(dialect, true).await;
        let [first, second] = [&first, &second].map(|output| input_tokens(dialect, &output.usage));
        assert_eq!(first[1], 0, "{dialect}: nothing was there to be read");
        // The second request starts with the complete first one.
        assert!(first[0].abs_diff(second[1]) <= 1, "{dialect}: {first:?} {second:?}");
        assert!(second[0] > second[1], "{dialect}");
    }
}

#[tokio::test]
async fn gemini_gives_call_ids_when_asked_to() {
    let options = ServerOptions::new().with_gemini_call_ids(true);
    let server = ScriptedServer::start(script(), options).await.unwrap();
    let conversation = Conversation::new(Dialect::Gemini, "please look");
    let output =
        conversation.read(&post(&server, Dialect::Gemini, &conversation.path(), &conversation.body()).await);
    assert!(output.calls.iter().all(|(id, _, _)| id.len() == 24), "{output:?}");
    assert_ne!(output.calls[0].0, output.calls[1].0);
}

#[tokio::test]
async fn custom_tools_take_free_text() {
    let turn = Turn::new()
        .with_call(Call::freeform("apply_patch", "*** Begin Patch"))
        .with_only([Dialect::OpenAiResponses]);
    let server =
        ScriptedServer::start(Script::new("custom").with_turn(turn), ServerOptions::new()).await.unwrap();
    let conversation = Conversation::new(Dialect::OpenAiResponses, "go");
    let response = post(&server, conversation.dialect, &conversation.path(), &conversation.body()).await;
    let output = conversation.read(&response);
    assert_eq!(output.items[0]["type"], "custom_tool_call");
    assert_eq!(output.calls[0].2, "*** Begin Patch");
}

#[tokio::test]
async fn opaque_values_must_come_back_verbatim() {
    type Mutation = fn(&mut Vec<Value>);
    let cases: [(Dialect, Mutation, &str); 5] = [
        (
            Dialect::OpenAiResponses,
            |items| items[1]["encrypted_content"] = json!("changed"),
            "did not create",
        ),
        (Dialect::OpenAiResponses, |items| drop(items.remove(1)), "expected the reasoning item"),
        (
            Dialect::AnthropicMessages,
            |items| items[1]["content"][0]["signature"] = json!("changed"),
            "did not create",
        ),
        (
            Dialect::AnthropicMessages,
            |items| items[1]["content"][0]["thinking"] = json!("other"),
            "does not match",
        ),
        (
            Dialect::Gemini,
            |items| {
                for part in items[1]["parts"].as_array_mut().unwrap() {
                    if part.get("thoughtSignature").is_some() {
                        part["thoughtSignature"] = json!("Y2hhbmdlZA==");
                    }
                }
            },
            "did not create",
        ),
    ];
    for (dialect, mutate, message) in cases {
        let server = ScriptedServer::start(script(), ServerOptions::new()).await.unwrap();
        let mut conversation = Conversation::new(dialect, "please look");
        let output =
            conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
        conversation.continue_with(&output, &["text of a", "text of b"]);
        mutate(conversation.items_mut());
        let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        assert_eq!(response.status, 400, "{dialect}");
        assert!(response.message().contains(message), "{dialect}: {}", response.message());
    }
}

#[tokio::test]
async fn reasoning_may_be_dropped_after_a_model_switch() {
    let server = ScriptedServer::start(script(), ServerOptions::new()).await.unwrap();
    let dialect = Dialect::OpenAiResponses;
    let mut conversation = Conversation::new(dialect, "please look");
    let output = conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
    conversation.continue_with(&output, &["text of a", "text of b"]);
    conversation.items_mut().remove(1);
    conversation.model = "another-model".to_owned();
    assert_eq!(post(&server, dialect, &conversation.path(), &conversation.body()).await.status, 200);
}

#[tokio::test]
async fn enabled_thinking_starts_every_turn() {
    let script = Script::new("thinking")
        .with_turn(Turn::text("a").with_call(Call::new("f", json!({}))))
        .with_turn(Turn::text("b"));
    let server = ScriptedServer::start(script, ServerOptions::new()).await.unwrap();
    let dialect = Dialect::AnthropicMessages;
    let mut conversation = Conversation::new(dialect, "go");
    let thinking = |conversation: &Conversation| {
        let mut body = conversation.body();
        body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        body
    };
    let output =
        conversation.read(&post(&server, dialect, &conversation.path(), &thinking(&conversation)).await);
    assert_eq!(output.items[0]["content"][0]["type"], "thinking");
    conversation.continue_with(&output, &["result"]);
    let output =
        conversation.read(&post(&server, dialect, &conversation.path(), &thinking(&conversation)).await);
    assert_eq!(output.items[0]["content"][0]["type"], "text", "the open turn has begun with thinking");
}
