#![expect(clippy::disallowed_methods, reason = "the journal of a test is a file")]
#![expect(clippy::wildcard_enum_match_arm, reason = "the test looks for one kind of event")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, Approver, Decision, EventKind, JsonLines, OutcomeStatus, ProviderProfile, Record,
    Session, SessionBuilder, SessionEvent,
};
use pintle_env::{ExecutionEnvironment, MemoryEnvironment};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Fingerprint, Message, Role, ToolCall};
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{DynTool, ToolRegistry};
use serde_json::{Value, json};

use super::*;
use crate::policy::PolicyGate;
use crate::rules::Rules;

fn calling(id: &str, tool: &str, arguments: &Value) -> Message {
    Message::new(Role::Assistant, vec![ToolCall::from_raw(id, tool, arguments.to_string()).into()])
}

fn presents(id: &str, plan: &str) -> Message {
    calling(id, PresentPlan::NAME, &json!({ "plan": plan }))
}

fn writes(id: &str) -> Message {
    calling(id, "write_file", &json!({"file_path": "a", "content": "x"}))
}

/// Denies the first plan with a reason, and approves everything later.
#[derive(Clone, Debug, Default)]
struct Reader(Arc<AtomicUsize>);

#[async_trait]
impl Approver for Reader {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        assert_eq!(request.tool_name, PresentPlan::NAME);
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Decision::Deny { reason: Some("test it first".to_owned()) },
            _ => Decision::Approve,
        }
    }

    fn principal(&self) -> Option<Principal> {
        Some(Principal::new("ada"))
    }
}

struct Fixture {
    env: Arc<MemoryEnvironment>,
    policy: Policy,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(mode: Mode) -> Self {
        Self {
            env: Arc::new(MemoryEnvironment::new("/w")),
            policy: Policy::new(mode, Rules::new(), "/w"),
            directory: tempfile::tempdir().unwrap(),
        }
    }

    fn builder(&self, replies: &[Message]) -> SessionBuilder {
        let adapter = replies.iter().cloned().fold(FakeAdapter::new("anthropic"), FakeAdapter::message);
        let client = Client::builder().provider(adapter.answer("Done.")).build().unwrap();
        let profile = ProviderProfile::anthropic("claude-opus-4-6");
        let profile = profile.with_tool(PresentPlan::new(self.policy.clone(), Mode::Edit)).unwrap();
        let env = Arc::clone(&self.env) as Arc<dyn ExecutionEnvironment>;
        let path = self.directory.path().join("journal");
        let journal = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        Session::builder(client, profile, Arc::clone(&env))
            .principal(Some(Principal::new("jan")))
            .gate(PolicyGate::new(self.policy.clone(), env))
            .journal(JsonLines::new(journal))
    }

    fn start(&self, builder: SessionBuilder) -> Session {
        let session = builder.build().unwrap();
        self.policy.attach(session.handle());
        session
    }

    fn record(&self) -> Record {
        let text = std::fs::read_to_string(self.directory.path().join("journal")).unwrap();
        Record::read(text.as_bytes()).unwrap()
    }

    fn has_written(&self) -> bool {
        self.env.files().contains_key(std::path::Path::new("/w/a"))
    }
}

