use futures_util::StreamExt as _;
use futures_util::future::join;

use pintle_llm::testing::{FakeAdapter, Harness, MODES, scripted_error, user_request};
use pintle_llm::{AdapterTimeout, Client, ImageData, Message, RateLimitInfo, Role, StreamEvent, ToolCall};

use super::*;

fn harness_of(adapter: FakeAdapter, builder: ResponseCacheBuilder) -> (Harness, ResponseCache) {
    let cache = builder.build().unwrap();
    (Harness::new(adapter, cache.clone()), cache)
}

#[tokio::test]
async fn repeated_requests_are_served_in_either_mode() {
    for first in MODES {
        let (harness, cache) = harness_of(FakeAdapter::new("p").answer("hi"), ResponseCache::builder());
        let fresh = harness.call(user_request("hello"), first).await.unwrap();
        for again in MODES {
            assert_eq!(
                harness.call(user_request("hello"), again).await.unwrap(),
                fresh,
                "{first:?}, then {again:?}"
            );
        }
        assert_eq!(harness.calls(), 1);
        assert_eq!((cache.stats().misses, cache.stats().hits, cache.stats().entries), (1, 2, 1));
    }
}

#[tokio::test]
async fn a_replayed_stream_has_all_events() {
    let call = ToolCall::from_raw("c", "t", r#"{"a": 1}"#);
    let message = Message::new(Role::Assistant, vec![ContentPart::text("hi"), call.into()]);
    let (harness, _) = harness_of(FakeAdapter::new("p").message(message), ResponseCache::builder());
    harness.call(user_request("hello"), Mode::Complete).await.unwrap();
    let events: Vec<StreamEvent> =
        harness.client.stream(user_request("hello")).await.unwrap().map(Result::unwrap).collect().await;
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
fn the_key_covers_exactly_what_the_provider_receives() {
    let base = key("p", &user_request("hello")).unwrap();
    assert_eq!(
        base.to_string(),
        key("p", &user_request("hello")).unwrap().to_string(),
        "the same in every process"
    );
    let same = user_request("hello").with_provider("p").with_timeout(AdapterTimeout::patient());
    assert_eq!(key("p", &same), Some(base));
    let others = [
        ("p", user_request("hello!")),
        ("q", user_request("hello")),
        ("p", Request::new("other", [Message::user("hello")])),
        ("p", user_request("hello").with_max_tokens(7)),
        ("p", user_request("hello").with_provider_options("p", serde_json::json!({"a": 1}))),
        ("p", Request::new("m", [Message::system("hello")])),
        ("p", Request::new("m", [Message::user("hel"), Message::user("lo")])),
        // Some dialects send developer messages in place.
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
    let request = |image: ImageData| Request::new("m", [Message::new(Role::User, vec![image.into()])]);
    for path in ["/tmp/a.png", "./a.png", "~/a.png"] {
        assert_eq!(key("p", &request(ImageData::path(path))), None, "{path}");
    }
    for url in ["https://example.com/a.png", "data:image/png;base64,AAAA"] {
        assert!(key("p", &request(ImageData::url(url))).is_some(), "{url}");
    }
}

#[tokio::test]
async fn failures_and_broken_streams_are_not_stored() {
    let adapter = FakeAdapter::new("p")
        .failure(scripted_error(ErrorKind::Server))
        .failure(scripted_error(ErrorKind::Server))
        .cut("half", scripted_error(ErrorKind::Stream))
        .answer("dropped")
        .finished(Message::assistant("blocked"), Finish::ContentFilter)
        .answer("whole");
    let (harness, cache) = harness_of(adapter, ResponseCache::builder());
    for mode in MODES {
        assert_eq!(harness.call(user_request("x"), mode).await.unwrap_err().kind(), ErrorKind::Server);
    }
    assert_eq!(harness.call(user_request("x"), Mode::Stream).await.unwrap_err().kind(), ErrorKind::Stream);
    harness.read_and_drop(user_request("x"), 3).await;
    assert_eq!(harness.call(user_request("x"), Mode::Complete).await.unwrap().text(), "blocked");
    assert_eq!(cache.stats().entries, 0);
    for mode in MODES {
        assert_eq!(harness.call(user_request("x"), mode).await.unwrap().text(), "whole");
    }
    assert_eq!((harness.calls(), cache.stats().misses), (6, 6));
}

#[tokio::test]
async fn a_stream_dropped_after_its_last_event_is_stored() {
    let (harness, cache) = harness_of(FakeAdapter::new("p").answer("hi"), ResponseCache::builder());
    harness.read_and_drop(user_request("x"), 5).await;
    assert_eq!(cache.stats().entries, 1);
}

/// Layer that responds after a second with the number of the call; the first `failing` calls fail.
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
            return Err(scripted_error(ErrorKind::Server));
        }
        let mut response = Response::new("p", request.model, Message::assistant(call.to_string()));
        response.rate_limit = Some(RateLimitInfo::default());
        Ok(Reply::Response(Box::new(response)))
    }
}

