//! What a governed session needs, what it is held to, and what is on its record.
#![expect(clippy::disallowed_methods, reason = "the journal of a test is a file")]
#![expect(clippy::wildcard_enum_match_arm, reason = "each test looks for one kind of event")]

mod attacks;
mod models_by_task;

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use pintle_agent::protocol::InputKind;
use pintle_agent::{
    ApprovalRequest, Decision, EventKind, JsonLines, Limits, OutcomeStatus, ProviderProfile, SessionConfig,
    Timestamp,
};
use pintle_env::MemoryEnvironment;
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use serde_json::json;

use self::models_by_task::ModelsByTask;
use super::*;
use crate::PathScope;
use crate::grant::{Delegation, EffectCeiling, GrantId, Window};
use crate::mode::Mode;
use crate::pattern::Pattern;
use crate::rules::Rules;

#[derive(Debug)]
struct Approves;

#[async_trait]
impl Approver for Approves {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        Decision::Approve
    }

    fn principal(&self) -> Option<Principal> {
        Some(Principal::new("ada"))
    }
}

fn writes(id: &str, path: &str) -> Message {
    let arguments = json!({"file_path": path, "content": "x"}).to_string();
    Message::new(Role::Assistant, vec![ToolCall::from_raw(id, "write_file", arguments).into()])
}

fn grant() -> Grant {
    let mut grant = Grant::none(GrantId::new("g"));
    grant.tools = [Pattern::any()].into();
    grant.reads = PathScope::within(["/w"]);
    grant.writes = PathScope::within(["/w/src"]);
    grant.effect = EffectCeiling::Write;
    grant.environments = [Pattern::new("local")].into();
    grant.budget.tool_calls = Some(3);
    grant.delegation = Delegation::new(0, 0);
    grant
}

struct Fixture {
    env: Arc<MemoryEnvironment>,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { env: Arc::new(MemoryEnvironment::new("/w")), directory: tempfile::tempdir().unwrap() }
    }

    fn session(&self, replies: &[Message]) -> SessionBuilder {
        let adapter = replies.iter().cloned().fold(FakeAdapter::new("anthropic"), FakeAdapter::message);
        let client = Client::builder().provider(adapter.answer("Done.")).build().unwrap();
        let profile = ProviderProfile::anthropic("claude-opus-4-6");
        Session::builder(client, profile, Arc::clone(&self.env) as Arc<dyn pintle_env::ExecutionEnvironment>)
    }

    fn journal(&self) -> impl Journal {
        let path = self.directory.path().join("journal");
        JsonLines::new(std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap())
    }

    fn record(&self) -> Record {
        let text = std::fs::read_to_string(self.directory.path().join("journal")).unwrap();
        Record::read(text.as_bytes()).unwrap()
    }

    fn governed(&self, replies: &[Message], grant: Grant) -> GovernedBuilder {
        GovernedSession::builder(self.session(replies))
            .grant(grant, "local")
            .journal(self.journal())
            .approver(Approves)
            .principal(Principal::new("jan"))
            .policy(Policy::new(Mode::Ask, Rules::new(), "/w"))
            .workspace(WorkspacePolicy::new().with_hidden(["/w/src/keys"]))
    }
}

#[tokio::test]
async fn nothing_starts_without_store_approver_principal_and_policy() {
    let fixture = Fixture::new();
    let complete = || fixture.governed(&[], grant());
    type Leave = fn(&mut GovernedBuilder);
    let cases: [(Leave, &str); 4] = [
        (|builder| builder.is_kept_decided = false, "a journal, or a decision not to keep it"),
        (|builder| builder.has_approver = false, "an approver"),
        (|builder| builder.has_principal = false, "a principal, which may be unknown"),
        (|builder| builder.policy = None, "a policy with mode and rules"),
    ];
    for (leave, missing) in cases {
        let mut builder = complete();
        leave(&mut builder);
        let error = builder.start().await.unwrap_err().to_string();
        assert_eq!(error, format!("a governed session needs {missing}"));
    }
    complete().start().await.unwrap().detach().await;
}

