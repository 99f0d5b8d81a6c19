//! Approvers and the effects of their decisions, with a fake model and an environment in memory.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pintle_env::{
    Command, CommandScript, ExecutionEnvironment, ExecutionEnvironmentExt as _, MemoryEnvironment, Program,
};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use pintle_tools::Effect;
use pintle_tools::gate::{EffectGate, Permission, ReadBeforeWrite};
use pintle_tools::pipeline::{Gate, Verdict};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::*;
use crate::config::SessionConfig;
use crate::error::SessionError;
use crate::profile::ProviderProfile;
use crate::protocol::{EventKind, OutcomeStatus, SessionState, TurnLimits};
use crate::session::{Session, SessionBuilder};
use crate::tests::ChangesBelow;

mod endings;
mod functions;
mod many;
mod outside;
mod redirected;

/// Time-out for everything that is expected to happen.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Always decides the same, and records the requests.
#[derive(Clone, Debug)]
struct FixedApprover {
    decision: Decision,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl FixedApprover {
    fn new(decision: Decision) -> Self {
        Self { decision, asked: Arc::default() }
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for FixedApprover {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.asked.lock().unwrap().push(request.clone());
        self.decision.clone()
    }
}

/// Never decides; notifies when it is asked and when its future is dropped.
#[derive(Clone, Debug, Default)]
struct PendingApprover {
    asked: Arc<Notify>,
    dropped: Arc<Notify>,
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Approver for PendingApprover {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        let _notify = NotifyOnDrop(Arc::clone(&self.dropped));
        self.asked.notify_one();
        std::future::pending().await
    }
}

#[derive(Debug)]
struct PanickingApprover;

#[async_trait]
impl Approver for PanickingApprover {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        panic!("scripted")
    }
}

/// Panics before it returns a future.
#[derive(Debug)]
struct EagerlyPanickingApprover;

impl Approver for EagerlyPanickingApprover {
    fn decide<'a, 'r, 'd>(
        &'a self,
        _request: &'r ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Decision> + Send + 'd>>
    where
        'a: 'd,
        'r: 'd,
        Self: 'd,
    {
        panic!("scripted")
    }
}

fn env() -> Arc<MemoryEnvironment> {
    let env = MemoryEnvironment::new("/p").with_file("a.txt", "one\ntwo\n");
    Arc::new(env.with_commands(|_| CommandScript::exit(0)))
}

fn calls(calls: &[(&str, serde_json::Value)]) -> Message {
    let parts = calls.iter().enumerate().map(|(index, (name, arguments))| {
        ToolCall::from_raw(format!("call_{index}"), *name, arguments.to_string()).into()
    });
    Message::new(Role::Assistant, parts.collect())
}

/// A session whose model makes these rounds of calls, and whose gate asks about writes and commands.
fn session(
    env: &Arc<MemoryEnvironment>,
    rounds: &[Message],
    change: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Session {
    let adapter = rounds.iter().cloned().fold(FakeAdapter::new("anthropic"), FakeAdapter::message);
    let client = Client::builder().provider(adapter.answer("done")).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let gate = EffectGate::new()
        .with_permission(Effect::Write, Permission::Ask)
        .with_permission(Effect::Execute, Permission::Ask);
    change(Session::builder(client, profile, Arc::clone(env) as Arc<dyn ExecutionEnvironment>).gate(gate))
        .build()
        .unwrap()
}

fn edit() -> (&'static str, serde_json::Value) {
    ("edit_file", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"}))
}

fn shell() -> (&'static str, serde_json::Value) {
    ("shell", json!({"command": "make"}))
}

/// Tool results that the model received, in order.
fn results(session: &Session) -> Vec<String> {
    session
        .history()
        .iter()
        .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect()
}

/// Returns the number of times that the model's command ran. The session runs other commands for its prompt.
fn make_runs(env: &MemoryEnvironment) -> usize {
    let is_make = |command: &Command| matches!(&command.program, Program::Shell(line) if line == "make");
    env.commands().iter().filter(|command| is_make(command)).count()
}

fn content(env: &MemoryEnvironment) -> String {
    String::from_utf8(env.files()[Path::new("/p/a.txt")].clone()).unwrap()
}

#[tokio::test]
async fn an_approver_sees_the_dry_run_and_approves() {
    let (env, approver) = (env(), FixedApprover::new(Decision::Approve));
    let session = session(&env, &[calls(&[edit(), shell()])], |builder| builder.approver(approver.clone()));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(content(&env), "one\n2\n");
    let mut asked = approver.asked();
    asked.sort_by(|a, b| a.call_id.cmp(&b.call_id));
    let [write, command] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!((write.tool_name.as_str(), write.effect), ("edit_file", Effect::Write));
    assert_eq!(
        (write.reason.as_str(), write.writes.as_slice()),
        ("the call changes files", &["/p/a.txt".into()][..])
    );
    let dry_run = write.dry_run.as_ref().unwrap();
    assert!(dry_run.changes[0].diff.contains("-two\n+2"), "{dry_run:?}");
    assert_eq!(command.arguments, json!({"command": "make"}));
    assert_eq!(command.dry_run, None, "commands have no dry run");
    assert_eq!(make_runs(&env), 1);
}

#[tokio::test]
async fn the_model_reads_a_denial_and_continues() {
    let cases = [
        (Some("not now".to_owned()), "The call of edit_file was denied: not now"),
        (None, "The call of edit_file was denied"),
    ];
    for (reason, expected) in cases {
        let (env, approver) = (env(), FixedApprover::new(Decision::Deny { reason }));
        let rounds = [calls(&[edit(), ("read_file", json!({"file_path": "a.txt"}))])];
        let session = session(&env, &rounds, |builder| builder.approver(approver));
        let outcome = session.submit("go").await.unwrap();
        assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "done"));
        assert_eq!(results(&session), [expected, "1 | one\n2 | two"]);
        assert_eq!(content(&env), "one\ntwo\n");
        assert_eq!(session.state(), SessionState::Idle);
    }
}

async fn expect_denial(approver: impl Approver + 'static) {
    let env = env();
    let session = session(&env, &[calls(&[shell()])], |builder| builder.approver(approver));
    let run = session.submit("go");
    assert_eq!(timeout(TIMEOUT, run.outcome()).await.unwrap().unwrap().status, OutcomeStatus::Completed);
    assert_eq!(results(&session), ["The call of shell was denied: the approver is broken"]);
    assert_eq!(make_runs(&env), 0);
}

#[tokio::test]
async fn a_panicking_approver_denies() {
    expect_denial(PanickingApprover).await;
    expect_denial(EagerlyPanickingApprover).await;
}

#[derive(Clone, Copy)]
enum Stop {
    Abort,
    Interrupt,
}

#[tokio::test]
async fn stopping_drops_a_pending_approver() {
    for (stop, status) in
        [(Stop::Abort, OutcomeStatus::Aborted), (Stop::Interrupt, OutcomeStatus::Interrupted)]
    {
        let (env, approver) = (env(), PendingApprover::default());
        let session = session(&env, &[calls(&[shell()])], |builder| builder.approver(approver.clone()));
        let run = session.submit("go");
        timeout(TIMEOUT, approver.asked.notified()).await.unwrap();
        match stop {
            Stop::Abort => session.handle().close().unwrap(),
            Stop::Interrupt => session.handle().stop_turn().unwrap(),
        }
        assert_eq!(
            timeout(TIMEOUT, run.outcome())
                .await
                .unwrap()
                .or_else(crate::RunError::into_outcome)
                .unwrap()
                .status,
            status
        );
        timeout(TIMEOUT, approver.dropped.notified()).await.expect("its future is dropped");
        assert!(session.handle().approvals().is_empty());
        assert!(session.handle().decide("call_0", Decision::Approve).is_err(), "the decision is late");
        assert_eq!(make_runs(&env), 0);
    }
}

#[tokio::test]
async fn a_decision_through_the_handle_counts_once() {
    let (env, approver) = (env(), PendingApprover::default());
    let session = session(&env, &[calls(&[shell()])], |builder| builder.approver(approver.clone()));
    let handle = session.handle();
    let run = session.submit("go");
    timeout(TIMEOUT, approver.asked.notified()).await.unwrap();
    let waiting = handle.approvals();
    let [request] = waiting.as_slice() else { panic!("{waiting:?}") };
    let other = Fingerprint::from_bytes(b"another call");
    let refused = handle.decide_exactly(&request.call_id, other, Decision::Approve);
    assert!(matches!(refused, Err(SessionError::NoSuchApproval(_))));
    handle.decide_exactly(&request.call_id, request.fingerprint, Decision::Approve).unwrap();
    // A second decision has no effect.
    let _ignored = handle.decide(&request.call_id, Decision::Deny { reason: None });
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    timeout(TIMEOUT, approver.dropped.notified()).await.expect("its future is dropped");
    assert_eq!(make_runs(&env), 1);
    let again = handle.decide(&request.call_id, Decision::Approve);
    assert!(matches!(again, Err(SessionError::NoSuchApproval(_))));
}

#[tokio::test]
async fn the_event_has_the_repaired_arguments() {
    let env = env();
    let rounds = [calls(&[("shell", json!({"cmd": "make"}))])];
    let session = session(&env, &rounds, |builder| builder);
    let mut run = session.submit("go");
    while let Some(event) = run.next().await {
        if let EventKind::ApprovalRequested { call_id, arguments, fingerprint, .. } = event.kind {
            assert_eq!(arguments, json!({"command": "make"}), "after repair");
            session.handle().decide_exactly(&call_id, fingerprint, Decision::Approve).unwrap();
        }
    }
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(make_runs(&env), 1);
}

#[tokio::test]
async fn an_approval_holds_for_one_call() {
    let (env, approver) = (env(), FixedApprover::new(Decision::Approve));
    let rounds = [calls(&[shell()]), calls(&[shell(), shell()])];
    let session = session(&env, &rounds, |builder| builder.approver(approver.clone()));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    let asked = approver.asked();
    assert_eq!((asked.len(), make_runs(&env)), (3, 3), "each call of the same command needs a decision");
    let mut fingerprints: Vec<String> =
        asked.iter().map(|asked| format!("{:?}", asked.fingerprint)).collect();
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 3, "fingerprints differ");
}

