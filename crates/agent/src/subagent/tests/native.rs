//! Tools for subagents in the native toolsets.

use pintle_env::ExecutionEnvironmentExt as _;

use super::*;
use crate::profile::Toolset;
use crate::session::Session;

async fn run_native(profile: ProviderProfile, mut models: ModelsByTask) -> Harness {
    models.name = match profile.id.as_str() {
        "openai" => "openai",
        "gemini" => "gemini",
        _ => "anthropic",
    };
    let profile = profile.with_toolset(Toolset::Native);
    let harness = Harness::of(profile, models, SessionConfig::default(), |builder| builder);
    let outcome = harness.session.submit("go").await.unwrap();
    assert_eq!(outcome.text, "ok", "{outcome:?}");
    harness
}

fn look_model() -> FakeAdapter {
    model().answer("Nothing there.")
}

#[tokio::test]
async fn claude_code_runs_a_task_in_one_call() {
    let task = |prompt: &str, more: Value| {
        let mut arguments =
            json!({ "description": "look", "prompt": prompt, "subagent_type": "general-purpose" });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        ("Task", arguments)
    };
    let parent = model()
        .message(calls(&[task("Look.", json!({})), task("Fail.", json!({ "max_turns": 1 }))]))
        .message(calls(&[task("Once more?", json!({ "resume": "agent_1" }))]))
        .answer("ok");
    let child = look_model().answer("Still nothing.");
    let failing = model().message(text_and_calls("I begin.", &[("Glob", json!({ "pattern": "*" }))]));
    let models = ModelsByTask::new(parent).subagent("Look", child).subagent("Fail", failing);
    let harness = run_native(ProviderProfile::anthropic("claude-opus-4-6"), models).await;
    insta::assert_snapshot!(harness.results().join("\n---\n"), @"
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
async fn an_explorer_cannot_write_files() {
    let parent = model()
        .message(calls(&[(
            "Task",
            json!({ "description": "look", "prompt": "Look.", "subagent_type": "Explore" }),
        )]))
        .answer("ok");
    let child = model()
        .message(calls(&[("Write", json!({ "file_path": "/project/a.txt", "content": "a" }))]))
        .answer("I may not.");
    let models = ModelsByTask::new(parent).subagent("Look", child);
    let harness = run_native(ProviderProfile::anthropic("claude-opus-4-6"), models).await;
    let request = harness.models.requests("Look")[1].clone();
    let result =
        request.messages.iter().find_map(|message| message.results().next().map(|r| r.text())).unwrap();
    assert!(result.contains("the call changes files"), "{result}");
    assert!(request.messages[0].text().contains("You look and report"));
    assert!(!harness.env.file_exists(std::path::Path::new("/project/a.txt")).await.unwrap());
}

#[tokio::test]
async fn codex_waits_for_several_agents() {
    let parent = model()
        .message(calls(&[("spawn_agent", json!({ "message": "Look.", "agent_type": "explorer" }))]))
        .message(calls(&[("wait", json!({ "ids": ["agent_1"] }))]))
        .message(calls(&[("wait", json!({ "ids": ["x"] }))]))
        .message(calls(&[("send_input", json!({ "id": "agent_1", "message": "Again.", "interrupt": true }))]))
        .message(calls(&[("wait", json!({ "ids": ["agent_1"], "timeout_ms": 60000 }))]))
        .message(calls(&[("close_agent", json!({ "id": "agent_1" }))]))
        .answer("ok");
    let models = ModelsByTask::new(parent).subagent("Look", look_model().answer("Nothing still."));
    let harness = run_native(ProviderProfile::openai("gpt-5.2-codex"), models).await;
    insta::assert_snapshot!(harness.results().join("\n"), @r#"
    {"agent_id":"agent_1"}
    {"status":{"agent_1":{"completed":"Nothing there."}},"timed_out":false}
    Tool error (wait): there is no subagent "x"; there are: agent_1 (completed)
    {"agent_id":"agent_1","status":"running"}
    {"status":{"agent_1":{"completed":"Nothing still."}},"timed_out":false}
    {"status":{"completed":"Nothing still."}}
    "#);
}

#[tokio::test]
async fn codex_interrupts_a_running_agent_with_a_message() {
    let parent = model()
        .message(calls(&[("spawn_agent", json!({ "message": "Sleep." }))]))
        .message(calls(&[("meet", json!({}))]))
        .message(calls(&[("send_input", json!({ "id": "agent_1", "message": "Wake.", "interrupt": true }))]))
        .message(calls(&[("wait", json!({ "ids": ["agent_1"] }))]))
        .answer("ok");
    let sleep =
        model().message(calls(&[("exec_command", json!({ "cmd": "sleep 1000", "yield_time_ms": 30000 }))]));
    let barrier = Arc::new(Barrier::new(2));
    let profile = ProviderProfile::openai("gpt-5.2-codex").with_toolset(Toolset::Native);
    let profile = profile.with_tool(BarrierTool(Arc::clone(&barrier))).unwrap();
    let mut models = ModelsByTask::new(parent).subagent("Sleep", sleep.answer("Awake."));
    models.name = "openai";
    let harness = Harness::of(profile, models, SessionConfig::default(), |builder| builder);
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    read_until(&mut events, is_subagent_call).await;
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    assert_eq!(
        harness.results().last().unwrap(),
        r#"{"status":{"agent_1":{"completed":"Awake."}},"timed_out":false}"#
    );
}

#[tokio::test]
async fn messages_from_before_an_interrupt_are_read_first() {
    let send = |message: &str, interrupt: bool| {
        ("send_input", json!({ "id": "agent_1", "message": message, "interrupt": interrupt }))
    };
    let parent = model()
        .message(calls(&[("spawn_agent", json!({ "message": "Sleep." }))]))
        .message(calls(&[("meet", json!({}))]))
        .message(calls(&[send("First.", false)]))
        .message(calls(&[("meet", json!({}))]))
        .message(calls(&[send("Second.", true)]))
        .message(calls(&[("wait", json!({ "ids": ["agent_1"] }))]))
        .answer("ok");
    let sleep =
        model().message(calls(&[("exec_command", json!({ "cmd": "sleep 1000", "yield_time_ms": 30000 }))]));
    let barrier = Arc::new(Barrier::new(2));
    let profile = ProviderProfile::openai("gpt-5.2-codex").with_toolset(Toolset::Native);
    let profile = profile.with_tool(BarrierTool(Arc::clone(&barrier))).unwrap();
    let mut models = ModelsByTask::new(parent).subagent("Sleep", sleep.answer("Awake."));
    models.name = "openai";
    let harness = Harness::of(profile, models, SessionConfig::default(), |builder| builder);
    let mut events = harness.session.tree_events();
    let run = harness.session.submit("go");
    read_until(&mut events, is_subagent_call).await;
    barrier.wait().await;
    barrier.wait().await;
    assert_eq!(run.await.unwrap().text, "ok");
    let request = harness.models.requests("Sleep")[1].clone();
    let users = request.messages.iter().filter(|message| message.role == Role::User);
    let mut messages: Vec<String> = users.map(|message| message.text()).collect();
    messages.retain(|text| ["First.", "Second."].contains(&text.as_str()));
    assert_eq!(messages, ["First.", "Second."], "{request:?}");
}

#[tokio::test]
async fn gemini_cli_invokes_an_agent() {
    let invoke = |agent: &str| ("invoke_agent", json!({ "agent_name": agent, "prompt": "Look." }));
    let parent = model()
        .message(calls(&[invoke("generalist")]))
        .message(calls(&[invoke("codebase_investigator")]))
        .message(calls(&[invoke("poet")]))
        .answer("ok");
    let models = ModelsByTask::new(parent).subagent("Look", look_model().answer("Nothing either."));
    let harness = run_native(ProviderProfile::gemini("gemini-3-flash-preview"), models).await;
    insta::assert_snapshot!(harness.results().join("\n"), @r#"
    Nothing there.
    Nothing either.
    Invalid arguments for tool: invoke_agent
    - `agent_name`: expected one of ["generalist","codebase_investigator"], got string "poet"
    "#);
}

#[tokio::test]
async fn custom_tools_are_kept_and_custom_profiles_unchanged() {
    struct Wait;
    impl Tool for Wait {
        type Input = NoInput;
        fn name(&self) -> &str {
            "wait"
        }
        fn description(&self) -> &str {
            "A custom tool."
        }
        fn effect(&self) -> Effect {
            Effect::Read
        }
        async fn call(&self, _input: NoInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            Ok(ToolOutput::new("custom result"))
        }
    }
    let parent = model().message(calls(&[("wait", json!({}))])).answer("ok");
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(Wait).unwrap();
    let harness =
        Harness::of(profile, ModelsByTask::new(parent), SessionConfig::default(), |builder| builder);
    harness.session.submit("go").await.unwrap();
    assert_eq!(harness.results(), ["custom result"]);

    let bare = Arc::new(FakeAdapter::new("bare").answer("ok"));
    let client =
        Client::builder().shared_provider(Arc::clone(&bare) as Arc<dyn ProviderAdapter>).build().unwrap();
    let session =
        Session::builder(client, ProviderProfile::new("bare", "m"), Arc::new(project_env())).build().unwrap();
    session.submit("go").await.unwrap();
    assert!(bare.requests()[0].tools.is_empty());
}
