//! Tasks of the same store, which other processes run.

mod acting;
mod following;
mod performer;

use pintle_agent::{Clock as _, SessionId};
use pintle_store::{Barrier, SessionStore as _, Summary};
use pintle_workflow::{KIND, KIND_TASK, LocalTaskHost};
use serde_json::{Value, json};

use self::performer::{Running, contract, done_task};
use super::harness::{Request, Setup, scripted};
use crate::{AccessToken, AccessTokens, TokenScope};

#[tokio::test]
async fn a_task_is_listed_and_read() {
    let fixture = Setup::new(scripted()).start().await;
    assert_eq!(fixture.get("/v1/tasks").await.json(), json!({"tasks": []}));
    done_task(&fixture, "t1").await;
    let listed = fixture.get("/v1/tasks").await.json();
    let task = &listed["tasks"][0];
    assert_eq!((&task["id"], &task["title"]), (&json!("t1"), &json!("Sums are right.")));
    assert_eq!((&task["state"], &task["running"]), (&json!("done"), &json!(false)));
    assert!(task["updated_at"].as_str() >= task["created_at"].as_str(), "{task}");
    let read = fixture.get("/v1/tasks/t1").await.json();
    assert_eq!((&read["id"], &read["state"], &read["gate"]), (&json!("t1"), &json!("done"), &Value::Null));
    assert_eq!(read["report"]["outcome"]["done"]["candidate"], 1);
    let finding = &read["report"]["candidates"][0]["attempts"][1]["findings"][0];
    assert_eq!(finding["step"], json!({"check": "tests"}));
    let report = fixture.get("/v1/tasks/t1/report").await;
    assert_eq!(report.header("content-type"), "text/markdown; charset=utf-8");
    assert!(report.text().starts_with("# Done\n"), "{report:?}");
    let diff = fixture.get("/v1/tasks/t1/candidates/0/diff").await;
    assert_eq!((diff.status, diff.header("content-type")), (200, "text/x-diff"));
    assert_eq!(diff.text(), "patch of candidate 0, attempt 2\n");
    assert_eq!(fixture.get("/v1/sessions").await.json()["sessions"], json!([]), "it is no session");
}

