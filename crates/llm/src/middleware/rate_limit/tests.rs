use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::*;
use crate::middleware::bench::{Bench, MODES, ask, failure};
use crate::testing::FakeAdapter;

/// Each answer of the fake provider costs 15 tokens.
fn talkative(count: u32) -> FakeAdapter {
    (0..count).fold(FakeAdapter::new("p"), |fake, _| fake.answer("hi"))
}

fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Makes calls one after the other and returns the second in which each was let through.
async fn seconds(bench: &Bench, mode: Mode, calls: usize) -> Vec<u64> {
    let begun = Instant::now();
    let mut seconds = Vec::new();
    for _ in 0..calls {
        bench.call(ask("question"), mode).await.unwrap();
        seconds.push(begun.elapsed().as_secs());
    }
    seconds
}

#[tokio::test(start_paused = true)]
async fn no_window_has_more_requests_than_allowed() {
    for mode in MODES {
        let limit = RateLimit::builder().requests(2).window(second(10)).build().unwrap();
        let bench = Bench::new(talkative(5), limit);
        assert_eq!(seconds(&bench, mode, 5).await, [0, 0, 10, 10, 20], "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_slides() {
    let limit = RateLimit::builder().requests(2).window(second(10)).build().unwrap();
    let bench = Bench::new(talkative(4), limit);
    seconds(&bench, Mode::Complete, 1).await;
    tokio::time::advance(second(6)).await;
    assert_eq!(seconds(&bench, Mode::Complete, 3).await, [0, 4, 10], "at 6, 10 and 16");
}

#[tokio::test(start_paused = true)]
async fn tokens_count_as_the_usage_says() {
    for mode in MODES {
        let limit = RateLimit::builder().tokens(30).window(second(10)).build().unwrap();
        let bench = Bench::new(talkative(6), limit);
        // Each is let in by an estimate of 2 and then counts 15.
        assert_eq!(seconds(&bench, mode, 5).await, [0, 0, 10, 10, 20], "{mode:?}");
    }
    let limit = RateLimit::builder().tokens(1).window(second(10)).build().unwrap();
    let bench = Bench::new(talkative(2), limit);
    assert_eq!(seconds(&bench, Mode::Complete, 2).await, [0, 10], "what is too large goes alone");
}

#[tokio::test(start_paused = true)]
async fn what_costs_nothing_frees_its_tokens_and_not_its_place() {
    let refused = || failure(ErrorKind::Server).with_status(500);
    let adapter = FakeAdapter::new("p").failure(refused()).failure(refused()).answer("hi").answer("hi");
    let limit = RateLimit::builder().tokens(20).requests(3).window(second(10)).build().unwrap();
    let bench = Bench::new(adapter, limit);
    let begun = Instant::now();
    for _ in 0..2 {
        bench.call(ask(&"x".repeat(80)), Mode::Complete).await.unwrap_err();
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(seconds(&bench, Mode::Complete, 2).await, [0, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_counts_what_had_come_when_it_was_dropped() {
    let limit = RateLimit::builder().tokens(6).window(second(10)).build().unwrap();
    let bench = Bench::new(FakeAdapter::new("p").answer("12345678").answer("hi"), limit.clone());
    bench.read_and_drop(ask("question"), 3).await;
    let used = format!("{:?}", limit.window());
    assert!(used.contains("tokens: 4"), "{used}");
    assert_eq!(seconds(&bench, Mode::Complete, 1).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_are_let_through_in_order_and_leave_without_a_trace() {
    let limit = RateLimit::builder().requests(1).window(second(10)).build().unwrap();
    let bench = Bench::new(talkative(4), limit);
    let call = async |number: u64, patience: u64| {
        tokio::time::sleep(Duration::from_millis(number)).await;
        let call = bench.call(ask("question"), Mode::Complete);
        (number, tokio::time::timeout(second(patience), call).await.is_ok())
    };
    let begun = Instant::now();
    let mut calls = FuturesUnordered::new();
    for (number, patience) in [(3, 99), (2, 5), (1, 99), (4, 99), (0, 99)] {
        calls.push(call(number, patience));
    }
    let ends: Vec<(u64, bool)> = (&mut calls).collect().await;
    assert_eq!(ends, [(0, true), (2, false), (1, true), (3, true), (4, true)]);
    assert_eq!(begun.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn too_long_a_wait_is_a_typed_error_at_once() {
    for mode in MODES {
        let builder = RateLimit::builder().requests(1).window(second(10));
        let bench = Bench::new(talkative(2), builder.max_wait(second(3)).build().unwrap());
        seconds(&bench, mode, 1).await;
        tokio::time::advance(second(4)).await;
        let begun = Instant::now();
        let error = bench.call(ask("question"), mode).await.unwrap_err();
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert_eq!((error.kind(), error.error_code()), (ErrorKind::RateLimit, Some(RateLimit::REACHED)));
        assert_eq!((error.retry_after(), error.provider()), (Some(second(6)), Some("p")));
        assert_eq!(error.message(), "the client's own limit of 1 requests per 10s leaves no place within 3s");
        assert_eq!(bench.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn other_providers_pass() {
    let limit = RateLimit::builder().requests(1).provider("other").build().unwrap();
    let bench = Bench::new(talkative(3), limit);
    assert_eq!(seconds(&bench, Mode::Stream, 3).await, [0, 0, 0]);
}

#[test]
fn limits_outside_their_range_are_refused() {
    let builder = RateLimit::builder;
    let bad = [
        builder(),
        builder().requests(0),
        builder().tokens(0),
        builder().requests(1).window(Duration::ZERO),
        builder().requests(1).window(second(24 * 60 * 60 + 1)),
    ];
    for builder in bad {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
