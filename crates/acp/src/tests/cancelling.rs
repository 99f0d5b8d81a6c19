//! Cancelled turns: always answered as cancelled, and the session goes on.

use serde_json::json;

use super::harness::{TestClient, TestHost, anthropic, hanging, writing};

#[tokio::test]
async fn a_cancelled_turn_leaves_the_session_usable() {
    let mut client =
        TestClient::start(&TestHost::new(anthropic().message(hanging()).answer("Still here."))).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "wait").await;
    client.update("tool_call").await;
    client.cancel(&session).await;
    client.cancel(&session).await;
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    client.cancel(&session).await;
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    assert_eq!(client.said(), "Still here.");
    client.close().await.unwrap();
}

#[tokio::test]
async fn cancelling_reaches_prompts_that_wait() {
    let mut client = TestClient::start(&TestHost::new(anthropic().message(hanging()).answer("Third."))).await;
    let session = client.new_session().await;
    let first = client.prompt(&session, "first").await;
    client.update("tool_call").await;
    let second = client.prompt(&session, "second").await;
    client.cancel(&session).await;
    assert_eq!(client.stop_reason(first).await, "cancelled");
    assert_eq!(client.stop_reason(second).await, "cancelled");
    let third = client.prompt(&session, "third").await;
    assert_eq!(client.stop_reason(third).await, "end_turn");
    client.close().await.unwrap();
}

#[tokio::test]
async fn only_the_prompt_of_a_cancelled_request_is_cancelled() {
    let mut client = TestClient::start(&TestHost::new(anthropic().message(hanging()).answer("Third."))).await;
    let session = client.new_session().await;
    let first = client.prompt(&session, "first").await;
    client.update("tool_call").await;
    let second = client.prompt(&session, "second").await;
    let third = client.prompt(&session, "third").await;
    client.notify("$/cancel_request", json!({"requestId": second})).await;
    assert_eq!(client.stop_reason(second).await, "cancelled");
    client.notify("$/cancel_request", json!({"requestId": first})).await;
    assert_eq!(client.stop_reason(first).await, "cancelled");
    assert_eq!(client.stop_reason(third).await, "end_turn");
    client.close().await.unwrap();
}

/// Cancels after each message that the agent sends in a turn. Whatever comes first is answered as the client was promised.
#[tokio::test]
async fn a_turn_can_be_cancelled_at_every_message() {
    let messages = turn_cancelled_after(usize::MAX).await;
    assert!(messages > 4, "{messages}");
    for after in 0..messages {
        turn_cancelled_after(after).await;
    }
}

/// Returns the number of messages of the turn.
async fn turn_cancelled_after(after: usize) -> usize {
    let adapter = anthropic().message(writing("/project/a.txt", "x")).answer("Written.").answer("Fine.");
    let mut client = TestClient::start(&TestHost::new(adapter).asking()).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    let Turn { messages, is_allowed, stop_reason } = turn(&mut client, &session, prompt, after).await;
    // Once the call is allowed, the agent waits for nobody, and the end of the turn may be under way already.
    assert!(
        stop_reason == "cancelled" || (is_allowed && stop_reason == "end_turn"),
        "{stop_reason} after {after}"
    );
    // What the model did not do before, it does now.
    let next = client.prompt(&session, "and now?").await;
    let next = turn(&mut client, &session, next, usize::MAX).await;
    assert_eq!(next.stop_reason, "end_turn", "after {after}");
    client.close().await.unwrap();
    messages
}

struct Turn {
    messages: usize,
    is_allowed: bool,
    stop_reason: String,
}

/// Allows every call until the turn is cancelled, after so many messages.
async fn turn(client: &mut TestClient, session: &str, prompt: i64, cancel_after: usize) -> Turn {
    let (mut messages, mut is_allowed) = (0, false);
    loop {
        if messages == cancel_after {
            client.cancel(session).await;
        }
        let message = client.next().await.unwrap();
        messages += 1;
        if message["method"] == "session/request_permission" && messages <= cancel_after {
            client
                .answer(&message, json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}}))
                .await;
            is_allowed = true;
        }
        if message["id"] == prompt && message.get("method").is_none() {
            let reason = message["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{message}"));
            return Turn { messages, is_allowed, stop_reason: reason.to_owned() };
        }
    }
}

#[tokio::test]
async fn a_request_that_the_host_does_not_answer_can_be_cancelled() {
    let mut client = TestClient::start(&TestHost::new(anthropic())).await;
    let id = client.request("session/new", json!({"cwd": "/hang", "mcpServers": []})).await;
    client.notify("$/cancel_request", json!({"requestId": id})).await;
    assert_eq!(client.response(id).await["error"]["code"], -32800);
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_slash_command_that_hangs_can_be_cancelled() {
    let mut client = TestClient::start(&TestHost::new(anthropic().answer("Fine."))).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "/hang").await;
    client.cancel(&session).await;
    assert_eq!(client.stop_reason(prompt).await, "cancelled");
    let prompt = client.prompt(&session, "and now?").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    client.close().await.unwrap();
}
