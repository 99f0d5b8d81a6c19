//! Section 8.4: cancellation and time limits.

use std::time::Duration;

use pintle_llm::{Error, ErrorKind, GenerateOptions, StreamEvent, TimeoutConfig, generate, stream};
use pintle_testkit::{Call, Dialect, Failure, Turn};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{GenerateHarness, read_file};
use crate::harness::in_each_dialect;

in_each_dialect!(
    the_abort_signal_ends_a_complete_request,
    the_abort_signal_ends_a_stream,
    the_total_limit_ends_everything,
    the_step_limit_applies_to_each_call,
);

/// Longer than any test.
const FOREVER: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

/// Returns a response that starts, and continues after a minute.
fn slow() -> Turn {
    Turn::text("One word, and another one after a long while.").with_pause_ms(60_000)
}

fn silent() -> Turn {
    Turn::text("Never.").with_failure(Failure::silence(FOREVER))
}

async fn the_abort_signal_ends_a_complete_request(dialect: Dialect) {
    let harness = GenerateHarness::new(dialect, [silent()]).await;
    let signal = CancellationToken::new();
    let begun = Instant::now();
    let asking = generate(harness.options().with_abort_signal(signal.clone()));
    let (outcome, ()) = tokio::join!(asking, async {
        while harness.server.requests().is_empty() {
            tokio::task::yield_now().await;
        }
        signal.cancel();
    });
    assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Abort);
    assert!(begun.elapsed() < FOREVER / 2);
    let error = generate(harness.options().with_abort_signal(signal)).await.unwrap_err();
    assert_eq!((error.kind(), harness.statuses().len()), (ErrorKind::Abort, 1), "nothing is sent any more");
}

async fn the_abort_signal_ends_a_stream(dialect: Dialect) {
    let text = "word ".repeat(100);
    let harness = GenerateHarness::new(dialect, [Turn::text(text.clone()).with_pause_ms(100)]).await;
    let signal = CancellationToken::new();
    let mut answer = stream(harness.options().with_abort_signal(signal.clone())).unwrap();
    let mut last = None;
    while let Some(item) = answer.next().await {
        if let Ok(StreamEvent::TextDelta { .. }) = item {
            signal.cancel();
        }
        last = Some(item);
    }
    assert_eq!(last.unwrap().unwrap_err().kind(), ErrorKind::Abort);
    let came = answer.partial_response().unwrap().text();
    assert!(!came.is_empty() && came.len() < text.len(), "{came}");
}

/// Expects an end because of the limit, not because the server has stopped.
async fn ends_in_time(options: GenerateOptions, streamed: bool) -> Error {
    let begun = Instant::now();
    let outcome = if streamed { stream(options).unwrap().result().await } else { generate(options).await };
    assert!(begun.elapsed() < FOREVER / 2);
    outcome.unwrap_err()
}

async fn the_total_limit_ends_everything(dialect: Dialect) {
    let call = || Turn::new().with_call(Call::new("read_file", json!({"file_path": "a.rs"})));
    for (streamed, turns) in [
        (false, vec![silent()]),
        (true, vec![slow()]),
        // The limit applies to the sum of all steps.
        (false, vec![call(), silent()]),
        (true, vec![call(), slow()]),
    ] {
        let steps = turns.len();
        let harness = GenerateHarness::new(dialect, turns).await;
        let error =
            ends_in_time(harness.options().with_tool(read_file()).with_timeout(SHORT), streamed).await;
        assert_eq!(error.kind(), ErrorKind::RequestTimeout);
        assert_eq!(error.message(), "the generation exceeded its limit of 300ms");
        assert_eq!(harness.server.requests().len(), steps);
    }
}

async fn the_step_limit_applies_to_each_call(dialect: Dialect) {
    let limit = TimeoutConfig::default().with_per_step(SHORT);
    for (streamed, turn) in [(false, silent()), (true, silent()), (true, slow())] {
        let harness = GenerateHarness::new(dialect, [turn]).await;
        let error = ends_in_time(harness.options().with_timeout(limit), streamed).await;
        assert_eq!(error.kind(), ErrorKind::RequestTimeout);
        assert_eq!(error.message(), "a model call exceeded its limit of 300ms");
        assert_eq!(harness.server.requests().len(), 1, "a time-out is not tried again");
    }
}
