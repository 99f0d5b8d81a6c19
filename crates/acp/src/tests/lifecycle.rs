//! Connections and sessions: begun, opened again, listed, set and closed.

use pintle_llm::{Error, ErrorKind};
use serde_json::{Value, json};

use super::harness::{TestClient, TestHost, anthropic, hanging, writing};

#[tokio::test]
async fn initializing_negotiates_version_and_capabilities() {
    let mut client = TestClient::connect(&TestHost::new(anthropic()));
    let result =
        client.call("initialize", json!({"protocolVersion": 9, "clientCapabilities": {"fs": 7}})).await;
    assert_eq!(
        result,
        json!({
            "protocolVersion": 1,
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": false, "sse": false},
                "sessionCapabilities": {"close": {}, "delete": {}, "list": {}, "resume": {}},
                "auth": {"logout": {}},
            },
            "agentInfo": {"name": "test", "version": "1.0.0"},
            "authMethods": [{"id": "key", "name": "API key"}],
        })
    );
    client.close().await.unwrap();
}

#[tokio::test]
async fn nothing_is_done_before_the_connection_is_initialized() {
    let mut client = TestClient::connect(&TestHost::new(anthropic()));
    let error = client.call_in_vain("session/new", json!({"cwd": "/project", "mcpServers": []})).await;
    assert_eq!(error["code"], -32600);
    client.close().await.unwrap();
}

#[tokio::test]
async fn authentication_is_the_hosts() {
    let mut client = TestClient::start(&TestHost::new(anthropic())).await;
    let error = client.call_in_vain("session/new", json!({"cwd": "/private", "mcpServers": []})).await;
    assert_eq!(error["code"], -32000);
    client.call("authenticate", json!({"methodId": "key"})).await;
    assert_eq!(client.call_in_vain("authenticate", json!({"methodId": "x"})).await["code"], -32602);
    client.close().await.unwrap();
}

#[tokio::test]
async fn logout_is_the_hosts() {
    let host = TestHost::new(anthropic());
    let mut client = TestClient::start(&host).await;
    assert_eq!(client.call("logout", json!({})).await, json!({}));
    let error = client.call_in_vain("logout", json!({})).await;
    assert_eq!((&error["message"], *host.logouts.lock().unwrap()), (&json!("there is no key"), 2));
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_session_is_closed_before_it_is_deleted() {
    let host = TestHost::new(anthropic().message(hanging()));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    let params = json!({"sessionId": session});
    assert_eq!(client.call("session/delete", params.clone()).await, json!({}));
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    assert_eq!(*host.deleted.lock().unwrap(), std::slice::from_ref(&session));
    let error = client.call_in_vain("session/load", opening(&session)).await;
    assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32002), &json!("no_such_session")));
    // A session that does not exist counts as deleted.
    assert_eq!(client.call("session/delete", params).await, json!({}));
    assert_eq!(host.deleted.lock().unwrap().len(), 1);
    client.close().await.unwrap();
}

#[tokio::test]
async fn titles_and_costs_are_told() {
    let mut host = TestHost::new(anthropic().answer("One.").answer("Two."));
    host.titled = true;
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "first").await;
    assert_eq!(client.update("session_info_update").await["title"], "first");
    let usage = client.update("usage_update").await;
    assert_eq!(usage["cost"], json!({"amount": 0.25, "currency": "USD"}), "{usage}");
    assert_eq!(usage["size"], 1_000, "{usage}");
    client.stop_reason(prompt).await;
    client.call("session/close", json!({"sessionId": session})).await;
    client.call("session/resume", opening(&session)).await;
    assert_eq!(client.update("session_info_update").await["title"], "first");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_closed_session_can_be_loaded_with_its_history() {
    let adapter = anthropic().message(writing("a.txt", "hello\n")).answer("Written.").answer("Again.");
    let host = TestHost::new(adapter);
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    client.stop_reason(prompt).await;
    client.call("session/close", json!({"sessionId": session})).await;
    let error = client.call_in_vain("session/prompt", json!({"sessionId": session, "prompt": []})).await;
    assert_eq!(error["code"], -32002);

    let before = client.log.len();
    client.call("session/load", opening(&session)).await;
    let replayed = &client.log[before..];
    let kinds: Vec<&Value> =
        replayed.iter().map(|message| &message["params"]["update"]["sessionUpdate"]).collect();
    // The history comes before the response, which is last.
    assert_eq!(
        kinds,
        ["user_message_chunk", "tool_call", "agent_message_chunk", ""]
            .map(|kind| { if kind.is_empty() { Value::Null } else { json!(kind) } })
            .iter()
            .collect::<Vec<_>>()
    );
    let call = &replayed[1]["params"]["update"];
    assert_eq!((&call["kind"], &call["status"]), (&json!("edit"), &json!("completed")));
    assert_eq!(call["content"][0]["type"], "diff");
    assert_eq!(host.adapter.requests().len(), 2, "nothing runs");

    let prompt = client.prompt(&session, "again").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    client.close().await.unwrap();
}

#[tokio::test]
async fn resuming_shows_nothing() {
    let host = TestHost::new(anthropic().answer("One.").answer("Two."));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "one").await;
    client.stop_reason(prompt).await;
    client.call("session/close", json!({"sessionId": session})).await;
    let before = client.log.len();
    client.call("session/resume", opening(&session)).await;
    assert_eq!(client.log.len(), before + 1);
    let prompt = client.prompt(&session, "two").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    assert_eq!(client.said(), "One.Two.");
    client.close().await.unwrap();
}

