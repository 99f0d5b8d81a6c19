//! Input of the commands of each event.

use pintle_tools::{ChangeKind, FileChange};

use super::*;
use crate::mode::Mode;
use crate::rules::Rules;

const ALL: &str = "cat > input.json";

fn all(fixture: &Fixture) -> ExternalHooks {
    let mut commands = HookCommands::new();
    for event in HookEvent::ALL {
        commands.add(HookCommand::new(event, ALL, "test"));
    }
    fixture.hooks_of(commands)
}

impl Fixture {
    /// Returns the newest input, without the fields that all events have.
    fn input(&self, event: &str) -> Value {
        let text = self.read("input.json");
        assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
        let mut input: Value = serde_json::from_str(&text).unwrap();
        let fields = input.as_object_mut().unwrap();
        assert_eq!(fields.remove("hook_event_name"), Some(json!(event)));
        assert_eq!(fields.remove("session_id"), Some(json!("s")));
        assert_eq!(fields.remove("transcript_path"), Some(Value::Null));
        assert_eq!(fields.remove("cwd"), Some(json!(self.root())));
        input
    }
}

#[tokio::test]
async fn each_event_has_its_input() {
    let fixture = Fixture::new();
    let (hooks, session, call) = (all(&fixture), fixture.session(), fixture.shell().await);
    let called = json!({"tool_name": "shell", "tool_input": {"command": "ls"}, "tool_use_id": "c"});

    hooks.session_started(&session, SessionSource::New).await;
    assert_eq!(fixture.input("SessionStart"), json!({"source": "startup"}));
    hooks.session_started(&session, SessionSource::Resumed).await;
    assert_eq!(fixture.input("SessionStart"), json!({"source": "resume"}));
    hooks.session_started(&session, SessionSource::Forked).await;
    assert_eq!(fixture.input("SessionStart"), json!({"source": "fork"}));

    hooks.before_input(&session, "do it \"now\"\n").await;
    assert_eq!(fixture.input("UserPromptSubmit"), json!({"prompt": "do it \"now\"\n"}));

    hooks.before_call(&session, &call, &Judgement::new()).await;
    assert_eq!(fixture.input("PreToolUse"), called);

    hooks.before_approval(&session, &ApprovalRequest::for_call(&call)).await;
    assert_eq!(fixture.input("PermissionRequest"), called);

    let mut changed = succeeded();
    changed.exit_code = Some(0);
    changed.changes = vec![FileChange::new("src/a.rs", ChangeKind::Modified, "")];
    let response = |content: &str, is_error, exit_code, changed_files: &[&str]| {
        let mut input = called.clone();
        input["tool_response"] = json!({
            "content": content,
            "is_error": is_error,
            "exit_code": exit_code,
            "timed_out": false,
            "changed_files": changed_files,
        });
        input["duration_ms"] = json!(70);
        input
    };
    hooks.after_call(&session, &call, &changed, TOOK).await;
    assert_eq!(fixture.input("PostToolUse"), response("a\nb", false, Some(0), &["src/a.rs"]));
    hooks.after_call(&session, &call, &failed(), TOOK).await;
    assert_eq!(fixture.input("PostToolUseFailure"), response("no such file", true, Some(1), &[]));

    hooks.before_end(&session, "done", 0).await;
    let end = |active| json!({"stop_hook_active": active, "last_assistant_message": "done"});
    assert_eq!(fixture.input("Stop"), end(false));
    hooks.before_end(&session, "done", 2).await;
    assert_eq!(fixture.input("Stop"), end(true));

    for (trigger, name) in [(CompactionTrigger::Manual, "manual"), (CompactionTrigger::Automatic, "auto")] {
        hooks.before_compaction(&session, trigger).await;
        assert_eq!(fixture.input("PreCompact"), json!({ "trigger": name }));
    }

    for (reason, name) in [
        (SessionEndReason::Closed, "closed"),
        (SessionEndReason::Aborted, "aborted"),
        (SessionEndReason::Failed, "failed"),
        (SessionEndReason::Suspended, "suspended"),
    ] {
        hooks.session_ended(&session, reason).await;
        assert_eq!(fixture.input("SessionEnd"), json!({ "reason": name }));
    }
}

