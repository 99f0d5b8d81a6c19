use futures_util::StreamExt as _;
use futures_util::future::join;

use super::*;
use crate::content::{ImageData, ToolCall};
use crate::message::{Message, Role};
use crate::middleware::bench::{Bench, MODES, ask, failure};
use crate::request::AdapterTimeout;
use crate::response::RateLimitInfo;
use crate::stream::StreamEvent;
use crate::testing::FakeAdapter;

fn bench(adapter: FakeAdapter, builder: ResponseCacheBuilder) -> (Bench, ResponseCache) {
    let cache = builder.build().unwrap();
    (Bench::new(adapter, cache.clone()), cache)
}

#[tokio::test]
async fn what_was_answered_is_answered_again_in_either_mode() {
    for first in MODES {
        let (bench, cache) = bench(FakeAdapter::new("p").answer("hi"), ResponseCache::builder());
        let fresh = bench.call(ask("hello"), first).await.unwrap();
        for again in MODES {
            assert_eq!(bench.call(ask("hello"), again).await.unwrap(), fresh, "{first:?}, then {again:?}");
        }
        assert_eq!(bench.calls(), 1);
        assert_eq!((cache.stats().misses, cache.stats().hits, cache.stats().entries), (1, 2, 1));
    }
}

#[tokio::test]
async fn a_replayed_stream_has_all_events() {
    let call = ToolCall::from_raw("c", "t", r#"{"a": 1}"#);
    let message = Message::new(Role::Assistant, vec![ContentPart::text("hi"), call.into()]);
    let (bench, _) = bench(FakeAdapter::new("p").message(message), ResponseCache::builder());
    bench.call(ask("hello"), Mode::Complete).await.unwrap();
    let events: Vec<StreamEvent> =
        bench.client.stream(ask("hello")).await.unwrap().map(Result::unwrap).collect().await;
    let names: Vec<String> = events
        .iter()
        .map(|event| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names.join(" "),
        "STREAM_START TEXT_START TEXT_DELTA TEXT_END TOOL_CALL_START TOOL_CALL_DELTA TOOL_CALL_END FINISH"
    );
}

#[test]
fn the_key_covers_what_the_provider_gets_and_nothing_else() {
    let base = key("p", &ask("hello")).unwrap();
    assert_eq!(base.to_string(), key("p", &ask("hello")).unwrap().to_string(), "the same in every process");
    let same = ask("hello").with_provider("p").with_timeout(AdapterTimeout::patient());
    assert_eq!(key("p", &same), Some(base));
    let others = [
        ("p", ask("hello!")),
        ("q", ask("hello")),
        ("p", Request::new("other", [Message::user("hello")])),
        ("p", ask("hello").with_max_tokens(7)),
        ("p", ask("hello").with_provider_options("p", serde_json::json!({"a": 1}))),
        ("p", Request::new("m", [Message::system("hello")])),
        ("p", Request::new("m", [Message::user("hel"), Message::user("lo")])),
        // Some dialects send a developer's message where it stands.
        (
            "p",
            Request::new("m", [Message::user("hello"), Message::developer("be brief"), Message::user("so?")]),
        ),
        (
            "p",
            Request::new("m", [Message::user("hello"), Message::user("so?"), Message::developer("be brief")]),
        ),
    ];
    let mut keys: Vec<String> =
        others.iter().map(|(provider, request)| key(provider, request).unwrap().to_string()).collect();
    keys.push(base.to_string());
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), others.len() + 1);
}

#[test]
fn a_request_with_a_local_file_has_no_key() {
    let image = |url: &str| {
        let part = ContentPart::Image(ImageData::url(url));
        Request::new("m", [Message::new(Role::User, vec![part])])
    };
    for path in ["/tmp/a.png", "./a.png", "~/a.png"] {
        assert_eq!(key("p", &image(path)), None, "{path}");
    }
    for url in ["https://example.com/a.png", "data:image/png;base64,AAAA"] {
        assert!(key("p", &image(url)).is_some(), "{url}");
    }
}

#[tokio::test]
async fn failures_and_broken_streams_are_not_kept() {
    let adapter = FakeAdapter::new("p")
        .failure(failure(ErrorKind::Server))
        .failure(failure(ErrorKind::Server))
        .cut("half", failure(ErrorKind::Stream))
        .answer("dropped")
        .finished(Message::assistant("blocked"), Finish::ContentFilter)
        .answer("whole");
    let (bench, cache) = bench(adapter, ResponseCache::builder());
    for mode in MODES {
        assert_eq!(bench.call(ask("x"), mode).await.unwrap_err().kind(), ErrorKind::Server);
    }
    assert_eq!(bench.call(ask("x"), Mode::Stream).await.unwrap_err().kind(), ErrorKind::Stream);
    bench.read_and_drop(ask("x"), 3).await;
    assert_eq!(bench.call(ask("x"), Mode::Complete).await.unwrap().text(), "blocked");
    assert_eq!(cache.stats().entries, 0);
    for mode in MODES {
        assert_eq!(bench.call(ask("x"), mode).await.unwrap().text(), "whole");
    }
    assert_eq!((bench.calls(), cache.stats().misses), (6, 6));
}

