//! Requests to the real server.

use futures_util::StreamExt as _;
use pintle_agent::{Decision, EventKind, SessionId, SessionState, UserMessage};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{ImageData, Message, Role, ToolCall};
use pintle_server::{AccessToken, AccessTokens, TokenScope};
use serde_json::json;

use super::harness::{Fixture, Received, is_end, quick};
use crate::{
    AuditFormat, Client, ClientError, ExportFormat, FilePoint, NewSession, RestoreRequest, SessionQuery,
    SettingsChange,
};

fn runs(call_id: &str, command: &str) -> Message {
    let call = ToolCall::from_raw(call_id, "shell", json!({"command": command}).to_string());
    Message::new(Role::Assistant, vec![call.into()])
}

fn code(error: &ClientError) -> &str {
    error.code().unwrap_or_else(|| panic!("{error:?}"))
}

#[tokio::test]
async fn a_session_is_created_driven_and_deleted() {
    let adapter = FakeAdapter::new("anthropic").message(runs("c1", "make")).answer("Made.").answer("Again.");
    let fixture = Fixture::start(adapter).await;
    let client = fixture.client();
    client.health().await.unwrap();
    let message = UserMessage::from("Make it").with_image(ImageData::data(vec![1, 2, 3], "image/png"));
    let created = client.with_key("first");
    let new = NewSession { message: Some(message), ..NewSession::default() };
    let session = created.create_session(new.clone()).await.unwrap();
    let id = session.id;
    assert_eq!(created.create_session(new).await.unwrap().id, id, "the key is the same");

    let mut items = client.events(&id, None);
    let mut received = Received::default();
    received.follow(&mut items, |kind| matches!(kind, EventKind::ApprovalRequested { .. })).await;
    let approvals = client.approvals(&id).await.unwrap();
    let [approval] = approvals.as_slice() else { panic!("{approvals:?}") };
    let found = (approval.call_id.as_str(), approval.tool_name.as_str(), approval.reason.as_str());
    assert_eq!(found, ("c1", "shell", "it changes something"));
    assert_eq!((&approval.session, &approval.arguments), (&id, &json!({"command": "make"})));
    client.decide(&id, "c1", approval.fingerprint, Decision::Approve).await.unwrap();
    let second = Decision::Deny { reason: Some("no".to_owned()) };
    let error = client.decide(&id, "c1", approval.fingerprint, second).await.unwrap_err();
    assert_eq!((code(&error), error.status()), ("conflict", Some(409)), "only the first one counts");
    received.follow(&mut items, is_end).await;

    client.follow_up(&id, "And again").await.unwrap();
    received.follow(&mut items, is_end).await;
    let history = client.history(&id).await.unwrap();
    let said: Vec<(&str, &str)> =
        history.turns.iter().map(|entry| (entry.kind.as_str(), entry.text.as_str())).collect();
    let expected = [
        ("user", "Make it"),
        ("assistant", ""),
        ("tool_results", ""),
        ("assistant", "Made."),
        ("user", "And again"),
        ("assistant", "Again."),
    ];
    assert_eq!(said, expected);
    assert_eq!(history.damage, None);
    let lines: Vec<_> = client.journal(&id, 2, Some(4)).map(|line| line.unwrap().seq).collect().await;
    assert_eq!(lines, [2, 3, 4]);

    let mode = Some("auto".to_owned());
    let change = SettingsChange { mode: mode.clone(), ..SettingsChange::default() };
    assert_eq!(client.change_session(&id, &change).await.unwrap().mode, mode);
    let fork = client.fork(&id, 4).await.unwrap();
    assert_eq!(client.history(&fork.id).await.unwrap().turns.len(), 4);
    client.rewind(&id, 4).await.unwrap();
    assert_eq!(client.history(&id).await.unwrap().turns.len(), 4);
    client.interrupt(&id).await.unwrap();
    assert!(client.export(&id, ExportFormat::Markdown).await.unwrap().starts_with("Markdown of"));
    assert!(client.audit(&id, AuditFormat::Text).await.unwrap().starts_with("AuditText of"));
    assert_eq!(client.models().await.unwrap()[0].id, "claude-opus-4-6");
    assert!(client.metrics().await.unwrap().contains("pintle_"));
    assert_eq!(client.checkpoints(&id).await.unwrap(), []);
    assert_eq!(client.diff(&id, &FilePoint::Entries(0)).await.unwrap_err().code(), Some("invalid"));
    let restore = client.restore(&id, RestoreRequest::new(FilePoint::Entries(0))).await;
    assert_eq!(restore.unwrap_err().code(), Some("invalid"), "the host keeps no files");

    let list = SessionQuery { limit: Some(1), ..SessionQuery::default() };
    let first = client.list_sessions(&list).await.unwrap();
    let next = SessionQuery { cursor: first.next.clone(), ..list };
    let second = client.list_sessions(&next).await.unwrap();
    let listed: Vec<_> = first.sessions.iter().chain(&second.sessions).map(|one| one.id.clone()).collect();
    assert!(listed.len() == 2 && listed.contains(&id) && listed.contains(&fork.id), "{listed:?}");
    let idle = SessionQuery { state: Some(SessionState::Closed), ..SessionQuery::default() };
    assert_eq!(client.list_sessions(&idle).await.unwrap().sessions, []);

    client.abort(&id).await.unwrap();
    client.delete_session(&id).await.unwrap();
    let error = client.session(&id).await.unwrap_err();
    assert_eq!((code(&error), error.is_retryable()), ("not_found", false));
    assert!(error.to_string().contains(id.as_str()), "{error}");
}

