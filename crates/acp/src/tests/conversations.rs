//! Turns, as a client sees them.

use pintle_llm::{ContentPart, Finish, Message, Role};
use serde_json::json;

use super::harness::{TestClient, TestHost, anthropic, calling, writing};

/// Returns the kinds of the updates, and `response` for a response.
fn kinds(client: &TestClient) -> Vec<String> {
    let kind = |message: &serde_json::Value| match message["params"]["update"]["sessionUpdate"].as_str() {
        Some(kind) => kind.to_owned(),
        None => message["method"].as_str().unwrap_or("response").to_owned(),
    };
    client.log.iter().map(kind).collect()
}

#[tokio::test]
async fn a_turn_is_shown_and_then_answered() {
    let adapter = anthropic().message(writing("a.txt", "hello\n")).answer("Written.");
    let host = TestHost::new(adapter);
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    assert_eq!(client.stop_reason(prompt).await, "end_turn");
    assert_eq!(client.said(), "Written.");
    assert_eq!(
        kinds(&client),
        [
            "response",
            "response",
            "available_commands_update",
            "tool_call",
            "tool_call_update",
            "tool_call_update",
            "agent_message_chunk",
            "response",
        ]
    );
    let call = client.update("tool_call").await;
    assert_eq!((&call["title"], &call["kind"]), (&json!("Edit a.txt"), &json!("edit")), "{call}");
    client.close().await.unwrap();
}

#[tokio::test]
async fn changed_files_are_shown_as_diffs() {
    let adapter = anthropic().message(writing("a.txt", "hello\n")).answer("Written.");
    let mut client = TestClient::start(&TestHost::new(adapter)).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "write a file").await;
    client.stop_reason(prompt).await;
    let ended = client.take(|message| message["params"]["update"]["status"] == "completed").await;
    let update = &ended["params"]["update"];
    assert_eq!(update["content"], json!([{"type": "diff", "path": "/project/a.txt", "newText": "hello\n"}]));
    assert_eq!(update["locations"], json!([{"path": "/project/a.txt"}]));
    client.close().await.unwrap();
}

#[tokio::test]
async fn commands_and_plans_have_their_forms() {
    let plan = json!({"plan": [{"step": "look", "status": "completed"}, {"step": "write", "status": "in_progress"}]});
    let adapter = anthropic()
        .message(calling(&[("update_plan", plan), ("shell", json!({"command": "make test"}))]))
        .answer("Done.");
    let mut client = TestClient::start(&TestHost::new(adapter)).await;
    let session = client.new_session().await;
    let prompt = client.prompt(&session, "test").await;
    client.stop_reason(prompt).await;
    let call = client.update("tool_call").await;
    assert_eq!((&call["title"], &call["kind"]), (&json!("make test"), &json!("execute")));
    let ended = client.take(|message| message["params"]["update"]["status"] == "completed").await;
    let update = &ended["params"]["update"];
    assert!(update["content"][0]["content"]["text"].as_str().unwrap().contains("ran make test"), "{update}");
    assert_eq!(update["rawOutput"], json!({"exitCode": 0}));
    client.close().await.unwrap();
}

