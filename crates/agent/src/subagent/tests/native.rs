//! The tools for subagents of each family's own agent.

use super::*;
use crate::profile::Toolset;
use crate::session::Session;

async fn native(profile: ProviderProfile, mut cast: Cast) -> Bench {
    cast.name = match profile.id.as_str() {
        "openai" => "openai",
        "gemini" => "gemini",
        _ => "anthropic",
    };
    let profile = profile.with_toolset(Toolset::Native);
    let bench = Bench::of(profile, cast, SessionConfig::default(), |builder| builder);
    let outcome = bench.session.submit("go").await.unwrap();
    assert_eq!(outcome.text, "ok", "{outcome:?}");
    bench
}

fn looking() -> FakeAdapter {
    model().answer("Nothing there.")
}

#[tokio::test]
async fn claude_code_has_a_task_done_in_one_call() {
    let task = |prompt: &str, more: Value| {
        let mut arguments =
            json!({ "description": "look", "prompt": prompt, "subagent_type": "general-purpose" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("Task", arguments)
    };
    let parent = model()
        .message(calling(&[task("Look.", json!({})), task("Fail.", json!({ "max_turns": 1 }))]))
        .message(calling(&[task("Once more?", json!({ "resume": "agent_1" }))]))
        .answer("ok");
    let child = looking().answer("Still nothing.");
    let failing = model().message(saying("I begin.", &[("Glob", json!({ "pattern": "*" }))]));
    let cast = Cast::new(parent).part("Look", child).part("Fail", failing);
    let bench = native(ProviderProfile::anthropic("claude-opus-4-6"), cast).await;
    insta::assert_snapshot!(bench.results().join("\n---\n"), @"
    agentId: agent_1 (for resume)

    Nothing there.
    ---
    agentId: agent_2 (for resume)

    The subagent did not finish: its limit of turns is reached. What it said last:
    I begin.
    ---
    agentId: agent_1 (for resume)

    Still nothing.
    ");
}

#[tokio::test]
async fn an_explorer_changes_no_file() {
    let parent = model()
        .message(calling(&[(
            "Task",
            json!({ "description": "look", "prompt": "Look.", "subagent_type": "Explore" }),
        )]))
        .answer("ok");
    let child = model()
        .message(calling(&[("Write", json!({ "file_path": "/project/a.txt", "content": "a" }))]))
        .answer("I may not.");
    let cast = Cast::new(parent).part("Look", child);
    let bench = native(ProviderProfile::anthropic("claude-opus-4-6"), cast).await;
    let request = bench.cast.requests("Look")[1].clone();
    let result =
        request.messages.iter().find_map(|message| message.results().next().map(|r| r.text())).unwrap();
    assert!(result.contains("the call changes files"), "{result}");
    assert!(request.messages[0].text().contains("You look and report"));
    assert!(!bench.env.file_exists(std::path::Path::new("/project/a.txt")).await.unwrap());
}

#[tokio::test]
async fn codex_waits_for_several_and_reads_their_states() {
    let parent = model()
        .message(calling(&[("spawn_agent", json!({ "message": "Look.", "agent_type": "explorer" }))]))
        .message(calling(&[("wait", json!({ "ids": ["agent_1"] }))]))
        .message(calling(&[("wait", json!({ "ids": ["x"] }))]))
        .message(calling(&[(
            "send_input",
            json!({ "id": "agent_1", "message": "Again.", "interrupt": true }),
        )]))
        .message(calling(&[("wait", json!({ "ids": ["agent_1"], "timeout_ms": 60000 }))]))
        .message(calling(&[("close_agent", json!({ "id": "agent_1" }))]))
        .answer("ok");
    let cast = Cast::new(parent).part("Look", looking().answer("Nothing still."));
    let bench = native(ProviderProfile::openai("gpt-5.2-codex"), cast).await;
    insta::assert_snapshot!(bench.results().join("\n"), @r#"
    {"agent_id":"agent_1"}
    {"status":{"agent_1":{"completed":"Nothing there."}},"timed_out":false}
    Tool error (wait): there is no subagent "x"; there are: agent_1 (completed)
    {"agent_id":"agent_1","status":"running"}
    {"status":{"agent_1":{"completed":"Nothing still."}},"timed_out":false}
    {"status":{"completed":"Nothing still."}}
    "#);
}

#[tokio::test]
async fn codex_turns_a_working_agent_to_another_message() {
    let parent = model()
        .message(calling(&[("spawn_agent", json!({ "message": "Sleep." }))]))
        .message(calling(&[("meet", json!({}))]))
        .message(calling(&[(
            "send_input",
            json!({ "id": "agent_1", "message": "Wake.", "interrupt": true }),
        )]))
        .message(calling(&[("wait", json!({ "ids": ["agent_1"] }))]))
        .answer("ok");
    let nap =
        model().message(calling(&[("exec_command", json!({ "cmd": "sleep 1000", "yield_time_ms": 30000 }))]));
    let barrier = Arc::new(Barrier::new(2));
    let profile = ProviderProfile::openai("gpt-5.2-codex").with_toolset(Toolset::Native);
    let profile = profile.with_tool(Meet(Arc::clone(&barrier))).unwrap();
    let mut cast = Cast::new(parent).part("Sleep", nap.answer("Awake."));
    cast.name = "openai";
    let bench = Bench::of(profile, cast, SessionConfig::default(), |builder| builder);
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    until(&mut events, works).await;
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(
        bench.results().last().unwrap(),
        r#"{"status":{"agent_1":{"completed":"Awake."}},"timed_out":false}"#
    );
}

/// A message that an agent was told before another one interrupted it is read before that one.
#[tokio::test]
async fn what_an_interrupt_leaves_unread_is_read_first_and_in_order() {
    let send = |message: &str, interrupt: bool| {
        ("send_input", json!({ "id": "agent_1", "message": message, "interrupt": interrupt }))
    };
    let parent = model()
        .message(calling(&[("spawn_agent", json!({ "message": "Sleep." }))]))
        .message(calling(&[("meet", json!({}))]))
        .message(calling(&[send("First.", false)]))
        .message(calling(&[("meet", json!({}))]))
        .message(calling(&[send("Second.", true)]))
        .message(calling(&[("wait", json!({ "ids": ["agent_1"] }))]))
        .answer("ok");
    let nap =
        model().message(calling(&[("exec_command", json!({ "cmd": "sleep 1000", "yield_time_ms": 30000 }))]));
    let barrier = Arc::new(Barrier::new(2));
    let profile = ProviderProfile::openai("gpt-5.2-codex").with_toolset(Toolset::Native);
    let profile = profile.with_tool(Meet(Arc::clone(&barrier))).unwrap();
    let mut cast = Cast::new(parent).part("Sleep", nap.answer("Awake."));
    cast.name = "openai";
    let bench = Bench::of(profile, cast, SessionConfig::default(), |builder| builder);
    let mut events = bench.session.tree_events();
    let run = bench.session.submit("go");
    until(&mut events, works).await;
    barrier.wait().await;
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    let request = bench.cast.requests("Sleep")[1].clone();
    let users = request.messages.iter().filter(|message| message.role == Role::User);
    let mut told: Vec<String> = users.map(|message| message.text()).collect();
    told.retain(|text| ["First.", "Second."].contains(&text.as_str()));
    assert_eq!(told, ["First.", "Second."], "{request:?}");
}

#[tokio::test]
async fn gemini_cli_invokes_an_agent() {
    let invoke = |agent: &str| ("invoke_agent", json!({ "agent_name": agent, "prompt": "Look." }));
    let parent = model()
        .message(calling(&[invoke("generalist")]))
        .message(calling(&[invoke("codebase_investigator")]))
        .message(calling(&[invoke("poet")]))
        .answer("ok");
    let cast = Cast::new(parent).part("Look", looking().answer("Nothing either."));
    let bench = native(ProviderProfile::gemini("gemini-3-flash-preview"), cast).await;
    insta::assert_snapshot!(bench.results().join("\n"), @r#"
    Nothing there.
    Nothing either.
    Invalid arguments for tool: invoke_agent
    - `agent_name`: expected one of ["generalist","codebase_investigator"], got string "poet"
    "#);
}

#[tokio::test]
async fn a_hosts_own_tool_of_such_a_name_stays_and_a_bare_profile_gets_none() {
    struct Wait;
    impl Tool for Wait {
        type Input = MeetInput;
        fn name(&self) -> &str {
            "wait"
        }
        fn description(&self) -> &str {
            "The host's own."
        }
        fn effect(&self) -> Effect {
            Effect::Read
        }
        async fn call(&self, _input: MeetInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::new("the host waited"))
        }
    }
    let parent = model().message(calling(&[("wait", json!({}))])).answer("ok");
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(Wait).unwrap();
    let bench = Bench::of(profile, Cast::new(parent), SessionConfig::default(), |builder| builder);
    bench.session.submit("go").await.unwrap();
    assert_eq!(bench.results(), ["the host waited"]);

    let bare = Arc::new(FakeAdapter::new("bare").answer("ok"));
    let client =
        Client::builder().shared_provider(Arc::clone(&bare) as Arc<dyn ProviderAdapter>).build().unwrap();
    let session =
        Session::builder(client, ProviderProfile::new("bare", "m"), Arc::new(place())).build().unwrap();
    session.submit("go").await.unwrap();
    assert!(bare.requests()[0].tools.is_empty());
}
