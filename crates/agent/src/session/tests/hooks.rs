//! Points at which hooks run, and what follows from their answers.

use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use pintle_tools::gate::{EffectGate, Judgement, Permission};
use pintle_tools::pipeline::Execution;
use pintle_tools::{Effect, ToolErrorKind};
use serde_json::Value;

use super::*;
use crate::approval::ApprovalRequest;
use crate::hooks::{
    CallAnswer, EndAnswer, HookContext, HookSession, Hooks, InputAnswer, ResultAnswer, SessionSource,
};
use crate::protocol::{CompactionTrigger, SessionEndReason};
use crate::tests::ChangesBelow;

/// Answers as a test configures, and keeps what it was told.
#[derive(Clone, Debug, Default)]
struct TestHooks {
    log: Arc<Mutex<Vec<String>>>,
    context: Option<String>,
    input: InputAnswer,
    call: CallAnswer,
    approval: Option<Decision>,
    result: ResultAnswer,
    end: EndAnswer,
    panics: bool,
    hangs: bool,
}

impl TestHooks {
    async fn note(&self, text: impl Into<String>) {
        self.log.lock().unwrap().push(text.into());
        assert!(!self.panics, "scripted");
        if self.hangs {
            std::future::pending::<()>().await;
        }
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

#[async_trait]
impl Hooks for TestHooks {
    async fn session_started(&self, _: &HookSession, source: SessionSource) -> HookContext {
        self.note(format!("start {source:?}")).await;
        HookContext(self.context.clone())
    }

    async fn session_ended(&self, _: &HookSession, reason: SessionEndReason) {
        self.note(format!("end {reason:?}")).await;
    }

    async fn before_input(&self, _: &HookSession, text: &str) -> InputAnswer {
        self.note(format!("input {text}")).await;
        self.input.clone()
    }

    async fn before_call(&self, _: &HookSession, call: &PreparedCall, judgement: &Judgement) -> CallAnswer {
        self.note(format!("call {} {}", call.name(), judgement.permission())).await;
        self.call.clone()
    }

    async fn before_approval(&self, _: &HookSession, request: &ApprovalRequest) -> Option<Decision> {
        self.note(format!("approval {}", request.tool_name)).await;
        self.approval.clone()
    }

    async fn after_call(
        &self,
        _: &HookSession,
        call: &PreparedCall,
        execution: &Execution,
        _: Duration,
    ) -> ResultAnswer {
        self.note(format!("result {} {}", call.name(), execution.result.text())).await;
        self.result.clone()
    }

    async fn before_end(&self, _: &HookSession, text: &str, sent_on: u32) -> EndAnswer {
        self.note(format!("before end {text} {sent_on}")).await;
        self.end.clone()
    }

    async fn before_compaction(&self, _: &HookSession, trigger: CompactionTrigger) -> Option<String> {
        self.note(format!("compaction {trigger:?}")).await;
        Some("not now".to_owned())
    }
}

/// A gate that asks about commands, as a rule does or as a mode does.
#[derive(Debug)]
struct Asks {
    by_default: bool,
}

#[async_trait]
impl Gate for Asks {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match (call.effect(), self.by_default) {
            (Effect::Execute, true) => Verdict::ask("it runs a command").by_default(),
            (Effect::Execute, false) => Verdict::ask("it runs a command"),
            (Effect::Read | Effect::Write | Effect::Network, _) => Verdict::ALLOW,
        }
    }
}

fn write(path: &str) -> Value {
    json!({"file_path": path, "content": "x"})
}

fn results(session: &Session) -> Vec<String> {
    let history = session.history();
    history
        .iter()
        .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect()
}

#[tokio::test]
async fn hooks_run_at_their_points_in_order() {
    let hooks = TestHooks { context: Some("today is Monday".into()), ..TestHooks::default() };
    let adapter =
        anthropic().message(calling(&[("write_file", write("a"))])).answer("Done.").answer("Again.");
    let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks.clone()));
    assert_eq!(harness.session.submit("go").await.unwrap().text, "Done.");
    harness.session.submit("more").await.unwrap();
    let texts: Vec<String> = harness
        .session
        .history()
        .iter()
        .filter(|turn| turn.kind == TurnKind::User)
        .map(Turn::content)
        .collect();
    assert_eq!(texts, ["go\n\n[Added by a hook: today is Monday]", "more"], "once, at the first input");
    harness.session.close().await;
    let log = hooks.log();
    let result = log[3].clone();
    assert!(result.starts_with("result write_file "), "{result}");
    assert_eq!(
        log,
        [
            "start New",
            "input go",
            "call write_file allow",
            &result,
            "before end Done. 0",
            "input more",
            "before end Again. 0",
            "end Closed",
        ]
    );
}

