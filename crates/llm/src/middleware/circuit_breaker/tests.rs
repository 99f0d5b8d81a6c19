use super::*;
use crate::client::Client;
use crate::middleware::bench::{Bench, MODES, ask, failure};
use crate::testing::FakeAdapter;

const COOL_DOWN: Duration = Duration::from_secs(30);

fn breaker(threshold: u32) -> CircuitBreaker {
    CircuitBreaker::builder().threshold(threshold).build().unwrap()
}

fn failing(kinds: impl IntoIterator<Item = ErrorKind>) -> FakeAdapter {
    kinds.into_iter().fold(FakeAdapter::new("p"), |fake, kind| fake.failure(failure(kind)))
}

#[tokio::test(start_paused = true)]
async fn it_opens_after_so_many_transient_failures_in_a_row() {
    use ErrorKind as K;
    for mode in MODES {
        let breaker = breaker(4);
        let bench =
            Bench::new(failing([K::Server, K::Network, K::RequestTimeout, K::RateLimit]), breaker.clone());
        for _ in 0..4 {
            assert_eq!(breaker.state("p"), CircuitState::Closed);
            bench.call(ask("x"), mode).await.unwrap_err();
        }
        assert_eq!(breaker.state("p"), CircuitState::Open);
        tokio::time::advance(COOL_DOWN / 3).await;
        let error = bench.call(ask("x"), mode).await.unwrap_err();
        assert_eq!((error.kind(), error.error_code()), (K::Server, Some(CircuitBreaker::OPEN)));
        assert_eq!((error.provider(), error.retry_after()), (Some("p"), Some(COOL_DOWN * 2 / 3)));
        assert_eq!(error.message(), "no call is made for 20s, since the last 4 that counted failed");
        assert_eq!(bench.calls(), 4, "refused before sending");
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_errors_do_not_count_and_an_answer_starts_anew() {
    use ErrorKind as K;
    let permanent = failing([K::Server, K::InvalidRequest, K::Authentication, K::ContextLength, K::Abort]);
    let adapter = permanent.answer("hi").failure(failure(K::Server)).answer("hi").failure(failure(K::Server));
    let breaker = breaker(2);
    let bench = Bench::new(adapter, breaker.clone());
    for _ in 0..9 {
        let _ = bench.call(ask("x"), Mode::Stream).await;
        assert_eq!(breaker.state("p"), CircuitState::Closed);
    }
    assert_eq!(bench.calls(), 9);
}

#[tokio::test(start_paused = true)]
async fn streams_that_break_count_and_streams_that_are_dropped_do_not() {
    let broken = || failure(ErrorKind::Stream);
    let adapter = FakeAdapter::new("p").cut("a", broken()).answer("dropped").cut("b", broken());
    let breaker = breaker(2);
    let bench = Bench::new(adapter, breaker.clone());
    bench.call(ask("x"), Mode::Stream).await.unwrap_err();
    bench.read_and_drop(ask("x"), 2).await;
    assert_eq!(breaker.state("p"), CircuitState::Closed);
    bench.call(ask("x"), Mode::Stream).await.unwrap_err();
    assert_eq!(breaker.state("p"), CircuitState::Open);
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_succeeds_closes_and_one_that_fails_opens_anew() {
    for mode in MODES {
        let adapter = failing([ErrorKind::Server, ErrorKind::Server]).answer("hi").answer("hi");
        let breaker = breaker(1);
        let bench = Bench::new(adapter, breaker.clone());
        bench.call(ask("x"), mode).await.unwrap_err();
        tokio::time::advance(COOL_DOWN).await;
        assert_eq!(breaker.state("p"), CircuitState::HalfOpen);
        bench.call(ask("x"), mode).await.unwrap_err();
        assert_eq!((breaker.state("p"), bench.calls()), (CircuitState::Open, 2));
        tokio::time::advance(COOL_DOWN).await;
        for _ in 0..2 {
            bench.call(ask("x"), mode).await.unwrap();
            assert_eq!(breaker.state("p"), CircuitState::Closed);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_probe_at_a_time_and_the_first_event_of_a_stream_is_enough() {
    let adapter =
        failing([ErrorKind::Server; 3]).answer("hi").answer("hi").failure(failure(ErrorKind::Server));
    let breaker = breaker(3);
    let bench = Bench::new(adapter, breaker.clone());
    for _ in 0..3 {
        bench.call(ask("x"), Mode::Stream).await.unwrap_err();
    }
    tokio::time::advance(COOL_DOWN).await;
    let unread = bench.client.stream(ask("x")).await.unwrap();
    let error = bench.call(ask("x"), Mode::Complete).await.unwrap_err();
    assert_eq!((error.error_code(), error.retry_after()), (Some(CircuitBreaker::OPEN), None));
    assert!(error.is_retryable());
    drop(unread);
    assert_eq!(breaker.state("p"), CircuitState::HalfOpen, "nothing was learnt; the next is the probe");
    bench.read_and_drop(ask("x"), 1).await;
    assert_eq!(breaker.state("p"), CircuitState::Closed);
    bench.call(ask("x"), Mode::Complete).await.unwrap_err();
    assert_eq!(
        breaker.state("p"),
        CircuitState::Open,
        "nothing has ended well yet, so one failure is enough"
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_without_an_end_is_followed_by_another() {
    let breaker = breaker(1);
    let bench = Bench::new(failing([ErrorKind::Server]).answer("lost").answer("hi"), breaker.clone());
    bench.call(ask("x"), Mode::Complete).await.unwrap_err();
    tokio::time::advance(COOL_DOWN).await;
    let unread = bench.client.stream(ask("x")).await.unwrap();
    tokio::time::advance(COOL_DOWN).await;
    bench.call(ask("x"), Mode::Complete).await.unwrap();
    drop(unread);
    assert_eq!(breaker.state("p"), CircuitState::Closed, "the lost probe has no say any more");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_status_is_a_sign_of_life() {
    let refused = failure(ErrorKind::InvalidRequest).with_status(400);
    let adapter = failing([ErrorKind::Server]).failure(failure(ErrorKind::Configuration)).failure(refused);
    let breaker = breaker(1);
    let bench = Bench::new(adapter, breaker.clone());
    bench.call(ask("x"), Mode::Complete).await.unwrap_err();
    tokio::time::advance(COOL_DOWN).await;
    for after in [CircuitState::HalfOpen, CircuitState::Closed] {
        bench.call(ask("x"), Mode::Complete).await.unwrap_err();
        assert_eq!(breaker.state("p"), after);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_before_it_opened_changes_nothing() {
    let adapter = FakeAdapter::new("p").answer("early").failure(failure(ErrorKind::Server));
    let breaker = breaker(1);
    let bench = Bench::new(adapter, breaker.clone());
    let mut early = bench.client.stream(ask("x")).await.unwrap();
    bench.call(ask("x"), Mode::Complete).await.unwrap_err();
    while futures_util::StreamExt::next(&mut early).await.is_some() {}
    assert_eq!(breaker.state("p"), CircuitState::Open);
}

#[tokio::test]
async fn each_provider_has_its_own_circuit() {
    let breaker = breaker(1);
    let builder = Client::builder().provider(failing([ErrorKind::Server]));
    let builder = builder.provider(FakeAdapter::new("q").answer("hi"));
    let client = builder.middleware(breaker.clone()).build().unwrap();
    client.complete(ask("x")).await.unwrap_err();
    client.complete(ask("x").with_provider("q")).await.unwrap();
    assert_eq!((breaker.state("p"), breaker.state("q")), (CircuitState::Open, CircuitState::Closed));
}

#[test]
fn limits_outside_their_range_are_refused() {
    let builder = CircuitBreaker::builder();
    let day = Duration::from_secs(24 * 60 * 60);
    for bad in [builder.threshold(0), builder.cool_down(Duration::ZERO), builder.cool_down(day * 2)] {
        assert_eq!(bad.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
