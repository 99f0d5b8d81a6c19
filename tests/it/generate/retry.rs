//! Section 8.8: retries of single steps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use pintle_llm::{ClientTool, ErrorKind, StreamEvent, generate, stream};
use pintle_testkit::{Call, Dialect, ErrorEvent, Failure, Turn};
use serde_json::json;

use super::{GenerateHarness, Mode, definition};
use crate::harness::in_each_dialect;

in_each_dialect!(
    a_rate_limit_is_retried_silently,
    a_retry_repeats_one_step,
    no_retries_means_one_attempt,
    permanent_errors_are_not_retried,
    a_stream_with_text_is_not_retried,
    a_stream_without_text_is_retried,
);

async fn a_rate_limit_is_retried_silently(dialect: Dialect) {
    for mode in Mode::BOTH {
        let busy = Turn::text("At last.")
            .with_failure(Failure::status(429).with_retry_after("0"))
            .with_failure(Failure::status(429));
        let harness = GenerateHarness::new(dialect, [busy]).await;
        assert_eq!(mode.run(harness.options()).await.unwrap().text(), "At last.");
        assert_eq!(harness.statuses(), [Some(429), Some(429), Some(200)]);
    }
}

async fn a_retry_repeats_one_step(dialect: Dialect) {
    for mode in Mode::BOTH {
        let runs = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&runs);
        let tool = ClientTool::active(definition(), move |_, _| {
            counted.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, String>("a library") }
        });
        // Each step fails twice, which is the limit per step.
        let failing = |turn: Turn| turn.with_failure(Failure::status(503)).with_failure(Failure::status(503));
        let asking = Turn::new().with_call(Call::new("read_file", json!({"file_path": "a.rs"})));
        let harness =
            GenerateHarness::new(dialect, [failing(asking), failing(Turn::text("A library."))]).await;
        let result = mode.run(harness.options().with_tool(tool)).await.unwrap();
        assert_eq!((result.text().as_str(), result.steps.len()), ("A library.", 2));
        let expected = [Some(503), Some(503), Some(200), Some(503), Some(503), Some(200)];
        assert_eq!(harness.statuses(), expected);
        let bodies: Vec<_> = harness.requests().into_iter().map(|request| request.raw_body).collect();
        assert!(bodies[3..].iter().all(|body| *body == bodies[3]), "the second step alone is sent again");
        assert_eq!(runs.load(Ordering::SeqCst), 1);
    }
}

async fn no_retries_means_one_attempt(dialect: Dialect) {
    for mode in Mode::BOTH {
        let harness =
            GenerateHarness::new(dialect, [Turn::text("Never.").with_failure(Failure::status(429))]).await;
        let error = mode.run(harness.options().with_max_retries(0)).await.unwrap_err();
        assert_eq!((error.kind(), harness.statuses()), (ErrorKind::RateLimit, vec![Some(429)]));
    }
}

async fn permanent_errors_are_not_retried(dialect: Dialect) {
    for mode in Mode::BOTH {
        for (status, kind) in
            [(401, ErrorKind::Authentication), (403, ErrorKind::AccessDenied), (404, ErrorKind::NotFound)]
        {
            let failing = Turn::text("Never.").with_failure(Failure::status(status));
            let harness = GenerateHarness::new(dialect, [failing]).await;
            let error = mode.run(harness.options()).await.unwrap_err();
            assert_eq!((error.kind(), harness.statuses()), (kind, vec![Some(status)]));
        }
    }
}

async fn a_stream_with_text_is_not_retried(dialect: Dialect) {
    let long = Turn::text("An answer at last, with more words than one event takes.");
    let harness =
        GenerateHarness::new(dialect, [long.clone().with_failure(Failure::cut_after_events(7))]).await;
    let mut answer = stream(harness.options()).unwrap();
    let mut text = String::new();
    let error = loop {
        match answer.next().await.expect("an error") {
            Ok(StreamEvent::TextDelta { delta, .. }) => text.push_str(&delta),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(answer.next().await.is_none());
    assert_eq!((error.kind(), harness.statuses().len()), (ErrorKind::Stream, 1));
    assert!(!text.is_empty() && "An answer at last, with more words".starts_with(&text[..5]), "{text}");
    assert_eq!(answer.partial_response().unwrap().text(), text, "what was shown is not lost");
    // A complete request has shown no text, so it is retried.
    let harness = GenerateHarness::new(dialect, [long.with_failure(Failure::status(502))]).await;
    assert!(generate(harness.options()).await.unwrap().text().starts_with("An answer"));
}

async fn a_stream_without_text_is_retried(dialect: Dialect) {
    // The first events of some providers only announce a response.
    let begins = matches!(dialect, Dialect::OpenAiResponses | Dialect::AnthropicMessages);
    for events in 0..=usize::from(begins) {
        let cut = Turn::text("At last.").with_failure(Failure::cut_after_events(events));
        let harness = GenerateHarness::new(dialect, [cut]).await;
        assert_eq!(Mode::Streamed.run(harness.options()).await.unwrap().text(), "At last.");
        assert_eq!(harness.statuses().len(), 2, "after {events} events");
    }
    let overloaded = Turn::text("Half of it is shown, and then no more.")
        .with_failure(Failure::error_event(ErrorEvent::Overloaded));
    let harness = GenerateHarness::new(dialect, [overloaded]).await;
    let error = Mode::Streamed.run(harness.options()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable(), harness.statuses().len()), (ErrorKind::Server, true, 1));
}