#[tokio::test]
async fn an_input_can_be_refused_or_extended() {
    let hooks = TestHooks { input: InputAnswer::add("in French"), ..TestHooks::default() };
    let harness = harness_with(anthropic().answer("Oui."), env(), |builder| builder.hooks(hooks));
    harness.session.submit("go").await.unwrap();
    assert_eq!(harness.session.history()[0].content(), "go\n\n[Added by a hook: in French]");

    let hooks = TestHooks { input: InputAnswer::refuse("no secrets"), ..TestHooks::default() };
    let harness = harness_with(anthropic(), env(), |builder| builder.hooks(hooks));
    let outcome = harness.session.submit("my key is 1").await.or_else(crate::RunError::into_outcome).unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Failed);
    assert_eq!(outcome.error.unwrap().message, "a hook refused the input: no secrets");
    let refused = harness.session.handle().steer("my key is 2").await.unwrap_err();
    assert_eq!(refused.to_string(), "the message was not queued: no secrets");
    assert!(harness.session.history().is_empty() && harness.adapter.requests().is_empty());
}

#[tokio::test]
async fn a_hook_narrows_and_answers_only_the_question_of_a_mode() {
    // What the hook says; how the mode and how a rule asks; whether the command runs.
    let allow = CallAnswer::judge(Permission::Allow, None);
    let cases = [
        (CallAnswer::default(), None, true, false),
        (allow.clone(), None, true, true),
        (allow, None, false, false),
        (CallAnswer::default(), Some(Decision::Approve), true, true),
        (CallAnswer::default(), Some(Decision::Approve), false, false),
        (CallAnswer::judge(Permission::Deny, Some("not on a Sunday".into())), None, true, false),
    ];
    for (call, approval, by_default, runs) in cases {
        let hooks = TestHooks { call: call.clone(), approval: approval.clone(), ..TestHooks::default() };
        let adapter = anthropic().message(calling(&[("shell", json!({"command": "make"}))])).answer("Done.");
        let env = env().with_commands(|_| CommandScript::exit(0));
        let harness = harness_with(adapter, env, |builder| {
            builder.hooks(hooks).gate(Asks { by_default }).approver(Denies)
        });
        let events = all(harness.session.submit("go")).await;
        let ran =
            harness.env.commands().iter().any(
                |command| matches!(&command.program, pintle_env::Program::Shell(line) if line == "make"),
            );
        assert_eq!(ran, runs, "{call:?} {approval:?} {by_default}");
        let judged = events.iter().find_map(|event| match &event.kind {
            EventKind::CallJudged { steps, .. } => Some(steps.clone()),
            _ => None,
        });
        let said = judged.unwrap().steps().iter().any(|step| step.gate == "hook");
        assert_eq!(said, call.permission.is_some() || approval.is_some());
    }
}

