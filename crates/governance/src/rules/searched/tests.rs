//! Calls that read directories, judged by rules on files.

use std::sync::Arc;

use pintle_env::{LocalEnvironment, MemoryEnvironment};
use pintle_llm::{ToolCall, ToolResult};
use pintle_tools::gate::{Gate, Judgement};
use pintle_tools::pipeline::{Execution, JudgedCall, prepare};
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolKind, ToolOutput, ToolRegistry, builtin};
use serde_json::{Value, json};

use super::*;
use crate::grant::{Grant, GrantId};
use crate::{GrantGate, HiddenPathGate, Mode, PathScope, Policy, PolicyGate};

/// A tool of an application that calls itself a listing, and reads everything below the working directory.
struct Archive;

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct NoInput {}

impl Tool for Archive {
    type Input = NoInput;

    fn name(&self) -> &str {
        "archive"
    }

    fn description(&self) -> &str {
        "Packs all files."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    fn kind(&self) -> &str {
        ToolKind::ListDir.as_str()
    }

    fn reads(&self, _input: &NoInput) -> Vec<PathBuf> {
        vec![".".into()]
    }

    async fn call(&self, _input: NoInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new("packed"))
    }
}

fn rules(text: &str, workspace: &Path) -> Rules {
    Rules::parse("rules.toml", text, workspace).unwrap()
}

fn policy_gate(deny: &str, env: &Arc<dyn ExecutionEnvironment>) -> PolicyGate {
    let workspace = env.working_directory();
    let rules = rules(&format!("deny = [\"{deny}\"]"), workspace);
    PolicyGate::new(Policy::new(Mode::Auto, rules, workspace), Arc::clone(env))
}

async fn judge(
    gate: impl Gate + 'static,
    env: &Arc<dyn ExecutionEnvironment>,
    tool: &str,
    arguments: Value,
) -> Judgement {
    let mut registry = ToolRegistry::new();
    builtin::register_core(&mut registry).unwrap();
    registry.register(builtin::ListDir::new()).unwrap();
    registry.register(Archive).unwrap();
    let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
    match prepare(&registry, &[Arc::new(gate)], env.as_ref(), &call).await {
        JudgedCall::Ready { judgement, .. } | JudgedCall::Ask { judgement, .. } => judgement,
        JudgedCall::Refused { error, judgement } => {
            assert!(!judgement.is_empty(), "{error}");
            judgement
        }
    }
}

#[test]
fn unreadable_directories_count_where_a_rule_may_apply() {
    let env = MemoryEnvironment::new("/w");
    let rules = rules("deny = [\"@read(data/keys/**)\"]", Path::new("/w"));
    let call = CallFacts::new(Effect::Read);
    let search = Search { rules: &rules, call: &call, links: Vec::new(), env: &env };
    let directory = ReadRoot { named: "/w".into(), real: "/w".into() };
    let missing = |unreadable: &str| {
        let mut found = WalkOutput::default();
        found.unreadable = vec![unreadable.into()];
        search.missing(&found, &directory)
    };
    assert_eq!(missing("data").as_deref(), Some("/w/data cannot be listed"));
    assert_eq!(missing("data/keys/old").as_deref(), Some("/w/data/keys/old cannot be listed"));
    assert_eq!(missing("cache"), None);
}

#[test]
fn unfinished_walks_leave_rules_undecided() {
    let env = MemoryEnvironment::new("/w");
    let rules = rules("deny = [\"@read(keys/**)\", \"@write(x)\"]", Path::new("/w"));
    let mut call = CallFacts::new(Effect::Read);
    let directory = ReadRoot { named: "/w".into(), real: "/w".into() };
    let search = Search { rules: &rules, call: &call, links: Vec::new(), env: &env };
    for (limit, expected) in [
        (WalkLimit::Entries, "/w has too many files to look at all of them"),
        (WalkLimit::Time, "looking at the files of /w takes too long"),
    ] {
        let mut found = WalkOutput::default();
        found.reached = Some(limit);
        assert_eq!(search.missing(&found, &directory).as_deref(), Some(expected));
    }
    call.undecided = Some("/w is too large".to_owned());
    call.reads = vec!["/w".into()];
    let ruling = rules.judge(&call).unwrap();
    assert_eq!(
        (ruling.rule.as_str(), ruling.undecided.as_deref()),
        ("@read(keys/**)", Some("/w is too large"))
    );
    call.reads.push("/w/keys/a".into());
    assert_eq!(rules.judge(&call).unwrap().undecided, None);
}

