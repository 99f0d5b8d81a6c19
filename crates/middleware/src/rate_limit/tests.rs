use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use pintle_llm::testing::{FakeAdapter, Harness, MODES, scripted_error, user_request};
use pintle_llm::{Budget, Client, ProviderAdapter};

use super::*;

/// Adapter with this many responses of 15 tokens.
fn adapter_with_responses(count: u32) -> FakeAdapter {
    (0..count).fold(FakeAdapter::new("p"), |fake, _| fake.answer("hi"))
}

fn second(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Makes calls one after the other and returns the seconds at which they were let through.
async fn seconds(harness: &Harness, mode: Mode, calls: usize) -> Vec<u64> {
    let start = Instant::now();
    let mut seconds = Vec::new();
    for _ in 0..calls {
        harness.call(user_request("question"), mode).await.unwrap();
        seconds.push(start.elapsed().as_secs());
    }
    seconds
}

#[tokio::test(start_paused = true)]
async fn no_window_exceeds_the_request_limit() {
    for mode in MODES {
        let limit = RateLimit::builder().with_requests(2).with_window(second(10)).build().unwrap();
        let harness = Harness::new(adapter_with_responses(5), limit);
        assert_eq!(seconds(&harness, mode, 5).await, [0, 0, 10, 10, 20], "{mode:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_window_slides() {
    let limit = RateLimit::builder().with_requests(2).with_window(second(10)).build().unwrap();
    let harness = Harness::new(adapter_with_responses(4), limit);
    seconds(&harness, Mode::Complete, 1).await;
    tokio::time::advance(second(6)).await;
    assert_eq!(seconds(&harness, Mode::Complete, 3).await, [0, 4, 10], "at 6, 10 and 16");
}

#[tokio::test(start_paused = true)]
async fn tokens_are_counted_by_reported_usage() {
    for mode in MODES {
        let limit = RateLimit::builder().with_tokens(30).with_window(second(10)).build().unwrap();
        let harness = Harness::new(adapter_with_responses(6), limit);
        // Each call is let through with an estimate of 2 tokens and then counts 15.
        assert_eq!(seconds(&harness, mode, 5).await, [0, 0, 10, 10, 20], "{mode:?}");
    }
    let limit = RateLimit::builder().with_tokens(1).with_window(second(10)).build().unwrap();
    let harness = Harness::new(adapter_with_responses(2), limit);
    assert_eq!(seconds(&harness, Mode::Complete, 2).await, [0, 10], "oversized calls go alone");
}

#[tokio::test(start_paused = true)]
async fn an_unbilled_failure_frees_tokens_but_counts_as_request() {
    let refused = || scripted_error(ErrorKind::Server).with_status(500);
    let adapter = FakeAdapter::new("p").failure(refused()).failure(refused()).answer("hi").answer("hi");
    let limit =
        RateLimit::builder().with_tokens(20).with_requests(3).with_window(second(10)).build().unwrap();
    let harness = Harness::new(adapter, limit);
    let start = Instant::now();
    for _ in 0..2 {
        harness.call(user_request(&"x".repeat(80)), Mode::Complete).await.unwrap_err();
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(seconds(&harness, Mode::Complete, 2).await, [0, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_counts_the_text_received() {
    let limit = RateLimit::builder().with_tokens(6).with_window(second(10)).build().unwrap();
    let harness = Harness::new(FakeAdapter::new("p").answer("12345678").answer("hi"), limit.clone());
    harness.read_and_drop(user_request("question"), 3).await;
    let used = format!("{:?}", limit.window());
    assert!(used.contains("tokens: 4"), "{used}");
    assert_eq!(seconds(&harness, Mode::Complete, 1).await, [0]);
}

#[tokio::test(start_paused = true)]
async fn waiting_calls_pass_in_order_and_can_be_dropped() {
    let limit = RateLimit::builder().with_requests(1).with_window(second(10)).build().unwrap();
    let harness = Harness::new(adapter_with_responses(4), limit);
    let call = async |number: u64, patience: u64| {
        tokio::time::sleep(Duration::from_millis(number)).await;
        let call = harness.call(user_request("question"), Mode::Complete);
        (number, tokio::time::timeout(second(patience), call).await.is_ok())
    };
    let start = Instant::now();
    let mut calls = FuturesUnordered::new();
    for (number, patience) in [(3, 99), (2, 5), (1, 99), (4, 99), (0, 99)] {
        calls.push(call(number, patience));
    }
    let ends: Vec<(u64, bool)> = (&mut calls).collect().await;
    assert_eq!(ends, [(0, true), (2, false), (1, true), (3, true), (4, true)]);
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_maximum_fails_at_once() {
    for mode in MODES {
        let builder = RateLimit::builder().with_requests(1).with_window(second(10));
        let harness =
            Harness::new(adapter_with_responses(2), builder.with_max_wait(second(3)).build().unwrap());
        seconds(&harness, mode, 1).await;
        tokio::time::advance(second(4)).await;
        let start = Instant::now();
        let error = harness.call(user_request("question"), mode).await.unwrap_err();
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert_eq!((error.kind(), error.error_code()), (ErrorKind::RateLimit, Some(RateLimit::REACHED)));
        assert_eq!((error.retry_after(), error.provider()), (Some(second(6)), Some("p")));
        assert_eq!(error.message(), "the client-side limit of 1 requests per 10s allows no call within 3s");
        assert_eq!(harness.calls(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_to_other_providers_are_not_limited() {
    let limit = RateLimit::builder().with_requests(1).with_provider("other").build().unwrap();
    let harness = Harness::new(adapter_with_responses(3), limit);
    assert_eq!(seconds(&harness, Mode::Stream, 3).await, [0, 0, 0]);
}

#[test]
fn limits_outside_their_range_are_refused() {
    let builder = RateLimit::builder;
    let bad = [
        builder(),
        builder().with_requests(0),
        builder().with_tokens(0),
        builder().with_requests(1).with_window(Duration::ZERO),
        builder().with_requests(1).with_window(second(24 * 60 * 60 + 1)),
    ];
    for builder in bad {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}

#[tokio::test(start_paused = true)]
async fn an_inner_budget_checks_a_delayed_call_when_it_is_sent() {
    let budget = Budget::builder().with_max_tokens(15).build().unwrap();
    let limit = RateLimit::builder().with_requests(1).with_window(second(9)).build().unwrap();
    let adapter = Arc::new(adapter_with_responses(2));
    let provider = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
    let builder = Client::builder().shared_provider(provider).default_provider("p");
    let client = builder.middleware(limit).middleware(budget.clone()).build().unwrap();
    let (first, second) =
        tokio::join!(client.complete(user_request("one")), client.complete(user_request("two")));
    first.unwrap();
    assert_eq!(second.unwrap_err().error_code(), Some(Budget::SPENT));
    assert_eq!((adapter.requests().len(), budget.spent().usage.total_tokens), (1, 15));
}
