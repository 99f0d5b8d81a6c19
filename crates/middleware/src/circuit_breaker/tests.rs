use pintle_llm::Client;
use pintle_llm::testing::{FakeAdapter, Harness, MODES, scripted_error, user_request};

use super::*;

const COOL_DOWN: Duration = Duration::from_secs(30);

fn breaker(threshold: u32) -> CircuitBreaker {
    CircuitBreaker::builder().with_threshold(threshold).build().unwrap()
}

fn failing(kinds: impl IntoIterator<Item = ErrorKind>) -> FakeAdapter {
    kinds.into_iter().fold(FakeAdapter::new("p"), |fake, kind| fake.failure(scripted_error(kind)))
}

#[tokio::test(start_paused = true)]
async fn it_opens_after_consecutive_transient_failures() {
    use ErrorKind as K;
    for mode in MODES {
        let breaker = breaker(4);
        let harness =
            Harness::new(failing([K::Server, K::Network, K::RequestTimeout, K::RateLimit]), breaker.clone());
        for _ in 0..4 {
            assert_eq!(breaker.state("p"), CircuitState::Closed);
            harness.call(user_request("x"), mode).await.unwrap_err();
        }
        assert_eq!(breaker.state("p"), CircuitState::Open);
        tokio::time::advance(COOL_DOWN / 3).await;
        let error = harness.call(user_request("x"), mode).await.unwrap_err();
        assert_eq!((error.kind(), error.error_code()), (K::Server, Some(CircuitBreaker::OPEN)));
        assert_eq!((error.provider(), error.retry_after()), (Some("p"), Some(COOL_DOWN * 2 / 3)));
        assert_eq!(error.message(), "the circuit is open for 20s after 4 consecutive failures");
        assert_eq!(harness.calls(), 4, "refused before sending");
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_are_ignored_and_a_response_resets_the_count() {
    use ErrorKind as K;
    let permanent = failing([K::Server, K::InvalidRequest, K::Authentication, K::ContextLength, K::Abort]);
    let adapter = permanent
        .answer("hi")
        .failure(scripted_error(K::Server))
        .answer("hi")
        .failure(scripted_error(K::Server));
    let breaker = breaker(2);
    let harness = Harness::new(adapter, breaker.clone());
    for _ in 0..9 {
        let _ = harness.call(user_request("x"), Mode::Stream).await;
        assert_eq!(breaker.state("p"), CircuitState::Closed);
    }
    assert_eq!(harness.calls(), 9);
}

#[tokio::test(start_paused = true)]
async fn broken_streams_count_and_dropped_streams_do_not() {
    let broken = || scripted_error(ErrorKind::Stream);
    let adapter = FakeAdapter::new("p").cut("a", broken()).answer("dropped").cut("b", broken());
    let breaker = breaker(2);
    let harness = Harness::new(adapter, breaker.clone());
    harness.call(user_request("x"), Mode::Stream).await.unwrap_err();
    harness.read_and_drop(user_request("x"), 2).await;
    assert_eq!(breaker.state("p"), CircuitState::Closed);
    harness.call(user_request("x"), Mode::Stream).await.unwrap_err();
    assert_eq!(breaker.state("p"), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_successful_probe_closes_and_a_failed_probe_reopens() {
    for mode in MODES {
        let adapter = failing([ErrorKind::Server, ErrorKind::Server]).answer("hi").answer("hi");
        let breaker = breaker(1);
        let harness = Harness::new(adapter, breaker.clone());
        harness.call(user_request("x"), mode).await.unwrap_err();
        tokio::time::advance(COOL_DOWN).await;
        assert_eq!(breaker.state("p"), CircuitState::HalfOpen);
        harness.call(user_request("x"), mode).await.unwrap_err();
        assert_eq!((breaker.state("p"), harness.calls()), (CircuitState::Open, 2));
        tokio::time::advance(COOL_DOWN).await;
        for _ in 0..2 {
            harness.call(user_request("x"), mode).await.unwrap();
            assert_eq!(breaker.state("p"), CircuitState::Closed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_a_first_event_is_enough() {
    let adapter =
        failing([ErrorKind::Server; 3]).answer("hi").answer("hi").failure(scripted_error(ErrorKind::Server));
    let breaker = breaker(3);
    let harness = Harness::new(adapter, breaker.clone());
    for _ in 0..3 {
        harness.call(user_request("x"), Mode::Stream).await.unwrap_err();
    }
    tokio::time::advance(COOL_DOWN).await;
    let unread = harness.client.stream(user_request("x")).await.unwrap();
    let error = harness.call(user_request("x"), Mode::Complete).await.unwrap_err();
    assert_eq!((error.error_code(), error.retry_after()), (Some(CircuitBreaker::OPEN), None));
    assert!(error.is_retryable());
    drop(unread);
    assert_eq!(breaker.state("p"), CircuitState::HalfOpen, "inconclusive: the next call is the probe");
    harness.read_and_drop(user_request("x"), 1).await;
    assert_eq!(breaker.state("p"), CircuitState::Closed);
    harness.call(user_request("x"), Mode::Complete).await.unwrap_err();
    assert_eq!(
        breaker.state("p"),
        CircuitState::Open,
        "no call has completed since, so one failure is enough"
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_without_an_outcome_is_replaced() {
    let breaker = breaker(1);
    let harness = Harness::new(failing([ErrorKind::Server]).answer("lost").answer("hi"), breaker.clone());
    harness.call(user_request("x"), Mode::Complete).await.unwrap_err();
    tokio::time::advance(COOL_DOWN).await;
    let unread = harness.client.stream(user_request("x")).await.unwrap();
    tokio::time::advance(COOL_DOWN).await;
    harness.call(user_request("x"), Mode::Complete).await.unwrap();
    drop(unread);
    assert_eq!(breaker.state("p"), CircuitState::Closed, "the lost probe is ignored");
}

#[tokio::test(start_paused = true)]
async fn an_http_error_counts_as_a_response() {
    let refused = scripted_error(ErrorKind::InvalidRequest).with_status(400);
    let adapter =
        failing([ErrorKind::Server]).failure(scripted_error(ErrorKind::Configuration)).failure(refused);
    let breaker = breaker(1);
    let harness = Harness::new(adapter, breaker.clone());
    harness.call(user_request("x"), Mode::Complete).await.unwrap_err();
    tokio::time::advance(COOL_DOWN).await;
    for after in [CircuitState::HalfOpen, CircuitState::Closed] {
        harness.call(user_request("x"), Mode::Complete).await.unwrap_err();
        assert_eq!(breaker.state("p"), after);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_from_before_it_opened_are_ignored() {
    let adapter = FakeAdapter::new("p").answer("early").failure(scripted_error(ErrorKind::Server));
    let breaker = breaker(1);
    let harness = Harness::new(adapter, breaker.clone());
    let mut early = harness.client.stream(user_request("x")).await.unwrap();
    harness.call(user_request("x"), Mode::Complete).await.unwrap_err();
    while futures_util::StreamExt::next(&mut early).await.is_some() {}
    assert_eq!(breaker.state("p"), CircuitState::Open);
}

#[tokio::test]
async fn each_provider_has_its_own_circuit() {
    let breaker = breaker(1);
    let builder = Client::builder().provider(failing([ErrorKind::Server])).default_provider("p");
    let builder = builder.provider(FakeAdapter::new("q").answer("hi"));
    let client = builder.middleware(breaker.clone()).build().unwrap();
    client.complete(user_request("x")).await.unwrap_err();
    client.complete(user_request("x").with_provider("q")).await.unwrap();
    assert_eq!((breaker.state("p"), breaker.state("q")), (CircuitState::Open, CircuitState::Closed));
}

#[test]
fn limits_outside_their_range_are_refused() {
    let builder = CircuitBreaker::builder();
    let day = Duration::from_secs(24 * 60 * 60);
    for bad in
        [builder.with_threshold(0), builder.with_cool_down(Duration::ZERO), builder.with_cool_down(day * 2)]
    {
        assert_eq!(bad.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
