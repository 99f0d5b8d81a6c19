use std::time::Duration;

use serde_json::json;

use super::*;
use crate::client::Client;
use crate::message::Message;
use crate::response::Response;
use crate::testing::{FakeAdapter, Harness, MODES, scripted_error, user_request};

/// Adapter with this many responses of 10 input and 5 output tokens.
fn adapter_with_responses(count: u32) -> FakeAdapter {
    (0..count).fold(FakeAdapter::new("openai"), |fake, _| fake.answer("hi"))
}

/// Catalog with a model `m` at 1,000 and 2,000 dollars per million tokens.
fn priced_catalog() -> Catalog {
    let mut model = Catalog::built_in().list(Some("openai")).next().unwrap().clone();
    model.id = "m".into();
    model.input_cost_per_million = Some(1_000.0);
    model.output_cost_per_million = Some(2_000.0);
    Catalog::from_json(&serde_json::to_string(&[model]).unwrap()).unwrap()
}

#[tokio::test]
async fn calls_succeed_until_a_limit_is_reached() {
    for mode in MODES {
        for (builder, expected) in [
            (Budget::builder().with_max_tokens(31), 3),
            (Budget::builder().with_max_tokens(30), 2),
            (Budget::builder().with_max_cost(Money::from_dollars(0.039)).with_catalog(priced_catalog()), 2),
            (
                Budget::builder()
                    .with_max_cost(Money::from_dollars(0.05))
                    .with_max_tokens(1)
                    .with_catalog(priced_catalog()),
                1,
            ),
        ] {
            let budget = builder.clone().build().unwrap();
            let harness = Harness::new(adapter_with_responses(5), budget.clone());
            for _ in 0..expected {
                harness.call(user_request("hello"), mode).await.unwrap();
            }
            let error = harness.call(user_request("hello"), mode).await.unwrap_err();
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::QuotaExceeded, false));
            assert_eq!((error.error_code(), error.provider()), (Some(Budget::SPENT), Some("openai")));
            assert_eq!(harness.calls(), expected, "refused before sending: {mode:?} {builder:?}");
            assert_eq!(budget.spent().usage.total_tokens, 15 * expected as u64);

            assert_eq!(budget.reset().calls, expected as u64);
            harness.call(user_request("hello"), mode).await.unwrap();
        }
    }
}

#[tokio::test]
async fn the_message_names_spent_tokens_and_limit() {
    let budget = Budget::builder()
        .with_max_tokens(15)
        .with_max_cost(Money::from_dollars(0.02))
        .with_catalog(priced_catalog())
        .build()
        .unwrap();
    let harness = Harness::new(adapter_with_responses(1), budget.clone());
    harness.call(user_request("hello"), Mode::Complete).await.unwrap();
    assert_eq!(budget.spent().cost, Money::from_micros(20_000));
    let error = harness.call(user_request("hello"), Mode::Complete).await.unwrap_err();
    assert_eq!(error.message(), "spent 15 of 15 tokens");
}

#[tokio::test]
async fn a_model_without_a_price_is_refused_or_uncounted() {
    for mode in MODES {
        let budget = Budget::builder().with_max_cost(Money::from_dollars(1.0)).build().unwrap();
        let harness = Harness::new(adapter_with_responses(1), budget);
        let error = harness.call(user_request("hello"), mode).await.unwrap_err();
        assert_eq!((error.kind(), error.error_code()), (ErrorKind::Configuration, Some(Budget::UNPRICED)));
        assert!(error.message().contains("no price for `m`"), "{error}");
        assert_eq!(harness.calls(), 0);

        let builder = Budget::builder()
            .with_max_cost(Money::from_dollars(1.0))
            .with_unknown_price(UnknownPrice::Uncounted);
        let budget = builder.build().unwrap();
        let harness = Harness::new(adapter_with_responses(1), budget.clone());
        harness.call(user_request("hello"), mode).await.unwrap();
        let spent = budget.spent();
        assert_eq!((spent.calls, spent.unpriced_calls, spent.usage.total_tokens), (1, 1, 15));
        assert_eq!(spent.cost, Money::ZERO);
    }
}

/// Layer that responds with this usage.
#[derive(Debug)]
struct FixedUsage(Usage);