#[tokio::test]
async fn a_grant_that_does_not_hold_starts_nothing() {
    let fixture = Fixture::new();
    let far = Timestamp::from_millis(4_102_444_800_000);
    type Change = fn(&mut Grant, Timestamp);
    let cases: [(Change, &str); 4] = [
        (|grant, far| grant.window = Window::new(Some(far), None), "does not hold yet"),
        (|grant, _| grant.window = Window::new(None, Some(Timestamp::from_millis(1))), "has expired"),
        (|grant, _| grant.session = Some(SessionId::new("another")), "is for another session"),
        (|grant, _| grant.environments = [Pattern::new("docker:*")].into(), "does not allow work in `local`"),
    ];
    for (change, reason) in cases {
        let mut grant = grant();
        change(&mut grant, far);
        let error = fixture.governed(&[], grant).start().await.unwrap_err().to_string();
        assert!(error.starts_with("the grant is not in force: ") && error.contains(reason), "{error}");
    }
    let revocations = Revocations::new();
    revocations.revoke(GrantId::new("g"));
    let workspace = WorkspacePolicy::new().with_revocations(revocations);
    let error = fixture.governed(&[], grant()).workspace(workspace).start().await.unwrap_err();
    assert!(error.to_string().contains("was revoked"), "{error}");
}

#[tokio::test]
async fn calls_are_held_to_the_grant_and_everything_is_on_record() {
    let fixture = Fixture::new();
    let replies = [
        writes("a", "/w/src/a"),
        writes("b", "/w/b"),
        writes("c", "/w/src/keys"),
        writes("d", "/w/src/d"),
        writes("e", "/w/src/e"),
    ];
    let session = fixture.governed(&replies, grant()).start().await.unwrap();
    let outcome = session.submit("go").await.unwrap();
    // Calls that were denied are none of the three that the grant has.
    assert_eq!((outcome.status, outcome.tool_calls), (OutcomeStatus::Completed, 5));
    let files: Vec<String> = fixture.env.files().keys().map(|path| path.display().to_string()).collect();
    assert_eq!(files, ["/w/src/a", "/w/src/d", "/w/src/e"]);
    session.close().await;

    let record = fixture.record();
    let audit = crate::Audit::of_record(&record).unwrap();
    let outcomes: Vec<String> = audit
        .calls
        .iter()
        .map(|call| {
            let step = call.decisive_step().map(|step| step.gate.clone()).unwrap_or_default();
            format!("{} {} {step}", call.call_id, call.outcome.as_str())
        })
        .collect();
    assert_eq!(outcomes.len(), 5, "{outcomes:?}");
    assert!(outcomes[1].ends_with(" grant") && outcomes[2].ends_with(" hidden_paths"), "{outcomes:?}");
    let events = record.replay().unwrap().events;
    let decided = events.iter().filter_map(|event| match &event.kind {
        EventKind::ApprovalDecided { by, .. } => by.as_ref().map(Principal::as_str),
        _ => None,
    });
    assert_eq!(decided.collect::<Vec<_>>(), ["ada", "ada", "ada"]);
    let authors: Vec<&str> = record
        .entries
        .iter()
        .filter_map(|entry| entry.input.author.as_ref().map(Principal::as_str))
        .collect();
    assert!(!authors.is_empty() && authors.iter().all(|author| *author == "jan"), "{authors:?}");
    let begun = events.iter().find_map(|event| match &event.kind {
        EventKind::PolicyChanged(change) => change.grant.clone(),
        _ => None,
    });
    assert_eq!(begun.unwrap()["id"], "g", "the record has the complete grant");
}

#[tokio::test]
async fn the_lesser_of_grant_and_configuration_limits_spending() {
    let replies: Vec<Message> =
        ["a", "b", "c", "d", "e"].map(|id| writes(id, &format!("/w/src/{id}"))).to_vec();
    for (configured, expected) in [(None, 3), (Some(1), 1), (Some(9), 3)] {
        let mut budget = Limits::default();
        budget.tool_calls = configured;
        let config = SessionConfig::default().with_budget(budget);
        let fixture = Fixture::new();
        let session = GovernedSession::builder(fixture.session(&replies).with_config(config))
            .grant(grant(), "local")
            .journal(fixture.journal())
            .approver(Approves)
            .principal(Principal::new("jan"))
            .policy(Policy::new(Mode::Edit, Rules::new(), "/w"))
            .start()
            .await
            .unwrap();
        assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Budget);
        assert_eq!(fixture.env.files().len(), expected, "{configured:?}");
    }
}

