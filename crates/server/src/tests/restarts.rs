//! Sessions outlive the server.

use serde_json::json;
use tokio::io::AsyncWriteExt as _;

use super::harness::{PATIENCE, Setup, runs, scripted};

#[tokio::test]
async fn a_call_that_waits_is_decided_on_after_a_restart() {
    let adapter = scripted().message(runs("c1", "make")).answer("Made.");
    let mut fixture = Setup::new(adapter).asking().start().await;
    let id = fixture.create_with("Make it").await;
    let before = fixture.follow(&id, None).await.until_kind("APPROVAL_REQUESTED").await;
    let last = before.iter().rev().find_map(|frame| frame.id.clone()).unwrap();
    fixture.restart().await;
    let session = fixture.get(&format!("/v1/sessions/{id}")).await.json();
    assert_eq!(session["live"], json!(true), "it was taken up: {session}");
    let mut stream = fixture.follow(&id, Some(&last)).await;
    stream.until_kind("APPROVAL_REQUESTED").await;
    let approvals = fixture.get(&format!("/v1/sessions/{id}/approvals")).await.json();
    let body = json!({"fingerprint": approvals["approvals"][0]["fingerprint"], "decision": "approve"});
    let decided = fixture.post(&format!("/v1/sessions/{id}/approvals/c1"), &body).await;
    assert_eq!(decided.status, 202, "{decided:?}");
    stream.until_kind("PROCESSING_END").await;
    assert_eq!(*fixture.host.ran.lock().unwrap(), ["make"]);
}

#[tokio::test]
async fn a_call_can_be_decided_on_while_it_is_prepared_anew() {
    let adapter = scripted().message(runs("c1", "make")).answer("Made.");
    let mut fixture = Setup::new(adapter).asking().start().await;
    let id = fixture.create_with("Make it").await;
    let mut stream = fixture.follow(&id, None).await;
    stream.until_kind("APPROVAL_REQUESTED").await;
    let path = format!("/v1/sessions/{id}/approvals");
    let asked = fixture.get(&path).await.json();
    fixture.host.holds.send_replace(true);
    fixture.restart().await;
    assert_eq!(fixture.get(&format!("/v1/sessions/{id}")).await.json()["live"], json!(true));
    let again = fixture.get(&path).await.json();
    for part in ["call_id", "fingerprint", "arguments"] {
        assert_eq!(again["approvals"][0][part], asked["approvals"][0][part], "{again}");
    }
    let body = json!({"fingerprint": again["approvals"][0]["fingerprint"], "decision": "approve"});
    let decided = fixture.post(&format!("{path}/c1"), &body).await;
    assert_eq!(decided.status, 202, "{decided:?}");
    fixture.host.holds.send_replace(false);
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    assert_eq!(*fixture.host.ran.lock().unwrap(), ["make"]);
    assert_eq!(fixture.get(&path).await.json(), json!({"approvals": []}));
}

#[tokio::test]
async fn sessions_that_rest_are_not_opened_by_a_restart() {
    let mut fixture = Setup::new(scripted().answer("Hello.")).start().await;
    let id = fixture.create_with("Hello").await;
    let before = fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    fixture.restart().await;
    let session = fixture.get(&format!("/v1/sessions/{id}")).await.json();
    assert_eq!((&session["live"], &session["state"]), (&json!(false), &json!("IDLE")));
    let mut stream = fixture.follow(&id, None).await;
    let again = stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
    let of = |frames: &[super::harness::Frame]| -> Vec<(Option<String>, serde_json::Value)> {
        let durable = frames.iter().filter(|frame| frame.id.is_some());
        durable.map(|frame| (frame.id.clone(), frame.data.clone())).collect()
    };
    assert_eq!(of(&again), of(&before), "the same events with the same ids, from the record");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_does_not_keep_the_server() {
    let mut fixture = Setup::new(scripted()).start().await;
    let mut stream = tokio::net::TcpStream::connect(fixture.address).await.unwrap();
    let head = format!(
        "POST /v1/sessions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        fixture.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The server has read the head by the time that it answers another request.
    fixture.get("/v1/health").await;
    tokio::time::timeout(PATIENCE, fixture.shut_down()).await.expect("far less than the time for a body");
}

#[tokio::test]
async fn a_server_that_shuts_down_ends_streams_and_leaves_its_sessions() {
    let mut fixture = Setup::new(scripted()).start().await;
    let id = fixture.create().await;
    let mut stream = fixture.follow(&id, None).await;
    stream.until(|frame| frame.name.as_deref() == Some("ready")).await;
    fixture.shut_down().await;
    while stream.next().await.is_some() {}
    let holder =
        pintle_store::SessionStore::holder(&fixture.host.store, &pintle_agent::SessionId::new(&id)).await;
    assert!(holder.unwrap().is_none(), "nobody holds it");
    assert!(fixture.directory().exists());
}
