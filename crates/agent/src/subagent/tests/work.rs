//! Work of subagents for their parent.

use std::collections::BTreeSet;

use super::*;
use crate::approval::{ApprovalRequest, Approver};
use crate::protocol::{Decision, OutcomeStatus};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};

#[tokio::test]
async fn spawn_and_wait_returns_the_result() {
    let parent = model()
        .message(calls(&[spawn("Count the files.")]))
        .message(calls(&[wait("agent_1")]))
        .answer("There are three.");
    let child = model()
        .message(calls(&[("write_file", json!({ "file_path": "/project/count.txt", "content": "3\n" }))]))
        .answer("Three files.");
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Count", child));
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "There are three."));
    assert_eq!(
        harness.results(),
        ["agent_id: agent_1\nstatus: running", "success: true\nturns_used: 2\noutput:\nThree files."]
    );
    let written = harness.env.read(std::path::Path::new("/project/count.txt"), None).await.unwrap();
    assert_eq!(written, b"3\n", "files are shared");
}

#[tokio::test]
async fn a_subagent_has_its_own_conversation_prompt_and_tools() {
    let parent = model().message(calls(&[spawn("Look.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Look", model().answer("Nothing.")));
    harness.session.submit("go").await.unwrap();
    let of_parent = harness.models.requests("go").last().unwrap().clone();
    let of_child = harness.models.requests("Look").first().unwrap().clone();
    let users = |request: &Request| {
        let texts = request.messages.iter().filter(|message| message.role == Role::User);
        texts.map(|message| message.text()).collect::<Vec<_>>()
    };
    assert_eq!(users(&of_child), ["Look."]);
    assert_eq!(users(&of_parent)[0], "go");
    let system = |request: &Request| request.messages[0].text();
    assert!(system(&of_child).contains("# You are a subagent"), "{}", system(&of_child));
    assert!(!system(&of_parent).contains("You are a subagent"), "{}", system(&of_parent));
    let tools =
        |request: &Request| request.tools.iter().map(|tool| tool.name.clone()).collect::<BTreeSet<_>>();
    let (parent_tools, child_tools) = (tools(&of_parent), tools(&of_child));
    let missing: Vec<_> = parent_tools.difference(&child_tools).map(String::as_str).collect();
    assert_eq!(missing, ["close_agent", "send_input", "spawn_agent", "wait"]);
}

#[tokio::test]
async fn tree_events_merge_all_sessions_with_their_origin() {
    let parent = model().message(calls(&[spawn("Look.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Look", model().answer("Nothing.")));
    let (early, late) = (harness.session.tree_events(), harness.session.tree_events());
    let own = harness.session.events();
    harness.session.submit("go").await.unwrap();
    let id = harness.session.id().clone();
    harness.session.close().await;
    let events = read_all(early).await;
    let kinds: Vec<String> = events
        .iter()
        .filter(|event| !matches!(event.kind, EventKind::AssistantTextDelta { .. }))
        .map(|event| format!("{} {}", event.depth, kind(event)))
        .collect();
    let at =
        |wanted: &str| kinds.iter().position(|event| event == wanted).unwrap_or_else(|| panic!("{wanted}"));
    assert_eq!(kinds.first().map(String::as_str), Some("0 SESSION_START"));
    assert_eq!(kinds.last().map(String::as_str), Some("0 SESSION_END"));
    let order = [
        "0 SUBAGENT_SPAWNED",
        "1 SESSION_START",
        "1 USER_INPUT",
        "1 PROCESSING_END",
        "1 SESSION_END",
        "0 SUBAGENT_ENDED",
    ];
    assert!(order.map(at).is_sorted(), "{kinds:#?}");
    assert!(at("0 SUBAGENT_SPAWNED") < at("0 TOOL_CALL_END"), "{kinds:#?}");
    for event in &events {
        assert_eq!(event.parent.as_ref(), (event.depth == 1).then_some(&id));
    }
    // Each session numbers its own events, and all streams agree.
    for depth in [0, 1] {
        let lifecycle = events.iter().filter(|event| event.depth == depth && event.offset.is_none());
        let seqs: Vec<u64> = lifecycle.map(|event| event.seq).collect();
        assert_eq!(seqs, (0..seqs.len() as u64).collect::<Vec<_>>());
    }
    let lifecycle = |events: Vec<SessionEvent>, depth| {
        let mut seen: Vec<_> = events.into_iter().filter(|event| event.offset.is_none()).collect();
        seen.retain(|event| event.depth == depth);
        seen
    };
    let late = read_all(late).await;
    for depth in [0, 1] {
        assert_eq!(lifecycle(events.clone(), depth), lifecycle(late.clone(), depth));
    }
    let mut alone = Vec::new();
    let mut own = own;
    while let Some(event) = own.next().await {
        alone.push(event);
    }
    assert_eq!(lifecycle(alone, 0), lifecycle(events, 0), "a session's own stream has only its own events");
}

#[tokio::test]
async fn subagents_run_concurrently_and_are_named_in_call_order() {
    let barrier = Arc::new(Barrier::new(2));
    let at_barrier = || model().message(calls(&[("meet", json!({}))])).answer("Done.");
    let parent = model()
        .message(calls(&[spawn("First."), spawn("Second.")]))
        .message(calls(&[wait("agent_1"), wait("agent_2")]))
        .answer("ok");
    let models = ModelsByTask::new(parent).subagent("First", at_barrier()).subagent("Second", at_barrier());
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(BarrierTool(barrier)).unwrap();
    let harness = Harness::of(profile, models, SessionConfig::default(), |builder| builder);
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    let outcome =
        tokio::time::timeout(Duration::from_secs(10), run).await.expect("both reach the barrier").unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    let mut named = Vec::new();
    while named.len() < 2 {
        let (_, event) =
            read_until(&mut events, |event| matches!(event.kind, EventKind::SubagentSpawned { .. })).await;
        let EventKind::SubagentSpawned { agent_id, task, .. } = event.kind else { unreachable!() };
        named.push(format!("{agent_id}: {task}"));
    }
    named.sort();
    assert_eq!(named, ["agent_1: First.", "agent_2: Second."]);
}

#[tokio::test]
async fn send_input_steers_a_running_and_wakes_an_idle_subagent() {
    let barrier = Arc::new(Barrier::new(2));
    let parent = model()
        .message(calls(&[spawn("Look.")]))
        .message(calls(&[("send_input", json!({ "agent_id": "agent_1", "message": "In src." }))]))
        .message(calls(&[("meet", json!({})), wait("agent_1")]))
        .message(calls(&[("send_input", json!({ "agent_id": "agent_1", "message": "And in tests?" }))]))
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[("close_agent", json!({ "agent_id": "agent_1" }))]))
        .message(calls(&[("send_input", json!({ "agent_id": "agent_1", "message": "Hello?" }))]))
        .message(calls(&[wait("agent_1")]))
        .answer("ok");
    let child =
        model().message(calls(&[("meet", json!({}))])).answer("In src: none.").answer("In tests: two.");
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(BarrierTool(barrier)).unwrap();
    let models = ModelsByTask::new(parent).subagent("Look", child);
    let harness = Harness::of(profile, models, SessionConfig::default(), |builder| builder);
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!(outcome.text, "ok", "{outcome:?}");
    let results = harness.results();
    assert_eq!(
        results[1..],
        [
            "The message was sent to agent_1.",
            "met",
            "success: true\nturns_used: 2\noutput:\nIn src: none.",
            "The message was sent to agent_1.",
            "success: true\nturns_used: 3\noutput:\nIn tests: two.",
            "agent_1 is closed. Final status: completed",
            "Tool error (send_input): agent_1 is closed",
            "success: true\nturns_used: 3\noutput:\nIn tests: two.",
        ]
    );
    let asked: Vec<String> = harness.models.requests("Look")[2]
        .messages
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.text())
        .collect();
    assert_eq!(asked, ["Look.", "In src.", "And in tests?"], "each message once, in order");
}

#[tokio::test]
async fn an_unknown_name_is_answered_with_the_known_ones() {
    let parent = model()
        .message(calls(&[wait("agent_7")]))
        .message(calls(&[spawn("Look.")]))
        .message(calls(&[wait("agent_1")]))
        .message(calls(&[wait("agent_2"), ("close_agent", json!({ "agent_id": "x" })), spawn(" ")]))
        .answer("ok");
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Look", model().answer("Nothing.")));
    harness.session.submit("go").await.unwrap();
    let results = harness.results();
    assert_eq!(results[0], r#"Tool error (wait): there is no subagent "agent_7"; none has been spawned"#);
    assert_eq!(
        results[3..],
        [
            r#"Tool error (wait): there is no subagent "agent_2"; there are: agent_1 (completed)"#,
            r#"Tool error (close_agent): there is no subagent "x"; there are: agent_1 (completed)"#,
            "Tool error (spawn_agent): the task is empty; say what the subagent should do",
        ]
    );
}

#[tokio::test]
async fn working_dir_must_be_below_the_parents() {
    let in_sub =
        |task: &str, directory: &str| ("spawn_agent", json!({ "task": task, "working_dir": directory }));
    let parent = model()
        .message(calls(&[
            in_sub("Look.", "sub"),
            in_sub("x", ".."),
            in_sub("x", "sub/notes.txt"),
            in_sub("x", "no"),
        ]))
        .message(calls(&[wait("agent_1")]))
        .answer("ok");
    let child = model()
        .message(calls(&[
            ("read_file", json!({ "file_path": "notes.txt" })),
            ("write_file", json!({ "file_path": "new.txt", "content": "new\n" })),
            ("grep", json!({ "pattern": "needle" })),
        ]))
        .answer("Done.");
    let harness = Harness::new(ModelsByTask::new(parent).subagent("Look", child));
    harness.session.submit("go").await.unwrap();
    insta::assert_snapshot!(harness.results()[1..4].join("\n"), @"
    Tool error (spawn_agent): working_dir cannot be used: working in / is refused: it is not below /project
    Tool error (spawn_agent): working_dir cannot be used: /project/sub/notes.txt is not a directory
    Tool error (spawn_agent): working_dir cannot be used: /project/no does not exist
    ");
    let request = harness.models.requests("Look")[1].clone();
    let results: Vec<String> = request
        .messages
        .iter()
        .flat_map(|message| message.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect();
    assert!(results[0].contains("needle") && results[2].contains("needle"), "{results:?}");
    assert!(request.messages[0].text().contains("/project/sub"), "the prompt names its directory");
    assert_eq!(harness.env.read(std::path::Path::new("/project/sub/new.txt"), None).await.unwrap(), b"new\n");
}

/// Asks for a decision on each write.
#[derive(Debug)]
struct AskForWrites;

#[async_trait]
impl Gate for AskForWrites {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.effect() {
            Effect::Write => Verdict::ask("it writes"),
            Effect::Read | Effect::Execute | Effect::Network => Verdict::ALLOW,
        }
    }
}

#[tokio::test]
async fn the_application_decides_on_calls_of_a_subagent() {
    let parent = model().message(calls(&[spawn("Write.")])).message(calls(&[wait("agent_1")])).answer("ok");
    let child = model()
        .message(calls(&[("write_file", json!({ "file_path": "/project/a.txt", "content": "a" }))]))
        .answer("Written.");
    let models = ModelsByTask::new(parent).subagent("Write", child);
    let harness = Harness::with(models, SessionConfig::default(), |builder| builder.gate(AskForWrites));
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    let (_, asked) = read_until(&mut events, |event| kind(event) == "APPROVAL_REQUESTED").await;
    assert_eq!((asked.depth, asked.parent.as_ref()), (1, Some(harness.session.id())));
    let handle = harness.session.handle().of_session(&asked.session_id).expect("a live session");
    let request = handle.approvals()[0].clone();
    let root = harness.session.handle();
    assert!(root.approvals().is_empty(), "it is not its own");
    assert_eq!(root.tree_approvals(), [(asked.session_id.clone(), request.clone())]);
    assert_eq!(handle.tree_approvals(), [(asked.session_id.clone(), request.clone())]);
    let origin = request.origin.clone().expect("the origin of a subagent");
    assert_eq!((origin.agent_id.as_str(), origin.depth), ("agent_1", 1));
    assert_eq!((&origin.session_id, &origin.parent), (&asked.session_id, harness.session.id()));
    handle.decide(&request.call_id, Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(root.tree_approvals(), []);
    assert_eq!(harness.env.read(std::path::Path::new("/project/a.txt"), None).await.unwrap(), b"a");
    let handle = harness.session.handle();
    harness.session.close().await;
    assert!(handle.of_session(&asked.session_id).is_none(), "the session has ended");
}

/// Denies all calls of subagents, with their name as the reason.
#[derive(Debug)]
struct DenySubagents;

#[async_trait]
impl Approver for DenySubagents {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        match &request.origin {
            Some(origin) => Decision::Deny { reason: Some(format!("not by {}", origin.agent_id)) },
            None => Decision::Approve,
        }
    }
}

#[tokio::test]
async fn the_approver_decides_on_calls_of_subagents() {
    let write = |name: &str| {
        calls(&[("write_file", json!({ "file_path": format!("/project/{name}"), "content": "x" }))])
    };
    let parent = model()
        .message(write("above"))
        .message(calls(&[spawn("Write.")]))
        .message(calls(&[wait("agent_1")]))
        .answer("ok");
    let models =
        ModelsByTask::new(parent).subagent("Write", model().message(write("below")).answer("Denied."));
    let harness = Harness::with(models, SessionConfig::default(), |builder| {
        builder.gate(AskForWrites).approver(DenySubagents)
    });
    let run = tokio::time::timeout(Duration::from_secs(10), harness.session.submit("go").outcome());
    assert_eq!(run.await.expect("a decision in time").unwrap().text, "ok");
    let request = harness.models.requests("Write").pop().unwrap();
    let results = request.messages.iter().flat_map(|message| message.results());
    let denied: Vec<String> = results.map(|result| result.text()).collect();
    assert!(denied[0].ends_with("was denied: not by agent_1"), "{denied:?}");
    let files: Vec<_> = harness.env.files().into_keys().collect();
    assert!(
        files.contains(&"/project/above".into()) && !files.contains(&"/project/below".into()),
        "{files:?}"
    );
}

#[tokio::test]
async fn a_model_of_another_provider_uses_its_own_profile() {
    let with_model = |model: &str| ("spawn_agent", json!({ "task": "Look.", "model": model }));
    let parent = model()
        .message(calls(&[
            with_model("gpt-5.2-codex"),
            with_model("gemini-3-flash-preview"),
            with_model("sonnet"),
        ]))
        .message(calls(&[wait("agent_1"), wait("agent_3")]))
        .answer("ok");
    let other = Arc::new(FakeAdapter::new("openai").answer("From openai."));
    let models = Arc::new(ModelsByTask::new(parent).subagent("Look", model().answer("From anthropic.")));
    let client = Client::builder()
        .shared_provider(Arc::clone(&models) as Arc<dyn ProviderAdapter>)
        .shared_provider(Arc::clone(&other) as Arc<dyn ProviderAdapter>)
        .default_provider("anthropic");
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let session =
        Session::builder(client.build().unwrap(), profile, Arc::new(project_env())).build().unwrap();
    session.submit("go").await.unwrap();
    let history = session.history();
    let results: Vec<String> = history
        .iter()
        .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect();
    assert_eq!(
        results[1],
        "Tool error (spawn_agent): the model \"gemini-3-flash-preview\" is one of gemini, which this session cannot reach; leave model out to have claude-opus-4-6"
    );
    assert!(results[3].ends_with("From openai.") && results[4].ends_with("From anthropic."), "{results:?}");
    let request = other.requests()[0].clone();
    assert!(request.tools.iter().any(|tool| tool.name == "apply_patch"), "the tools of the model's family");
    assert!(models.requests("Look")[0].model.contains("sonnet"));
}

/// The message may arrive during a model response, at its end, or afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_read_once_at_any_time() {
    for _ in 0..40 {
        let parent = model()
            .message(calls(&[spawn("Look.")]))
            .message(calls(&[("send_input", json!({ "agent_id": "agent_1", "message": "More." }))]))
            .message(calls(&[wait("agent_1")]))
            .answer("ok");
        let harness =
            Harness::new(ModelsByTask::new(parent).subagent("Look", model().answer("One.").answer("Two.")));
        assert_eq!(harness.session.submit("go").await.unwrap().text, "ok");
        let asked = harness.models.requests("Look").last().unwrap().clone();
        let read = asked.messages.iter().filter(|message| message.text() == "More.").count();
        assert_eq!(read, 1, "{:?}", harness.results());
        assert!(harness.results().last().unwrap().starts_with("success: true"), "{:?}", harness.results());
    }
}