fn slow_client(failing: u32) -> Client {
    let cache = ResponseCache::builder().build().unwrap();
    let builder = Client::builder().provider(FakeAdapter::new("p")).default_provider("p").middleware(cache);
    builder.middleware(Slow { calls: Mutex::new(0), failing }).build().unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_equal_request_waits_for_the_one_in_flight() {
    let client = slow_client(0);
    let (one, two) = join(client.complete(user_request("x")), client.complete(user_request("x"))).await;
    assert_eq!((one.unwrap().text(), two.unwrap().text()), ("1".to_owned(), "1".to_owned()));
    let other = client.complete(user_request("y")).await.unwrap();
    assert_eq!((other.text(), other.rate_limit.is_some()), ("2".to_owned(), true));
    assert_eq!(client.complete(user_request("y")).await.unwrap().rate_limit, None, "stale limits");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_request_calls_after_its_leader_failed() {
    let client = slow_client(1);
    let (one, two) = join(client.complete(user_request("x")), client.complete(user_request("x"))).await;
    assert_eq!(one.unwrap_err().kind(), ErrorKind::Server);
    assert_eq!(two.unwrap().text(), "2");

    let client = slow_client(0);
    let short = tokio::time::timeout(Duration::from_millis(1), client.complete(user_request("x")));
    let (one, two) = join(short, client.complete(user_request("x"))).await;
    assert!(one.is_err());
    assert_eq!(two.unwrap().text(), "2");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_polled_does_not_block_others() {
    let client = slow_client(0);
    let mut first = Box::pin(client.complete(user_request("x")));
    assert!(tokio::time::timeout(Duration::ZERO, &mut first).await.is_err());
    let start = Instant::now();
    let second = tokio::time::timeout(Duration::from_secs(600), client.complete(user_request("x"))).await;
    assert_eq!(second.expect("it gives up waiting").unwrap().text(), "2");
    assert_eq!(start.elapsed().as_secs(), 61, "a minute of waiting, a second for its own call");
    assert_eq!(first.await.unwrap().text(), "1");
}

#[tokio::test(start_paused = true)]
async fn entries_bytes_and_age_are_limited() {
    let responses = |count| (0..count).fold(FakeAdapter::new("p"), |fake, n| fake.answer(format!("{n}")));
    let (harness, cache) = harness_of(responses(4), ResponseCache::builder().with_max_entries(2));
    for text in ["a", "b", "a", "c", "a", "b"] {
        harness.call(user_request(text), Mode::Complete).await.unwrap();
    }
    assert_eq!(harness.calls(), 4, "b was least recently used when c came");
    let size = cache.stats().bytes / 2;

    let (harness, cache) = harness_of(responses(3), ResponseCache::builder().with_max_bytes(2 * size));
    for text in ["a", "b", "c"] {
        harness.call(user_request(text), Mode::Stream).await.unwrap();
    }
    assert_eq!((cache.stats().entries, cache.stats().bytes), (2, 2 * size));
    let (harness, cache) = harness_of(responses(1), ResponseCache::builder().with_max_bytes(size - 1));
    harness.call(user_request("a"), Mode::Complete).await.unwrap();
    assert_eq!((cache.stats().entries, cache.stats().bytes), (0, 0));

    let (harness, cache) =
        harness_of(responses(3), ResponseCache::builder().with_max_age(Duration::from_secs(60)));
    for (wait, expected) in [(0, "0"), (59, "0"), (1, "1"), (59, "1")] {
        tokio::time::advance(Duration::from_secs(wait)).await;
        assert_eq!(harness.call(user_request("a"), Mode::Complete).await.unwrap().text(), expected);
    }
    cache.clear();
    assert_eq!((cache.stats().entries, cache.stats().bytes, cache.stats().hits), (0, 0, 2));
}

#[test]
fn limits_of_zero_are_refused() {
    let builder = ResponseCache::builder();
    for bad in [builder.with_max_entries(0), builder.with_max_bytes(0), builder.with_max_age(Duration::ZERO)]
    {
        assert_eq!(bad.build().unwrap_err().kind(), ErrorKind::Configuration);
    }
}
