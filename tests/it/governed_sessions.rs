//! Governed sessions of an application with its own store: without a grant and not kept, and resumed under a grant.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, Approver, Decision, Principal, ProviderProfile, Record, Session, SessionId, Timestamp,
};
use pintle_env::LocalEnvironment;
use pintle_governance::{
    EffectCeiling, GovernError, GovernedBuilder, GovernedSession, Grant, GrantId, Mode, PathScope, Pattern,
    Policy, Rules,
};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use pintle_store::{FileStore, Filter, Page, SessionStore, StoredJournal, Summary, read_record};
use serde_json::json;
use tempfile::TempDir;

#[derive(Debug)]
struct Refuses;

#[async_trait]
impl Approver for Refuses {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        Decision::Deny { reason: None }
    }
}

/// The directory of an application, with a workspace and a store.
struct Application {
    directory: TempDir,
    store: Arc<dyn SessionStore>,
}

impl Application {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        let store = Arc::new(FileStore::open(directory.path().join("sessions")).unwrap());
        Self { directory, store }
    }

    fn workspace(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("workspace")
    }

    fn has(&self, file: &str) -> bool {
        self.workspace().join(file).exists()
    }

    /// Returns a session whose model creates a file.
    fn session(&self, id: &SessionId, file: &str) -> GovernedBuilder {
        let arguments = json!({"file_path": file, "content": "made"}).to_string();
        let call = ToolCall::from_raw(format!("call of {file}"), "write_file", arguments);
        let adapter = FakeAdapter::new("anthropic").message(Message::new(Role::Assistant, vec![call.into()]));
        let client = Client::builder().provider(adapter.answer("Done.")).build().unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(self.workspace(), []).unwrap());
        let profile = ProviderProfile::anthropic("claude-opus-4-6");
        GovernedSession::builder(Session::builder(client, profile, env).with_id(id.clone()))
            .approver(Refuses)
            .principal(Principal::new("jan"))
            .policy(Policy::new(Mode::Edit, Rules::new(), self.workspace()))
    }

    /// Opens a session of the store, with its record unless it is new.
    async fn open(&self, id: &SessionId) -> (StoredJournal, Option<Record>) {
        let summary = Summary::new(id.clone(), Timestamp::from_millis(0));
        if self.store.summary(id).await.unwrap().is_none() {
            let writer = self.store.create(summary.clone()).await.unwrap();
            return (StoredJournal::new(writer, summary), None);
        }
        let opened = async {
            loop {
                // A builder that was dropped may still hold the session.
                match self.store.open(id).await {
                    Ok(opened) => break opened,
                    Err(_) => tokio::task::yield_now().await,
                }
            }
        };
        let opened = tokio::time::timeout(Duration::from_secs(60), opened).await.unwrap();
        let record = read_record(self.store.as_ref(), id).await.unwrap();
        (StoredJournal::new(opened.writer, summary), Some(record))
    }
}

async fn work(session: GovernedSession) {
    assert_eq!(session.submit("go").await.unwrap().text, "Done.");
    // Fails only if the session has ended.
    let _ = session.handle().stop_turn();
    session.detach().await;
}

#[tokio::test]
async fn a_session_without_a_grant_that_is_not_kept_is_governed() {
    let application = Application::new();
    for (file, is_made) in [("made", true), (".pintle/rules.toml", false)] {
        let session = application.session(&SessionId::generate(), file).unkept().start().await.unwrap();
        assert_eq!(session.grant(), None);
        work(session).await;
        assert_eq!(application.has(file), is_made, "{file}");
    }
    let kept = application.store.list(&Filter::default(), &Page::default()).await.unwrap();
    assert_eq!(kept.len(), 0, "{kept:?}");
}

#[tokio::test]
async fn a_session_with_a_grant_is_resumed_with_one_only() {
    let application = Application::new();
    let mut grant = Grant::none(GrantId::new("sources"));
    grant.tools = [Pattern::any()].into();
    let workspace = application.workspace().display().to_string();
    grant.writes = PathScope::within([format!("{workspace}/src")]);
    grant.reads = PathScope::within([workspace]);
    grant.effect = EffectCeiling::Write;
    grant.environments = [Pattern::new("local")].into();
    let id = SessionId::generate();
    let (journal, _) = application.open(&id).await;
    let session = application.session(&id, "src/first").grant(grant.clone(), "local").journal(journal);
    work(session.start().await.unwrap()).await;
    assert!(application.has("src/first"));

    let (journal, record) = application.open(&id).await;
    let session = application.session(&id, "second").journal(journal).resume(record.unwrap());
    let refused = session.start().await.unwrap_err();
    assert!(matches!(refused, GovernError::Missing("the grant of its record")), "{refused}");

    for (file, is_made) in [("third", false), ("src/fourth", true)] {
        let (journal, record) = application.open(&id).await;
        let session = application.session(&id, file).journal(journal).resume(record.unwrap());
        let session = session.grant(grant.clone(), "local").start().await.unwrap();
        assert_eq!(session.grant(), Some(&grant));
        work(session).await;
        assert_eq!(application.has(file), is_made, "{file}");
    }
    assert!(!application.has("second"));
}
