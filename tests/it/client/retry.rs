//! Section 8.8: retries of single calls after real failures.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use pintle_llm::{Error, ErrorKind, Response, RetryPolicy, StreamEvent, retry};
use pintle_testkit::{Dialect, Failure, Turn};

use super::harness::ClientHarness;

per_provider!(
    rate_limits_are_retried,
    on_retry_sees_each_attempt_and_delay,
    delays_double_with_each_attempt,
    no_retries_means_one_attempt,
    permanent_errors_are_not_retried,
    delays_beyond_the_limit_are_not_retried,
    started_streams_are_not_retried,
);

fn policy() -> RetryPolicy {
    RetryPolicy::default().with_base_delay(Duration::from_millis(1))
}

async fn harness(dialect: Dialect, failures: Vec<Failure>) -> ClientHarness {
    let turn = Turn::text("An answer at last, with more words than one event takes.");
    ClientHarness::responding(dialect, failures.into_iter().fold(turn, Turn::with_failure)).await
}

async fn complete(harness: &ClientHarness, policy: &RetryPolicy) -> Result<Response, Error> {
    retry(policy, || harness.client.complete(harness.question())).await
}

async fn rate_limits_are_retried(dialect: Dialect) {
    let busy = || Failure::status(429).with_retry_after("0");
    let whole = harness(dialect, vec![busy(), Failure::status(429)]).await;
    assert!(complete(&whole, &policy()).await.unwrap().text().starts_with("An answer at last"));
    let statuses: Vec<_> = whole.server.requests().iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(429), Some(429), Some(200)]);
    let bodies: Vec<_> = whole.server.requests().into_iter().map(|request| request.raw_body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same is sent again");

    let streamed = harness(dialect, vec![busy(), Failure::silence(Duration::ZERO)]).await;
    let stream = retry(&policy(), || streamed.client.stream(streamed.question())).await.unwrap();
    let last = stream.map(Result::unwrap).collect::<Vec<_>>().await.pop();
    assert!(matches!(last, Some(StreamEvent::Finish { .. })), "{last:?}");
    assert_eq!(streamed.server.requests().len(), 3);
}

async fn on_retry_sees_each_attempt_and_delay(dialect: Dialect) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let policy = policy().with_jitter(false).with_on_retry(move |error, attempt, delay| {
        log.lock().unwrap().push((error.kind(), attempt, delay));
    });
    let asked = Duration::from_millis(3);
    let harness =
        harness(dialect, vec![Failure::status(503), Failure::status(429).with_retry_after("0.003")]).await;
    complete(&harness, &policy).await.unwrap();
    let expected = [(ErrorKind::Server, 0, Duration::from_millis(1)), (ErrorKind::RateLimit, 1, asked)];
    assert_eq!(*told.lock().unwrap(), expected);
}

async fn delays_double_with_each_attempt(dialect: Dialect) {
    for jitter in [false, true] {
        let delays = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&delays);
        let policy = policy().with_max_retries(4).with_jitter(jitter);
        let policy = policy.with_on_retry(move |_, _, delay| log.lock().unwrap().push(delay));
        let failures = [500, 503, 502, 529].map(Failure::status).to_vec();
        let harness = harness(dialect, failures).await;
        let started = Instant::now();
        complete(&harness, &policy).await.unwrap();
        let delays = delays.lock().unwrap().clone();
        assert!(started.elapsed() >= delays.iter().sum(), "each delay is waited for: {delays:?}");
        assert_eq!((delays.len(), harness.server.requests().len()), (4, 5));
        for (delay, base) in delays.iter().zip([1.0, 2.0, 4.0, 8.0]) {
            let factor = delay.as_secs_f64() * 1_000.0 / base;
            let expected = if jitter { 0.5..=1.5 } else { 1.0..=1.0 };
            assert!(expected.contains(&factor), "{factor} of {base} ms, jitter: {jitter}");
        }
    }
}

async fn no_retries_means_one_attempt(dialect: Dialect) {
    let harness = harness(dialect, vec![Failure::status(429)]).await;
    let error = complete(&harness, &policy().with_max_retries(0)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimit);
    assert_eq!(harness.server.requests().len(), 1);
}

async fn permanent_errors_are_not_retried(dialect: Dialect) {
    let rows = [(401, ErrorKind::Authentication), (403, ErrorKind::AccessDenied), (404, ErrorKind::NotFound)];
    let harness = harness(dialect, rows.map(|(status, _)| Failure::status(status)).to_vec()).await;
    for (attempt, (_, kind)) in rows.into_iter().enumerate() {
        assert_eq!(complete(&harness, &policy()).await.unwrap_err().kind(), kind);
        assert_eq!(harness.server.requests().len(), attempt + 1);
    }
}

async fn delays_beyond_the_limit_are_not_retried(dialect: Dialect) {
    let harness = harness(dialect, vec![Failure::status(429).with_retry_after("61")]).await;
    let error = complete(&harness, &policy()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(61)));
    assert_eq!(harness.server.requests().len(), 1);
}

async fn started_streams_are_not_retried(dialect: Dialect) {
    let harness = harness(dialect, vec![Failure::cut_after_events(7)]).await;
    let stream = retry(&policy(), || harness.client.stream(harness.question())).await.unwrap();
    let items: Vec<Result<StreamEvent, Error>> = stream.collect().await;
    let (last, before) = items.split_last().expect("events");
    let error = last.as_ref().unwrap_err();
    assert_eq!(
        (error.kind(), error.is_retryable()),
        (ErrorKind::Stream, true),
        "it could be, but by the caller"
    );
    let delivered = |item: &Result<StreamEvent, Error>| matches!(item, Ok(StreamEvent::TextDelta { .. }));
    assert!(before.iter().any(delivered), "{before:?}");
    assert_eq!(harness.server.requests().len(), 1);
}