#[tokio::test]
async fn ignored_files_count_for_all_but_searches() {
    let env = MemoryEnvironment::new("/w").with_file(".gitignore", "keys\n").with_file("keys/key", "x");
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(env.with_file(".git/config", "").with_file("a", ""));
    for (rule, tool, arguments, is_denied) in [
        ("@read(keys/key)", "grep", json!({"pattern": "x"}), false),
        ("@read(keys/key)", "glob", json!({"pattern": "**"}), false),
        ("@read(keys/key)", "archive", json!({}), true),
        ("@read(.git/config)", "archive", json!({}), true),
        ("@read(keys/key)", "list_dir", json!({}), false),
        ("@read(keys/key)", "list_dir", json!({"depth": 2}), true),
        ("@read(keys/key/below)", "list_dir", json!({"depth": 2}), false),
    ] {
        let judgement = judge(policy_gate(rule, &env), &env, tool, arguments.clone()).await;
        assert_eq!(judgement.permission() == Permission::Deny, is_denied, "{rule} {tool} {arguments}");
    }
}

/// A search that starts in a directory in which everything is ignored visits it.
#[tokio::test]
async fn ignored_files_of_a_named_directory_count() {
    let env = MemoryEnvironment::new("/w").with_file(".gitignore", "/keys/*\n").with_file("a", "");
    let env: Arc<dyn ExecutionEnvironment> =
        Arc::new(env.with_file("keys/key", "x").with_file("keys/b/c", "x"));
    for (rule, tool, arguments, is_denied) in [
        ("@read(keys/key)", "grep", json!({"pattern": "x", "path": "keys"}), true),
        ("@read(keys/b/c)", "grep", json!({"pattern": "x", "path": "keys"}), true),
        ("@read(keys/key)", "glob", json!({"pattern": "keys/*"}), true),
        ("@read(keys/key)", "glob", json!({"pattern": "keys/key"}), true),
        ("@read(keys/key)", "glob", json!({"pattern": "*", "path": "keys"}), true),
        ("@read(keys/key)", "grep", json!({"pattern": "x"}), false),
        ("@read(keys/other)", "grep", json!({"pattern": "x", "path": "keys"}), false),
    ] {
        let judgement = judge(policy_gate(rule, &env), &env, tool, arguments.clone()).await;
        assert_eq!(judgement.permission() == Permission::Deny, is_denied, "{rule} {tool} {arguments}");
    }
}

/// What counts is what the call declares to read, and not the kind of its tool.
#[tokio::test]
async fn kind_of_a_listing_exempts_from_nothing() {
    let env = MemoryEnvironment::new("/w").with_file("keys/key", "x");
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(env);
    for (tool, is_denied) in [("archive", true), ("list_dir", false)] {
        let mut grant = Grant::all(GrantId::new("g"));
        grant.reads = PathScope::all().except(["/w/keys"]);
        let session = pintle_agent::SessionId::new("s");
        let grant = GrantGate::new(Arc::new(grant), session, Arc::clone(&env), "local");
        let hidden = HiddenPathGate::new(Arc::clone(&env), ["/w/keys"]);
        for judgement in [
            judge(policy_gate("@read(keys/**)", &env), &env, tool, json!({})).await,
            judge(grant, &env, tool, json!({})).await,
            judge(hidden, &env, tool, json!({})).await,
        ] {
            assert_eq!(judgement.permission() == Permission::Deny, is_denied, "{tool}: {judgement:?}");
        }
    }
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the test changes links as a command does")]
async fn links_of_rules_are_resolved_again_after_a_change() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    for name in ["old", "new"] {
        std::fs::create_dir(root.join(name)).unwrap();
        std::fs::write(root.join(name).join("key"), "x").unwrap();
    }
    std::os::unix::fs::symlink("old", root.join("keys")).unwrap();
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(LocalEnvironment::with_host_env(&root, []).unwrap());
    let gate = policy_gate("@read(keys/**)", &env);
    let denied = async |path: &str| {
        let arguments = json!({ "file_path": path });
        judge(gate.clone(), &env, "read_file", arguments).await.permission() == Permission::Deny
    };
    assert!(denied("old/key").await && !denied("new/key").await);
    std::fs::remove_file(root.join("keys")).unwrap();
    std::os::unix::fs::symlink("new", root.join("keys")).unwrap();
    let mut registry = ToolRegistry::new();
    builtin::register_core(&mut registry).unwrap();
    let command = ToolCall::new("c", "shell", json!({"command": "ln"}).as_object().unwrap().clone());
    let JudgedCall::Ready { call, .. } = prepare(&registry, &[], env.as_ref(), &command).await else {
        panic!("nothing judges it")
    };
    let result = ToolResult::new("c", "", false);
    gate.ran(&call, &Execution::new(result, pintle_env::Output::from(String::new()))).await;
    assert!(denied("new/key").await && !denied("old/key").await);
}
