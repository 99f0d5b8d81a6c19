//! Bad input: answered with an error, and nothing is lost.

use std::time::Duration;

use serde_json::{Value, json};

use super::harness::{TestClient, TestHost, anthropic, hanging};
use crate::AcpAgent;

/// Sends rubbish while a session is open, and then uses the session.
#[tokio::test]
async fn rubbish_is_answered_and_the_session_lasts() {
    let host = TestHost::new(anthropic().answer("Still here."));
    let mut client = TestClient::connect_to(AcpAgent::new(host.clone()).with_max_line(4_096));
    client.initialize(json!({})).await;
    let session = client.new_session().await;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(5_000));
    let lines: [(&[u8], i64); 8] = [
        (b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sess", -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[]", -32600),
        (br#"{"jsonrpc":"2.0","id":{},"method":"session/new"}"#, -32600),
        (br#"{"jsonrpc":"1.0","id":"a","method":"session/new"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":"b"}"#, -32600),
        (br#"{"jsonrpc":"2.0","id":"c","method":7}"#, -32600),
        (long.as_bytes(), -32600),
    ];
    for (line, code) in lines {
        client.send_line(line).await;
        let answer = client.next().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{answer}");
    }
    let requests: [(&str, Value, i64); 11] = [
        ("session/dance", json!({}), -32601),
        ("session/new", json!({}), -32602),
        ("session/new", json!([]), -32602),
        ("session/new", json!({"cwd": "relative", "mcpServers": []}), -32602),
        (
            "session/new",
            json!({"cwd": "/project", "mcpServers": [{"name": "x", "type": "sse", "url": "y"}]}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": "/project", "mcpServers": [], "additionalDirectories": ["/x"]}),
            -32602,
        ),
        ("session/prompt", json!({"sessionId": "nothing", "prompt": []}), -32002),
        ("session/prompt", json!({"sessionId": session, "prompt": []}), -32602),
        ("session/prompt", json!({"sessionId": session, "prompt": [{"type": "smell"}]}), -32602),
        ("session/prompt", json!({"sessionId": 7, "prompt": []}), -32602),
        ("session/close", json!({"sessionId": "nothing"}), -32002),
    ];
    for (method, params, code) in requests {
        assert_eq!(client.call_in_vain(method, params.clone()).await["code"], code, "{method} {params}");
    }
    // Nobody answers a notification, and nobody waits for these responses.
    client.notify("session/cancel", json!({"sessionId": "nothing"})).await;
    client.notify("session/cancel", json!(7)).await;
    client.notify("no/such", json!({})).await;
    client.send(json!({"jsonrpc": "2.0", "id": 99, "result": {}})).await;
    client.send(json!({"jsonrpc": "2.0", "id": "x", "error": {"code": "?"}})).await;
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    client.close().await.unwrap();
}

#[tokio::test]
async fn an_id_in_use_is_refused() {
    let mut client = TestClient::start(&TestHost::new(anthropic().message(hanging()))).await;
    let session = client.new_session().await;
    let id = client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    client.send(json!({"jsonrpc": "2.0", "id": id, "method": "session/list"})).await;
    assert_eq!(client.response(id).await["error"]["code"], -32600);
    client.cancel(&session).await;
    assert_eq!(client.stop_reason(id).await, "cancelled");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_host_that_panics_fails_only_the_request() {
    let mut client = TestClient::start(&TestHost::new(anthropic().answer("Fine."))).await;
    let session = client.new_session().await;
    let error = client.call_in_vain("session/new", json!({"cwd": "/panic", "mcpServers": []})).await;
    assert_eq!(error["code"], -32603);
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_client_that_closes_in_a_prompt_loses_no_session() {
    let host = TestHost::new(anthropic().message(hanging()).answer("Back."));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    client.send_line(br#"{"jsonrpc":"2.0","#).await;
    client.close().await.unwrap();
    assert_eq!(client.stop_reason(prompt).await, "cancelled");

    let mut client = TestClient::start(&host).await;
    client.call("session/load", json!({"sessionId": session, "cwd": "/project", "mcpServers": []})).await;
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_client_that_disappears_leaves_closed_sessions() {
    let host = TestHost::new(anthropic().message(hanging()));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    client.vanish().await;
    assert_eq!(host.kept.lock().unwrap().len(), 1);
}

/// The agent waits for a client that reads nothing, and takes no more than it can hold.
#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_given_up_at_the_end() {
    let text = "x".repeat(12 << 20);
    let host = TestHost::new(anthropic().answer(text));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    client.prompt(&session, "tell me all").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    client.stop_writing().await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(host.kept.lock().unwrap().len(), 1, "the session is closed all the same");
}
