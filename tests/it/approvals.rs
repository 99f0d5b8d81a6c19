//! Gates and approvals in a whole session: denied calls do not run, the model gets the reason, and the session
//! continues.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use pintle_agent::{
    ApprovalRequest, Approver, Decision, EventKind, OutcomeStatus, SessionConfig, SessionId, SessionState,
};
use pintle_env::{ExecutionEnvironment as _, LocalEnvironment};
use pintle_governance::{Grant, GrantGate, GrantId, Mode, PathScope, Policy, PolicyGate, Rules};
use pintle_testkit::Dialect;
use pintle_tools::Effect;
use pintle_tools::gate::{EffectGate, Permission, ReadBeforeWrite};
use tokio::sync::Notify;

use crate::harness::{Harness, edit, in_each_dialect, kinds, outputs};

in_each_dialect![
    an_edit_is_shown_before_its_approval,
    denied_calls_do_not_run_and_the_session_continues,
    a_call_is_gated_after_the_previous_ones_ran,
    an_abort_does_not_wait_for_the_approver,
];

/// Approves changes, denies commands, and records the requests.
#[derive(Clone, Debug, Default)]
struct ChangesOnly(Arc<Mutex<Vec<ApprovalRequest>>>);

#[async_trait]
impl Approver for ChangesOnly {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.0.lock().unwrap().push(request.clone());
        match request.effect {
            Effect::Write => Decision::Approve,
            _ => Decision::Deny { reason: Some("no commands today".to_owned()) },
        }
    }
}

fn ask_about_all() -> EffectGate {
    EffectGate::new()
        .with_permission(Effect::Write, Permission::Ask)
        .with_permission(Effect::Execute, Permission::Ask)
}

/// Returns a gate that denies files outside of the working directory.
fn working_directory_gate(env: &Arc<LocalEnvironment>) -> GrantGate {
    let root = env.working_directory().canonicalize().unwrap();
    let mut grant = Grant::all(GrantId::new("g"));
    grant.writes = PathScope::within([root.display().to_string()]);
    grant.reads = grant.writes.clone();
    let session = SessionId::new("s");
    GrantGate::new(Arc::new(grant), session, env.clone(), "local")
}

/// Returns a gate that denies `rm`, asks about other commands, and allows changes of files in the working directory.
fn policy_gate(env: &Arc<LocalEnvironment>) -> PolicyGate {
    let workspace = env.working_directory();
    let rules = Rules::parse("rules.toml", "deny = [\"shell(rm *)\"]", workspace).unwrap();
    PolicyGate::new(Policy::new(Mode::Edit, rules, workspace), env.clone())
}

async fn an_edit_is_shown_before_its_approval(dialect: Dialect) {
    let turns = format!("[[turn]]\n{}[[turn]]\ntext = \"Done.\"\n", edit(dialect, "a.txt", "old", "new"));
    let approver = ChangesOnly::default();
    let asked = approver.clone();
    let harness = Harness::with(dialect, &turns, SessionConfig::default(), |builder| {
        builder.gate(ask_about_all()).approver(approver)
    })
    .await;
    harness.write("a.txt", "first\nold\nlast\n");
    let (events, outcome) = harness.run("Edit").await;
    assert_eq!(
        (outcome.status, harness.read("a.txt").as_str()),
        (OutcomeStatus::Completed, "first\nnew\nlast\n")
    );
    let requests = asked.0.lock().unwrap().clone();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    let dry_run = request.dry_run.as_ref().expect("an edit can be shown beforehand");
    let done = events.iter().find_map(|event| match &event.kind {
        EventKind::ToolCallEnd { changes, .. } => Some(changes.clone()),
        _ => None,
    });
    assert_eq!(Some(&dry_run.changes), done.as_ref(), "what was shown is what was done");
    assert!(dry_run.changes[0].diff.contains("-old\n+new"), "{dry_run:?}");
    let seen = kinds(&events);
    let place =
        |kind: &str| seen.iter().position(|other| other == kind).unwrap_or_else(|| panic!("{seen:?}"));
    assert!(place("APPROVAL_REQUESTED") < place("APPROVAL_DECIDED"));
    assert!(place("APPROVAL_DECIDED") < place("TOOL_CALL_START"));
    harness.finish().await;
}

