use std::time::Duration;

use serde_json::json;

use super::*;
use crate::message::Message;
use crate::middleware::bench::{Bench, MODES, ask, failure};
use crate::response::Response;
use crate::testing::FakeAdapter;

/// Each answer of the fake provider costs 10 tokens in and 5 out.
fn talkative(count: u32) -> FakeAdapter {
    (0..count).fold(FakeAdapter::new("openai"), |fake, _| fake.answer("hi"))
}

/// A model `m` at 1,000 and 2,000 dollars per million tokens.
fn priced() -> Catalog {
    let mut model = Catalog::built_in().list(Some("openai")).next().unwrap().clone();
    model.id = "m".into();
    model.input_cost_per_million = Some(1_000.0);
    model.output_cost_per_million = Some(2_000.0);
    Catalog::from_json(&serde_json::to_string(&[model]).unwrap()).unwrap()
}

#[tokio::test]
async fn calls_are_made_until_a_limit_is_reached() {
    for mode in MODES {
        for (builder, made) in [
            (Budget::builder().max_tokens(31), 3),
            (Budget::builder().max_tokens(30), 2),
            (Budget::builder().max_dollars(0.039).catalog(priced()), 2),
            (Budget::builder().max_dollars(0.05).max_tokens(1).catalog(priced()), 1),
        ] {
            let budget = builder.clone().build().unwrap();
            let bench = Bench::new(talkative(5), budget.clone());
            for _ in 0..made {
                bench.call(ask("hello"), mode).await.unwrap();
            }
            let error = bench.call(ask("hello"), mode).await.unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::QuotaExceeded, false));
            assert_eq!((error.error_code(), error.provider()), (Some(Budget::SPENT), Some("openai")));
            assert_eq!(bench.calls(), made, "refused before sending: {mode:?} {builder:?}");
            assert_eq!(budget.spent().usage.total_tokens, 15 * made as u64);

            assert_eq!(budget.reset().calls, made as u64);
            bench.call(ask("hello"), mode).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_message_tells_both_figures() {
    let budget = Budget::builder().max_tokens(15).max_dollars(0.02).catalog(priced()).build().unwrap();
    let bench = Bench::new(talkative(1), budget.clone());
    bench.call(ask("hello"), Mode::Complete).await.unwrap();
    assert!((budget.spent().dollars - 0.02).abs() < 1e-9);
    let error = bench.call(ask("hello"), Mode::Complete).await.unwrap_err();
    assert_eq!(error.message(), "15 tokens are spent of a budget of 15");
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_or_stated() {
    for mode in MODES {
        let budget = Budget::builder().max_dollars(1.0).build().unwrap();
        let bench = Bench::new(talkative(1), budget);
        let error = bench.call(ask("hello"), mode).await.unwrap_err();
        assert_eq!((error.kind(), error.error_code()), (ErrorKind::Configuration, Some(Budget::UNPRICED)));
        assert!(error.message().contains("no price for `m`"), "{error}");
        assert_eq!(bench.calls(), 0);

        let builder = Budget::builder().max_dollars(1.0).unknown_price(UnknownPrice::Uncounted);
        let budget = builder.build().unwrap();
        let bench = Bench::new(talkative(1), budget.clone());
        bench.call(ask("hello"), mode).await.unwrap();
        let spent = budget.spent();
        assert_eq!((spent.calls, spent.unpriced_calls, spent.usage.total_tokens), (1, 1, 15));
        assert!(spent.dollars.abs() < 1e-9);
    }
}

/// Answers with this usage.
#[derive(Debug)]
struct Costly(Usage);

#[async_trait]
impl Middleware for Costly {
    async fn handle(&self, request: Request, _: Mode, _: Next<'_>) -> Result<Reply, Error> {
        let response = Response::new("openai", request.model, Message::assistant("hi"));
        Ok(Reply::Response(Box::new(response.with_usage(self.0.clone()))))
    }
}

#[tokio::test]
async fn cached_tokens_without_a_price_cost_what_others_cost() {
    let model = json!([{"id": "m", "provider": "openai", "context_window": 9,
            "input_cost_per_million": 100.0, "output_cost_per_million": 200.0}]);
    let catalog = Catalog::from_json(&model.to_string()).unwrap();
    let budget = Budget::builder().max_dollars(1.0).catalog(catalog).build().unwrap();
    let mut usage = Usage::new(10, 1);
    (usage.cache_read_tokens, usage.cache_write_tokens) = (Some(6), Some(2));
    let builder = crate::client::Client::builder().provider(FakeAdapter::new("openai"));
    let client = builder.middleware(budget.clone()).middleware(Costly(usage)).build().unwrap();
    client.complete(ask("question")).await.unwrap();
    assert!((budget.spent().dollars - 0.0012).abs() < 1e-9, "{:?}", budget.spent());
    assert_eq!(budget.spent().unpriced_calls, 0);
}

#[tokio::test]
async fn what_ends_badly_is_charged_by_estimate_if_it_cost() {
    let refused = || failure(ErrorKind::RateLimit).with_status(429);
    let adapter = FakeAdapter::new("openai")
        .failure(refused())
        .failure(failure(ErrorKind::Network))
        .failure(failure(ErrorKind::RequestTimeout))
        .cut("12345678", failure(ErrorKind::Stream))
        .cut("12345678", refused())
        .answer("12345678");
    let budget = Budget::builder().build().unwrap();
    let bench = Bench::new(adapter, budget.clone());
    // The prompt has 8 bytes.
    for expected in [(0, 0), (0, 0), (2, 0), (2, 2), (2, 2)] {
        bench.call(ask("question"), Mode::Stream).await.unwrap_err();
        let spent = budget.reset();
        assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens), expected);
        assert_eq!((spent.calls, spent.estimated_calls), (u64::from(expected.0 > 0), spent.calls));
    }
    bench.read_and_drop(ask("question"), 3).await;
    let spent = budget.reset();
    assert_eq!((spent.usage.total_tokens, spent.estimated_calls), (4, 1), "dropped half way");
}