#[tokio::test]
async fn question_of_a_hook_survives_changed_arguments() {
    let ask = CallAnswer::judge(Permission::Ask, Some("the branch is protected".into()));
    let changed = Decision::Change { arguments: json!({"command": "make check"}) };
    for (call, runs) in [(CallAnswer::default(), true), (ask, false)] {
        let hooks = TestHooks { call, approval: Some(changed.clone()), ..TestHooks::default() };
        let adapter = anthropic().message(calling(&[("shell", json!({"command": "make"}))])).answer("Done.");
        let env = env().with_commands(|_| CommandScript::exit(0));
        let harness = harness_with(adapter, env, |builder| {
            builder.hooks(hooks).gate(Asks { by_default: true }).approver(Denies)
        });
        let events = all(harness.session.submit("go")).await;
        let is_checked = |command: &pintle_env::Command| matches!(&command.program, pintle_env::Program::Shell(line) if line == "make check");
        assert_eq!(harness.env.commands().iter().any(is_checked), runs);
        let judged = events.iter().find_map(|event| match &event.kind {
            EventKind::CallJudged { steps, .. } => Some(steps.clone()),
            _ => None,
        });
        assert_eq!(judged.unwrap().reason().contains("the branch is protected"), !runs);
    }
}

#[derive(Debug)]
struct Denies;

#[async_trait]
impl crate::Approver for Denies {
    async fn decide(&self, _: &ApprovalRequest) -> Decision {
        Decision::Deny { reason: None }
    }
}

#[tokio::test]
async fn a_denial_names_its_hook_once() {
    for (reason, hook, expected) in [
        ("no", Some("check.sh"), "no (hook check.sh)"),
        ("the hook check.sh did not run", Some("check.sh"), "the hook check.sh did not run"),
        ("no", None, "no"),
    ] {
        let mut call = CallAnswer::judge(Permission::Deny, Some(reason.into()));
        call.hook = hook.map(str::to_owned);
        let hooks = TestHooks { call, ..TestHooks::default() };
        let adapter = anthropic().message(calling(&[("write_file", write("a"))])).answer("Done.");
        let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks));
        all(harness.session.submit("go")).await;
        let [result] = results(&harness.session).try_into().unwrap();
        assert_eq!(result, format!("The call of write_file was denied: {expected}"));
    }
}

#[tokio::test]
async fn a_hook_cannot_rewrite_a_call_past_a_gate() {
    let deny_writes = || EffectGate::new().with_permission(Effect::Execute, Permission::Deny);
    let cases = [
        (write("b"), None),
        (json!({"file_path": 7}), Some(ToolErrorKind::InvalidArguments)),
        (json!("text"), Some(ToolErrorKind::InvalidArguments)),
        (write("/elsewhere"), Some(ToolErrorKind::Denied)),
    ];
    for (arguments, expected) in cases {
        let hooks = TestHooks {
            call: CallAnswer::default().with_arguments(Some(arguments.clone())).with_hook("rewrite.sh"),
            ..TestHooks::default()
        };
        let adapter = anthropic().message(calling(&[("write_file", write("a"))])).answer("Done.");
        let harness = harness_with(adapter, env(), |builder| {
            builder.hooks(hooks.clone()).gate(deny_writes()).gate(ChangesBelow("/project"))
        });
        let events = all(harness.session.submit("go")).await;
        let error = events.iter().find_map(|event| match &event.kind {
            EventKind::ToolCallEnd { error, .. } => Some(*error),
            _ => None,
        });
        assert_eq!(error, Some(expected), "{arguments}");
        let files = harness.env.files();
        assert!(!files.contains_key(std::path::Path::new("/project/a")));
        assert_eq!(files.contains_key(std::path::Path::new("/project/b")), expected.is_none());
        if expected.is_none() {
            let [result] = results(&harness.session).try_into().unwrap();
            let note =
                format!("[The arguments were changed by hook rewrite.sh before the call ran: {arguments}]\n");
            assert!(result.starts_with(&note), "{result}");
        }
        let calls = hooks.log().iter().filter(|line| line.starts_with("call")).count();
        assert_eq!(calls, 1, "hooks do not run twice for one call");
    }
}

