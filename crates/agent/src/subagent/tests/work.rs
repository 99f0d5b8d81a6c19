//! What subagents do for their parent.

use std::collections::BTreeSet;

use super::*;
use crate::approval::{ApprovalRequest, Approver};
use crate::protocol::{Decision, OutcomeStatus, SubagentStatus};
use pintle_tools::pipeline::{Gate, PreparedCall, Verdict};

#[tokio::test]
async fn a_subagent_is_spawned_and_its_result_waited_for() {
    let parent = model()
        .message(calling(&[spawn("Count the files.")]))
        .message(calling(&[wait("agent_1")]))
        .answer("There are three.");
    let child = model()
        .message(calling(&[("write_file", json!({ "file_path": "/project/count.txt", "content": "3\n" }))]))
        .answer("Three files.");
    let bench = Bench::new(Cast::new(parent).part("Count", child));
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "There are three."));
    assert_eq!(
        bench.results(),
        ["agent_id: agent_1\nstatus: running", "success: true\nturns_used: 2\noutput:\nThree files."]
    );
    let written = bench.env.read(std::path::Path::new("/project/count.txt"), None).await.unwrap();
    assert_eq!(written, b"3\n", "they share their files");
}

#[tokio::test]
async fn a_subagent_has_a_conversation_and_a_prompt_of_its_own_and_no_subagents() {
    let parent =
        model().message(calling(&[spawn("Look.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let bench = Bench::new(Cast::new(parent).part("Look", model().answer("Nothing.")));
    bench.session.submit("go").await.unwrap();
    let of_parent = bench.cast.requests("go").last().unwrap().clone();
    let of_child = bench.cast.requests("Look").first().unwrap().clone();
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
    let (all, fewer) = (tools(&of_parent), tools(&of_child));
    let missing: Vec<_> = all.difference(&fewer).map(String::as_str).collect();
    assert_eq!(missing, ["close_agent", "send_input", "spawn_agent", "wait"]);
}

#[tokio::test]
async fn the_events_of_all_come_in_one_stream_with_their_origin() {
    let parent =
        model().message(calling(&[spawn("Look.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let bench = Bench::new(Cast::new(parent).part("Look", model().answer("Nothing.")));
    let (early, late) = (bench.session.tree_events(), bench.session.tree_events());
    let own = bench.session.events();
    bench.session.submit("go").await.unwrap();
    let id = bench.session.id().clone();
    bench.session.close().await;
    let events = rest(early).await;
    let told: Vec<String> = events
        .iter()
        .filter(|event| !matches!(event.kind, EventKind::AssistantTextDelta { .. }))
        .map(|event| format!("{} {}", event.depth, kind(event)))
        .collect();
    let at =
        |wanted: &str| told.iter().position(|event| event == wanted).unwrap_or_else(|| panic!("{wanted}"));
    assert_eq!(told.first().map(String::as_str), Some("0 SESSION_START"));
    assert_eq!(told.last().map(String::as_str), Some("0 SESSION_END"));
    let order = [
        "0 SUBAGENT_SPAWNED",
        "1 SESSION_START",
        "1 USER_INPUT",
        "1 PROCESSING_END",
        "1 SESSION_END",
        "0 SUBAGENT_ENDED",
    ];
    assert!(order.map(at).is_sorted(), "{told:#?}");
    assert!(at("0 SUBAGENT_SPAWNED") < at("0 TOOL_CALL_END"), "{told:#?}");
    for event in &events {
        assert_eq!(event.parent.as_ref(), (event.depth == 1).then_some(&id));
    }
    // Each session numbers its own, and a late reader gets the same.
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
    let late = rest(late).await;
    for depth in [0, 1] {
        assert_eq!(lifecycle(events.clone(), depth), lifecycle(late.clone(), depth));
    }
    let mut alone = Vec::new();
    let mut own = own;
    while let Some(event) = own.next().await {
        alone.push(event);
    }
    assert_eq!(lifecycle(alone, 0), lifecycle(events, 0), "a session's own stream has its own events only");
}

#[tokio::test]
async fn subagents_work_at_the_same_time_and_are_named_in_the_order_of_their_calls() {
    let barrier = Arc::new(Barrier::new(2));
    let meeting = || model().message(calling(&[("meet", json!({}))])).answer("We met.");
    let parent = model()
        .message(calling(&[spawn("First."), spawn("Second.")]))
        .message(calling(&[wait("agent_1"), wait("agent_2")]))
        .answer("ok");
    let cast = Cast::new(parent).part("First", meeting()).part("Second", meeting());
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(Meet(barrier)).unwrap();
    let bench = Bench::of(profile, cast, SessionConfig::default(), |builder| builder);
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    let outcome = tokio::time::timeout(Duration::from_secs(10), run).await.expect("they meet").unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    let mut named = Vec::new();
    while named.len() < 2 {
        let (_, event) =
            until(&mut events, |event| matches!(event.kind, EventKind::SubagentSpawned { .. })).await;
        let EventKind::SubagentSpawned { agent_id, task, .. } = event.kind else { unreachable!() };
        named.push(format!("{agent_id}: {task}"));
    }
    named.sort();
    assert_eq!(named, ["agent_1: First.", "agent_2: Second."]);
}

#[tokio::test]
async fn send_input_steers_one_that_works_and_wakes_one_that_rests() {
    let barrier = Arc::new(Barrier::new(2));
    let parent = model()
        .message(calling(&[spawn("Look.")]))
        .message(calling(&[("send_input", json!({ "agent_id": "agent_1", "message": "In src." }))]))
        .message(calling(&[("meet", json!({})), wait("agent_1")]))
        .message(calling(&[("send_input", json!({ "agent_id": "agent_1", "message": "And in tests?" }))]))
        .message(calling(&[wait("agent_1")]))
        .message(calling(&[("close_agent", json!({ "agent_id": "agent_1" }))]))
        .message(calling(&[("send_input", json!({ "agent_id": "agent_1", "message": "Hello?" }))]))
        .message(calling(&[wait("agent_1")]))
        .answer("ok");
    let child =
        model().message(calling(&[("meet", json!({}))])).answer("In src: none.").answer("In tests: two.");
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(Meet(barrier)).unwrap();
    let cast = Cast::new(parent).part("Look", child);
    let bench = Bench::of(profile, cast, SessionConfig::default(), |builder| builder);
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(outcome.text, "ok", "{outcome:?}");
    let results = bench.results();
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
    let asked: Vec<String> = bench.cast.requests("Look")[2]
        .messages
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.text())
        .collect();
    assert_eq!(asked, ["Look.", "In src.", "And in tests?"], "each message once and in order");
}

#[tokio::test]
async fn who_is_not_there_is_answered_with_those_that_are() {
    let parent = model()
        .message(calling(&[wait("agent_7")]))
        .message(calling(&[spawn("Look.")]))
        .message(calling(&[wait("agent_1")]))
        .message(calling(&[wait("agent_2"), ("close_agent", json!({ "agent_id": "x" })), spawn(" ")]))
        .answer("ok");
    let bench = Bench::new(Cast::new(parent).part("Look", model().answer("Nothing.")));
    bench.session.submit("go").await.unwrap();
    let results = bench.results();
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
async fn a_subagent_works_in_a_directory_below() {
    let in_sub =
        |task: &str, directory: &str| ("spawn_agent", json!({ "task": task, "working_dir": directory }));
    let parent = model()
        .message(calling(&[
            in_sub("Look.", "sub"),
            in_sub("x", ".."),
            in_sub("x", "sub/notes.txt"),
            in_sub("x", "no"),
        ]))
        .message(calling(&[wait("agent_1")]))
        .answer("ok");
    let child = model()
        .message(calling(&[
            ("read_file", json!({ "file_path": "notes.txt" })),
            ("write_file", json!({ "file_path": "new.txt", "content": "new\n" })),
            ("grep", json!({ "pattern": "needle" })),
        ]))
        .answer("Done.");
    let bench = Bench::new(Cast::new(parent).part("Look", child));
    bench.session.submit("go").await.unwrap();
    insta::assert_snapshot!(bench.results()[1..4].join("\n"), @"
    Tool error (spawn_agent): working_dir cannot be used: working in / is refused: it is not below /project
    Tool error (spawn_agent): working_dir cannot be used: /project/sub/notes.txt is not a directory
    Tool error (spawn_agent): working_dir cannot be used: /project/no does not exist
    ");
    let request = bench.cast.requests("Look")[1].clone();
    let results: Vec<String> = request
        .messages
        .iter()
        .flat_map(|message| message.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect();
    assert!(results[0].contains("needle") && results[2].contains("needle"), "{results:?}");
    assert!(request.messages[0].text().contains("/project/sub"), "the prompt says where it works");
    assert_eq!(bench.env.read(std::path::Path::new("/project/sub/new.txt"), None).await.unwrap(), b"new\n");
}

#[derive(Debug)]
struct AskForWrites;

#[async_trait]
impl Gate for AskForWrites {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.effect() {
            Effect::Write => Verdict::Ask { reason: "it writes".into() },
            Effect::Read | Effect::Execute | Effect::Network => Verdict::Allow,
        }
    }
}

#[tokio::test]
async fn the_host_decides_on_the_calls_of_a_subagent_and_sees_whose_they_are() {
    let parent =
        model().message(calling(&[spawn("Write.")])).message(calling(&[wait("agent_1")])).answer("ok");
    let child = model()
        .message(calling(&[("write_file", json!({ "file_path": "/project/a.txt", "content": "a" }))]))
        .answer("Written.");
    let cast = Cast::new(parent).part("Write", child);
    let bench = Bench::with(cast, SessionConfig::default(), |builder| builder.gate(AskForWrites));
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    let (_, asked) = until(&mut events, |event| kind(event) == "APPROVAL_REQUESTED").await;
    assert_eq!((asked.depth, asked.parent.as_ref()), (1, Some(bench.session.id())));
    let handle = bench.session.handle().of_session(&asked.session_id).expect("it is alive");
    let request = handle.approvals()[0].clone();
    let origin = request.origin.clone().expect("a subagent's");
    assert_eq!((origin.agent_id.as_str(), origin.depth), ("agent_1", 1));
    assert_eq!((&origin.session_id, &origin.parent), (&asked.session_id, bench.session.id()));
    handle.decide(&request.call_id, Decision::Approve).unwrap();
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(bench.env.read(std::path::Path::new("/project/a.txt"), None).await.unwrap(), b"a");
    let known = bench.session.handle();
    bench.session.close().await;
    assert!(known.of_session(&asked.session_id).is_none(), "it takes no commands any more");
}

/// Denies whatever a subagent asks for, and says whose it was.
#[derive(Debug)]
struct DeniesThoseBelow;

#[async_trait]
impl Approver for DeniesThoseBelow {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        match &request.origin {
            Some(origin) => Decision::Deny { reason: Some(format!("not by {}", origin.agent_id)) },
            None => Decision::Approve,
        }
    }
}

#[tokio::test]
async fn the_approver_of_the_host_decides_on_the_calls_of_subagents_too() {
    let write = |name: &str| {
        calling(&[("write_file", json!({ "file_path": format!("/project/{name}"), "content": "x" }))])
    };
    let parent = model()
        .message(write("above"))
        .message(calling(&[spawn("Write.")]))
        .message(calling(&[wait("agent_1")]))
        .answer("ok");
    let cast = Cast::new(parent).part("Write", model().message(write("below")).answer("Denied."));
    let bench = Bench::with(cast, SessionConfig::default(), |builder| {
        builder.gate(AskForWrites).approver(DeniesThoseBelow)
    });
    let run = tokio::time::timeout(Duration::from_secs(10), bench.session.submit("go").outcome());
    assert_eq!(run.await.expect("somebody decides").unwrap().text, "ok");
    let request = bench.cast.requests("Write").pop().unwrap();
    let results = request.messages.iter().flat_map(|message| message.results());
    let denied: Vec<String> = results.map(|result| result.text()).collect();
    assert!(denied[0].ends_with("was denied: not by agent_1"), "{denied:?}");
    let files: Vec<_> = bench.env.files().into_keys().collect();
    assert!(
        files.contains(&"/project/above".into()) && !files.contains(&"/project/below".into()),
        "{files:?}"
    );
}

#[tokio::test]
async fn a_model_of_another_provider_brings_its_own_profile() {
    let with_model = |model: &str| ("spawn_agent", json!({ "task": "Look.", "model": model }));
    let parent = model()
        .message(calling(&[
            with_model("gpt-5.2-codex"),
            with_model("gemini-3-flash-preview"),
            with_model("sonnet"),
        ]))
        .message(calling(&[wait("agent_1"), wait("agent_3")]))
        .answer("ok");
    let other = Arc::new(FakeAdapter::new("openai").answer("From afar."));
    let cast = Arc::new(Cast::new(parent).part("Look", model().answer("From here.")));
    let client = Client::builder()
        .shared_provider(Arc::clone(&cast) as Arc<dyn ProviderAdapter>)
        .shared_provider(Arc::clone(&other) as Arc<dyn ProviderAdapter>)
        .default_provider("anthropic");
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let session = Session::builder(client.build().unwrap(), profile, Arc::new(place())).build().unwrap();
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
    assert!(results[3].ends_with("From afar.") && results[4].ends_with("From here."), "{results:?}");
    let request = other.requests()[0].clone();
    assert!(request.tools.iter().any(|tool| tool.name == "apply_patch"), "the tools that this model knows");
    assert!(cast.requests("Look")[0].model.contains("sonnet"));
}

#[test]
fn a_status_reads_as_the_specification_has_it() {
    let rows = [
        (SubagentStatus::Running, "\"RUNNING\"", "running"),
        (SubagentStatus::Completed, "\"COMPLETED\"", "completed"),
        (SubagentStatus::Failed, "\"FAILED\"", "failed"),
    ];
    for (status, json, text) in rows {
        assert_eq!(
            (serde_json::to_string(&status).unwrap().as_str(), status.to_string().as_str()),
            (json, text)
        );
    }
}

/// Whether a message comes while the model answers, just when it has, or afterwards: it is read once, and answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_is_read_once_whenever_it_comes() {
    for _ in 0..40 {
        let parent = model()
            .message(calling(&[spawn("Look.")]))
            .message(calling(&[("send_input", json!({ "agent_id": "agent_1", "message": "More." }))]))
            .message(calling(&[wait("agent_1")]))
            .answer("ok");
        let bench = Bench::new(Cast::new(parent).part("Look", model().answer("One.").answer("Two.")));
        assert_eq!(bench.session.submit("go").await.unwrap().text, "ok");
        let asked = bench.cast.requests("Look").last().unwrap().clone();
        let read = asked.messages.iter().filter(|message| message.text() == "More.").count();
        assert_eq!(read, 1, "{:?}", bench.results());
        assert!(bench.results().last().unwrap().starts_with("success: true"), "{:?}", bench.results());
    }
}