#[tokio::test]
async fn gates_check_again_after_approval() {
    /// Changes the file before it approves.
    #[derive(Debug)]
    struct FileChangingApprover(Arc<MemoryEnvironment>);

    #[async_trait]
    impl Approver for FileChangingApprover {
        async fn decide(&self, _request: &ApprovalRequest) -> Decision {
            self.0.write_file(Path::new("a.txt"), "mine\ntwo\n").await.unwrap();
            Decision::Approve
        }
    }

    let env = env();
    let rounds = [calls(&[("read_file", json!({"file_path": "a.txt"}))]), calls(&[edit()])];
    let shared = Arc::clone(&env);
    let session = session(&env, &rounds, move |builder| {
        builder.gate(ReadBeforeWrite::new(shared.clone())).approver(FileChangingApprover(shared))
    });
    let mut run = session.submit("go");
    let mut ends = Vec::new();
    while let Some(event) = run.next().await {
        if let EventKind::ToolCallEnd { error, .. } = event.kind {
            ends.push(error);
        }
    }
    assert_eq!(ends, [None, Some(pintle_tools::ToolErrorKind::Denied)]);
    let expected = "The call of edit_file was denied: /p/a.txt has changed on disk since it was read; read it again first";
    assert_eq!(results(&session)[1], expected);
    assert_eq!(content(&env), "mine\ntwo\n");
}