fn results(events: &[SessionEvent]) -> Vec<String> {
    let text = |event: &SessionEvent| match &event.kind {
        EventKind::ToolCallEnd { output, .. } => Some(output.to_text_lossy().unwrap()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}

fn modes(events: &[SessionEvent]) -> Vec<(Option<String>, Option<String>)> {
    let change = |event: &SessionEvent| match &event.kind {
        EventKind::PolicyChanged(change) => {
            Some((change.mode.clone(), change.by.as_ref().map(|by| by.as_str().to_owned())))
        }
        _ => None,
    };
    events.iter().filter_map(change).collect()
}

#[tokio::test]
async fn acceptance_changes_the_mode_and_a_denial_does_not() {
    let fixture = Fixture::new(Mode::Plan);
    let replies =
        [writes("1"), presents("2", "Write a."), writes("3"), presents("4", "Test, write a."), writes("5")];
    let session = fixture.start(fixture.builder(&replies).approver(Reader::default()));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    session.close().await;
    let events = fixture.record().replay().unwrap().events;
    assert_eq!(modes(&events), [(Some("edit".to_owned()), Some("ada".to_owned()))]);
    let results = results(&events);
    let expected = [
        "The call of write_file was denied: no files are changed in mode plan",
        "The call of present_plan was denied: test it first",
        "The call of write_file was denied: it was denied before",
        "The plan was accepted. The session is in mode edit now. Files in the workspace may be changed; the user is \
         asked about commands.",
        "",
    ];
    assert_eq!(results.len(), expected.len(), "{results:?}");
    assert!(results[0].starts_with(expected[0]) && results[1].starts_with(expected[1]), "{results:?}");
    assert!(results[2].contains("denied") && results[3] == expected[3], "{results:?}");
    assert!(fixture.has_written());
}

/// The process that asked is gone, and somebody else decides.
#[tokio::test]
async fn a_plan_is_accepted_across_a_restart() {
    let fixture = Fixture::new(Mode::Plan);
    let session = fixture.start(fixture.builder(&[presents("1", "Write a.")]));
    let run = session.submit("go");
    let handle = session.handle();
    while handle.approvals().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    // What a killed process leaves behind.
    let path = fixture.directory.path().join("journal");
    let left = std::fs::read(&path).unwrap();
    drop((run, session));
    std::fs::write(&path, left).unwrap();
    let next = Fixture { policy: Policy::new(Mode::Plan, Rules::new(), "/w"), ..fixture };
    let mut session = next.start(next.builder(&[writes("2")]).resume(next.record()));
    let run = session.resumed().unwrap();
    while session.handle().approvals().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    session.handle().acting_as(Principal::new("eve")).decide("1", Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(next.policy.mode(), Mode::Edit);
    assert!(next.has_written());
    session.close().await;
    let events = next.record().replay().unwrap().events;
    assert_eq!(modes(&events), [(Some("edit".to_owned()), Some("eve".to_owned()))]);
}

#[tokio::test]
async fn in_another_mode_there_is_nothing_to_accept() {
    let fixture = Fixture::new(Mode::Ask);
    let session = fixture.start(fixture.builder(&[presents("1", "Write a.")]));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    session.close().await;
    let events = fixture.record().replay().unwrap().events;
    let results = results(&events);
    assert!(results[0].starts_with("No plan has to be accepted: the session is in mode ask."), "{results:?}");
    assert_eq!((fixture.policy.mode(), modes(&events)), (Mode::Ask, Vec::new()));
}

#[tokio::test]
async fn a_plan_that_is_empty_or_too_long_reaches_nobody() {
    let fixture = Fixture::new(Mode::Plan);
    let env: Arc<dyn ExecutionEnvironment> = Arc::clone(&fixture.env) as _;
    let mut registry = ToolRegistry::new();
    registry.register(PresentPlan::new(fixture.policy.clone(), Mode::Auto)).unwrap();
    let gate = PolicyGate::new(fixture.policy.clone(), Arc::clone(&env));
    let gates: [Arc<dyn pintle_tools::gate::Gate>; 1] = [Arc::new(gate)];
    let long = "x".repeat(MAX_PLAN + 1);
    for (arguments, expected) in [
        (json!({"plan": " \n"}), "plan is empty"),
        (json!({ "plan": long }), "plan has 32769 bytes"),
        (json!({}), "`plan`"),
        (json!({"plan": "x", "mode": "auto"}), "mode"),
    ] {
        let call = ToolCall::from_raw("1", PresentPlan::NAME, arguments.to_string());
        match prepare(&registry, &gates, env.as_ref(), &call).await {
            JudgedCall::Refused { error, .. } => {
                assert!(error.for_model().contains(expected), "{}", error.for_model());
            }
            other => panic!("{other:?}"),
        }
    }
    let call = ToolCall::from_raw("1", PresentPlan::NAME, json!({"plan": "x".repeat(MAX_PLAN)}).to_string());
    match prepare(&registry, &gates, env.as_ref(), &call).await {
        JudgedCall::Ask { judgement, .. } => {
            assert_eq!(judgement.reason(), "accepting the plan changes the mode from plan to auto");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_schema_requires_a_plan_and_takes_nothing_else() {
    let policy = Policy::new(Mode::Plan, Rules::new(), "/w");
    let definition = PresentPlan::new(policy, Mode::Edit).definition().unwrap();
    assert_eq!(definition.parameters["required"], json!(["plan"]));
    assert_eq!(definition.parameters["additionalProperties"], json!(false));
}

/// The texts are in `prompts/`. A change shows here as another size and hash.
#[test]
fn texts_match_their_reviewed_hashes() {
    let tool = PresentPlan::new(Policy::new(Mode::Plan, Rules::new(), "/w"), Mode::Edit);
    let texts =
        [PresentPlan::INSTRUCTIONS, PresentPlan::INSTRUCTIONS_WITHOUT_A_PERSON, Tool::description(&tool)];
    let shown =
        texts.map(|text| format!("{} bytes, {}", text.len(), Fingerprint::from_bytes(text.as_bytes())));
    assert_eq!(
        shown,
        [
            "455 bytes, 0d6d1b85eeb92f2526810f9286eb2965",
            "347 bytes, dbd8b82af3ddd522f2f6124332575d17",
            "252 bytes, e58c92d0d874bfea49b2f70de6de7ea9",
        ]
    );
}
