//! Calls that the user of the client decides on.

use serde_json::{Value, json};

use super::harness::{TestClient, TestHost, anthropic, calling, writing};

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

/// Runs a turn that writes `a.txt`, with this answer. Returns the request and the client.
async fn decided(answer: Value) -> (Value, TestHost, TestClient) {
    let host = TestHost::new(anthropic().message(writing("a.txt", "hello\n")).answer("Well.")).asking();
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    let request = client.asked("session/request_permission").await;
    client.answer(&request, answer).await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    (request["params"].clone(), host, client)
}

async fn is_written(host: &TestHost) -> bool {
    use pintle_env::ExecutionEnvironmentExt as _;
    host.env.file_exists(std::path::Path::new("/project/a.txt")).await.unwrap()
}

#[tokio::test]
async fn an_allowed_call_runs() {
    let (request, host, mut client) = decided(selected("allow_once")).await;
    assert!(is_written(&host).await);
    let call = &request["toolCall"];
    assert_eq!(
        (&call["title"], &call["kind"], &call["status"]),
        (&json!("Edit a.txt"), &json!("edit"), &json!("pending"))
    );
    let diff = json!({"type": "diff", "path": "/project/a.txt", "newText": "hello\n"});
    assert!(call["content"].as_array().unwrap().contains(&diff), "{call}");
    let kinds: Vec<&str> =
        request["options"].as_array().unwrap().iter().filter_map(|option| option["kind"].as_str()).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    assert!(host.rules.lock().unwrap().is_empty());
    client.close().await.unwrap();
}

#[tokio::test]
async fn always_adds_the_suggested_rules() {
    let (_, host, mut client) = decided(selected("allow_always")).await;
    assert!(is_written(&host).await);
    assert_eq!(*host.rules.lock().unwrap(), ["write_file(this)"]);
    client.close().await.unwrap();
}

#[tokio::test]
async fn calls_do_not_run_without_a_valid_permission() {
    let answers = [
        selected("reject_once"),
        selected("allow_everything"),
        json!({"outcome": {"outcome": "maybe"}}),
        json!({}),
        json!("yes"),
    ];
    for answer in answers {
        let (_, host, mut client) = decided(answer.clone()).await;
        assert!(!is_written(&host).await, "{answer}");
        let failed = client.take(|message| message["params"]["update"]["status"] == "failed").await;
        assert_eq!(failed["params"]["update"]["sessionUpdate"], "tool_call_update");
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn an_error_of_the_client_is_a_denial() {
    let host = TestHost::new(anthropic().message(writing("a.txt", "x")).answer("Well.")).asking();
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    let request = client.asked("session/request_permission").await;
    client
        .send(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "what?"}}))
        .await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    assert!(!is_written(&host).await);
    client.close().await.unwrap();
}

#[tokio::test]
async fn pending_requests_are_cancelled_with_the_turn() {
    let calls = calling(&[
        ("write_file", json!({"file_path": "a.txt", "content": "a"})),
        ("write_file", json!({"file_path": "b.txt", "content": "b"})),
    ]);
    let host = TestHost::new(anthropic().message(calls).answer("Fine.")).asking();
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write two files").await;
    let request = client.asked("session/request_permission").await;
    client.cancel(&session).await;
    let cancelled = client.take(|message| message["method"] == "$/cancel_request").await;
    assert_eq!(cancelled["params"]["requestId"], request["id"]);
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    // A client that answers all the same, and allows, is too late.
    client.answer(&request, selected("allow_once")).await;
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    assert!(!is_written(&host).await);
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_request_that_the_client_cancels_ends_the_turn() {
    let host = TestHost::new(anthropic().message(writing("a.txt", "x")).answer("Fine.")).asking();
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    let request = client.asked("session/request_permission").await;
    client.answer(&request, json!({"outcome": {"outcome": "cancelled"}})).await;
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    client.close().await.unwrap();
}