#[tokio::test]
async fn subagents_have_events_of_their_own() {
    let fixture = Fixture::new();
    let (hooks, subagent, call) = (all(&fixture), fixture.subagent(), fixture.shell().await);
    let base = |event: &str| {
        let cwd = format!("{}/sub", fixture.root());
        let base = json!({"session_id": "s1", "transcript_path": null, "cwd": cwd, "agent_id": "agent_1", "agent_type": "explorer"});
        let mut base = base.as_object().unwrap().clone();
        base.insert("hook_event_name".to_owned(), json!(event));
        base
    };
    let input = || serde_json::from_str::<Value>(&fixture.read("input.json")).unwrap();

    hooks.session_started(&subagent, SessionSource::New).await;
    assert_eq!(input(), Value::Object(base("SubagentStart")));

    hooks.before_end(&subagent, "done", 1).await;
    let mut expected = base("SubagentStop");
    expected.insert("stop_hook_active".to_owned(), json!(true));
    expected.insert("last_assistant_message".to_owned(), json!("done"));
    assert_eq!(input(), Value::Object(expected));

    // Its calls are calls like others, and its end was reported.
    hooks.before_call(&subagent, &call, &Judgement::new()).await;
    assert_eq!(
        (&input()["hook_event_name"], &input()["agent_id"]),
        (&json!("PreToolUse"), &json!("agent_1"))
    );
    fixture.runs();
    hooks.session_ended(&subagent, SessionEndReason::Closed).await;
    assert_eq!(fixture.runs(), []);
}

#[tokio::test]
async fn mode_and_transcript_are_those_of_the_moment() {
    let fixture = Fixture::new();
    let policy = Policy::new(Mode::Plan, Rules::new(), fixture.root());
    let hooks = all(&fixture)
        .with_policy(policy.clone())
        .with_transcripts(|session| (session.as_str() == "s").then(|| PathBuf::from("/records/s.jsonl")));
    for (session, mode, transcript) in [
        (fixture.session(), Mode::Plan, json!("/records/s.jsonl")),
        (fixture.subagent(), Mode::Auto, Value::Null),
    ] {
        policy.set_mode(mode).await.unwrap();
        hooks.session_started(&session, SessionSource::New).await;
        let input: Value = serde_json::from_str(&fixture.read("input.json")).unwrap();
        assert_eq!(input["permission_mode"], json!(mode.as_str()));
        assert_eq!(input["transcript_path"], transcript);
    }
}

/// A subagent may work in another directory, where a program of the same name is another one.
#[tokio::test]
async fn commands_run_in_the_project_with_its_variables_and_without_secrets() {
    let fixture = Fixture::new();
    let hooks = fixture.scripts(HookEvent::SubagentStart, &["{ pwd; env; } > seen.txt"]);
    std::fs::create_dir_all(fixture.path("sub")).unwrap();
    hooks.session_started(&fixture.subagent(), SessionSource::New).await;
    let seen = fixture.read("seen.txt");
    let root = fixture.root();
    for line in [
        root.clone(),
        "PLAIN=seen".to_owned(),
        format!("PINTLE_PROJECT_DIR={root}"),
        format!("CLAUDE_PROJECT_DIR={root}"),
    ] {
        assert!(seen.lines().any(|seen| seen == line), "{line}: {seen}");
    }
    assert!(!seen.contains("X_API_KEY") && !seen.contains("not to be seen"), "{seen}");
    let shown = format!("{hooks:?}");
    assert_eq!(shown, "ExternalHooks { commands: 1, .. }");
}
