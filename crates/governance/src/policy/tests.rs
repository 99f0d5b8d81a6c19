//! Verdicts of rules and modes on calls of built-in tools.

use pintle_env::MemoryEnvironment;
use pintle_llm::ToolCall;
use pintle_tools::gate::Judgement;
use pintle_tools::pipeline::{JudgedCall, prepare};
use pintle_tools::{ToolRegistry, builtin};
use serde_json::{Value, json};

use super::*;

const RULES: &str = r#"
allow = ["shell(cargo test *)", "@write(/elsewhere/**)"]
ask = ["@write(Cargo.toml)"]
deny = ["shell(git push *)", "@read(secret)"]
"#;

fn policy(mode: Mode) -> Policy {
    let workspace = std::path::Path::new("/w");
    Policy::new(mode, Rules::parse("rules.toml", RULES, workspace).unwrap(), workspace)
}

async fn judge(policy: &Policy, tool: &str, arguments: Value) -> Judgement {
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/w"));
    let mut registry = ToolRegistry::new();
    builtin::register_core(&mut registry).unwrap();
    let gate: Arc<dyn Gate> = Arc::new(PolicyGate::new(policy.clone(), Arc::clone(&env)));
    let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
    match prepare(&registry, &[gate], env.as_ref(), &call).await {
        JudgedCall::Ready { judgement, .. }
        | JudgedCall::Ask { judgement, .. }
        | JudgedCall::Refused { judgement, .. } => judgement,
    }
}

fn write(path: &str) -> Value {
    json!({"file_path": path, "content": "x"})
}

fn call(tool: &str, kind: &str, effect: Effect) -> CallFacts {
    let mut facts = CallFacts::new(effect);
    (facts.tool, facts.kind) = (tool.to_owned(), kind.to_owned());
    facts
}

#[tokio::test]
async fn rules_precede_the_mode_and_the_mode_decides_the_rest() {
    // A call; its permission and what decides, in each mode.
    let shell = |line: &str| ("shell", json!({ "command": line }));
    let writes = |path: &str| ("write_file", write(path));
    let reads = |path: &str| ("read_file", json!({ "file_path": path }));
    let allow = "allow shell(cargo test *) (rules.toml:2)";
    let elsewhere = "allow @write(/elsewhere/**) (rules.toml:2)";
    let ask = "ask @write(Cargo.toml) (rules.toml:3)";
    let deny = "deny shell(git push *) (rules.toml:4)";
    let secret = "deny @read(secret) (rules.toml:4)";
    let cases = [
        (shell("cargo test -p x"), [allow; 4].map(|rule| ("allow", rule))),
        (shell("cargo test && git push"), [deny; 4].map(|rule| ("deny", rule))),
        (
            shell("make"),
            [("deny", "mode plan"), ("ask", "mode ask"), ("ask", "mode edit"), ("allow", "mode auto")],
        ),
        (
            writes("a"),
            [("deny", "mode plan"), ("ask", "mode ask"), ("allow", "mode edit"), ("allow", "mode auto")],
        ),
        (
            writes("../a"),
            [("deny", "mode plan"), ("ask", "mode ask"), ("ask", "mode edit"), ("ask", "mode auto")],
        ),
        (writes("/elsewhere/a"), [elsewhere; 4].map(|rule| ("allow", rule))),
        (writes("Cargo.toml"), [ask; 4].map(|rule| ("ask", rule))),
        (
            reads("a"),
            [("allow", "mode plan"), ("allow", "mode ask"), ("allow", "mode edit"), ("allow", "mode auto")],
        ),
        (reads("./x/../secret"), [secret; 4].map(|rule| ("deny", rule))),
    ];
    for ((tool, arguments), expected) in cases {
        for (mode, (permission, rule)) in Mode::ALL.into_iter().zip(expected) {
            let judgement = judge(&policy(mode), tool, arguments.clone()).await;
            let [step] = judgement.steps() else { panic!("{judgement:?}") };
            let found = (step.permission.as_str(), step.rule.as_deref().unwrap());
            assert_eq!(found, (permission, rule), "{tool} {arguments} in mode {mode}");
            assert_eq!(step.by_default, rule.starts_with("mode"), "{arguments}");
        }
    }
}

#[tokio::test]
async fn modes_and_rules_change_while_a_session_runs() {
    let policy = policy(Mode::Edit);
    let make = json!({"command": "make"});
    assert_eq!(judge(&policy, "shell", make.clone()).await.permission(), Permission::Ask);
    policy.add_rule(Permission::Allow, "shell(make)", "approval of c").await.unwrap();
    let judgement = judge(&policy, "shell", make.clone()).await;
    assert_eq!(judgement.steps()[0].rule.as_deref(), Some("allow shell(make) (approval of c)"));
    policy.set_mode(Mode::Plan).await.unwrap();
    assert_eq!(judge(&policy, "write_file", write("a")).await.permission(), Permission::Deny);
    let error = policy.add_rule(Permission::Allow, "shell(", "typo").await.unwrap_err();
    assert_eq!(error.to_string(), "the rule `shell(` has no `)` at its end");
}

