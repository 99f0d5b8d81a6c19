//! The client offers every operation of the server's description.

use std::collections::BTreeSet;

use futures_util::StreamExt as _;
use pintle_agent::{Decision, SessionId};
use pintle_llm::Fingerprint;
use serde_json::Value;

use super::harness::{Canned, quick, response};
use crate::{
    AuditFormat, Client, ExportFormat, FilePoint, GateDecision, NewSession, RestoreRequest, SessionQuery,
    SettingsChange, TaskGate,
};

const DESCRIPTION: &str = include_str!("../../../server/openapi.json");

/// Operations that are for pages and load balancers.
const NOT_OF_CLIENTS: [&str; 5] = ["followStreams", "logIn", "logOut", "readReadiness", "readToken"];

/// Calls every method. Each request fails.
async fn call_everything(client: &Client) {
    let session = &SessionId::new("s1");
    let fingerprint = Fingerprint::from_bytes(b"call");
    let gate = TaskGate { name: "result".to_owned(), place: 1, candidate: None };
    let failed = [
        client.health().await.is_err(),
        client.list_sessions(&SessionQuery::default()).await.is_err(),
        client.create_session(NewSession::default()).await.is_err(),
        client.session(session).await.is_err(),
        client.change_session(session, &SettingsChange::default()).await.is_err(),
        client.delete_session(session).await.is_err(),
        client.fork(session, 1).await.is_err(),
        client.submit(session, "text").await.is_err(),
        client.follow_up(session, "text").await.is_err(),
        client.say(session, "text").await.is_err(),
        client.steer(session, "text").await.is_err(),
        client.interrupt(session).await.is_err(),
        client.abort(session).await.is_err(),
        client.compact(session).await.is_err(),
        client.rewind(session, 1).await.is_err(),
        client.approvals(session).await.is_err(),
        client.decide(session, "c1", fingerprint, Decision::Approve).await.is_err(),
        client.history(session).await.is_err(),
        client.journal(session, 1, None).next().await.unwrap().is_err(),
        client.blob(session, "hash", None).await.is_err(),
        client.checkpoints(session).await.is_err(),
        client.diff(session, &FilePoint::Entries(0)).await.is_err(),
        client.restore(session, RestoreRequest::new(FilePoint::Entries(0))).await.is_err(),
        client.export(session, ExportFormat::Html).await.is_err(),
        client.audit(session, AuditFormat::Text).await.is_err(),
        client.models().await.is_err(),
        client.tools(session).await.is_err(),
        client.costs(7).await.is_err(),
        client.metrics().await.is_err(),
        client.events(session, None).next().await.unwrap().is_err(),
        client.changes().next().await.unwrap().is_err(),
        client.list_tasks(None, None).await.is_err(),
        client.task(session).await.is_err(),
        client.task_report(session).await.is_err(),
        client.candidate_diff(session, 0).await.is_err(),
        client.task_events(session, None).next().await.unwrap().is_err(),
        client.steer_task(session, None, "text").await.is_err(),
        client.decide_task(session, &gate, GateDecision::Approve).await.is_err(),
        client.cancel_task(session, None).await.is_err(),
    ];
    assert!(failed.iter().all(|failed| *failed), "{failed:?}");
}

/// Returns whether a path is one of the template.
fn is_of(path: &str, template: &str) -> bool {
    let (path, template): (Vec<&str>, Vec<&str>) = (path.split('/').collect(), template.split('/').collect());
    let fits = |(part, name): (&&str, &&str)| part == name || name.starts_with('{');
    path.len() == template.len() && path.iter().zip(&template).all(fits)
}

#[tokio::test]
async fn every_operation_has_a_method() {
    let server = Canned::start(vec![response("400 Bad Request", "text/plain", "", "no")]).await;
    call_everything(&server.client(quick())).await;
    let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
    let mut described = BTreeSet::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        let operations = methods.as_object().unwrap().iter();
        let of_clients = operations.filter(|(_, operation)| {
            !NOT_OF_CLIENTS.contains(&operation["operationId"].as_str().unwrap_or_default())
        });
        described.extend(of_clients.map(|(method, _)| (method.to_uppercase(), path.clone())));
    }
    let mut called = BTreeSet::new();
    for request in server.requests() {
        let mut words = request.split(' ');
        let (method, target) = (words.next().unwrap(), words.next().unwrap());
        let path = target.split('?').next().unwrap();
        let fits = |(known, template): &&(String, String)| known == method && is_of(path, template);
        let operation = described.iter().find(fits);
        called.insert(operation.unwrap_or_else(|| panic!("{method} {path} is not described")).clone());
        let is_keyed = request.to_lowercase().contains("\r\nidempotency-key: ");
        assert_eq!(is_keyed, method != "GET", "{request}");
        assert!(request.contains("authorization: Bearer secret\r\n"), "{request}");
    }
    let missing: Vec<_> = described.difference(&called).collect();
    assert!(missing.is_empty(), "the client lacks {missing:?}");
}
