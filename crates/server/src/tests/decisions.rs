//! Calls that wait for a decision.

use serde_json::{Value, json};

use super::harness::{Fixture, Request, Setup, runs, scripted};

async fn waiting(fixture: &Fixture, id: &str) -> Value {
    let mut stream = fixture.follow(id, None).await;
    stream.until_kind("APPROVAL_REQUESTED").await;
    fixture.get(&format!("/v1/sessions/{id}/approvals")).await.json()["approvals"][0].clone()
}

fn decision(approval: &Value, more: &Value) -> Value {
    let mut body = json!({"fingerprint": approval["fingerprint"]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn the_first_of_two_decisions_counts() {
    let adapter = scripted().message(runs("c1", "make")).answer("Made.");
    let fixture = Setup::new(adapter).asking().start().await;
    let id = fixture.create_with("Make it").await;
    let approval = waiting(&fixture, &id).await;
    assert_eq!(approval["arguments"]["command"], "make", "{approval}");
    let path = format!("/v1/sessions/{id}/approvals/c1");
    let approve = decision(&approval, &json!({"decision": "approve"}));
    let deny = decision(&approval, &json!({"decision": "deny", "reason": "not today"}));
    let first = || Request::new("POST", &path).json(&approve).header("idempotency-key", "a");
    let second = Request::new("POST", &path).json(&deny).header("idempotency-key", "b");
    let (first_answer, second_answer) = tokio::join!(fixture.send(first()), fixture.send(second));
    let mut codes = [first_answer.status, second_answer.status];
    codes.sort_unstable();
    assert_eq!(codes, [202, 409], "one of them is told that it is late");
    let frames = fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let decided = frames.iter().filter(|frame| frame.data["kind"] == "APPROVAL_DECIDED").count();
    assert_eq!(decided, 1);
    let ran = usize::from(first_answer.status == 202);
    assert_eq!(fixture.host.ran.lock().unwrap().len(), ran, "released once, or not at all");
    assert_eq!(fixture.send(first()).await.status, first_answer.status, "a repetition gets the same answer");
    let third = Request::new("POST", &path).json(&approve).header("idempotency-key", "c");
    assert_eq!(fixture.send(third).await.status, 409, "it is over");
}

#[tokio::test]
async fn words_to_a_denial_reach_the_model() {
    let adapter = scripted().message(runs("c1", "make")).answer("Then not.");
    let fixture = Setup::new(adapter).asking().start().await;
    let id = fixture.create_with("Make it").await;
    let approval = waiting(&fixture, &id).await;
    let body = decision(&approval, &json!({"decision": "deny", "reason": "use just instead"}));
    assert_eq!(fixture.post(&format!("/v1/sessions/{id}/approvals/c1"), &body).await.status, 202);
    fixture.follow(&id, None).await.until_kind("PROCESSING_END").await;
    let request = format!("{:?}", fixture.host.adapter.requests().last().unwrap());
    assert!(request.contains("use just instead"), "{request}");
    assert!(fixture.host.ran.lock().unwrap().is_empty());
}

#[tokio::test]
async fn wrong_decisions_change_nothing() {
    let adapter = scripted().message(runs("c1", "make")).answer("Made.");
    let fixture = Setup::new(adapter).asking().start().await;
    let id = fixture.create_with("Make it").await;
    let approval = waiting(&fixture, &id).await;
    let path = format!("/v1/sessions/{id}/approvals/c1");
    let other = json!({"fingerprint": "00000000000000000000000000000000"});
    for (body, status) in [
        (decision(&other, &json!({"decision": "approve"})), 409),
        (json!({"fingerprint": "x", "decision": "approve"}), 400),
        (decision(&approval, &json!({"decision": "maybe"})), 400),
        (decision(&approval, &json!({"decision": "approve", "reason": "x"})), 400),
        (decision(&approval, &json!({"decision": "change"})), 400),
        (decision(&approval, &json!({"decision": "approve", "more": 1})), 400),
    ] {
        let answer = fixture.post(&path, &body).await;
        assert_eq!(answer.status, status, "{body}: {answer:?}");
    }
    let elsewhere = fixture
        .post(
            &format!("/v1/sessions/{id}/approvals/c2"),
            &decision(&approval, &json!({"decision": "approve"})),
        )
        .await;
    assert_eq!(elsewhere.status, 409);
    let restore = fixture.post(&format!("/v1/sessions/{id}/restore"), &json!({"turns": 0})).await;
    assert!(restore.status == 409 && restore.text().contains("interrupt it first"), "{restore:?}");
    let changed =
        decision(&approval, &json!({"decision": "change", "arguments": {"command": "make slowly"}}));
    assert_eq!(fixture.post(&path, &changed).await.status, 202);
}