async fn denied_calls_do_not_run_and_the_session_continues(dialect: Dialect) {
    let turns = r#"
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = { command = "touch asked" }
        [[turn.call]]
        tool = "shell"
        arguments = { command = "sudo rm -rf a.txt" }
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "link/x", content = "x" }
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "a.txt", content = "x" }
        [[turn.call]]
        tool = "read_file"
        arguments = { file_path = "a.txt" }
        [[turn]]
        [[turn.call]]
        tool = "write_file"
        arguments = { file_path = "a.txt", content = "rewritten" }
        [[turn]]
        text = "Done."
        [[turn.expect]]
        call = 0
        is_error = false
        "#;
    let outside = tempfile::tempdir().unwrap();
    let approver = ChangesOnly::default();
    let harness = Harness::with_env(dialect, turns, SessionConfig::default(), |builder, env| {
        builder
            .gate(policy_gate(&env))
            .gate(working_directory_gate(&env))
            .gate(ReadBeforeWrite::new(env))
            .approver(approver)
    })
    .await;
    std::os::unix::fs::symlink(outside.path(), harness.path("link")).unwrap();
    harness.write("a.txt", "one\n");
    let (events, outcome) = harness.run("Try").await;
    assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "Done."));
    let outputs_seen = outputs(&events);
    for reason in [
        "The call of shell was denied: no commands today",
        "The call of shell was denied: the rule `shell(rm *)` of rules.toml:1 names it",
        "link/x, which leads to ",
        "a.txt has not been read in this session; read it first",
    ] {
        assert!(outputs_seen.iter().any(|output| output.contains(reason)), "{reason} in {outputs_seen:?}");
    }
    assert!(!harness.path("asked").exists());
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(harness.read("a.txt"), "rewritten", "once it was read");
    assert_eq!(harness.session.state(), SessionState::Idle);
    harness.finish().await;
}

async fn a_call_is_gated_after_the_previous_ones_ran(dialect: Dialect) {
    let outside = tempfile::tempdir().unwrap();
    // All three calls are prepared before the command has run.
    let turns = format!(
        r#"
        [[turn]]
        [[turn.call]]
        tool = "read_file"
        arguments = {{ file_path = "a.txt" }}
        [[turn]]
        [[turn.call]]
        tool = "shell"
        arguments = {{ command = "ln -s '{}' late; echo theirs > a.txt" }}
        [[turn.call]]
        tool = "write_file"
        arguments = {{ file_path = "late/x", content = "x" }}
        [[turn.call]]
        tool = "write_file"
        arguments = {{ file_path = "a.txt", content = "ours" }}
        [[turn]]
        text = "Done."
        "#,
        outside.path().display()
    );
    let harness = Harness::with_env(dialect, &turns, SessionConfig::default(), |builder, env| {
        builder.gate(working_directory_gate(&env)).gate(ReadBeforeWrite::new(env))
    })
    .await;
    harness.write("a.txt", "one\n");
    let (events, outcome) = harness.run("Try").await;
    assert_eq!(outcome.status, OutcomeStatus::Completed);
    let outputs_seen = outputs(&events);
    // The link may appear before a gate looks at the path, or between two gates.
    for reasons in [
        &[
            "late/x, which leads to ",
            "late/x is refused: the file or directory was replaced after it was judged",
        ][..],
        &["a.txt has changed on disk since it was read; read it again first"],
    ] {
        let has_reason = |output: &String| reasons.iter().any(|reason| output.contains(reason));
        assert!(outputs_seen.iter().any(has_reason), "{reasons:?} in {outputs_seen:?}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    assert_eq!(harness.read("a.txt"), "theirs\n");
    harness.finish().await;
}

/// Never decides.
#[derive(Clone, Debug, Default)]
struct NeverDecides(Arc<Notify>);

#[async_trait]
impl Approver for NeverDecides {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        self.0.notify_one();
        std::future::pending().await
    }
}

async fn an_abort_does_not_wait_for_the_approver(dialect: Dialect) {
    let turns = "[[turn]]\n[[turn.call]]\ntool = \"shell\"\narguments = { command = \"touch made\" }\n";
    let approver = NeverDecides::default();
    let asked = Arc::clone(&approver.0);
    let harness = Harness::with(dialect, turns, SessionConfig::default(), |builder| {
        builder.gate(ask_about_all()).approver(approver)
    })
    .await;
    let run = harness.session.submit("Go");
    let soon = Duration::from_secs(20);
    tokio::time::timeout(soon, asked.notified()).await.expect("it is asked");
    harness.session.handle().close().unwrap();
    let outcome = tokio::time::timeout(soon, run.outcome())
        .await
        .expect("it ends at once")
        .or_else(pintle_agent::RunError::into_outcome)
        .unwrap();
    assert_eq!((outcome.status, harness.session.state()), (OutcomeStatus::Aborted, SessionState::Closed));
    assert!(!harness.path("made").exists());
}
