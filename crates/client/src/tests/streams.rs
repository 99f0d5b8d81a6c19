//! Streams of the real server, across lost connections.

use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;
use pintle_agent::EventKind;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{ContentPart, Message, Role, ToolCall};
use serde_json::json;

use super::harness::{Faulty, Fixture, PATIENCE, Received, is_end, next, quick};
use crate::{Change, Client, NewSession, SessionItem};

/// Clients behind connections that are cut at random, each with a seed of its own.
const SEEDS: u64 = 24;

fn said(text: &str) -> NewSession {
    NewSession { message: Some(text.into()), ..NewSession::default() }
}

/// Looks for files so often, which nobody has to approve, and answers.
fn looking(times: usize) -> FakeAdapter {
    let look = |turn: usize| {
        let arguments = json!({"pattern": format!("*.{turn}")}).to_string();
        let call = ToolCall::from_raw(format!("c{turn}"), "glob", arguments);
        let text = ContentPart::text(format!("Look {turn}: Grüße ✓"));
        Message::new(Role::Assistant, vec![text, call.into()])
    };
    (0..times).map(look).fold(FakeAdapter::new("anthropic"), FakeAdapter::message).answer("Done.")
}

#[tokio::test]
async fn a_stream_from_any_event_has_the_rest() {
    let fixture = Fixture::start(looking(2)).await;
    let client = fixture.client();
    let id = client.create_session(said("Look around")).await.unwrap().id;
    let mut received = Received::default();
    received.follow(&mut client.events(&id, None), is_end).await;
    assert_eq!(received.events, fixture.recorded(&id).await);
    for (streamed, text) in &received.texts {
        assert!(text.starts_with(streamed.as_str()), "{streamed:?} of {text:?}");
    }
    for (index, after) in received.ids.iter().enumerate() {
        let mut items = client.events(&id, Some(after.clone()));
        let mut rest = Received::default();
        loop {
            let item = next(&mut items).await.unwrap();
            if let SessionItem::Ready = item {
                break;
            }
            rest.take(item);
        }
        assert_eq!(
            (rest.events.as_slice(), rest.resets),
            (&received.events[index + 1..], 0),
            "after {after}"
        );
    }
    let mut items = client.events(&id, "4000-1764140000123".parse().ok());
    assert!(matches!(next(&mut items).await.unwrap(), SessionItem::Reset { .. }));
    let mut all = Received::default();
    all.follow(&mut items, is_end).await;
    assert_eq!(all.events, received.events, "the stream begins again");
}

#[tokio::test]
async fn a_stream_goes_on_while_its_server_is_restarted() {
    let call = ToolCall::from_raw("c9", "shell", json!({"command": "make"}).to_string());
    let make = Message::new(Role::Assistant, vec![call.into()]);
    let mut fixture = Fixture::start(looking(1).message(make).answer("Made.")).await;
    let client = fixture.client();
    let id = client.create_session(said("Look around")).await.unwrap().id;
    let mut items = client.events(&id, None);
    let mut received = Received::default();
    received.follow(&mut items, |kind| matches!(kind, EventKind::ToolCallStart { .. })).await;
    fixture.restart().await;
    received.follow(&mut items, is_end).await;
    client.submit(&id, "Make it").await.unwrap();
    received.follow(&mut items, |kind| matches!(kind, EventKind::ApprovalRequested { .. })).await;
    fixture.restart().await;
    let approval = client.approvals(&id).await.unwrap().remove(0);
    let decision = pintle_agent::Decision::Approve;
    client.decide(&id, &approval.call_id, approval.fingerprint, decision).await.unwrap();
    received.follow(&mut items, is_end).await;
    assert_eq!(received.events, fixture.recorded(&id).await, "nothing is missed or doubled");
    assert!(received.disconnected >= 2, "{received:?}");
}

#[tokio::test]
async fn cut_connections_miss_and_double_nothing() {
    let faults: usize =
        futures_util::future::join_all((0..SEEDS).map(behind_a_faulty_proxy)).await.iter().sum();
    assert!(faults > 50, "{faults} faults");
}

/// Follows a session behind a proxy that cuts connections, and returns the number of cuts.
async fn behind_a_faulty_proxy(seed: u64) -> usize {
    let fixture = Fixture::start(looking(4)).await;
    let proxy = Faulty::start(fixture.address, seed).await;
    let url = format!("http://{}", proxy.address);
    let client = Client::with_options(&url, None, quick().with_retries(100)).unwrap();
    let id = client.create_session(said("Look around")).await.unwrap().id;
    let mut received = Received::default();
    let mut items = client.events(&id, None);
    received.follow(&mut items, is_end).await;
    client.submit(&id, "Look again").await.unwrap();
    received.follow(&mut items, is_end).await;
    let recorded = fixture.recorded(&id).await;
    assert_eq!(received.events, recorded, "seed {seed}");
    let inputs = recorded.iter().filter(|event| matches!(event.kind, EventKind::UserInput { .. }));
    assert_eq!(inputs.count(), 2, "seed {seed}: each message counts once");
    let lines: Vec<u64> = client.journal(&id, 1, None).map(|line| line.unwrap().seq).collect().await;
    assert_eq!(lines, (1..=lines.len() as u64).collect::<Vec<_>>(), "seed {seed}");
    proxy.faults.load(Ordering::Relaxed)
}

#[tokio::test]
async fn a_stream_ends_when_its_session_is_deleted() {
    let fixture = Fixture::start(FakeAdapter::new("anthropic").answer("Hello.")).await;
    let client = fixture.client();
    let id = client.create_session(said("Hello")).await.unwrap().id;
    let mut items = client.events(&id, None);
    Received::default().follow(&mut items, is_end).await;
    client.delete_session(&id).await.unwrap();
    let rest = async {
        while let Some(item) = items.next().await {
            item.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, rest).await.unwrap();
}

#[tokio::test]
async fn changes_tell_about_all_sessions() {
    let mut fixture = Fixture::start(FakeAdapter::new("anthropic").answer("Hello.")).await;
    let client = fixture.client();
    let mut changes = client.changes();
    let mut until = async |what: &str, is_it: &dyn Fn(&Change) -> bool| {
        let found = async {
            loop {
                let change = changes.next().await.unwrap().unwrap();
                if is_it(&change) {
                    return;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.unwrap_or_else(|_| panic!("{what}"));
    };
    until("ready", &|change| matches!(change, Change::Ready)).await;
    let id = client.create_session(said("Hello")).await.unwrap().id;
    until("created", &|change| matches!(change, Change::Session(session) if session.id == id)).await;
    fixture.restart().await;
    until("disconnected", &|change| matches!(change, Change::Disconnected(_))).await;
    until("reset", &|change| matches!(change, Change::Reset { .. })).await;
    until("ready again", &|change| matches!(change, Change::Ready)).await;
    client.delete_session(&id).await.unwrap();
    until("deleted", &|change| matches!(change, Change::Deleted(deleted) if *deleted == id)).await;
}