#[tokio::test]
async fn a_policy_comes_back_from_its_record() {
    let first = policy(Mode::Edit);
    first.add_rule(Permission::Deny, "shell(make)", "the user").await.unwrap();
    let recorded = serde_json::to_value(first.on_record()).unwrap();
    let again = Policy::new(Mode::Auto, Rules::new(), "/w");
    again.apply_recorded(&serde_json::from_value(recorded).unwrap()).unwrap();
    assert_eq!((again.mode(), again.rules().len()), (Mode::Edit, 6));
    assert_eq!(judge(&again, "shell", json!({"command": "make"})).await.permission(), Permission::Deny);
    let unknown = |permission| {
        let (rule, source) = ("a rule of the future".to_owned(), "r".to_owned());
        PolicyChange::rule(PolicyRule { permission, rule, source })
    };
    again.apply_recorded(&unknown(Permission::Allow)).unwrap();
    assert!(again.apply_recorded(&unknown(Permission::Deny)).is_err());
}

#[test]
fn suggested_rules_name_exactly_the_call() {
    use crate::rules::Address;
    use pintle_tools::gate::CommandLine;
    let command = |line: &str| {
        let mut facts = call("Bash", "shell", Effect::Execute);
        facts.command = Some(CommandLine::parse(line));
        facts
    };
    let edit = |paths: &[&str]| {
        let mut facts = call("Edit", "edit_file", Effect::Write);
        facts.writes = paths.iter().map(PathBuf::from).collect();
        facts.reads.clone_from(&facts.writes);
        facts
    };
    let fetch = |address: Address| {
        let mut facts = call("WebFetch", "web_fetch", Effect::Network);
        facts.addresses = vec![address];
        facts
    };
    let cases: [(CallFacts, &[&str]); 10] = [
        (command("git commit -m x"), &["shell(git commit -m x)"]),
        (command("make && make test"), &["shell(make)", "shell(make test)"]),
        (command("echo $(id)"), &[]),
        (command("ls *.rs"), &[]),
        (command("git commit -m 'a b'"), &[]),
        (edit(&["/w/src/a.rs"]), &["edit_file(src/a.rs)"]),
        (edit(&["/w/a", "/etc/b"]), &["edit_file(a)", "edit_file(/etc/b)"]),
        (edit(&["/w/[a]"]), &[]),
        (fetch(Address::of_host("docs.rs")), &["WebFetch(host:docs.rs)"]),
        (fetch(Address::Unreadable), &[]),
    ];
    for (call, expected) in cases {
        assert_eq!(call.suggested_rules(std::path::Path::new("/w")), expected, "{call:?}");
    }
}

async fn judge_in_sandbox(policy: &Policy, tool: &str, arguments: Value) -> Judgement {
    let outside = MemoryEnvironment::new("/w");
    let env: Arc<dyn ExecutionEnvironment> = Arc::new(MemoryEnvironment::new("/w").with_sandbox(&outside));
    let mut registry = ToolRegistry::new();
    builtin::register_core(&mut registry).unwrap();
    registry.register(PresentPlan::new(policy.clone(), Mode::Edit)).unwrap();
    registry.offer_outside_sandbox().unwrap();
    let gate = PolicyGate::new(policy.clone(), Arc::clone(&env)).holding_commands_to_reading();
    let hook: Arc<dyn Gate> = Arc::new(AllowingHook);
    let call = ToolCall::new("c", tool, arguments.as_object().unwrap().clone());
    match prepare(&registry, &[Arc::new(gate), hook], env.as_ref(), &call).await {
        JudgedCall::Ready { judgement, .. }
        | JudgedCall::Ask { judgement, .. }
        | JudgedCall::Refused { judgement, .. } => judgement,
    }
}