#[tokio::test]
async fn a_result_can_be_replaced_for_the_model_and_stays_on_record() {
    let result = ResultAnswer {
        replacement: Some("hidden".into()),
        context: Some("ask Jan".into()),
        ..ResultAnswer::default()
    };
    let hooks = TestHooks { result, ..TestHooks::default() };
    let adapter = anthropic().message(calling(&[("read_file", json!({"file_path": "a"}))])).answer("Done.");
    let harness = harness_with(adapter, env().with_file("a", "secret"), |builder| builder.hooks(hooks));
    let events = all(harness.session.submit("go")).await;
    assert_eq!(results(&harness.session), ["hidden\n\n[Added by a hook: ask Jan]"]);
    let output = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallEnd { output, .. } => output.to_text_lossy().ok(),
        _ => None,
    });
    assert_eq!(output.as_deref(), Some("1 | secret"));
}

#[tokio::test]
async fn text_of_a_hook_before_a_call_is_below_its_result_also_when_replayed() {
    for (permission, expected) in [(None, "Wrote 1 byte to a"), (Some(Permission::Deny), "denied")] {
        let call = CallAnswer { permission, context: Some("ask Jan".into()), ..CallAnswer::default() };
        let hooks = TestHooks { call, ..TestHooks::default() };
        let adapter = anthropic().message(calling(&[("write_file", write("a"))])).answer("Done.");
        let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks).record(true));
        harness.session.submit("go").await.unwrap();
        let [result] = results(&harness.session).try_into().unwrap();
        assert!(result.contains(expected), "{result}");
        assert!(result.ends_with("\n\n[Added by a hook: ask Jan]"), "{result}");
        let replay = harness.session.record().unwrap().replay().unwrap();
        let replayed = replay.history.iter().flat_map(|turn| turn.item.results()).map(|result| result.text());
        assert_eq!(replayed.collect::<Vec<_>>(), [result]);
    }
}

#[tokio::test]
async fn a_hook_can_end_the_run_with_the_round() {
    let before = TestHooks { call: CallAnswer::stop("it is late"), ..TestHooks::default() };
    let after = TestHooks { result: ResultAnswer::stop("it is late"), ..TestHooks::default() };
    for (hooks, writes) in [(before, false), (after, true)] {
        let adapter = anthropic().message(calling(&[("write_file", write("a"))])).answer("Again.");
        let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks.clone()).record(true));
        let outcome = harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Failed);
        assert_eq!(outcome.error.unwrap().message, "a hook ended the run: it is late");
        assert_eq!(harness.env.files().contains_key(std::path::Path::new("/project/a")), writes);
        assert_eq!(harness.adapter.requests().len(), 1, "the model is not asked again");
        let [result] = results(&harness.session).try_into().unwrap();
        assert!(result.contains("it is late"), "{result}");
        harness.session.record().unwrap().replay().unwrap();
        // The session goes on with the next input.
        assert_eq!(harness.session.submit("more").await.unwrap().text, "Again.");
    }
}

#[tokio::test]
async fn hooks_are_told_why_a_session_ends() {
    for reason in [SessionEndReason::Closed, SessionEndReason::Suspended] {
        let hooks = TestHooks::default();
        let harness = harness_with(anthropic(), env(), |builder| builder.hooks(hooks.clone()));
        match reason {
            SessionEndReason::Suspended => harness.session.suspend().await,
            _ => harness.session.close().await,
        }
        assert_eq!(hooks.log().last().unwrap(), &format!("end {reason:?}"));
    }
    let hooks = TestHooks::default();
    let harness = harness_with(anthropic(), env(), |builder| builder.hooks(hooks.clone()));
    harness.session.handle().detach().unwrap();
    harness.session.close().await;
    assert_eq!(hooks.log().last().unwrap(), "end Suspended", "an idle session is suspended");
    let hooks = TestHooks::default();
    let harness = harness_with(anthropic(), env(), |builder| builder.hooks(hooks.clone()));
    harness.session.handle().abandon().unwrap();
    harness.session.close().await;
    assert!(hooks.log().iter().all(|line| !line.starts_with("end")), "as if the process had died");
}

