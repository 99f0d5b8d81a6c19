//! Limits on open sessions: those that do nothing make way, and the others are waited for.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{Fixture, PATIENCE, Request, Setup, runs, scripted};
use crate::{AccessToken, AccessTokens, ServerLimits, TokenScope};

/// Waits until a session is as expected.
async fn wait_for(fixture: &Fixture, id: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let session = fixture.get(&format!("/v1/sessions/{id}")).await.json();
        if is_so(&session) {
            return session;
        }
        assert!(tokio::time::Instant::now() < end, "{session}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn limits(sessions: usize) -> ServerLimits {
    ServerLimits::default().with_sessions(sessions).with_drain(Duration::from_millis(50))
}

#[tokio::test]
async fn sessions_beyond_the_limit_wait_for_others_to_end() {
    let adapter = scripted().message(runs("c1", "sleep 600")).answer("Second.").answer("Third.");
    let fixture = Setup::new(adapter).with_limits(limits(1)).start().await;
    let first = fixture.create_with("Sleep").await;
    fixture.follow(&first, None).await.until_kind("TOOL_CALL_START").await;
    let second = fixture.create_with("Second").await;
    let third = fixture.create_with("Third").await;
    for (id, position) in [(&second, 1), (&third, 2)] {
        let session = fixture.get(&format!("/v1/sessions/{id}")).await.json();
        assert_eq!((&session["live"], &session["queue_position"]), (&json!(false), &json!(position)));
    }
    assert!(fixture.get("/v1/metrics").await.text().contains("\npintle_sessions_waiting 2\n"));
    // A change of settings needs the session at once.
    let change = Request::new("PATCH", &format!("/v1/sessions/{second}")).json(&json!({"mode": "auto"}));
    let refused = fixture.send(change).await;
    assert_eq!((refused.status, refused.json()["type"].as_str()), (429, Some("/problems/full")));
    fixture.post(&format!("/v1/sessions/{first}/interrupt"), &json!({})).await;
    // Each makes way for the next one, also while it is watched.
    for (id, answer) in [(&second, "Second."), (&third, "Third.")] {
        let mut stream = fixture.follow(id, None).await;
        let frames = stream.until_kind("PROCESSING_END").await;
        assert!(frames.iter().any(|frame| frame.data.to_string().contains(answer)), "{answer}");
    }
    let session = wait_for(&fixture, &third, |session| session["state"] == "IDLE").await;
    assert_eq!(session.get("queue_position"), None);
}

#[tokio::test]
async fn a_tenant_at_its_limit_keeps_no_other_waiting() {
    let (mut tokens, mut secrets) = (Vec::new(), Vec::new());
    for tenant in ["x", "y"] {
        let (token, secret) = AccessToken::generate(tenant, TokenScope::ALL).unwrap();
        tokens.push(token.with_tenant(tenant));
        secrets.push(secret);
    }
    let adapter = scripted().message(runs("c1", "sleep 600")).answer("Hello.");
    let limits = limits(10).with_sessions_of_tenant(1);
    let fixture =
        Setup::new(adapter).with_tokens(AccessTokens::new(tokens)).with_limits(limits).start().await;
    let as_tenant = |request: Request, tenant: usize| {
        request.header("authorization", &format!("Bearer {}", secrets[tenant]))
    };
    let create = async |tenant, text| {
        let request = Request::new("POST", "/v1/sessions").json(&json!({"message": {"text": text}}));
        let created = fixture.send(as_tenant(request, tenant)).await;
        assert_eq!(created.status, 201, "{created:?}");
        created.json()
    };
    let sleeping = create(0, "Sleep").await;
    let path = format!("/v1/sessions/{}/events", sleeping["id"].as_str().unwrap());
    let mut events = fixture.stream_of(as_tenant(Request::new("GET", &path), 0)).await;
    events.until_kind("TOOL_CALL_START").await;
    assert_eq!(create(0, "Wait").await["queue_position"], 1);
    let other = create(1, "Hello").await;
    assert_eq!(other.get("queue_position"), None, "{other}");
    let path = format!("/v1/sessions/{}/events", other["id"].as_str().unwrap());
    let mut events = fixture.stream_of(as_tenant(Request::new("GET", &path), 1)).await;
    events.until_kind("PROCESSING_END").await;
}

#[tokio::test]
async fn no_more_sessions_wait_than_may() {
    let adapter = scripted().message(runs("c1", "sleep 600"));
    let fixture = Setup::new(adapter).with_limits(limits(1).with_waiting(1)).start().await;
    let first = fixture.create_with("Sleep").await;
    fixture.follow(&first, None).await.until_kind("TOOL_CALL_START").await;
    let waiting = fixture.create_with("Wait").await;
    let refused = fixture.post("/v1/sessions", &json!({"message": {"text": "Too much"}})).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.json()["detail"].as_str().unwrap().contains("1 sessions wait for room"), "{refused:?}");
    // One that is deleted waits no more.
    let gone = fixture.send(Request::new("DELETE", &format!("/v1/sessions/{waiting}"))).await;
    assert_eq!(gone.status, 204, "{gone:?}");
    fixture.create_with("Wait instead").await;
}

#[tokio::test]
async fn what_waited_is_taken_up_by_the_next_server() {
    let adapter = scripted().message(runs("c1", "sleep 600")).answer("Second.");
    let mut fixture = Setup::new(adapter).with_limits(limits(1)).start().await;
    let first = fixture.create_with("Sleep").await;
    fixture.follow(&first, None).await.until_kind("TOOL_CALL_START").await;
    let second = fixture.create_with("Second").await;
    fixture.restart().await;
    // One of them is open and the other one waits; both go on.
    let open = |session: &Value| session["live"] == true || session["queue_position"] == 1;
    for id in [&first, &second] {
        wait_for(&fixture, id, open).await;
    }
    fixture.post(&format!("/v1/sessions/{first}/abort"), &json!({})).await;
    fixture.follow(&second, None).await.until_kind("PROCESSING_END").await;
}
