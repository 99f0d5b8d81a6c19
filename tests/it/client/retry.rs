//! Section 8.8, trying again: the retry of single calls, over real failures.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_llm::{Error, ErrorKind, Response, RetryPolicy, StreamEvent, retry};
use pintle_testkit::{Dialect, Failure, Turn};

use super::bench::Bench;

per_provider!(
    a_rate_limit_is_tried_again,
    the_listener_is_told_of_each_attempt_and_its_wait,
    no_retries_means_one_attempt,
    what_cannot_help_is_not_tried,
    a_wait_beyond_the_limit_is_not_waited,
    a_stream_that_has_begun_is_not_tried_again,
);

fn policy() -> RetryPolicy {
    RetryPolicy::default().with_base_delay(Duration::from_millis(1))
}

async fn bench(dialect: Dialect, failures: Vec<Failure>) -> Bench {
    let turn = Turn::text("An answer at last, with more words than one event takes.");
    Bench::saying(dialect, failures.into_iter().fold(turn, Turn::with_failure)).await
}

async fn complete(bench: &Bench, policy: &RetryPolicy) -> Result<Response, Error> {
    retry(policy, || bench.client.complete(bench.question())).await
}

async fn a_rate_limit_is_tried_again(dialect: Dialect) {
    let busy = || Failure::status(429).with_retry_after("0");
    let whole = bench(dialect, vec![busy(), Failure::status(429)]).await;
    assert!(complete(&whole, &policy()).await.unwrap().text().starts_with("An answer at last"));
    let statuses: Vec<_> = whole.server.requests().iter().map(|request| request.status).collect();
    assert_eq!(statuses, [Some(429), Some(429), Some(200)]);
    let bodies: Vec<_> = whole.server.requests().into_iter().map(|request| request.raw_body).collect();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "the same is sent again");

    let streamed = bench(dialect, vec![busy(), Failure::silence(Duration::ZERO)]).await;
    let stream = retry(&policy(), || streamed.client.stream(streamed.question())).await.unwrap();
    let last = stream.map(Result::unwrap).collect::<Vec<_>>().await.pop();
    assert!(matches!(last, Some(StreamEvent::Finish { .. })), "{last:?}");
    assert_eq!(streamed.server.requests().len(), 3);
}

async fn the_listener_is_told_of_each_attempt_and_its_wait(dialect: Dialect) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
    let policy = policy().with_jitter(false).with_on_retry(move |error, attempt, delay| {
        log.lock().unwrap().push((error.kind(), attempt, delay));
    });
    let asked = Duration::from_millis(3);
    let bench =
        bench(dialect, vec![Failure::status(503), Failure::status(429).with_retry_after("0.003")]).await;
    complete(&bench, &policy).await.unwrap();
    let expected = [(ErrorKind::Server, 0, Duration::from_millis(1)), (ErrorKind::RateLimit, 1, asked)];
    assert_eq!(*told.lock().unwrap(), expected);
}

async fn no_retries_means_one_attempt(dialect: Dialect) {
    let bench = bench(dialect, vec![Failure::status(429)]).await;
    let error = complete(&bench, &policy().with_max_retries(0)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::RateLimit);
    assert_eq!(bench.server.requests().len(), 1);
}

async fn what_cannot_help_is_not_tried(dialect: Dialect) {
    let rows = [(401, ErrorKind::Authentication), (403, ErrorKind::AccessDenied), (404, ErrorKind::NotFound)];
    let bench = bench(dialect, rows.map(|(status, _)| Failure::status(status)).to_vec()).await;
    for (attempt, (_, kind)) in rows.into_iter().enumerate() {
        assert_eq!(complete(&bench, &policy()).await.unwrap_err().kind(), kind);
        assert_eq!(bench.server.requests().len(), attempt + 1);
    }
}

async fn a_wait_beyond_the_limit_is_not_waited(dialect: Dialect) {
    let bench = bench(dialect, vec![Failure::status(429).with_retry_after("61")]).await;
    let error = complete(&bench, &policy()).await.unwrap_err();
    assert_eq!(error.retry_after(), Some(Duration::from_secs(61)));
    assert_eq!(bench.server.requests().len(), 1);
}

async fn a_stream_that_has_begun_is_not_tried_again(dialect: Dialect) {
    let bench = bench(dialect, vec![Failure::cut_after_events(7)]).await;
    let stream = retry(&policy(), || bench.client.stream(bench.question())).await.unwrap();
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
    assert_eq!(bench.server.requests().len(), 1);
}