#[tokio::test]
async fn a_revoked_grant_lets_nothing_more_happen() {
    let fixture = Fixture::new();
    let replies = [writes("a", "/w/src/a"), Message::assistant("One."), writes("b", "/w/src/b")];
    let session = fixture.governed(&replies, grant()).start().await.unwrap();
    session.submit("go").await.unwrap();
    session.revoke().unwrap();
    session.submit("go on").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
    let files: Vec<String> = fixture.env.files().keys().map(|path| path.display().to_string()).collect();
    assert_eq!(files, ["/w/src/a"]);
    let last = session
        .history()
        .iter()
        .rev()
        .find_map(|turn| turn.item.results().next().map(|result| result.text()));
    assert!(last.unwrap().contains("grant g was revoked"));
}

#[tokio::test]
async fn a_resumed_session_has_the_rules_that_were_added() {
    let fixture = Fixture::new();
    let session = fixture.governed(&[], grant()).start().await.unwrap();
    session.policy().add_rule(pintle_tools::gate::Permission::Deny, "@write(src/**)", "jan").await.unwrap();
    session.policy().set_mode(Mode::Edit).await.unwrap();
    session.submit("go").await.unwrap();
    drop(session);
    let session =
        fixture.governed(&[writes("a", "/w/src/a")], grant()).resume(fixture.record()).start().await.unwrap();
    assert_eq!((session.policy().mode(), session.policy().rules().len()), (Mode::Edit, 1));
    session.submit("go on").await.or_else(pintle_agent::RunError::into_outcome).unwrap();
    assert!(fixture.env.files().is_empty());
}

#[tokio::test]
async fn a_resumed_session_keeps_the_selected_settings() {
    let fixture = Fixture::new();
    let session = fixture.governed(&[], grant()).sandbox("full").start().await.unwrap();
    session.policy().add_rule(pintle_tools::gate::Permission::Deny, "@write(src/**)", "jan").await.unwrap();
    session.policy().set_mode(Mode::Edit).await.unwrap();
    drop(session);
    let record = fixture.record();
    for (keeps_mode, keeps_rules, expected) in [
        (true, true, (Mode::Edit, 1)),
        (false, true, (Mode::Ask, 1)),
        (true, false, (Mode::Edit, 0)),
        (false, false, (Mode::Ask, 0)),
    ] {
        let mut settings = RecordedSettings::new();
        (settings.mode, settings.rules) = (keeps_mode, keeps_rules);
        let builder = fixture.governed(&[], grant()).resume(record.clone()).recorded(settings);
        let session = builder.start().await.unwrap();
        assert_eq!((session.policy().mode(), session.policy().rules().len()), expected);
    }
}