#[tokio::test]
async fn refusals_are_problems() {
    let (token, secret) = AccessToken::generate("ann", [TokenScope::Read]).unwrap();
    let fixture = Fixture::start_with(FakeAdapter::new("anthropic"), Some(AccessTokens::new([token]))).await;
    let reader = fixture.client_with(Some(&secret), quick());
    let error = reader.create_session(NewSession::default()).await.unwrap_err();
    assert_eq!((code(&error), error.status()), ("forbidden", Some(403)));
    assert!(reader.list_sessions(&SessionQuery::default()).await.is_ok());
    let in_url = Client::new(&format!("http://{}/#token={secret}", fixture.address), None).unwrap();
    assert!(in_url.models().await.is_ok(), "the token is that of the fragment");
    for client in [fixture.client(), fixture.client_with(Some("wrong"), quick())] {
        let error = client.models().await.unwrap_err();
        assert_eq!((code(&error), error.status()), ("unauthorized", Some(401)));
        let mut items = client.events(&SessionId::new("s1"), None);
        let error = items.next().await.unwrap().unwrap_err();
        assert_eq!(code(&error), "unauthorized", "it is not asked again");
        assert!(items.next().await.is_none());
    }
    assert!(!format!("{reader:?} {error:?} {error}").contains(&secret));
    let unsendable = Client::new("http://127.0.0.1:1", Some("a\nb")).map(|_| ()).unwrap_err();
    assert!(matches!(unsendable, ClientError::InvalidHeader("token")), "{unsendable:?}");
}

#[tokio::test]
async fn wrong_requests_say_why() {
    let fixture = Fixture::start(FakeAdapter::new("anthropic")).await;
    let client = fixture.client();
    let nowhere = NewSession { directory: Some("/nowhere".to_owned()), ..NewSession::default() };
    let error = client.create_session(nowhere).await.unwrap_err();
    assert_eq!((code(&error), error.to_string().as_str()), ("invalid", "there is no directory `/nowhere`"));
    let id = client.create_session(NewSession::default()).await.unwrap().id;
    assert_eq!(code(&client.submit(&id, " ").await.unwrap_err()), "invalid");
    let by_url = UserMessage::from("Look").with_image(ImageData::url("https://example.org/a.png"));
    assert!(matches!(client.submit(&id, by_url).await, Err(ClientError::ImageSource)));
    assert!(matches!(client.session(&SessionId::new("..")).await, Err(ClientError::InvalidId(_))));
    assert_eq!(code(&client.session(&SessionId::new("a/b c")).await.unwrap_err()), "not_found");
    let mut journal = client.journal(&SessionId::new("none"), 1, None);
    assert_eq!(code(&journal.next().await.unwrap().unwrap_err()), "not_found");
    assert!(journal.next().await.is_none());
}

#[tokio::test]
async fn a_socket_is_an_address() {
    let mut fixture = Fixture::start(FakeAdapter::new("anthropic").answer("Hello.")).await;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a socket");
    fixture.serve_socket(&path);
    let client = Client::new(&format!("unix:{}", path.display()), None).unwrap();
    let new = NewSession { message: Some("Hello".into()), ..NewSession::default() };
    let id = client.create_session(new).await.unwrap().id;
    let mut received = Received::default();
    received.follow(&mut client.events(&id, None), is_end).await;
    // A run that was over when the stream began has left its text alone, without the deltas.
    let texts: Vec<&str> = received.texts.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["Hello."]);
}