#[tokio::test]
async fn a_gate_that_asks_late_refuses_the_call() {
    /// Allows the first check and asks afterwards.
    #[derive(Debug, Default)]
    struct LateAskingGate(AtomicUsize);

    #[async_trait]
    impl Gate for LateAskingGate {
        async fn check(&self, _call: &PreparedCall) -> Verdict {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => Verdict::ALLOW,
                _ => Verdict::ask("the moon is full"),
            }
        }
    }

    let (env, approver) = (env(), FixedApprover::new(Decision::Approve));
    let rounds = [calls(&[("read_file", json!({"file_path": "a.txt"}))]), calls(&[shell()])];
    let session =
        session(&env, &rounds, |builder| builder.gate(LateAskingGate::default()).approver(approver.clone()));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    let refused = "The call of read_file was denied: the moon is full, which was not so when it was prepared; \
                   make it again to have it decided";
    assert_eq!(results(&session)[0], refused);
    assert_eq!(
        (approver.asked().len(), make_runs(&env)),
        (1, 1),
        "an approved call is not asked about again"
    );
}

#[tokio::test]
async fn a_denial_precedes_an_earlier_question() {
    let (env, approver) = (env(), FixedApprover::new(Decision::Approve));
    let rounds = [calls(&[("write_file", json!({"file_path": "/etc/x", "content": ""}))])];
    let session =
        session(&env, &rounds, |builder| builder.gate(ChangesBelow("/p")).approver(approver.clone()));
    session.submit("go").await.unwrap();
    assert_eq!(results(&session), ["The call of write_file was denied: /etc/x is outside of /p"]);
    assert!(approver.asked().is_empty(), "no one is asked about a denied call");
}