#[tokio::test]
async fn the_model_is_sent_on_a_bounded_number_of_times() {
    let hooks = TestHooks { end: EndAnswer::send_on("run the tests"), ..TestHooks::default() };
    let adapter = (0..5).fold(anthropic(), |adapter, number| adapter.answer(format!("Answer {number}.")));
    let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks.clone()).record(true));
    let events = all(harness.session.submit("go")).await;
    assert_eq!(harness.adapter.requests().len(), 4, "three times by default");
    let warnings = events.iter().filter_map(|event| match &event.kind {
        EventKind::Warning { message } => Some(message.as_str()),
        _ => None,
    });
    let warnings: Vec<&str> = warnings.collect();
    assert_eq!(warnings, ["a hook wanted to send the model on again, which is possible 3 times a run"]);
    let kinds: Vec<TurnKind> = harness.session.history().iter().map(|turn| turn.kind).collect();
    use TurnKind::{Assistant, Steering, User};
    assert_eq!(kinds, [User, Assistant, Steering, Assistant, Steering, Assistant, Steering, Assistant]);
    let heard = hooks.log().len();
    let replay = harness.session.record().unwrap().replay().unwrap();
    assert_eq!(replay.history.len(), 8, "the answers of hooks are on record");
    assert_eq!(hooks.log().len(), heard, "a replay calls no hook");
}

/// A gate that rejects the end of each run.
#[derive(Debug)]
struct RejectsEnds;

#[async_trait]
impl Gate for RejectsEnds {
    async fn check(&self, _: &PreparedCall) -> Verdict {
        Verdict::ALLOW
    }

    async fn stop_at_end(&self) -> Option<String> {
        Some("a file was changed in the background".to_owned())
    }
}

#[tokio::test]
async fn a_gate_fails_a_run_at_its_end_before_hooks_send_it_on() {
    let hooks = TestHooks { end: EndAnswer::send_on("run the tests"), ..TestHooks::default() };
    let adapter = anthropic().answer("Done.").answer("Done again.");
    let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks).gate(RejectsEnds).record(true));
    for answer in ["Done.", "Done again."] {
        let outcome = harness.session.submit("go").await.or_else(crate::RunError::into_outcome).unwrap();
        assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Failed, answer));
        assert_eq!(outcome.error.unwrap().message, "a file was changed in the background");
    }
    let record = harness.session.record().unwrap();
    assert_eq!(record.replay().unwrap().history.len(), harness.session.history().len());
}

#[tokio::test]
async fn a_compaction_can_be_refused() {
    let hooks = TestHooks::default();
    let adapter = anthropic().answer("One.").answer("Two.");
    let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks.clone()));
    harness.session.submit("go").await.unwrap();
    harness.session.submit("go on").await.unwrap();
    let mut events = harness.session.events();
    harness.session.handle().compact().unwrap();
    let warning = loop {
        if let EventKind::Warning { message } = events.next().await.unwrap().kind {
            break message;
        }
    };
    assert!(warning.contains("a hook does not let it happen: not now"), "{warning}");
    assert_eq!(harness.adapter.requests().len(), 2);
    assert!(hooks.log().contains(&"compaction Manual".to_owned()));
}

#[tokio::test]
async fn a_hook_that_panics_has_answered_nothing() {
    let hooks = TestHooks { panics: true, ..TestHooks::default() };
    let adapter = anthropic().message(calling(&[("write_file", write("a"))])).answer("Done.");
    let harness = harness_with(adapter, env(), |builder| builder.hooks(hooks.clone()));
    assert_eq!(harness.session.submit("go").await.unwrap().text, "Done.");
    assert!(harness.env.files().contains_key(std::path::Path::new("/project/a")));
}

#[tokio::test]
async fn a_stopped_session_waits_for_no_hook() {
    let hooks = TestHooks { hangs: true, ..TestHooks::default() };
    let harness = harness_with(anthropic(), env(), |builder| builder.hooks(hooks.clone()));
    let run = harness.session.submit("go");
    while hooks.log().is_empty() {
        tokio::task::yield_now().await;
    }
    harness.session.handle().stop_turn().unwrap();
    let error = run.await.or_else(crate::RunError::into_outcome).unwrap().error.unwrap();
    assert_eq!(error.message, "a hook refused the input: the session was stopped before a hook had answered");
}
