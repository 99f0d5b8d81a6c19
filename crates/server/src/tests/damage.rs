//! Sessions whose record is damaged after its first turn.

#![expect(clippy::disallowed_methods, reason = "the test changes what the store has written")]

use std::time::Duration;

use pintle_agent::SessionId;
use pintle_store::{SessionStore as _, StoredJournal};
use serde_json::{Value, json};

use super::harness::{Fixture, PATIENCE, Setup, scripted};

/// Returns a server with a session of two turns, whose record is damaged in the second one.
async fn damaged() -> (Fixture, String) {
    let mut fixture = Setup::new(scripted().answer("One.").answer("Two.").answer("Three.")).start().await;
    let id = fixture.create_with("first").await;
    let mut stream = fixture.follow(&id, None).await;
    stream.until_kind("PROCESSING_END").await;
    fixture.post(&format!("/v1/sessions/{id}/submit"), &json!({"text": "second"})).await;
    stream.until_kind("PROCESSING_END").await;
    drop(stream);
    // The next server opens a session whose run has not ended, or that has posted inputs, and then does not read its record.
    // Summary and inbox follow the event.
    let (store, session) = (fixture.host.store.clone(), SessionId::new(&id));
    let rests = async {
        loop {
            let summary = store.summary(&session).await.unwrap().unwrap();
            let is_idle = summary.properties.get(StoredJournal::STATE).is_some_and(|state| state == "IDLE");
            if is_idle && !store.has_posted(&session).await.unwrap() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, rests).await.expect("the run ends");
    fixture.restart().await;
    assert!(store.holder(&session).await.unwrap().is_none());
    let journal = fixture.directory().join("sessions").join(&id).join("0000000001.jsonl");
    let text = std::fs::read_to_string(&journal).unwrap();
    let changed = text.replacen("\"second\"", "\"Second\"", 1);
    assert_ne!(changed, text);
    std::fs::write(&journal, changed).unwrap();
    (fixture, id)
}

fn texts(history: &Value) -> Vec<&str> {
    history["turns"].as_array().unwrap().iter().filter_map(|turn| turn["text"].as_str()).collect()
}

#[tokio::test]
async fn everything_before_the_damage_is_read() {
    let (fixture, id) = damaged().await;
    let path = |what: &str| format!("/v1/sessions/{id}/{what}");
    let history = fixture.get(&path("history")).await;
    assert_eq!(history.status, 200, "{history:?}");
    let history = history.json();
    assert_eq!(texts(&history), ["first", "One."]);
    assert!(
        history["damage"].as_str().is_some_and(|damage| damage.contains("is damaged at line")),
        "{history}"
    );

    let mut stream = fixture.follow(&id, None).await;
    let frames = stream.until(|frame| frame.name.as_deref() == Some("problem")).await;
    let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame.data["kind"].as_str()).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == "PROCESSING_END").count(), 1, "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| **kind == "MODEL_RESPONSE").count(), 1, "{kinds:?}");
    let problem = &frames.last().unwrap().data;
    assert_eq!(
        (&problem["status"], &problem["type"]),
        (&json!(409), &json!("/problems/damaged")),
        "{problem}"
    );
    assert!(problem["detail"].as_str().unwrap().contains("is damaged at line"), "{problem}");
    assert_eq!(stream.next().await, None, "the stream ends");

    // A client that continues gets nothing twice.
    let last = frames.iter().rev().find_map(|frame| frame.id.clone()).unwrap();
    let rest = fixture.follow(&id, Some(&last)).await.until(|_| true).await;
    assert_eq!(rest[0].name.as_deref(), Some("problem"), "{rest:?}");

    let costs = fixture.get("/v1/costs").await.json();
    assert_eq!((&costs["sessions"], &costs["is_complete"]), (&json!(1), &json!(false)), "{costs}");
    assert_eq!(costs["days"][0]["responses"], 1, "{costs}");
}

#[tokio::test]
async fn a_fork_begins_before_the_damage() {
    let (fixture, id) = damaged().await;
    let fork =
        async |turns: usize| fixture.post(&format!("/v1/sessions/{id}/fork"), &json!({"turns": turns})).await;
    assert_eq!(fork(3).await.status, 400);
    let forked = fork(2).await;
    assert_eq!(forked.status, 201, "{forked:?}");
    let forked = forked.json()["id"].as_str().unwrap().to_owned();
    let mut stream = fixture.follow(&forked, None).await;
    fixture.post(&format!("/v1/sessions/{forked}/submit"), &json!({"text": "again"})).await;
    stream.until_kind("PROCESSING_END").await;
    let history = fixture.get(&format!("/v1/sessions/{forked}/history")).await.json();
    assert_eq!(texts(&history), ["first", "One.", "again", "Three."], "{history}");
    assert_eq!(history["damage"], Value::Null);
    // The session itself does not continue.
    let refused = fixture.post(&format!("/v1/sessions/{id}/rewind"), &json!({"turns": 2})).await;
    assert_eq!((refused.status, &refused.json()["type"]), (409, &json!("/problems/damaged")), "{refused:?}");
    let checkpoints = fixture.get(&format!("/v1/sessions/{id}/checkpoints")).await;
    let detail = checkpoints.json()["detail"].as_str().unwrap_or_default().to_owned();
    assert_eq!(checkpoints.status, 409, "{checkpoints:?}");
    assert!(detail.contains("is damaged at line"), "{detail}");
    let remedy = format!("`POST /v1/sessions/{id}/fork` with `{{\"turns\": 2}}` or fewer");
    assert!(detail.contains(&remedy), "{detail}");
}