#[tokio::test(start_paused = true)]
async fn an_approval_timeout_denies() {
    let (env, approver) = (env(), PendingApprover::default());
    let limits = TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() };
    let session = session(&env, &[calls(&[shell()])], |builder| {
        builder.approver(approver.clone()).with_config(SessionConfig::default().with_limits(limits))
    });
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(results(&session), ["The call of shell was denied: nobody decided in time"]);
    approver.dropped.notified().await;
}

#[tokio::test(start_paused = true)]
async fn a_decision_after_the_time_out_starts_nothing() {
    let env = env();
    let limits = TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() };
    let session = session(&env, &[calls(&[shell()])], |builder| {
        builder.with_config(SessionConfig::default().with_limits(limits))
    });
    let handle = session.handle();
    let run = session.submit("go");
    while handle.approvals().is_empty() {
        tokio::task::yield_now().await;
    }
    let request = Arc::clone(&handle.approvals()[0]);
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    let late = handle.decide_exactly(&request.call_id, request.fingerprint, Decision::Approve);
    assert!(matches!(late, Err(SessionError::NoSuchApproval(_))));
    assert_eq!(make_runs(&env), 0);
}

/// An approval is bound to the grant: the same call under another grant needs another approval.
#[tokio::test]
async fn an_approval_does_not_hold_under_another_grant() {
    /// A gate whose authority changes once somebody has approved.
    #[derive(Debug)]
    struct Renewed(Arc<AtomicUsize>);

    #[async_trait]
    impl Gate for Renewed {
        async fn check(&self, _call: &PreparedCall) -> Verdict {
            let grant = format!("grant@{}", self.0.load(Ordering::Relaxed));
            Verdict::ask("it runs a command").with_rule(grant).binding()
        }
    }

    #[derive(Debug)]
    struct Renews {
        grant: Arc<AtomicUsize>,
        by: usize,
    }

    #[async_trait]
    impl Approver for Renews {
        async fn decide(&self, _request: &ApprovalRequest) -> Decision {
            self.grant.fetch_add(self.by, Ordering::Relaxed);
            Decision::Approve
        }
    }

    for (by, runs) in [(0, 1), (1, 0)] {
        let (env, grant) = (env(), Arc::new(AtomicUsize::new(0)));
        let session = session(&env, &[calls(&[shell()])], |builder| {
            builder.gate(Renewed(Arc::clone(&grant))).approver(Renews { grant: Arc::clone(&grant), by })
        });
        session.submit("go").await.unwrap();
        assert_eq!(make_runs(&env), runs, "{by}");
        let results = results(&session);
        assert_eq!(
            results[0].contains("another call was approved, or this one under another grant"),
            by == 1
        );
    }
}