fn opening(session: &str) -> Value {
    json!({"sessionId": session, "cwd": "/project", "mcpServers": []})
}

#[tokio::test]
async fn sessions_that_cannot_be_opened_say_why() {
    let host = TestHost::new(anthropic());
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let elsewhere = json!({"sessionId": session, "cwd": "/elsewhere", "mcpServers": []});
    let error = client.call_in_vain("session/load", elsewhere.clone()).await;
    assert_eq!(error["data"]["reason"], "other_directory");
    client.call("session/close", json!({"sessionId": session})).await;
    let cases = [
        (elsewhere, -32602, "other_directory"),
        (opening("held"), -32010, "session_held"),
        (opening("nothing"), -32002, "no_such_session"),
    ];
    for (params, code, reason) in cases {
        let error = client.call_in_vain("session/load", params).await;
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(code), &json!(reason)));
    }
    client.close().await.unwrap();
}

/// A session that is loaded while its turn goes on is shown, and its turn can be cancelled.
#[tokio::test]
async fn a_busy_session_can_be_loaded_and_cancelled() {
    let mut client = TestClient::start(&TestHost::new(anthropic().message(hanging()).answer("Fine."))).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    client.call("session/load", opening(&session)).await;
    client.update("user_message_chunk").await;
    client.cancel(&session).await;
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    client.close().await.unwrap();
}

/// No later prompt can succeed with the key that the provider rejects.
#[tokio::test]
async fn prompts_after_a_turn_that_ended_the_session_say_what_to_do() {
    let failure = || Error::new(ErrorKind::Authentication, "invalid x-api-key");
    let host = TestHost::new(anthropic().failure(failure()).failure(failure()));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let (failing, queued) = (client.prompt(&session, "one").await, client.prompt(&session, "two").await);
    assert_eq!(client.response(failing).await["error"]["data"]["reason"], "turn_failed");
    // While the host closes the session, and afterwards.
    for prompt in [queued, client.prompt(&session, "three").await] {
        let error = client.response(prompt).await["error"].clone();
        assert_eq!((&error["code"], &error["data"]["reason"]), (&json!(-32010), &json!("session_ended")));
        assert!(error["message"].as_str().unwrap().contains("start a new session"), "{error}");
    }
    // Once it is answered, in either way, the host has closed the session.
    let close = client.request("session/close", json!({"sessionId": session})).await;
    client.response(close).await;
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "four"}]});
    let error = client.call_in_vain("session/prompt", params.clone()).await;
    assert_eq!(error["data"]["reason"], "session_ended", "{error}");
    assert_eq!(host.adapter.requests().len(), 1, "only the first prompt reaches the model");

    // A deleted session is unknown, and other sessions are not affected.
    client.call("session/delete", json!({"sessionId": session})).await;
    assert_eq!(client.call_in_vain("session/prompt", params).await["code"], -32002);
    let other = client.new_session().await;
    let prompt = client.prompt(&other, "one").await;
    assert_eq!(client.response(prompt).await["error"]["data"]["reason"], "turn_failed");
    client.close().await.unwrap();
}

#[tokio::test]
async fn closing_waits_for_the_turn_to_settle() {
    let mut client = TestClient::start(&TestHost::new(anthropic().message(hanging()))).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    let close = client.request("session/close", json!({"sessionId": session})).await;
    client.response(close).await;
    let at = |id: i64| {
        client.log.iter().position(|message| message["id"] == id && message.get("result").is_some())
    };
    assert!(at(prompt).unwrap() < at(close).unwrap(), "{:#?}", client.log);
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    client.close().await.unwrap();
}

#[tokio::test]
async fn sessions_are_listed_in_pages() {
    let host = TestHost::new(anthropic());
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    client.call("session/close", json!({"sessionId": session})).await;
    let page = client.call("session/list", json!({})).await;
    let expected = json!({"sessionId": session, "cwd": "/project", "title": "A"});
    assert_eq!(page, json!({"sessions": [expected], "nextCursor": "2"}));
    assert_eq!(client.call_in_vain("session/list", json!({"cursor": "x"})).await["code"], -32602);
    client.close().await.unwrap();
}

#[tokio::test]
async fn modes_and_options_are_shown_and_set() {
    let mut client = TestClient::start(&TestHost::new(anthropic())).await;
    let result = client.call("session/new", json!({"cwd": "/project", "mcpServers": []})).await;
    let session = result["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(result["modes"]["currentModeId"], "ask");
    // The client has not said that it knows switches.
    assert_eq!(result["configOptions"].as_array().unwrap().len(), 1);

    client.call("session/set_mode", json!({"sessionId": session, "modeId": "auto"})).await;
    assert_eq!(client.update("current_mode_update").await["currentModeId"], "auto");
    let params = json!({"sessionId": session, "configId": "effort", "value": "high"});
    let result = client.call("session/set_config_option", params).await;
    assert_eq!(result["configOptions"][0]["currentValue"], "high");

    let wrong = [
        ("session/set_mode", json!({"sessionId": session, "modeId": "x"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "x", "value": "high"})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "effort", "value": 7})),
        ("session/set_config_option", json!({"sessionId": session, "configId": "effort", "value": true})),
    ];
    for (method, params) in wrong {
        assert_eq!(client.call_in_vain(method, params.clone()).await["code"], -32602, "{params}");
    }
    client.close().await.unwrap();
}