#[tokio::test]
async fn prompts_with_images_and_resources_reach_the_model() {
    let host = TestHost::new(anthropic().answer("I see."));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = json!([
        {"type": "text", "text": "Compare "},
        {"type": "image", "data": "AQID", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///project/a.rs", "text": "fn main() {}"}},
    ]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    let requests = host.adapter.requests();
    let sent = requests[0].messages.last().unwrap();
    assert!(matches!(sent.content[0], ContentPart::Image(_)), "{sent:?}");
    assert!(sent.text().contains("<resource uri=\"file:///project/a.rs\">\nfn main() {}\n</resource>"));
    client.close().await.unwrap();
}

#[tokio::test]
async fn stop_reasons_follow_the_model() {
    let adapter = anthropic()
        .finished(Message::assistant("Too lo"), Finish::Length)
        .finished(Message::assistant("ng, and sti"), Finish::Length)
        .finished(Message::assistant("ll too lo"), Finish::Length)
        .finished(Message::assistant("I will not."), Finish::ContentFilter);
    let mut client = TestClient::start(&TestHost::new(adapter)).await;
    let session = client.new_session().await;
    for expected in ["max_tokens", "refusal"] {
        let prompt = client.prompt(&session, "go").await;
        assert_eq!(client.stop_reason(prompt).await, expected);
    }
    // The script has ended, which is an error of the model.
    let prompt = client.prompt(&session, "go").await;
    let error = client.response(prompt).await["error"].clone();
    assert_eq!(
        (&error["code"], &error["data"]["reason"]),
        (&json!(-32603), &json!("turn_failed")),
        "{error}"
    );
    client.close().await.unwrap();
}

/// A stop reason does not say that there is no final response.
#[tokio::test]
async fn an_empty_final_response_is_reported() {
    for capabilities in [json!({}), json!({"session": {"notices": {}}})] {
        let empty = || Message::new(Role::Assistant, Vec::new());
        let adapter = anthropic()
            .message(writing("a.txt", "hello\n"))
            .finished(empty(), Finish::Stop)
            .finished(empty(), Finish::Stop);
        let mut client = TestClient::connect(&TestHost::new(adapter));
        client.initialize(capabilities.clone()).await;
        let session = client.new_session().await;
        let prompt = client.prompt(&session, "write a file").await;
        assert_eq!(client.stop_reason(prompt).await, "end_turn");
        let text = |message: &serde_json::Value| {
            let update = &message["params"]["update"];
            let text = update["title"].as_str().or(update["content"]["text"].as_str());
            text.is_some_and(|text| text.trim() == "the final response is empty")
        };
        let reports = client.log.iter().filter(|message| text(message)).count();
        assert_eq!(reports, 1, "{capabilities}: {:?}", client.log);
        client.close().await.unwrap();
    }
}

#[tokio::test]
async fn slash_commands_are_answered_or_become_prompts() {
    let host = TestHost::new(anthropic().answer("Looks good.").answer("A path."));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    for (text, said) in
        [("/say hello there", "You said: hello there"), ("/review", "Looks good."), ("/etc?", "A path.")]
    {
        let before = client.said().len();
        let prompt = client.prompt(&session, text).await;
        assert_eq!(client.stop_reason(prompt).await, "end_turn");
        assert_eq!(&client.said()[before..], said);
    }
    let asked: Vec<String> =
        host.adapter.requests().iter().map(|one| one.messages.last().unwrap().text()).collect();
    assert!(asked[0].contains("Review the changes.") && asked[1].contains("/etc?"), "{asked:?}");
    client.close().await.unwrap();
}

/// Attachments of a command go with the message that the command becomes.
#[tokio::test]
async fn attachments_of_a_command_reach_the_model() {
    let host = TestHost::new(anthropic().answer("Looks good."));
    let mut client = TestClient::start(&host).await;
    let session = client.new_session().await;
    let prompt = json!([
        {"type": "text", "text": "/review "},
        {"type": "resource_link", "name": "a.rs", "uri": "file:///w/a.rs"},
        {"type": "image", "data": "AQID", "mimeType": "image/png"},
    ]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": prompt})).await;
    let requests = host.adapter.requests();
    let sent = requests[0].messages.last().unwrap();
    assert_eq!(sent.text(), "Review [@a.rs](file:///w/a.rs)");
    let images = sent.content.iter().filter(|part| matches!(part, ContentPart::Image(_))).count();
    assert_eq!(images, 1, "{sent:?}");
    client.close().await.unwrap();
}

#[tokio::test]
async fn a_second_prompt_waits_and_the_client_is_told() {
    let host = TestHost::new(anthropic().message(super::harness::hanging()).answer("Second."));
    let mut client = TestClient::connect(&host);
    client.initialize(json!({"session": {"notices": {}}})).await;
    let session = client.new_session().await;
    let first = client.prompt(&session, "first").await;
    client.update("tool_call").await;
    let second = client.prompt(&session, "second").await;
    let notice = client.update("notice").await;
    assert_eq!(notice["title"], "The prompt waits until the present turn has ended.");
    client.notify("$/cancel_request", json!({"requestId": first})).await;
    assert_eq!(client.stop_reason(first).await, "cancelled");
    assert_eq!(client.stop_reason(second).await, "end_turn");
    assert_eq!(client.said(), "Second.");
    client.close().await.unwrap();
}
