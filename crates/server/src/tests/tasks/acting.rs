//! Words and decisions of people, whether a process has the task open or not.

use pintle_agent::SessionId;
use pintle_store::SessionStore as _;
use pintle_workflow::LocalTaskHost;
use pintle_workflow::task::TaskOutcome;
use serde_json::{Value, json};

use super::performer::{Running, contract};
use crate::tests::harness::{Answer, Fixture, PATIENCE, Request, Setup, scripted};

async fn send(fixture: &Fixture, path: &str, key: &str, body: &Value) -> Answer {
    fixture.send(Request::new("POST", path).header("idempotency-key", key).json(body)).await
}

#[tokio::test]
async fn a_decision_opens_the_gate() {
    let fixture = Setup::new(scripted()).start().await;
    let running = Running::start_gated(&fixture, "t1").await;
    running.until_gate(&fixture.host.store).await;
    let read = fixture.get("/v1/tasks/t1").await.json();
    assert_eq!((&read["state"], &read["running"]), (&json!("waits for a person"), &json!(true)));
    assert_eq!((&read["gate"]["name"], &read["gate"]["candidate"]), (&json!("result"), &json!(1)));
    let place = read["gate"]["place"].as_u64().unwrap();
    let decide = "/v1/tasks/t1/decide";
    for (gate, place) in [("anchor", place), ("result", place - 1)] {
        let body = json!({"gate": gate, "place": place, "decision": "approve"});
        let answer = fixture.post(decide, &body).await;
        assert_eq!(answer.status, 409, "{body}: {answer:?}");
    }
    let refuse = json!({"gate": "result", "place": place, "decision": "refuse", "words": "Handle zero."});
    assert_eq!(fixture.post(decide, &refuse).await.status, 202);
    // It was sent back, and comes again: another gate at another place.
    let is_open_again = |read: &Value| read["gate"]["place"].as_u64().is_some_and(|other| other > place);
    let end = tokio::time::Instant::now() + PATIENCE;
    let again = loop {
        let read = fixture.get("/v1/tasks/t1").await.json();
        if is_open_again(&read) {
            break read;
        }
        assert!(tokio::time::Instant::now() < end, "{read}");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    let approve = |place: u64| json!({"gate": "result", "place": place, "decision": "approve"});
    let stale = fixture.post(decide, &approve(place)).await;
    assert_eq!(stale.status, 409, "nobody approves what they have not seen: {stale:?}");
    let place = again["gate"]["place"].as_u64().unwrap();
    assert_eq!(fixture.post(decide, &approve(place)).await.status, 202);
    let outcome = running.outcome().await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{outcome:?}");
}

#[tokio::test]
async fn a_decision_waits_for_a_process_and_counts_once() {
    let mut fixture = Setup::new(scripted()).start().await;
    let running = Running::start_gated(&fixture, "t1").await;
    running.until_gate(&fixture.host.store).await;
    running.stop().await;
    let decide = "/v1/tasks/t1/decide";
    let approve = json!({"gate": "result", "decision": "approve"});
    for _ in 0..2 {
        assert_eq!(send(&fixture, decide, "first", &approve).await.status, 202);
    }
    let second = send(&fixture, decide, "second", &json!({"gate": "result", "decision": "refuse"})).await;
    assert_eq!(second.status, 409, "somebody else was first: {second:?}");
    assert_eq!(fixture.get("/v1/tasks/t1").await.json()["state"], "waits for a person");
    fixture.restart().await;
    assert_eq!(send(&fixture, decide, "first", &approve).await.status, 202);
    let outcome = Running::resume(&fixture, "t1").await.outcome().await;
    assert!(matches!(outcome, TaskOutcome::Done(_)), "{outcome:?}");
    fixture.restart().await;
    assert_eq!(send(&fixture, decide, "first", &approve).await.status, 202, "it is on record");
    let late = send(&fixture, decide, "late", &approve).await;
    assert_eq!((late.status, &late.json()["type"]), (409, &json!("/problems/ended")));
}

#[tokio::test]
async fn cancelling_needs_no_process() {
    let mut fixture = Setup::new(scripted()).start().await;
    drop(LocalTaskHost::create(&fixture.host.store, SessionId::new("t1"), contract()).await.unwrap());
    let cancel = "/v1/tasks/t1/cancel";
    let body = json!({"reason": "no longer needed"});
    assert_eq!(send(&fixture, cancel, "k", &body).await.status, 202);
    let read = fixture.get("/v1/tasks/t1").await.json();
    assert_eq!((&read["state"], &read["running"]), (&json!("cancelled"), &json!(false)));
    assert_eq!(read["report"]["outcome"]["aborted"]["reason"], "no longer needed");
    assert!(!fixture.host.store.has_posted(&SessionId::new("t1")).await.unwrap());
    fixture.restart().await;
    assert_eq!(send(&fixture, cancel, "k", &body).await.status, 202, "it is on record");
    for (path, body) in [
        (cancel, json!({})),
        ("/v1/tasks/t1/steer", json!({"text": "x"})),
        ("/v1/tasks/t1/decide", json!({"gate": "result", "decision": "approve"})),
    ] {
        let answer = fixture.post(path, &body).await;
        assert_eq!((answer.status, &answer.json()["title"]), (409, &json!("The task has ended")), "{path}");
    }
}

#[tokio::test]
async fn cancelling_stops_a_process() {
    let fixture = Setup::new(scripted()).start().await;
    let running = Running::start(&fixture, "t1", contract(), 0).await;
    let mut stream = fixture.stream("/v1/tasks/t1/events").await;
    stream.until(|frame| frame.data["began"]["candidate"] == 1).await;
    assert_eq!(fixture.post("/v1/tasks/t1/cancel", &json!({})).await.status, 202);
    let frames = stream.until(|frame| frame.name.as_deref() == Some("end")).await;
    assert_eq!(frames.last().unwrap().data, json!({"state": "cancelled"}));
    assert_eq!(running.outcome().await, TaskOutcome::Aborted { reason: "a user cancelled it".to_owned() });
}

#[tokio::test]
async fn words_reach_one_candidate_or_all() {
    let fixture = Setup::new(scripted()).start().await;
    let running = Running::start(&fixture, "t1", contract(), 0).await;
    let mut stream = fixture.stream("/v1/tasks/t1/events").await;
    stream.until(|frame| frame.data["began"]["candidate"] == 1).await;
    let steer = "/v1/tasks/t1/steer";
    for body in [json!({"text": "Use integers.", "candidate": 1}), json!({"text": "Be quick."})] {
        for _ in 0..2 {
            assert_eq!(send(&fixture, steer, &body.to_string(), &body).await.status, 202);
        }
    }
    stream.until(|frame| frame.data["said"]["steer"]["text"] == "Be quick.").await;
    let steered = running.performer.steered.lock().unwrap().clone();
    assert_eq!(steered, ["work-1-1: Use integers.", "work-0-1: Be quick.", "work-1-1: Be quick."]);
    running.stop().await;
}
