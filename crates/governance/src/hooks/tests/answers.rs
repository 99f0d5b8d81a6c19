//! Answers of commands, and how they are merged.

use pintle_tools::gate::Permission;
use pintle_tools::gate::Permission::{Allow, Ask, Deny};
use proptest::prelude::*;

use super::*;

/// Returns a script that writes a text and exits.
fn says(stdout: &str, stderr: &str, code: u8) -> String {
    format!("cat > /dev/null\ncat <<'END'\n{stdout}\nEND\necho '{stderr}' >&2\nexit {code}\n")
}

fn specific(event: &str, fields: &str) -> String {
    format!(r#"{{"hookSpecificOutput": {{"hookEventName": "{event}", {fields}}}}}"#)
}

#[tokio::test]
async fn commands_answer_before_a_call() {
    let judged = |permission, reason: &str| {
        let reason = (!reason.is_empty()).then(|| reason.to_owned());
        CallAnswer::judge(permission, reason).with_hook("hook 0")
    };
    let stopped = |reason: &str| {
        let mut answer = judged(Deny, reason);
        answer.stop = Some(reason.to_owned());
        answer
    };
    let nothing = CallAnswer::default;
    let changed = || nothing().with_hook("hook 0").with_arguments(Some(json!({"command": "id"})));
    let update = r#""updatedInput": {"command": "id"}"#;
    let cases = [
        (says("", "", 0), nothing(), HookAnswer::Nothing),
        (says("it is fine", "noise", 0), nothing(), HookAnswer::Nothing),
        (says("[1]", "", 0), nothing(), HookAnswer::Nothing),
        (says("{}", "", 0), nothing(), HookAnswer::Nothing),
        (
            says(r#"{"continue": true, "suppressOutput": true, "new": [1]}"#, "", 0),
            nothing(),
            HookAnswer::Nothing,
        ),
        (says(r#"{"hookSpecificOutput": null, "reason": null}"#, "", 0), nothing(), HookAnswer::Nothing),
        (says("", "not like this\n", 2), judged(Deny, "not like this"), HookAnswer::Deny),
        (says(r#"{"decision": "approve"}"#, " no ", 2), judged(Deny, "no"), HookAnswer::Deny),
        (says("", "", 2), judged(Deny, "hook 0 blocks it"), HookAnswer::Deny),
        (says(r#"{"decision": "block", "reason": "no"}"#, "", 0), judged(Deny, "no"), HookAnswer::Deny),
        (says(r#"{"decision": "approve", "reason": "yes"}"#, "", 0), judged(Allow, ""), HookAnswer::Allow),
        (says(r#"{"continue": false, "stopReason": "enough"}"#, "", 0), stopped("enough"), HookAnswer::Stop),
        (says(r#"{"continue": false}"#, "", 0), stopped("a hook stops it"), HookAnswer::Stop),
        (
            says(
                &specific("PreToolUse", r#""permissionDecision": "deny", "permissionDecisionReason": "no""#),
                "",
                0,
            ),
            judged(Deny, "no"),
            HookAnswer::Deny,
        ),
        (
            says(
                &specific("PreToolUse", r#""permissionDecision": "ask", "permissionDecisionReason": "hm""#),
                "",
                0,
            ),
            judged(Ask, "hm"),
            HookAnswer::Ask,
        ),
        (
            says(&specific("PreToolUse", r#""permissionDecision": "defer""#), "", 0),
            judged(Ask, ""),
            HookAnswer::Ask,
        ),
        (
            says(&specific("PreToolUse", r#""permissionDecision": "allow""#), "", 0),
            judged(Allow, ""),
            HookAnswer::Allow,
        ),
        (says(&specific("PreToolUse", update), "", 0), changed(), HookAnswer::Change),
        (
            says(&specific("PreToolUse", r#""additionalContext": "it is late""#), "", 0),
            nothing().with_context(Some("it is late".to_owned())),
            HookAnswer::Add,
        ),
        (
            says(&specific("PreToolUse", &format!(r#""permissionDecision": "deny", {update}"#)), "", 0),
            judged(Deny, ""),
            HookAnswer::Deny,
        ),
        // The stricter of two decisions counts.
        (
            says(
                r#"{"decision": "block", "reason": "no", "hookSpecificOutput": {"permissionDecision": "allow"}}"#,
                "",
                0,
            ),
            judged(Deny, "no"),
            HookAnswer::Deny,
        ),
    ];
    let fixture = Fixture::new();
    for (script, expected, word) in cases {
        let hooks = fixture.scripts(HookEvent::PreToolUse, &[&script]);
        assert_eq!(fixture.before_call(&hooks).await, expected, "{script}");
        let [run] = fixture.runs().try_into().unwrap();
        assert_eq!((run.answer, run.failure), (word, None), "{script}");
    }
}

#[tokio::test]
async fn runs_are_reported() {
    let fixture = Fixture::new();
    let hooks = fixture.scripts(HookEvent::PreToolUse, &[&says(r#"{"systemMessage": "hello"}"#, "noise", 0)]);
    fixture.before_call(&hooks).await;
    let [mut run] = fixture.runs().try_into().unwrap();
    assert!(run.duration_ms > 0 && run.duration_ms < 600_000, "{run:?}");
    run.duration_ms = 7;
    let expected = json!({
        "session": "s",
        "event": "PreToolUse",
        "call_id": "c",
        "hook": "hook 0",
        "command": "sh 0.sh",
        "exit_code": 0,
        "duration_ms": 7,
        "answer": "nothing",
        "message": "hello",
    });
    assert_eq!(serde_json::to_value(&run).unwrap(), expected);
    assert_eq!(serde_json::from_value::<HookRun>(expected).unwrap(), run);
}

#[tokio::test]
async fn inputs_are_refused_or_added_to() {
    let add = specific("UserPromptSubmit", r#""additionalContext": " it is Monday ""#);
    let fixture = Fixture::new();
    for (script, expected) in [
        (says("", "", 0), InputAnswer::default()),
        (says("it is Monday", "", 0), InputAnswer::add("it is Monday")),
        (says(&add, "", 0), InputAnswer::add("it is Monday")),
        (says(r#"{"decision": "block", "reason": "no"}"#, "", 0), InputAnswer::refuse("no")),
        (says(r#"{"decision": "block"}"#, "", 0), InputAnswer::refuse("a hook blocks it")),
        (says(r#"{"continue": false, "stopReason": "closed"}"#, "", 0), InputAnswer::refuse("closed")),
        (says("ignored", "no secrets here", 2), InputAnswer::refuse("no secrets here")),
    ] {
        let hooks = fixture.scripts(HookEvent::UserPromptSubmit, &[&script]);
        assert_eq!(hooks.before_input(&fixture.session(), "x").await, expected, "{script}");
    }
}

#[tokio::test]
async fn starts_are_added_to_and_not_blocked() {
    let fixture = Fixture::new();
    let add = |event: &str| specific(event, r#""additionalContext": "more""#);
    for (event, script, expected) in [
        (HookEvent::SessionStart, says("plain", "", 0), Some("plain")),
        (HookEvent::SessionStart, says(&add("SessionStart"), "", 0), Some("more")),
        (HookEvent::SessionStart, says("", "no", 2), None),
        (HookEvent::SubagentStart, says("plain", "", 0), None),
        (HookEvent::SubagentStart, says(&add("SubagentStart"), "", 0), Some("more")),
        (HookEvent::SubagentStart, says("", "no", 2), None),
    ] {
        let hooks = fixture.scripts(event, &[&script]);
        let is_subagent = event == HookEvent::SubagentStart;
        let session = if is_subagent { fixture.subagent() } else { fixture.session() };
        let HookContext(context) = hooks.session_started(&session, SessionSource::New).await;
        assert_eq!(context.as_deref(), expected, "{event} {script}");
        let [run] = fixture.runs().try_into().unwrap();
        let expected = script.contains("exit 2").then_some("no");
        assert_eq!(run.message.as_deref(), expected, "the user reads what cannot be blocked");
    }
}

#[tokio::test]
async fn results_are_replaced_or_added_to() {
    let fixture = Fixture::new();
    let output = |value: &str| specific("PostToolUse", &format!(r#""updatedToolOutput": {value}"#));
    let both = specific("PostToolUse", r#""additionalContext": "and this""#);
    let both = both.replacen('{', r#"{"decision": "block", "reason": "bad style", "#, 1);
    for (script, expected) in [
        (says("plain", "", 0), ResultAnswer::default()),
        (says(&output(r#""shorter""#), "", 0), ResultAnswer::replace("shorter")),
        (says(&output(r#"{"a": 1}"#), "", 0), ResultAnswer::replace(r#"{"a":1}"#)),
        (says(&both, "", 0), ResultAnswer::add("bad style\nand this")),
        (says("", "does not compile", 2), ResultAnswer::add("does not compile")),
        (says(r#"{"decision": "block"}"#, "", 0), ResultAnswer::add("a hook objects to it")),
        (says(r#"{"continue": false, "stopReason": "enough"}"#, "", 0), ResultAnswer::stop("enough")),
    ] {
        let hooks = fixture.scripts(HookEvent::PostToolUse, &[&script]);
        let call = fixture.shell().await;
        assert_eq!(
            hooks.after_call(&fixture.session(), &call, &succeeded(), TOOK).await,
            expected,
            "{script}"
        );
        // Calls that failed have an event of their own.
        let other = hooks.after_call(&fixture.session(), &call, &failed(), TOOK).await;
        assert_eq!(other, ResultAnswer::default());
    }
}

#[tokio::test]
async fn the_model_is_sent_on_unless_a_hook_stops_it() {
    let (block, stop) = (r#"{"decision": "block", "reason": "run the tests"}"#, r#"{"continue": false}"#);
    let fixture = Fixture::new();
    for (scripts, expected) in [
        (vec![says("done", "", 0)], None),
        (vec![says(r#"{"decision": "approve"}"#, "", 0)], None),
        (vec![says(block, "", 0)], Some("run the tests")),
        (vec![says("", "fix it", 2), says(block, "", 0)], Some("fix it\nrun the tests")),
        (vec![says(block, "", 0), says(block, "", 0)], Some("run the tests")),
        (vec![says(block, "", 0), says(stop, "", 0)], None),
    ] {
        for (event, session) in
            [(HookEvent::Stop, fixture.session()), (HookEvent::SubagentStop, fixture.subagent())]
        {
            let hooks = fixture.scripts(event, &scripts.iter().map(String::as_str).collect::<Vec<_>>());
            let EndAnswer { send_on, .. } = hooks.before_end(&session, "x", 0).await;
            assert_eq!(send_on.as_deref(), expected, "{event} {scripts:?}");
        }
    }
}

#[tokio::test]
async fn compaction_can_be_blocked() {
    let fixture = Fixture::new();
    for (script, expected) in [
        (says("no", "", 0), None),
        (says("", "not now", 2), Some("not now")),
        (says(r#"{"decision": "block", "reason": "no"}"#, "", 0), Some("no")),
        (says(r#"{"continue": false, "stopReason": "no"}"#, "", 0), Some("no")),
    ] {
        let hooks = fixture.scripts(HookEvent::PreCompact, &[&script]);
        assert_eq!(
            hooks.before_compaction(&fixture.session(), CompactionTrigger::Manual).await.as_deref(),
            expected,
            "{script}"
        );
    }
}

#[tokio::test]
async fn hooks_decide_in_the_place_of_a_person() {
    let event = "PermissionRequest";
    let allow = || specific(event, r#""decision": {"behavior": "allow"}"#);
    let change = r#""decision": {"behavior": "allow", "updatedInput": {"command": "id"}}"#;
    let deny = r#""decision": {"behavior": "deny", "message": "no"}"#;
    let deny_with = |reason: &str| Some(Decision::Deny { reason: Some(reason.to_owned()) });
    let changed = Some(Decision::Change { arguments: json!({"command": "id"}) });
    let fixture = Fixture::new();
    for (scripts, expected) in [
        (vec![says("yes", "", 0)], None),
        (vec![says(&allow(), "", 0)], Some(Decision::Approve)),
        (vec![says(r#"{"decision": "approve"}"#, "", 0)], Some(Decision::Approve)),
        (vec![says(&specific(event, change), "", 0)], changed),
        (vec![says(&specific(event, r#""updatedInput": {"command": "id"}"#), "", 0)], None),
        (vec![says(&specific(event, deny), "", 0)], deny_with("no (hook hook 0)")),
        (vec![says("", "never", 2)], deny_with("never (hook hook 0)")),
        (vec![says("", "", 2)], deny_with("hook 0 blocks it")),
        (vec![says(&allow(), "", 0), says(&specific(event, r#""permissionDecision": "ask""#), "", 0)], None),
        (
            vec![
                says(&allow(), "", 0),
                says(&specific(event, r#""updatedInput": {"command": "id"}"#), "", 0),
            ],
            None,
        ),
        (vec![says(&allow(), "", 0), says("", "never", 2)], deny_with("never (hook hook 1)")),
    ] {
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let hooks = fixture.scripts(HookEvent::PermissionRequest, &scripts);
        let request = ApprovalRequest::for_call(&fixture.shell().await);
        assert_eq!(hooks.before_approval(&fixture.session(), &request).await, expected, "{scripts:?}");
    }
}

/// The later a hook is in the file, the sooner it answers.
#[tokio::test]
async fn the_strictest_counts_and_the_last_arguments_do() {
    let answers = |decision: &str, command: &str| {
        let reason = format!(r#""permissionDecisionReason": "{decision} {command}""#);
        let input = format!(r#""updatedInput": {{"command": "{command}"}}"#);
        let decision = format!(r#""permissionDecision": "{decision}""#);
        specific("PreToolUse", &[decision, reason, input].join(", "))
    };
    let arguments = |command: &str| Some(json!({ "command": command }));
    let cases = [
        (["allow", "allow", "allow"], Some(Allow), None, "hook 2", arguments("2")),
        (["allow", "ask", "allow"], Some(Ask), Some("ask 1"), "hook 1, hook 2", arguments("2")),
        (["ask", "allow", "defer"], Some(Ask), Some("ask 0\ndefer 2"), "hook 0, hook 2", arguments("2")),
        (["allow", "deny", "ask"], Some(Deny), Some("deny 1"), "hook 1", None),
        (["deny", "ask", "deny"], Some(Deny), Some("deny 0\ndeny 2"), "hook 0, hook 2", None),
    ];
    let fixture = Fixture::new();
    for (decisions, permission, reason, hook, arguments) in cases {
        let scripts: Vec<String> = (0..3)
            .map(|number| {
                let wait = ["0.2", "0.1", "0"][number];
                let answer = answers(decisions[number], &number.to_string());
                format!("sleep {wait}\n{}", says(&answer, "", 0))
            })
            .collect();
        let scripts: Vec<&str> = scripts.iter().map(String::as_str).collect();
        let hooks = fixture.scripts(HookEvent::PreToolUse, &scripts);
        let answer = fixture.before_call(&hooks).await;
        assert_eq!((answer.permission, answer.reason.as_deref()), (permission, reason), "{decisions:?}");
        assert_eq!((answer.hook.as_deref(), answer.arguments), (Some(hook), arguments), "{decisions:?}");
    }
}

/// Gives one answer before each call.
#[derive(Debug)]
struct Judges(CallAnswer);

#[async_trait]
impl Hooks for Judges {
    async fn before_call(&self, _: &HookSession, _: &PreparedCall, _: &Judgement) -> CallAnswer {
        self.0.clone()
    }
}

/// Permission, and new command.
type Given = (Option<Permission>, Option<&'static str>);

/// Permission, new command, and numbers of the hooks that are named.
type Expected = (Option<Permission>, Option<&'static str>, &'static str);

#[tokio::test]
async fn an_allowance_holds_for_the_arguments_that_it_was_given_for() {
    let (no_verdict, original) = (None, None);
    // Of two sources, the first change applies; of two hooks of a file, the last one.
    let cases: [([Given; 2], Expected, Expected); 10] = [
        ([(Some(Allow), original), (no_verdict, Some("b"))], (None, Some("b"), "1"), (None, Some("b"), "1")),
        (
            [(Some(Allow), original), (Some(Allow), Some("b"))],
            (Some(Allow), Some("b"), "1"),
            (Some(Allow), Some("b"), "1"),
        ),
        (
            [(Some(Allow), Some("a")), (no_verdict, original)],
            (Some(Allow), Some("a"), "0"),
            (Some(Allow), Some("a"), "0"),
        ),
        ([(no_verdict, Some("a")), (Some(Allow), original)], (None, Some("a"), "0"), (None, Some("a"), "0")),
        (
            [(Some(Allow), Some("a")), (no_verdict, Some("b"))],
            (Some(Allow), Some("a"), "0"),
            (None, Some("b"), "1"),
        ),
        (
            [(no_verdict, Some("a")), (Some(Allow), Some("b"))],
            (None, Some("a"), "0"),
            (Some(Allow), Some("b"), "1"),
        ),
        (
            [(no_verdict, Some("a")), (Some(Allow), Some("a"))],
            (Some(Allow), Some("a"), "1"),
            (Some(Allow), Some("a"), "1"),
        ),
        ([(Some(Allow), original); 2], (Some(Allow), None, "1"), (Some(Allow), None, "0, 1")),
        (
            [(Some(Ask), original), (no_verdict, Some("b"))],
            (Some(Ask), Some("b"), "0"),
            (Some(Ask), Some("b"), "0, 1"),
        ),
        (
            [(Some(Allow), Some("a")), (Some(Ask), original)],
            (Some(Ask), Some("a"), "1"),
            (Some(Ask), Some("a"), "1, 0"),
        ),
    ];
    let fixture = Fixture::new();
    for (answers, of_sources, of_file) in cases {
        let sources = answers.iter().enumerate().map(|(number, (permission, command))| {
            let mut answer = CallAnswer::default().with_hook(format!("hook {number}"));
            answer.permission = *permission;
            answer.arguments = command.map(|command| json!({ "command": command }));
            Arc::new(Judges(answer)) as Arc<dyn Hooks>
        });
        let sources = JoinedHooks::join(sources.collect()).unwrap();
        let joined = sources.before_call(&fixture.session(), &fixture.shell().await, &Judgement::new()).await;
        let scripts = answers.map(|(permission, command)| {
            let word = permission.map(|permission| if permission == Allow { "allow" } else { "ask" });
            let word = word.map(|word| format!(r#""permissionDecision": "{word}""#));
            let input = command.map(|command| format!(r#""updatedInput": {{"command": "{command}"}}"#));
            let fields: Vec<String> = [word, input].into_iter().flatten().collect();
            says(&specific("PreToolUse", &fields.join(", ")), "", 0)
        });
        let file = fixture.scripts(HookEvent::PreToolUse, &scripts.each_ref().map(String::as_str));
        let merged = fixture.before_call(&file).await;
        for (answer, (permission, command, numbers)) in [(joined, of_sources), (merged, of_file)] {
            let hooks: Vec<String> = numbers.split(", ").map(|number| format!("hook {number}")).collect();
            assert_eq!(answer.permission, permission, "{answers:?}: {answer:?}");
            let arguments = command.map(|command| json!({ "command": command }));
            assert_eq!(answer.arguments, arguments, "{answers:?}: {answer:?}");
            assert_eq!(answer.hook.as_deref(), Some(hooks.join(", ").as_str()), "{answers:?}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn long_texts_are_shortened() {
    let fixture = Fixture::new();
    let script = "head -c 20000 /dev/zero | tr '\\0' x";
    let hooks = fixture.scripts(HookEvent::UserPromptSubmit, &[script]);
    let context = hooks.before_input(&fixture.session(), "x").await.context.unwrap();
    assert_eq!(context, format!("{} … (10,000 more characters)", "x".repeat(10_000)));
}

/// An answer has only what its event can use, so that a record does not say otherwise.
#[test]
fn answers_without_a_meaning_for_the_event_are_nothing() {
    let everything = r#"{"decision": "approve", "hookSpecificOutput": {"additionalContext": "a",
        "updatedInput": {}, "updatedToolOutput": "b"}}"#;
    for (event, expected) in [
        (HookEvent::PreToolUse, HookAnswer::Change),
        (HookEvent::PermissionRequest, HookAnswer::Change),
        (HookEvent::PostToolUse, HookAnswer::Change),
        (HookEvent::PostToolUseFailure, HookAnswer::Change),
        (HookEvent::UserPromptSubmit, HookAnswer::Add),
        (HookEvent::SessionStart, HookAnswer::Add),
        (HookEvent::SubagentStart, HookAnswer::Add),
        (HookEvent::SessionEnd, HookAnswer::Nothing),
        (HookEvent::Stop, HookAnswer::Nothing),
        (HookEvent::SubagentStop, HookAnswer::Nothing),
        (HookEvent::PreCompact, HookAnswer::Nothing),
    ] {
        assert_eq!(Answer::parse(event, everything).unwrap().word(), expected, "{event}");
    }
}

proptest! {
    /// Output is an answer, or garbage that starts as JSON.
    #[test]
    fn any_output_is_read(text in any::<String>(), json in r#"\{[\{\}":, a-z0-9\[\]]{0,40}"#) {
        for event in HookEvent::ALL {
            let is_text = !text.trim().starts_with('{');
            prop_assert!(!is_text || Answer::parse(event, &text).is_ok());
            let is_object = serde_json::from_str::<Value>(&json).is_ok();
            prop_assert!(is_object || Answer::parse(event, &json).is_err());
        }
    }
}