#[tokio::test]
async fn a_stream_that_is_dropped_after_its_last_event_is_kept() {
    let (bench, cache) = bench(FakeAdapter::new("p").answer("hi"), ResponseCache::builder());
    bench.read_and_drop(ask("x"), 5).await;
    assert_eq!(cache.stats().entries, 1);
}

/// Answers after a second, with the number of the call, and fails where it is told to.
#[derive(Debug)]
struct Slow {
    calls: Mutex<u32>,
    failing: u32,
}

#[async_trait]
impl Middleware for Slow {
    async fn handle(&self, request: Request, _: Mode, _: Next<'_>) -> Result<Reply, Error> {
        let call = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls
        };
        tokio::time::sleep(Duration::from_secs(1)).await;
        if call <= self.failing {
            return Err(failure(ErrorKind::Server));
        }
        let mut response = Response::new("p", request.model, Message::assistant(call.to_string()));
        response.rate_limit = Some(RateLimitInfo::default());
        Ok(Reply::Response(Box::new(response)))
    }
}

fn slow(failing: u32) -> crate::client::Client {
    let cache = ResponseCache::builder().build().unwrap();
    let builder = crate::client::Client::builder().provider(FakeAdapter::new("p")).middleware(cache);
    builder.middleware(Slow { calls: Mutex::new(0), failing }).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_same_request_waits_for_the_one_on_its_way() {
    let client = slow(0);
    let (one, two) = join(client.complete(ask("x")), client.complete(ask("x"))).await;
    assert_eq!((one.unwrap().text(), two.unwrap().text()), ("1".to_owned(), "1".to_owned()));
    let other = client.complete(ask("y")).await.unwrap();
    assert_eq!((other.text(), other.rate_limit.is_some()), ("2".to_owned(), true));
    assert_eq!(client.complete(ask("y")).await.unwrap().rate_limit, None, "the limits are of then");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_call_that_fails_or_is_dropped_goes_alone() {
    let client = slow(1);
    let (one, two) = join(client.complete(ask("x")), client.complete(ask("x"))).await;
    assert_eq!(one.unwrap_err().kind(), ErrorKind::Server);
    assert_eq!(two.unwrap().text(), "2");

    let client = slow(0);
    let short = tokio::time::timeout(Duration::from_millis(1), client.complete(ask("x")));
    let (one, two) = join(short, client.complete(ask("x"))).await;
    assert!(one.is_err());
    assert_eq!(two.unwrap().text(), "2");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_polls_holds_nobody_up_for_good() {
    let client = slow(0);
    let mut first = Box::pin(client.complete(ask("x")));
    assert!(tokio::time::timeout(Duration::ZERO, &mut first).await.is_err());
    let begun = Instant::now();
    let second = tokio::time::timeout(Duration::from_secs(600), client.complete(ask("x"))).await;
    assert_eq!(second.expect("it gives up waiting").unwrap().text(), "2");
    assert_eq!(begun.elapsed().as_secs(), 61, "a minute of waiting, a second of its own");
    assert_eq!(first.await.unwrap().text(), "1");
}

#[tokio::test(start_paused = true)]
async fn number_bytes_and_age_are_bounded() {
    let answers = |count| (0..count).fold(FakeAdapter::new("p"), |fake, n| fake.answer(format!("{n}")));
    let (bench, cache) = self::bench(answers(4), ResponseCache::builder().max_entries(2));
    for text in ["a", "b", "a", "c", "a", "b"] {
        bench.call(ask(text), Mode::Complete).await.unwrap();
    }
    assert_eq!(bench.calls(), 4, "b was used longest ago when c came");
    let size = cache.stats().bytes / 2;

    let (bench, cache) = self::bench(answers(3), ResponseCache::builder().max_bytes(2 * size));
    for text in ["a", "b", "c"] {
        bench.call(ask(text), Mode::Stream).await.unwrap();
    }
    assert_eq!((cache.stats().entries, cache.stats().bytes), (2, 2 * size));
    let (bench, cache) = self::bench(answers(1), ResponseCache::builder().max_bytes(size - 1));
    bench.call(ask("a"), Mode::Complete).await.unwrap();
    assert_eq!((cache.stats().entries, cache.stats().bytes), (0, 0));

    let (bench, cache) = self::bench(answers(3), ResponseCache::builder().max_age(Duration::from_secs(60)));
    for (wait, expected) in [(0, "0"), (59, "0"), (1, "1"), (59, "1")] {
        tokio::time::advance(Duration::from_secs(wait)).await;
        assert_eq!(bench.call(ask("a"), Mode::Complete).await.unwrap().text(), expected);
    }
    cache.clear();
    assert_eq!((cache.stats().entries, cache.stats().bytes, cache.stats().hits), (0, 0, 2));
}

#[test]
fn bounds_of_zero_are_refused() {
    let builder = ResponseCache::builder();
    for bad in [builder.max_entries(0), builder.max_bytes(0), builder.max_age(Duration::ZERO)] {
        assert_eq!(bad.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