/// What is not known of a server is what it does with its arguments, and where.
#[tokio::test]
async fn calls_of_servers_are_judged_by_tool_and_effect() {
    let gate = |policy: &Policy| {
        let outside = MemoryEnvironment::new("/w");
        let env: Arc<dyn ExecutionEnvironment> =
            Arc::new(MemoryEnvironment::new("/w").with_sandbox(&outside));
        PolicyGate::new(policy.clone(), env).holding_commands_to_reading()
    };
    let of_server = |effect| call("mcp__files__move", "mcp__files__move", effect);
    for (mode, effect, permission, reason) in [
        (Mode::Plan, Effect::Execute, Permission::Deny, "it may change something, and mode plan only reads"),
        (Mode::Plan, Effect::Read, Permission::Allow, ""),
        (Mode::Edit, Effect::Execute, Permission::Ask, "it may do anything, and mode edit asks about that"),
        (Mode::Auto, Effect::Execute, Permission::Allow, ""),
    ] {
        let verdict = gate(&policy(mode)).verdict(&of_server(effect)).await;
        assert_eq!((verdict.permission(), verdict.reason()), (permission, reason), "{mode}");
    }
    let asking = policy(Mode::Edit);
    let suggested = of_server(Effect::Execute).suggested_rules(std::path::Path::new("/w"));
    assert_eq!(suggested, ["mcp__files__move"]);
    asking.add_rule(Permission::Allow, &suggested[0], "test").await.unwrap();
    let verdict = gate(&asking).verdict(&of_server(Effect::Execute)).await;
    assert_eq!(verdict.permission(), Permission::Allow);
    let denying = policy(Mode::Auto);
    denying.add_rule(Permission::Deny, "mcp__files__*", "test").await.unwrap();
    let verdict = gate(&denying).verdict(&of_server(Effect::Read)).await;
    assert_eq!(verdict.permission(), Permission::Deny);
}

/// Answers questions that were asked only because nothing named the call.
#[derive(Debug)]
struct AllowingHook;

#[async_trait]
impl Gate for AllowingHook {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        Verdict::ALLOW.answering()
    }
}

#[tokio::test]
async fn a_person_is_asked_about_each_command_outside_of_the_sandbox() {
    let outside = |line: &str| json!({"command": line, "outside_sandbox": true});
    for mode in Mode::ALL {
        let policy = policy(mode);
        // A rule that allows the words of a command allows them in the sandbox.
        for line in ["cargo test -p x", "make"] {
            let judgement = judge_in_sandbox(&policy, "shell", outside(line)).await;
            assert_eq!(judgement.permission(), Permission::Ask, "{line} in mode {mode}");
            assert_eq!(judgement.reason(), "it runs outside of the sandbox");
            assert_eq!(judgement.steps()[0].rule.as_deref(), Some("outside of the sandbox"));
            assert!(judgement.suggested_rules().is_empty());
        }
        let denied = judge_in_sandbox(&policy, "shell", outside("git push origin")).await;
        assert_eq!(denied.permission(), Permission::Deny, "mode {mode}");
    }
}

#[tokio::test]
async fn a_question_about_a_command_says_that_it_runs_in_the_sandbox() {
    let policy = policy(Mode::Edit);
    for (in_sandbox, expected) in [
        (true, "it runs a command in the sandbox, and mode edit asks about that"),
        (false, "it runs a command, and mode edit asks about that"),
    ] {
        let make = json!({"command": "make"});
        let judgement = match in_sandbox {
            true => judge_in_sandbox(&policy, "shell", make).await,
            false => judge(&policy, "shell", make).await,
        };
        assert_eq!(judgement.steps()[0].reason, expected);
    }
}

#[tokio::test]
async fn a_person_is_asked_about_each_plan() {
    let plan = || json!({"plan": "1. Do it."});
    let allowing = policy(Mode::Plan);
    allowing.add_rule(Permission::Allow, "present_plan", "test").await.unwrap();
    allowing.add_rule(Permission::Allow, "@read", "test").await.unwrap();
    for policy in [policy(Mode::Plan), allowing] {
        let judgement = judge_in_sandbox(&policy, "present_plan", plan()).await;
        assert_eq!(judgement.permission(), Permission::Ask);
        assert_eq!(judgement.reason(), "accepting the plan changes the mode from plan to edit");
    }
    let denying = policy(Mode::Plan);
    denying.add_rule(Permission::Deny, "present_plan", "test").await.unwrap();
    let judgement = judge_in_sandbox(&denying, "present_plan", plan()).await;
    assert_eq!(judgement.permission(), Permission::Deny);
    // In any other mode it changes nothing.
    let judgement = judge_in_sandbox(&policy(Mode::Ask), "present_plan", plan()).await;
    assert_eq!(judgement.permission(), Permission::Allow);
}

#[tokio::test]
async fn a_switch_follows_the_mode() {
    let policy = policy(Mode::Plan);
    let switch = WriteSwitch::new(true);
    policy.drive(switch.clone());
    assert!(!switch.is_on());
    for (mode, expected) in [(Mode::Edit, true), (Mode::Plan, false), (Mode::Auto, true), (Mode::Ask, true)] {
        policy.set_mode(mode).await.unwrap();
        assert_eq!(switch.is_on(), expected, "{mode}");
    }
    policy.apply_recorded(&PolicyChange::mode("plan")).unwrap();
    assert!(!switch.is_on());
}
