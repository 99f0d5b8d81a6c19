//! Scripted failures, refused requests and failed expectations.

use std::time::{Duration, Instant};

use pintle_testkit::{
    Call, Dialect, ErrorEvent, Expectation, Failure, Script, ScriptedServer, ServerOptions, Turn,
};
use serde_json::{Value, json};

use crate::client::{HttpResponse, post};
use crate::conversation::Conversation;

async fn start(script: Script) -> ScriptedServer {
    ScriptedServer::start(script, ServerOptions::new()).await.unwrap()
}

#[tokio::test]
async fn failures_come_first_once_per_conversation() {
    let turn = || {
        Turn::text("This is the answer at last.")
            .with_failure(Failure::status(429).with_retry_after("7"))
            .with_failure(Failure::cut_after_events(3))
            .with_failure(Failure::error_event(ErrorEvent::Overloaded))
    };
    for dialect in Dialect::ALL {
        let server = start(Script::new("failures").with_turn(turn())).await;
        let conversations = [Conversation::new(dialect, "one"), Conversation::new(dialect, "two")];
        // The conversations alternate, and each has its own failures.
        let mut replies = [Vec::new(), Vec::new()];
        for _ in 0..5 {
            for (conversation, replies) in conversations.iter().zip(&mut replies) {
                replies.push(post(&server, dialect, &conversation.path(), &conversation.body()).await);
            }
        }
        for (conversation, replies) in conversations.iter().zip(&replies) {
            let limited = &replies[0];
            assert_eq!(limited.status, 429, "{dialect}");
            if dialect == Dialect::Gemini {
                assert_eq!(limited.json().pointer("/error/details/0/retryDelay"), Some(&json!("7s")));
                assert_eq!(limited.header("retry-after"), None);
            } else {
                assert_eq!(limited.header("retry-after"), Some("7"), "{dialect}");
            }
            let cut = &replies[1];
            assert_eq!((cut.status, cut.complete), (200, false), "{dialect}");
            let broken = &replies[2];
            assert_eq!((broken.status, broken.complete), (200, true), "{dialect}");
            let last = broken.data().pop().unwrap();
            let output =
                last.pointer("/error/message").or_else(|| last.pointer("/message")).and_then(Value::as_str);
            assert!(output.unwrap().contains("overloaded"), "{dialect}: {last}");
            for response in &replies[3..] {
                assert_eq!(conversation.read(response).text, "This is the answer at last.", "{dialect}");
            }
        }
    }
}

#[tokio::test]
async fn cut_streams_end_within_an_event() {
    let turn = Turn::text("A text that is long enough for several pieces.")
        .with_failure(Failure::cut_after_events(4));
    let server = start(Script::new("cut").with_turn(turn)).await;
    for dialect in Dialect::ALL {
        let conversation = Conversation::new(dialect, "go");
        let cut = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        let complete = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        let text = String::from_utf8(cut.body.clone()).unwrap();
        assert_eq!(text.matches("\n\n").count(), 4, "{dialect}: {text}");
        assert!(!text.ends_with("\n\n"), "{dialect}: half an event follows");
        // The second attempt reads the first one's prefix from the cache, which every Gemini chunk reports.
        let events = |response: &HttpResponse| -> Vec<Value> {
            let mut data = response.data();
            data.truncate(4);
            data.iter_mut().for_each(|event| drop(event.as_object_mut().unwrap().remove("usageMetadata")));
            data
        };
        assert_eq!(events(&cut), events(&complete), "{dialect}: ids and texts repeat");
    }
}

#[tokio::test]
async fn unstreamed_responses_fail_as_scripted() {
    let turn = Turn::text("answer")
        .with_failure(Failure::cut_after_events(1))
        .with_failure(Failure::error_event(ErrorEvent::Overloaded));
    let server = start(Script::new("complete").with_turn(turn)).await;
    for (dialect, status) in Dialect::ALL.into_iter().zip([503, 529, 503, 503]) {
        let mut conversation = Conversation::new(dialect, "go");
        conversation.stream = false;
        let mut replies = Vec::new();
        for _ in 0..3 {
            replies.push(post(&server, dialect, &conversation.path(), &conversation.body()).await);
        }
        assert_eq!((replies[0].status, replies[0].complete), (200, false), "{dialect}");
        assert_eq!(replies[1].status, status, "{dialect}");
        assert_eq!(conversation.read(&replies[2]).text, "answer", "{dialect}");
    }
}