#[tokio::test]
async fn a_continued_session_needs_a_grant_within_its_recorded_one() {
    let fixture = Fixture::new();
    drop(fixture.governed(&[], grant()).start().await.unwrap());
    let record = fixture.record();
    let recorded = Grant::of_record(&record).unwrap();
    assert_eq!(recorded, Some(grant()));
    let resume = |builder: GovernedBuilder| builder.resume(record.clone());
    let fork = |builder: GovernedBuilder| builder.fork(record.fork(0).unwrap().unwrap(), recorded.clone());
    type Continue<'a> = &'a dyn Fn(GovernedBuilder) -> GovernedBuilder;
    let cases: [(Continue<'_>, &str); 2] =
        [(&resume, "the grant of its record"), (&fork, "the grant of its origin")];
    for (continued, missing) in cases {
        let mut builder = continued(fixture.governed(&[], grant()));
        builder.grant = None;
        let error = builder.start().await.unwrap_err().to_string();
        assert_eq!(error, format!("a governed session needs {missing}"));
        let (mut wider, mut narrower) = (grant(), grant());
        (wider.writes, narrower.effect) = (PathScope::within(["/w"]), EffectCeiling::Read);
        let error = continued(fixture.governed(&[], wider)).start().await.unwrap_err();
        assert!(matches!(error, GovernError::WiderGrant(Axis::Writes)), "{missing}: {error}");
        for allowed in [grant(), narrower] {
            let session = continued(fixture.governed(&[], allowed.clone())).start().await.unwrap();
            assert_eq!(session.grant(), Some(&allowed));
        }
    }
    // The origin was unrestricted.
    let mut builder = fixture.governed(&[], grant()).fork(record.fork(0).unwrap().unwrap(), None);
    builder.grant = None;
    assert_eq!(builder.start().await.unwrap().grant(), None);
}

#[tokio::test]
async fn a_session_without_a_grant_is_unrestricted_and_may_be_unkept() {
    let fixture = Fixture::new();
    let replies = [writes("a", "/w/a"), writes("b", "/w/.pintle/rules.toml")];
    let session = GovernedSession::builder(fixture.session(&replies).record(true))
        .unkept()
        .approver(Approves)
        .principal(None::<Principal>)
        .policy(Policy::new(Mode::Edit, Rules::new(), "/w"))
        .sandbox("off")
        .start()
        .await
        .unwrap();
    assert!(session.grant().is_none());
    session.submit("go").await.unwrap();
    let files: Vec<String> = fixture.env.files().keys().map(|path| path.display().to_string()).collect();
    assert_eq!(files, ["/w/a"], "the other gates hold");
    let record = session.record().unwrap();
    let beginnings = record.entries.iter().filter_map(|entry| match &entry.input.kind {
        InputKind::PolicyChanged { change } => Some((change.sandbox.as_deref(), &change.grant, &change.by)),
        _ => None,
    });
    assert_eq!(beginnings.collect::<Vec<_>>(), [(Some("off"), &None, &None)]);
}

fn calls(id: &str, tool: &str, arguments: &serde_json::Value) -> Message {
    Message::new(Role::Assistant, vec![ToolCall::from_raw(id, tool, arguments.to_string()).into()])
}

fn fake() -> FakeAdapter {
    FakeAdapter::new("anthropic")
}

/// A governed session whose model spawns a subagent, waits for it, and answers.
async fn delegating(
    fixture: &Fixture,
    child: FakeAdapter,
    grandchild: FakeAdapter,
    grant: Grant,
) -> GovernedSession {
    let parent = fake()
        .message(calls("p1", "spawn_agent", &json!({"task": "child"})))
        .message(calls("p2", "wait", &json!({"agent_id": "agent_1"})))
        .answer("Done.");
    let models =
        ModelsByTask::new("anthropic", vec![("go", parent), ("child", child), ("grandchild", grandchild)]);
    let client = Client::builder().provider(models).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let env = Arc::clone(&fixture.env) as Arc<dyn pintle_env::ExecutionEnvironment>;
    let config = SessionConfig::default().with_max_subagent_depth(3);
    let session = Session::builder(client, profile, env).with_config(config).record(true);
    GovernedSession::builder(session)
        .grant(grant, "local")
        .journal(fixture.journal())
        .approver(Approves)
        .principal(Principal::new("jan"))
        .policy(Policy::new(Mode::Edit, Rules::new(), "/w"))
        .start()
        .await
        .unwrap()
}

/// Returns the grants of the sessions below, the nearest first, and the results of all calls in them.
fn below(session: &GovernedSession) -> (Vec<Grant>, Vec<String>) {
    let records = session.tree_records().unwrap().split_off(1);
    let mut grants = Vec::new();
    let mut results = Vec::new();
    for record in &records {
        for event in record.replay().unwrap().events {
            match event.kind {
                EventKind::PolicyChanged(change) => {
                    grants.extend(change.grant.map(|grant| serde_json::from_value::<Grant>(grant).unwrap()));
                }
                EventKind::ToolCallEnd { output, .. } => results.push(output.to_text_lossy().unwrap()),
                _ => {}
            }
        }
    }
    (grants, results)
}

#[tokio::test]
async fn each_subagent_has_a_grant_that_its_parent_gave() {
    let fixture = Fixture::new();
    let mut grant = grant();
    grant.delegation = Delegation::new(2, 1);
    grant.budget.tool_calls = None;
    let child = fake()
        .message(writes("c1", "/w/src/child"))
        .message(writes("c2", "/w/child"))
        .message(calls("c3", "spawn_agent", &json!({"task": "grandchild"})))
        .message(calls("c4", "wait", &json!({"agent_id": "agent_1"})))
        .answer("Done.");
    let grandchild = fake().message(calls("g1", "spawn_agent", &json!({"task": "deeper"}))).answer("Done.");
    let session = delegating(&fixture, child, grandchild, grant.clone()).await;
    session.submit("go").await.unwrap();
    let (grants, results) = below(&session);
    let [child, grandchild] = grants.as_slice() else { panic!("{grants:?}") };
    assert_eq!(
        (child.id.to_string(), grandchild.id.to_string()),
        ("g/agent_1".into(), "g/agent_1/agent_1".into())
    );
    assert_eq!(grandchild.ancestors, [GrantId::new("g"), GrantId::new("g/agent_1")]);
    assert_eq!((grant.exceeded_by(child), child.exceeded_by(grandchild)), (None, None));
    assert_eq!((child.delegation.depth, grandchild.delegation.depth), (1, 0));
    assert!(child.session.is_some() && child.session != grandchild.session);
    assert!(
        results.iter().any(|text| text.contains("grant g/agent_1 does not allow changing /w/child")),
        "{results:?}"
    );
    let files: Vec<String> = fixture.env.files().keys().map(|path| path.display().to_string()).collect();
    assert_eq!(files, ["/w/src/child"]);
    assert_eq!(session.tree_records().unwrap().len(), 3, "nothing is below a grant without delegation");
}

#[tokio::test]
async fn revoking_a_grant_revokes_what_was_given_from_it() {
    let fixture = Fixture::new();
    let mut grant = grant();
    grant.delegation = Delegation::new(1, 1);
    let child = fake().message(writes("c1", "/w/src/child")).answer("Done.");
    let session = delegating(&fixture, child, fake(), grant).await;
    session.revocations.revoke(GrantId::new("g/agent_1"));
    session.submit("go").await.unwrap();
    let (_, results) = below(&session);
    assert!(results.iter().any(|text| text.contains("grant g/agent_1 was revoked")), "{results:?}");
    assert!(fixture.env.files().is_empty());
}

/// Clock that a test sets.
#[derive(Debug)]
struct Hands(std::sync::atomic::AtomicI64);

impl pintle_agent::Clock for Hands {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Sets the clock before a call is judged.
#[derive(Debug)]
struct Jumps(Arc<Hands>, Vec<(&'static str, i64)>);

#[async_trait]
impl pintle_tools::gate::Gate for Jumps {
    async fn check(&self, call: &pintle_tools::pipeline::PreparedCall) -> pintle_tools::gate::Verdict {
        let path = call.arguments()["file_path"].as_str().unwrap_or_default();
        if let Some((_, to)) = self.1.iter().find(|(name, _)| path.ends_with(name)) {
            self.0.0.store(*to, Ordering::Relaxed);
        }
        pintle_tools::gate::Verdict::ALLOW
    }
}

#[tokio::test]
async fn grant_that_expires_while_a_run_works_lets_nothing_more_happen() {
    for (jumps, expected) in [
        (vec![], 3),
        (vec![("b", 1_000)], 1),
        (vec![("b", 999), ("c", 1_000)], 2),
        // A clock that jumps back does not bring an expired grant back.
        (vec![("b", 1_000), ("c", 10)], 1),
        (vec![("b", 4)], 3),
    ] {
        let fixture = Fixture::new();
        let clock = Arc::new(Hands(10.into()));
        let replies = [writes("a", "/w/src/a"), writes("b", "/w/src/b"), writes("c", "/w/src/c")];
        let mut grant = grant();
        grant.window = Window::new(Some(Timestamp::from_millis(5)), Some(Timestamp::from_millis(1_000)));
        let session = fixture
            .session(&replies)
            .with_clock(Arc::clone(&clock) as Arc<dyn pintle_agent::Clock>)
            .gate(Jumps(clock, jumps.clone()));
        let session = GovernedSession::builder(session)
            .grant(grant, "local")
            .journal(fixture.journal())
            .approver(Approves)
            .principal(Principal::new("jan"))
            .policy(Policy::new(Mode::Edit, Rules::new(), "/w"))
            .start()
            .await
            .unwrap();
        session.submit("go").await.unwrap();
        assert_eq!(fixture.env.files().len(), expected, "{jumps:?}");
    }
}