#[tokio::test]
async fn lists_of_tasks_have_pages() {
    let fixture = Setup::new(scripted()).start().await;
    for id in ["t1", "t2", "t3"] {
        drop(LocalTaskHost::create(&fixture.host.store, SessionId::new(id), contract()).await.unwrap());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    fixture.create().await;
    let (mut ids, mut path) = (Vec::new(), "/v1/tasks?limit=1".to_owned());
    loop {
        let page = fixture.get(&path).await.json();
        let tasks = page["tasks"].as_array().unwrap();
        ids.extend(tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/tasks?limit=1&cursor={next}");
    }
    assert_eq!(ids, ["t3", "t2", "t1"]);
}

#[tokio::test]
async fn a_task_that_cannot_be_read_is_listed() {
    let fixture = Setup::new(scripted()).start().await;
    let summary = Summary::new(SessionId::new("later"), pintle_agent::SystemClock.now());
    let summary = summary.with_property(KIND, KIND_TASK);
    let mut writer = fixture.host.store.create(summary).await.unwrap();
    writer.append(vec!["{\"task\": 9, \"contract\": {}}".to_owned()], Barrier::Synced).await.unwrap();
    drop(writer);
    let listed = fixture.get("/v1/tasks").await.json();
    assert_eq!(listed["tasks"][0]["state"], "cannot be read");
    let read = fixture.get("/v1/tasks/later").await;
    assert_eq!(read.status, 500, "{read:?}");
    let frame = fixture.stream("/v1/tasks/later/events").await.next().await.unwrap();
    assert_eq!(frame.name.as_deref(), Some("problem"));
}

#[tokio::test]
async fn wrong_requests_about_tasks_are_problems() {
    let fixture = Setup::new(scripted()).start().await;
    let session = fixture.create().await;
    drop(LocalTaskHost::create(&fixture.host.store, SessionId::new("t1"), contract()).await.unwrap());
    let post = |path: &str, body: Value| Request::new("POST", path).json(&body);
    let rows = [
        (Request::new("GET", "/v1/tasks/none"), 404, "there is no task `none`"),
        (Request::new("GET", "/v1/tasks/..%2fetc"), 404, "there is no task"),
        (Request::new("GET", &format!("/v1/tasks/{session}")), 404, "there is no task"),
        (Request::new("GET", "/v1/sessions/t1"), 404, "there is no session"),
        (Request::new("GET", "/v1/tasks?limit=101"), 400, "1 to 100"),
        (Request::new("GET", "/v1/tasks?cursor=x"), 400, "`next` of an earlier page"),
        (Request::new("GET", "/v1/tasks?state=done"), 400, "unknown field `state`"),
        (Request::new("GET", "/v1/tasks/t1/candidates/2/diff"), 404, "has no candidate `2`"),
        (Request::new("GET", "/v1/tasks/t1/candidates/x/diff"), 404, "has no candidate `x`"),
        (Request::new("GET", "/v1/tasks/t1/candidates/0/diff"), 404, "has changed nothing"),
        (Request::new("GET", "/v1/tasks/t1/events?after=x"), 400, "no id of an event"),
        (Request::new("POST", "/v1/tasks/t1/cancel"), 415, "application/json"),
        (post("/v1/tasks/none/cancel", json!({})), 404, "there is no task"),
        (post("/v1/tasks/t1/cancel", json!({"reason": " "})), 400, "reason: expected some text"),
        (post("/v1/tasks/t1/steer", json!({"text": ""})), 400, "text: expected some text"),
        (post("/v1/tasks/t1/steer", json!({"words": "x"})), 400, "unknown field `words`"),
        (post("/v1/tasks/t1/steer", json!({"text": "x", "candidate": 2})), 422, "expected less than 2"),
        (post("/v1/tasks/t1/steer", json!({"text": "x", "candidate": -1})), 400, "the body is wrong"),
        (post("/v1/tasks/t1/decide", json!({"gate": "door", "decision": "approve"})), 400, "unknown variant"),
        (post("/v1/tasks/t1/decide", json!({"gate": "result", "decision": "approve"})), 409, "does not wait"),
        (
            post("/v1/tasks/t1/decide", json!({"gate": "result", "decision": "approve", "words": "x"})),
            400,
            "go with `refuse`",
        ),
    ];
    for (request, status, words) in rows {
        let answer = fixture.send(request.clone()).await;
        assert_eq!(answer.status, status, "{request:?}: {answer:?}");
        assert_eq!(answer.header("content-type"), "application/problem+json", "{request:?}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(words), "{request:?}: {answer:?}");
    }
    let id = SessionId::new("t1");
    assert!(!fixture.host.store.has_posted(&id).await.unwrap(), "nothing was said");
}

#[tokio::test]
async fn scopes_and_tenants_hold_for_tasks() {
    let (mut tokens, mut secrets) = (Vec::new(), Vec::new());
    for (name, scopes, tenant) in [
        ("reader", vec![TokenScope::Read], None),
        ("runner", vec![TokenScope::Run], None),
        ("approver", vec![TokenScope::Approve], None),
        ("other", TokenScope::ALL.to_vec(), Some("acme")),
    ] {
        let (mut token, secret) = AccessToken::generate(name, scopes).unwrap();
        token.tenant = tenant.map(str::to_owned);
        tokens.push(token);
        secrets.push(secret);
    }
    let fixture = Setup::new(scripted()).with_tokens(AccessTokens::new(tokens)).start().await;
    let running = Running::start_gated(&fixture, "t1").await;
    running.until_gate(&fixture.host.store).await;
    // The same task, of a tenant.
    let summary = Summary::new(SessionId::new("t2"), pintle_agent::SystemClock.now());
    let summary = summary.with_property(KIND, KIND_TASK).with_property("tenant", "acme");
    let mut writer = fixture.host.store.create(summary).await.unwrap();
    let lines = pintle_store::read_objects(&fixture.host.store, &SessionId::new("t1")).await.unwrap();
    writer.append(lines, Barrier::Synced).await.unwrap();
    drop(writer);
    let [reader, runner, approver, other] = &secrets[..] else { panic!("four tokens") };
    let get = |secret: &str, path: &str| {
        Request::new("GET", path).header("authorization", &format!("Bearer {secret}"))
    };
    let post = |secret: &str, path: &str, body: Value| {
        Request::new("POST", path).header("authorization", &format!("Bearer {secret}")).json(&body)
    };
    let approve = json!({"gate": "result", "decision": "approve"});
    for (request, status) in [
        (Request::new("GET", "/v1/tasks"), 401),
        (get(reader, "/v1/tasks/t1"), 200),
        (get(runner, "/v1/tasks/t1"), 403),
        (get(reader, "/v1/tasks/t2"), 404),
        (get(other, "/v1/tasks/t1"), 404),
        (get(other, "/v1/tasks/t2"), 200),
        (get(other, "/v1/tasks/t1/events"), 404),
        (post(reader, "/v1/tasks/t1/steer", json!({"text": "x"})), 403),
        (post(runner, "/v1/tasks/t1/steer", json!({"text": "x"})), 202),
        (post(other, "/v1/tasks/t1/cancel", json!({})), 404),
        (post(approver, "/v1/tasks/t1/cancel", json!({})), 403),
        (post(runner, "/v1/tasks/t1/decide", approve.clone()), 403),
        (post(approver, "/v1/tasks/t1/decide", approve), 202),
    ] {
        let answer = fixture.send(request.clone()).await;
        assert_eq!(answer.status, status, "{request:?}: {answer:?}");
    }
    // The process of the task takes the posted signals.
    let authors = loop {
        let inputs = pintle_workflow::read_inputs(&fixture.host.store, &SessionId::new("t1")).await.unwrap();
        let posted = inputs.iter().filter(|recorded| recorded.posted.is_some());
        let authors: Vec<String> = posted.map(|recorded| recorded.by.as_ref().unwrap().to_string()).collect();
        if authors.len() == 2 {
            break authors;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    assert_eq!(authors, ["runner", "approver"]);
    for (secret, expected) in [(reader, "t1"), (other, "t2")] {
        let listed = fixture.send(get(secret, "/v1/tasks")).await.json();
        let ids: Vec<&Value> = listed["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
        assert_eq!(ids, [expected]);
    }
}
