//! Section 8.8: classification of a provider's errors, before and within a response.

mod documented;

use std::time::Duration;

use pintle_llm::{ErrorKind, StreamEvent};
use pintle_testkit::{Dialect, ErrorEvent, Failure, FailureKind, Turn};
use serde_json::json;

use super::harness::{ClientHarness, types};

per_provider!(
    statuses_map_to_the_documented_kinds,
    messages_refine_ambiguous_statuses,
    the_error_has_the_retry_after_delay,
    a_truncated_response_is_an_error,
    an_error_inside_a_stream_is_classified,
    a_closed_connection_is_a_network_error,
);

/// Returns a turn with each failure twice: for a complete request and for a stream.
fn failing(failures: impl IntoIterator<Item = Failure>) -> Turn {
    let twice = failures.into_iter().flat_map(|failure| [failure.clone(), failure]);
    twice.fold(Turn::text("At last, an answer that is long enough to be cut."), Turn::with_failure)
}

async fn statuses_map_to_the_documented_kinds(dialect: Dialect) {
    let rows = [
        (400, ErrorKind::InvalidRequest, false),
        (401, ErrorKind::Authentication, false),
        (403, ErrorKind::AccessDenied, false),
        (404, ErrorKind::NotFound, false),
        (408, ErrorKind::RequestTimeout, false),
        (413, ErrorKind::ContextLength, false),
        (422, ErrorKind::InvalidRequest, false),
        (429, ErrorKind::RateLimit, true),
        (500, ErrorKind::Server, true),
        (501, ErrorKind::Server, true),
        (502, ErrorKind::Server, true),
        (503, ErrorKind::Server, true),
        (504, ErrorKind::Server, true),
        (505, ErrorKind::Server, true),
        (529, ErrorKind::Server, true),
        (599, ErrorKind::Server, true),
    ];
    let harness =
        ClientHarness::responding(dialect, failing(rows.map(|(status, _, _)| Failure::status(status)))).await;
    for (status, kind, retryable) in rows {
        let error = harness.error(harness.question()).await;
        assert_eq!((error.status(), error.kind()), (Some(status), kind));
        assert_eq!(error.is_retryable(), retryable, "{error:?}");
        assert_eq!(error.provider(), Some(dialect.name()));
        assert_eq!(error.message(), format!("scripted failure with status {status}"));
        assert!(error.request_id().is_some_and(|id| id.starts_with("req_")), "{error:?}");
        assert!(error.raw().is_some_and(|raw| raw["error"].is_object()), "{error:?}");
    }
    assert!(harness.complete(harness.question()).await.text().starts_with("At last"));
}

/// Returns an error of status 400 with this message, in the provider's format.
fn complaint(dialect: Dialect, words: &str) -> Failure {
    let body = match dialect {
        Dialect::OpenAiResponses | Dialect::ChatCompletions => {
            json!({"error": {"message": words, "type": "invalid_request_error", "param": null, "code": null}})
        }
        Dialect::AnthropicMessages => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": words}})
        }
        Dialect::Gemini => json!({"error": {"code": 400, "message": words, "status": "INVALID_ARGUMENT"}}),
    };
    FailureKind::Status { status: 400, retry_after: None, body: Some(body.to_string()) }.into()
}

async fn messages_refine_ambiguous_statuses(dialect: Dialect) {
    let rows = [
        ("The model 'x' was not found", ErrorKind::NotFound),
        ("The model does not exist or you lack access", ErrorKind::NotFound),
        ("Unauthorized: see your account page", ErrorKind::Authentication),
        ("You sent an invalid key", ErrorKind::Authentication),
        ("This exceeds the model's context length of 8192", ErrorKind::ContextLength),
        ("There are too many tokens in the prompt", ErrorKind::ContextLength),
        ("The content filter was triggered", ErrorKind::ContentFilter),
        ("Blocked for safety reasons", ErrorKind::ContentFilter),
        ("The field `temperature` is out of range", ErrorKind::InvalidRequest),
    ];
    let harness =
        ClientHarness::responding(dialect, failing(rows.map(|(words, _)| complaint(dialect, words)))).await;
    for (words, kind) in rows {
        let error = harness.error(harness.question()).await;
        assert_eq!((error.message(), error.kind(), error.status()), (words, kind, Some(400)));
        assert!(!error.is_retryable());
    }
}

