//! Tasks of the real server, which a process beside it would run.

use futures_util::StreamExt as _;
use pintle_agent::SessionId;
use pintle_llm::testing::FakeAdapter;
use pintle_workflow::LocalTaskHost;
use pintle_workflow::contract::{AnchorPlan, Contract, DecisionGate, TaskCheck};
use serde_json::{Value, json};

use super::harness::{Canned, Fixture, PATIENCE, quick, response};
use crate::{ClientError, EventId, GateDecision, TaskEvents, TaskGate, TaskItem};

fn contract() -> Contract {
    let anchor = AnchorPlan::None { because: "it is a test".to_owned() };
    Contract::new("Mend it.").with_check(TaskCheck::new("tests", "make test")).with_anchor(anchor)
}

async fn next(items: &mut TaskEvents) -> Option<Result<TaskItem, ClientError>> {
    tokio::time::timeout(PATIENCE, items.next()).await.expect("an item arrives")
}

/// Returns the inputs up to the end of the task, and its state.
async fn to_the_end(items: &mut TaskEvents) -> (Vec<(EventId, Value)>, String) {
    let mut inputs = Vec::new();
    loop {
        match next(items).await.expect("the task ends").unwrap() {
            TaskItem::Input { id, input } => inputs.push((id, input)),
            TaskItem::End { state } => return (inputs, state),
            TaskItem::Reset { reason } => panic!("{reason}"),
            TaskItem::Ready | TaskItem::Disconnected(_) => {}
        }
    }
}

#[tokio::test]
async fn a_task_is_read_told_and_followed() {
    let mut fixture = Fixture::start(FakeAdapter::new("anthropic")).await;
    let client = fixture.client();
    let id = SessionId::new("t1");
    drop(LocalTaskHost::create(fixture.store(), id.clone(), contract()).await.unwrap());
    let listed = client.list_tasks(Some(1), None).await.unwrap();
    assert_eq!((listed.tasks.len(), listed.next), (1, None));
    assert_eq!((listed.tasks[0].title.as_str(), listed.tasks[0].state.as_str()), ("Mend it.", "under way"));
    let read = client.task(&id).await.unwrap();
    assert_eq!((&read.task, read.gate), (&listed.tasks[0], None));
    assert_eq!(read.report["contract"]["goal"], "Mend it.");
    assert!(client.task_report(&id).await.unwrap().starts_with("# Under way"));
    let missing = client.candidate_diff(&id, 0).await.unwrap_err();
    assert_eq!(missing.code(), Some("not_found"));

    let mut items = client.task_events(&id, None);
    assert!(matches!(next(&mut items).await, Some(Ok(TaskItem::Ready))));
    client.steer_task(&id, Some(0), "Use integers.").await.unwrap();
    let unknown = client.steer_task(&id, Some(1), "Use integers.").await.unwrap_err();
    assert_eq!((unknown.code(), unknown.status()), (Some("no_candidate"), Some(422)));
    let gate = TaskGate { name: "result".to_owned(), place: 1, candidate: None };
    let closed = client.decide_task(&id, &gate, GateDecision::Approve).await.unwrap_err();
    assert_eq!(closed.code(), Some("conflict"));
    fixture.restart().await;
    let keyed = client.with_key("cancel");
    keyed.cancel_task(&id, Some("enough")).await.unwrap();
    keyed.cancel_task(&id, Some("enough")).await.unwrap();
    let (inputs, state) = to_the_end(&mut items).await;
    assert_eq!(state, "cancelled");
    let said: Vec<&Value> = inputs.iter().map(|(_, input)| input).collect();
    let steer = json!({"said": {"steer": {"candidate": 0, "text": "Use integers."}}});
    assert_eq!(said, [&steer, &json!({"said": {"cancel": {"reason": "enough"}}})]);
    assert!(next(&mut items).await.is_none(), "the stream ends");
    let mut rest = client.task_events(&id, Some(inputs[0].0.clone()));
    assert_eq!(to_the_end(&mut rest).await.0, inputs[1..], "a stream continues behind an input");
    let ended = client.steer_task(&id, None, "Go on.").await.unwrap_err();
    assert_eq!(ended.code(), Some("ended"));
}

#[tokio::test]
async fn a_decision_names_the_gate_that_was_seen() {
    let server = Canned::start(vec![response("202 Accepted", "text/plain", "", "")]).await;
    let client = server.client(quick());
    let gate: TaskGate = serde_json::from_value(json!({"name": "result", "place": 17})).unwrap();
    let id = SessionId::new("t1");
    let words = Some("Handle zero.".to_owned());
    client.decide_task(&id, &gate, GateDecision::Refuse { words }).await.unwrap();
    let request = server.requests().remove(0);
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let expected = json!({"gate": "result", "place": 17, "decision": "refuse", "words": "Handle zero."});
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), expected);
    // The server and the machine of the task call the gate the same.
    assert_eq!(serde_json::to_value(DecisionGate::Result).unwrap(), json!(gate.name));
}