#[async_trait]
impl Middleware for FixedUsage {
    async fn handle(&self, request: Request, _: Mode, _: Next<'_>) -> Result<Reply, Error> {
        let response = Response::new("openai", request.model, Message::assistant("hi"));
        Ok(Reply::Response(Box::new(response.with_usage(self.0.clone()))))
    }
}

#[tokio::test]
async fn cached_tokens_without_a_price_cost_the_input_price() {
    let model = json!([{"id": "m", "provider": "openai", "context_window": 9,
            "input_cost_per_million": 100.0, "output_cost_per_million": 200.0}]);
    let catalog = Catalog::from_json(&model.to_string()).unwrap();
    let budget =
        Budget::builder().with_max_cost(Money::from_dollars(1.0)).with_catalog(catalog).build().unwrap();
    let mut usage = Usage::new(10, 1);
    (usage.cache_read_tokens, usage.cache_write_tokens) = (Some(6), Some(2));
    let builder = Client::builder().provider(FakeAdapter::new("openai")).default_provider("openai");
    let client = builder.middleware(budget.clone()).middleware(FixedUsage(usage)).build().unwrap();
    client.complete(user_request("question")).await.unwrap();
    assert_eq!(budget.spent().cost, Money::from_micros(1_200));
    assert_eq!(budget.spent().unpriced_calls, 0);
}

#[tokio::test]
async fn failed_calls_are_charged_by_estimate_if_billable() {
    let refused = || scripted_error(ErrorKind::RateLimit).with_status(429);
    let adapter = FakeAdapter::new("openai")
        .failure(refused())
        .failure(scripted_error(ErrorKind::Network))
        .failure(scripted_error(ErrorKind::RequestTimeout))
        .cut("12345678", scripted_error(ErrorKind::Stream))
        .cut("12345678", refused())
        .answer("12345678");
    let budget = Budget::builder().build().unwrap();
    let harness = Harness::new(adapter, budget.clone());
    // The prompt has 8 bytes.
    for expected in [(0, 0), (0, 0), (2, 0), (2, 2), (2, 2)] {
        harness.call(user_request("question"), Mode::Stream).await.unwrap_err();
        let spent = budget.reset();
        assert_eq!((spent.usage.input_tokens, spent.usage.output_tokens), expected);
        assert_eq!((spent.calls, spent.estimated_calls), (u64::from(expected.0 > 0), spent.calls));
    }
    harness.read_and_drop(user_request("question"), 3).await;
    let spent = budget.reset();
    assert_eq!((spent.usage.total_tokens, spent.estimated_calls), (4, 1), "dropped halfway");
}

#[tokio::test]
async fn a_stream_is_charged_at_its_final_event() {
    let budget = Budget::builder().build().unwrap();
    let harness = Harness::new(adapter_with_responses(1), budget.clone());
    harness.read_and_drop(user_request("hello"), 5).await;
    assert_eq!((budget.spent().usage.total_tokens, budget.spent().estimated_calls), (15, 0));
}

/// Layer that responds after a second, without usage.
#[derive(Debug)]
struct NoUsage;

#[async_trait]
impl Middleware for NoUsage {
    async fn handle(&self, request: Request, _: Mode, _: Next<'_>) -> Result<Reply, Error> {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok(Reply::Response(Box::new(Response::new("p", request.model, Message::assistant("12345678")))))
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_calls_and_missing_usage_are_charged_by_estimate() {
    let budget = Budget::builder().build().unwrap();
    let builder = Client::builder().provider(FakeAdapter::new("p")).default_provider("p");
    let client = builder.middleware(budget.clone()).middleware(NoUsage).build().unwrap();
    let short = tokio::time::timeout(Duration::from_millis(1), client.complete(user_request("question")));
    assert!(short.await.is_err());
    assert_eq!(budget.reset().usage.total_tokens, 2);
    client.complete(user_request("question")).await.unwrap();
    assert_eq!((budget.spent().usage.total_tokens, budget.spent().estimated_calls), (4, 1));
}

#[test]
fn limits_outside_their_range_are_refused() {
    let builder = Budget::builder;
    let bad = [
        builder().with_max_tokens(0),
        builder().with_max_cost(Money::ZERO),
        builder().with_max_cost(Money::from_dollars(-1.0)),
        builder().with_max_cost(Money::from_dollars(f64::NAN)),
    ];
    for builder in bad {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