async fn the_error_has_the_retry_after_delay(dialect: Dialect) {
    let asked = |status: u16, wait: &str| Failure::status(status).with_retry_after(wait);
    let distant = "Fri, 31 Dec 2100 23:59:59 GMT";
    let failures =
        [asked(429, "7"), asked(503, "0.5"), asked(429, distant), Failure::status(429), asked(401, "7")];
    let harness = ClientHarness::responding(dialect, failing(failures)).await;
    let mut waits = Vec::new();
    for _ in 0..5 {
        waits.push(harness.error(harness.question()).await.retry_after());
    }
    let day = Duration::from_secs(24 * 60 * 60);
    assert_eq!(waits[..2], [Some(Duration::from_secs(7)), Some(Duration::from_millis(500))]);
    assert!(waits[2].is_some_and(|wait| wait > day), "{waits:?}");
    assert_eq!(waits[3..], [None, None], "none was asked for; none helps");
}

async fn a_truncated_response_is_an_error(dialect: Dialect) {
    let turn = Turn::text("A long text that will be cut, somewhere in the middle of one of its events.")
        .with_failure(Failure::cut_after_events(0))
        .with_failure(Failure::cut_after_events(5))
        .with_failure(Failure::cut_after_events(1000))
        .with_failure(Failure::cut_after_events(0));
    let harness = ClientHarness::responding(dialect, turn).await;
    for whole_events in [0, 5, 1000] {
        let (events, error) = harness.events_until_error(harness.question()).await;
        let error = error.expect("a cut stream is no answer");
        assert_eq!(error.kind(), ErrorKind::Stream, "after {whole_events} events: {error:?}");
        assert!(error.is_retryable());
        assert_eq!(error.provider(), Some(dialect.name()));
        assert!(!types(&events).contains(&"FINISH".to_owned()));
        assert_eq!(events.is_empty(), whole_events == 0, "what came before the cut was given");
    }
    let error = harness.client.complete(harness.question()).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Stream, true));
    assert!(harness.streamed(harness.question()).await.text().starts_with("A long text"));
}

async fn an_error_inside_a_stream_is_classified(dialect: Dialect) {
    let rows = [
        (ErrorEvent::Overloaded, ErrorKind::Server),
        (ErrorEvent::RateLimit, ErrorKind::RateLimit),
        (ErrorEvent::ServerError, ErrorKind::Server),
    ];
    let turn = rows.iter().fold(Turn::text("A text of which the half will be said."), |turn, (event, _)| {
        turn.with_failure(Failure::error_event(*event))
    });
    let harness = ClientHarness::responding(dialect, turn).await;
    for (event, kind) in rows {
        let (events, error) = harness.events_until_error(harness.question()).await;
        let error = error.expect("the error of the stream");
        assert_eq!((error.kind(), error.is_retryable()), (kind, true), "{event:?}: {error:?}");
        assert_eq!(error.provider(), Some(dialect.name()));
        assert!(events.iter().any(|event| matches!(event, StreamEvent::TextDelta { .. })));
        assert!(!types(&events).contains(&"FINISH".to_owned()));
    }
}

async fn a_closed_connection_is_a_network_error(dialect: Dialect) {
    let harness =
        ClientHarness::responding(dialect, failing([Failure::silence(Duration::from_millis(1))])).await;
    let error = harness.error(harness.question()).await;
    assert_eq!((error.kind(), error.status(), error.is_retryable()), (ErrorKind::Network, None, true));
    assert!(std::error::Error::source(&error).is_some());

    let (dialect, client, question) = (harness.dialect, harness.client.clone(), harness.question());
    harness.server.shutdown().await;
    let error = client.complete(question).await.unwrap_err();
    assert_eq!((error.kind(), error.provider()), (ErrorKind::Network, Some(dialect.name())));
    assert!(error.is_retryable());
}
