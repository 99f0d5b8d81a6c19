//! Streams of events: from any point, across openings and restarts.

use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_agent::{EventKind, SessionId};
use pintle_store::read_record;
use serde_json::json;

use super::harness::{Frame, PATIENCE, Request, Setup, runs, scripted};
use crate::ServerLimits;
use crate::feed::{FeedItem, SessionFeed};

/// Returns the durable events, by number and kind.
fn durable(frames: &[Frame]) -> Vec<(u64, String)> {
    let events = frames.iter().filter(|frame| frame.id.is_some());
    events.map(|frame| (frame.data["seq"].as_u64().unwrap(), frame.data["kind"].to_string())).collect()
}

fn kind(item: &FeedItem) -> Option<&EventKind> {
    if let FeedItem::Event(event) = item { Some(&event.kind) } else { None }
}

/// Reads a feed up to an item, and returns what it has read.
async fn read_until(feed: &mut SessionFeed, is_last: impl Fn(&FeedItem) -> bool) -> Vec<FeedItem> {
    let mut read = Vec::new();
    while !read.last().is_some_and(&is_last) {
        let next = tokio::time::timeout(PATIENCE, feed.next()).await;
        read.push(next.expect("an item in time").unwrap());
    }
    read
}

#[tokio::test]
async fn a_stream_from_any_id_has_the_rest() {
    let adapter = scripted().message(runs("c1", "make")).answer("Made.");
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create_with("Make it").await;
    let mut stream = fixture.follow(&id, None).await;
    let frames = stream.until_kind("PROCESSING_END").await;
    let all = durable(&frames);
    let numbers: Vec<u64> = all.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (0..all.len() as u64).collect::<Vec<_>>(), "each event once, in order");
    let ids: Vec<&str> = frames.iter().filter_map(|frame| frame.id.as_deref()).collect();
    for (index, after) in ids.iter().enumerate() {
        let mut stream = fixture.follow(&id, Some(after)).await;
        let frames = stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
        assert_eq!(durable(&frames), all[index + 1..], "after {after}");
        assert!(frames.iter().all(|frame| frame.name.as_deref() != Some("reset")), "after {after}");
    }
}

#[tokio::test]
async fn deltas_after_a_reconnect_are_the_text_so_far() {
    let adapter = scripted().message(runs("c1", "sleep 1")).answer("Done.");
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create_with("Sleep").await;
    let mut stream = fixture.follow(&id, None).await;
    let frames = stream.until_kind("TOOL_CALL_START").await;
    let last = frames.iter().rev().find_map(|frame| frame.id.clone()).unwrap();
    let mut again = fixture.follow(&id, Some(&last)).await;
    let frames = again.until(|frame| frame.name.as_deref() == Some("ready")).await;
    assert_eq!(durable(&frames), [], "nothing twice");
    for frame in frames.iter().filter(|frame| frame.name.is_none()) {
        assert_eq!(frame.data["offset"], 0, "a delta begins with the first byte: {frame:?}");
    }
}

#[tokio::test]
async fn a_text_whose_end_is_in_the_record_has_no_deltas_after_it() {
    let fixture = Setup::new(scripted().answer("Found it.")).start().await;
    let id = fixture.create().await;
    let hub = fixture.hub.clone().unwrap();
    let session = SessionId::new(id.as_str());
    // The log keeps what a slow reader has not read: the text without the events before. One that began after the answer
    // would have read it from the record.
    let mut slow = SessionFeed::new(hub.clone(), session.clone(), session.clone(), None);
    read_until(&mut slow, |item| matches!(item, FeedItem::Ready)).await;
    fixture.post(&format!("/v1/sessions/{id}/submit"), &json!({"text": "Find it"})).await;
    read_until(&mut slow, |item| matches!(kind(item), Some(EventKind::UserInput { .. }))).await;
    let is_end = |kind: &EventKind| matches!(kind, EventKind::AssistantTextEnd { .. });
    let is_recorded = async {
        loop {
            let record = read_record(hub.store.as_ref(), &session).await.unwrap();
            if record.replay().unwrap().events.iter().any(|event| is_end(&event.kind)) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_recorded).await.expect("the end of the text is recorded");
    let live = hub.live(&session).unwrap();
    let first = || live.events_from(0)?.next().now_or_never()?.map(|event| event.seq);
    while first() == Some(0) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    let mut stream = fixture.follow(&id, None).await;
    let frames = stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
    let texts: Vec<&str> = frames
        .iter()
        .filter_map(|frame| frame.data["kind"].as_str())
        .filter(|kind| kind.starts_with("ASSISTANT_TEXT"))
        .collect();
    assert_eq!(texts, ["ASSISTANT_TEXT_START", "ASSISTANT_TEXT_END"]);
    let read = read_until(&mut slow, |item| kind(item).is_some_and(is_end)).await;
    let was_streamed = read
        .iter()
        .filter_map(kind)
        .any(|kind| matches!(kind, EventKind::AssistantTextDelta { delta } if delta == "Found it."));
    assert!(was_streamed, "the log had it as a piece, too");
}

#[tokio::test]
async fn ids_that_were_never_sent_reset_the_client() {
    let adapter = scripted().answer("Hello.");
    let fixture = Setup::new(adapter).start().await;
    let id = fixture.create_with("Hello").await;
    let all = fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let of_other_time = format!("{}-1", durable(&all)[2].0);
    for after in ["4000-1764140000123", "4000", of_other_time.as_str()] {
        let mut stream = fixture.follow(&id, Some(after)).await;
        let first = stream.next().await.unwrap();
        assert_eq!(first.name.as_deref(), Some("reset"), "{after}: {first:?}");
        let frames = stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
        assert_eq!(durable(&frames), durable(&all), "{after}: from the beginning");
    }
    for wrong in ["x", "-1", "1-"] {
        let answer = fixture.get(&format!("/v1/sessions/{id}/events?after={wrong}")).await;
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains("no id of an event"), "{answer:?}");
    }
}