#[tokio::test]
async fn a_stream_is_charged_once_it_ends_even_if_nobody_reads_on() {
    let budget = Budget::builder().build().unwrap();
    let bench = Bench::new(talkative(1), budget.clone());
    bench.read_and_drop(ask("hello"), 5).await;
    assert_eq!((budget.spent().usage.total_tokens, budget.spent().estimated_calls), (15, 0));
}

#[tokio::test(start_paused = true)]
async fn behind_a_rate_limit_a_call_is_judged_when_it_is_sent() {
    let budget = Budget::builder().max_tokens(15).build().unwrap();
    let limit =
        crate::middleware::RateLimit::builder().requests(1).window(Duration::from_secs(9)).build().unwrap();
    let adapter = std::sync::Arc::new(talkative(2));
    let provider = std::sync::Arc::clone(&adapter) as std::sync::Arc<dyn crate::adapter::ProviderAdapter>;
    let builder = crate::client::Client::builder().shared_provider(provider);
    let client = builder.middleware(limit).middleware(budget.clone()).build().unwrap();
    let (first, second) = tokio::join!(client.complete(ask("one")), client.complete(ask("two")));
    first.unwrap();
    assert_eq!(second.unwrap_err().error_code(), Some(Budget::SPENT));
    assert_eq!((adapter.requests().len(), budget.spent().usage.total_tokens), (1, 15));
}

/// Answers after a second, and does not say what it cost.
#[derive(Debug)]
struct Secretive;

#[async_trait]
impl Middleware for Secretive {
    async fn handle(&self, request: Request, _: Mode, _: Next<'_>) -> Result<Reply, Error> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Reply::Response(Box::new(Response::new("p", request.model, Message::assistant("12345678")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_or_says_nothing_is_charged_by_estimate() {
    let budget = Budget::builder().build().unwrap();
    let builder = crate::client::Client::builder().provider(FakeAdapter::new("p"));
    let client = builder.middleware(budget.clone()).middleware(Secretive).build().unwrap();
    let short = tokio::time::timeout(Duration::from_millis(1), client.complete(ask("question")));
    assert!(short.await.is_err());
    assert_eq!(budget.reset().usage.total_tokens, 2);
    client.complete(ask("question")).await.unwrap();
    assert_eq!((budget.spent().usage.total_tokens, budget.spent().estimated_calls), (4, 1));
}

#[test]
fn limits_outside_their_range_are_refused() {
    let builder = Budget::builder;
    let bad = [
        builder().max_tokens(0),
        builder().max_dollars(0.0),
        builder().max_dollars(-1.0),
        builder().max_dollars(f64::NAN),
        builder().max_dollars(f64::INFINITY),
    ];
    for builder in bad {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