#[tokio::test]
async fn stalls_end_in_a_closed_connection() {
    let turn = Turn::text("answer").with_failure(Failure::silence(Duration::from_millis(20)));
    let server = start(Script::new("silent").with_turn(turn)).await;
    let conversation = Conversation::new(Dialect::ChatCompletions, "go");
    let start_time = Instant::now();
    let response = post(&server, conversation.dialect, &conversation.path(), &conversation.body()).await;
    assert_eq!((response.status, response.body.len()), (0, 0));
    assert!(start_time.elapsed() >= Duration::from_millis(20));
    assert_eq!(server.requests()[0].status, None);
}

#[tokio::test]
async fn scripted_bodies_are_sent_verbatim() {
    let script = "name = \"body\"\n[[turn]]\ntext = \"a\"\n[[turn.failure]]\nstatus = 503\nretry_after = \"1\"\nbody = \"<html>\"\n";
    let server = start(Script::parse(script).unwrap()).await;
    for dialect in Dialect::ALL {
        let conversation = Conversation::new(dialect, "go");
        let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        assert_eq!((response.status, response.body.as_slice()), (503, b"<html>".as_slice()));
        assert_eq!(response.header("retry-after"), Some("1"));
    }
}

#[tokio::test]
async fn failed_expectations_are_explained() {
    let script = || {
        Script::new("strict")
            .with_turn(Turn::new().with_call(Call::new("shell", json!({"command": "cargo test"}))))
            .with_turn(
                Turn::text("done").with_expectation(Expectation::result_contains(0, "test result: ok")),
            )
    };
    for dialect in Dialect::ALL {
        let server = start(script()).await;
        let mut conversation = Conversation::new(dialect, "go");
        let output =
            conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
        conversation.continue_with(&output, &["test result: FAILED"]);
        let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        let expected = format!(
            "script `strict`, turn 2 in dialect {dialect}, expectation 1: expected the result of call 0 to contain \
             \"test result: ok\", found \"test result: FAILED\""
        );
        assert_eq!((response.status, response.message()), (400, expected));
        assert!(!server.finished(dialect));
    }
}

#[tokio::test]
async fn requests_after_the_last_turn_fail() {
    let server = start(Script::new("short").with_turn(Turn::text("only"))).await;
    for dialect in Dialect::ALL {
        let mut conversation = Conversation::new(dialect, "go");
        let output =
            conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
        conversation.continue_with(&output, &[]);
        conversation.user("more");
        let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        let expected =
            format!("script `short` ends after turn 1 in dialect {dialect}, but the request asks for turn 2");
        assert_eq!((response.status, response.message()), (400, expected));
    }
}

#[tokio::test]
async fn error_results_can_be_expected() {
    let script = || {
        Script::new("errors")
            .with_turn(Turn::new().with_call(Call::new("f", json!({}))))
            .with_turn(Turn::text("done").with_expectation(Expectation::result_is_error(0, true)))
    };
    for dialect in Dialect::ALL {
        let server = start(script()).await;
        let mut conversation = Conversation::new(dialect, "go");
        let output =
            conversation.read(&post(&server, dialect, &conversation.path(), &conversation.body()).await);
        conversation.continue_with(&output, &["fine"]);
        let response = post(&server, dialect, &conversation.path(), &conversation.body()).await;
        let has_error_flag = matches!(dialect, Dialect::AnthropicMessages | Dialect::Gemini);
        assert_eq!(response.status, if has_error_flag { 400 } else { 200 }, "{dialect}");
    }
}

#[tokio::test]
async fn violations_are_refused_in_the_providers_shape() {
    let server = start(Script::new("shapes").with_turn(Turn::text("a"))).await;
    let shapes: [(Dialect, &[(&str, &str)]); 4] = [
        (Dialect::OpenAiResponses, &[("/error/type", "invalid_request_error"), ("/error/param", "unknown")]),
        (Dialect::AnthropicMessages, &[("/type", "error"), ("/error/type", "invalid_request_error")]),
        (Dialect::Gemini, &[("/error/status", "INVALID_ARGUMENT")]),
        (Dialect::ChatCompletions, &[("/error/type", "invalid_request_error"), ("/error/param", "unknown")]),
    ];
    for (dialect, shape) in shapes {
        let conversation = Conversation::new(dialect, "go");
        let mut body = conversation.body();
        body["unknown"] = json!(1);
        let response = post(&server, dialect, &conversation.path(), &body).await;
        assert_eq!(response.status, 400, "{dialect}");
        for (pointer, expected) in shape {
            assert_eq!(response.json().pointer(pointer), Some(&json!(expected)), "{dialect}");
        }
        assert!(response.message().contains("unknown field"), "{dialect}");
        assert_eq!(server.requests().last().unwrap().violations[0].field, "unknown");
    }
}