#[tokio::test]
async fn streams_go_on_when_a_session_is_closed_and_opened_again() {
    let adapter = scripted().answer("One.").answer("Two.");
    let limits = ServerLimits::default().with_idle(Duration::from_millis(50));
    let fixture = Setup::new(adapter).with_limits(limits).start().await;
    let id = fixture.create_with("First").await;
    let before = fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let last = before.iter().rev().find_map(|frame| frame.id.clone()).unwrap();
    loop {
        if fixture.get(&format!("/v1/sessions/{id}")).await.json()["live"] == json!(false) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // It begins while nobody has the session open.
    let mut stream = fixture.follow(&id, Some(&last)).await;
    let ready = stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
    assert_eq!(ready.len(), 1, "{ready:?}");
    let answer = fixture.post(&format!("/v1/sessions/{id}/submit"), &json!({"text": "Second"})).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    let after = stream.until_kind("PROCESSING_END").await;
    let numbers: Vec<u64> = durable(&after).into_iter().map(|(seq, _)| seq).collect();
    let first = before.iter().filter(|frame| frame.id.is_some()).count() as u64;
    assert_eq!(numbers, (first..first + numbers.len() as u64).collect::<Vec<_>>());
    assert!(after.iter().any(|frame| frame.data.to_string().contains("Two.")));
}

#[tokio::test]
async fn the_stream_of_all_sessions_tells_what_changes() {
    let adapter = scripted().answer("Hello.");
    let fixture = Setup::new(adapter).start().await;
    let open = fixture.create().await;
    let mut stream = fixture.stream("/v1/events").await;
    let first = stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
    assert_eq!(first[0].data["id"], json!(open));
    let other = fixture.create_with("Say hello").await;
    let frames = stream
        .until(|frame| {
            frame.data["id"] == json!(other)
                && frame.data["title"] == "Say hello"
                && frame.data["state"] == "IDLE"
        })
        .await;
    assert!(frames.iter().all(|frame| frame.name.as_deref() == Some("session")), "{frames:?}");
    let deleted = fixture.send(Request::new("DELETE", &format!("/v1/sessions/{other}"))).await;
    assert_eq!(deleted.status, 204);
    stream.until(|frame| frame.name.as_deref() == Some("deleted") && frame.data["id"] == json!(other)).await;
}

#[tokio::test]
async fn silent_streams_show_that_they_live() {
    let limits = ServerLimits::default().with_heartbeat(Duration::from_millis(20));
    let fixture = Setup::new(scripted()).with_limits(limits).start().await;
    let id = fixture.create().await;
    for path in [format!("/v1/sessions/{id}/events"), "/v1/events".to_owned()] {
        let mut stream = fixture.stream(&path).await;
        let frames = stream.until(|frame| frame.name.as_deref() == Some("heartbeat")).await;
        assert!(frames.last().unwrap().id.is_none(), "the last id stays that of an event");
    }
}

#[tokio::test]
async fn one_connection_follows_several_streams() {
    let fixture = Setup::new(scripted().answer("One.").answer("Two.")).start().await;
    let first = fixture.create_with("First").await;
    let before = fixture.follow(&first, None).await.until_kind("PROCESSING_END").await;
    let last = before.iter().rev().find_map(|frame| frame.id.clone()).unwrap();
    let second = fixture.create().await;
    let path = format!(
        "/v1/streams?follow=1:sessions,2:session:{first}@{last},3:session:{second},4:session:nobody,5:session:{first}"
    );
    let mut stream = fixture.stream(&path).await;
    let is = |frame: &Frame, stream: &str, name: &str| {
        frame.head.as_ref().is_some_and(|head| head["stream"] == stream && head["name"] == name)
    };
    let mut ready = std::collections::BTreeSet::new();
    let mut frames = Vec::new();
    while ready.len() < 4 {
        let frame = stream.next().await.unwrap();
        for name in ["1", "2", "3", "5"] {
            if is(&frame, name, "ready") {
                ready.insert(name);
            }
        }
        frames.push(frame);
    }
    assert!(
        !frames.iter().any(|frame| is(frame, "2", "message")),
        "it begins after the last event: {frames:?}"
    );
    assert!(
        frames.iter().any(|frame| is(frame, "5", "message")),
        "it begins with the first event: {frames:?}"
    );
    let refused = match frames.iter().find(|frame| is(frame, "4", "problem")) {
        Some(frame) => frame.clone(),
        None => stream.until(|frame| is(frame, "4", "problem")).await.pop().unwrap(),
    };
    assert_eq!(refused.data["status"], 404);
    fixture.post(&format!("/v1/sessions/{second}/submit"), &json!({"text": "Second"})).await;
    let frames =
        stream.until(|frame| is(frame, "3", "message") && frame.data["kind"] == "PROCESSING_END").await;
    let ended = frames.last().unwrap().head.as_ref().unwrap()["id"].as_str();
    assert!(ended.is_some_and(|id| id.contains('-')), "{frames:?}");
    assert!(frames.iter().all(|frame| frame.name.as_deref() == Some("followed")), "{frames:?}");
}

#[tokio::test]
async fn streams_that_are_named_wrongly_are_refused() {
    let fixture = Setup::new(scripted()).start().await;
    for query in ["", "?follow=", "?follow=sessions", "?follow=1:session:s@x", "?follow=1:sessions,"] {
        assert_eq!(fixture.get(&format!("/v1/streams{query}")).await.status, 400, "{query}");
    }
    let many: Vec<String> = (0..101).map(|name| format!("{name}:sessions")).collect();
    for (follow, expected) in [
        (many.join(","), "at most 100 streams"),
        ("1:sessions,2:session:s,1:session:t".to_owned(), "expected each name once, got `1` again"),
    ] {
        let answer = fixture.get(&format!("/v1/streams?follow={follow}")).await;
        assert_eq!(answer.status, 400, "{follow}: {answer:?}");
        assert!(answer.text().contains(expected), "{follow}: {answer:?}");
    }
}

#[tokio::test]
async fn each_stream_of_a_connection_counts_as_a_request() {
    // At this rate, 4 requests at once are allowed.
    for (streams, status) in [(3, 200), (100, 429)] {
        let limits = ServerLimits::default().with_rate(1);
        let fixture = Setup::new(scripted()).with_limits(limits).start().await;
        let names: Vec<String> = (0..streams).map(|name| format!("{name}:sessions")).collect();
        let _stream = fixture.stream(&format!("/v1/streams?follow={}", names.join(","))).await;
        assert_eq!(fixture.get("/v1/sessions").await.status, status, "{streams}");
    }
}

#[tokio::test]
async fn streams_end_after_the_run_that_is_drained() {
    let limits = ServerLimits::default().with_drain(super::harness::PATIENCE);
    let adapter = scripted().message(runs("c1", "make")).answer("Made.");
    let mut fixture = Setup::new(adapter).with_limits(limits).start().await;
    fixture.host.holds.send_replace(true);
    let id = fixture.create_with("Make it").await;
    let mut own = fixture.follow(&id, None).await;
    let mut shared = fixture.stream(&format!("/v1/streams?follow=1:session:{id}")).await;
    let mut all = fixture.stream("/v1/events").await;
    own.until_kind("MODEL_RESPONSE").await;
    let holds = std::sync::Arc::clone(&fixture.host.holds);
    let closing = fixture.hub.as_ref().unwrap().closing().clone();
    let follow = async {
        closing.cancelled().await;
        holds.send_replace(false);
        own.until_kind("PROCESSING_END").await;
        shared.until_kind("PROCESSING_END").await;
        while own.next().await.is_some() {}
        while shared.next().await.is_some() {}
        let mut state = json!(null);
        while let Some(frame) = all.next().await {
            if frame.data["id"] == json!(id) {
                state = frame.data["state"].clone();
            }
        }
        assert_eq!(state, "IDLE");
    };
    tokio::join!(fixture.shut_down(), follow);
}
