//! Approvers and what becomes of their decisions, with a fake model and a fake place for tools.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pintle_env::{Command, CommandScript, ExecutionEnvironment, MemoryEnvironment, Program};
use pintle_llm::testing::FakeAdapter;
use pintle_llm::{Client, Message, Role, ToolCall};
use pintle_tools::Effect;
use pintle_tools::gate::{EffectGate, PathGate, ReadBeforeWrite, Ruling};
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

/// Long enough for anything that comes at all.
const SOON: Duration = Duration::from_secs(20);

/// Answers as it is told, and remembers what it was asked.
#[derive(Clone, Debug)]
struct Fixed {
    decision: Decision,
    asked: Arc<Mutex<Vec<ApprovalRequest>>>,
}

impl Fixed {
    fn new(decision: Decision) -> Self {
        Self { decision, asked: Arc::default() }
    }

    fn asked(&self) -> Vec<ApprovalRequest> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for Fixed {
    async fn decide(&self, request: &ApprovalRequest) -> Decision {
        self.asked.lock().unwrap().push(request.clone());
        self.decision.clone()
    }
}

/// Never answers; tells when it was asked and when it was dropped.
#[derive(Clone, Debug, Default)]
struct Silent {
    asked: Arc<Notify>,
    dropped: Arc<Notify>,
}

struct TellDropped(Arc<Notify>);

impl Drop for TellDropped {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Approver for Silent {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        let _told = TellDropped(Arc::clone(&self.dropped));
        self.asked.notify_one();
        std::future::pending().await
    }
}

#[derive(Debug)]
struct Panics;

#[async_trait]
impl Approver for Panics {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        panic!("no idea")
    }
}

/// Panics before there is a future, as a function that is not `async` may.
#[derive(Debug)]
struct PanicsAtOnce;

impl Approver for PanicsAtOnce {
    fn decide<'a, 'r, 'd>(
        &'a self,
        _request: &'r ApprovalRequest,
    ) -> Pin<Box<dyn Future<Output = Decision> + Send + 'd>>
    where
        'a: 'd,
        'r: 'd,
        Self: 'd,
    {
        panic!("no idea at all")
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

/// A session whose model makes these calls, one round each, and whose gate asks about all that changes something.
fn session(
    env: &Arc<MemoryEnvironment>,
    rounds: &[Message],
    change: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> Session {
    let adapter = rounds.iter().cloned().fold(FakeAdapter::new("anthropic"), FakeAdapter::message);
    let client = Client::builder().provider(adapter.answer("done")).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let gate = EffectGate::new().with(Effect::Write, Ruling::Ask).with(Effect::Execute, Ruling::Ask);
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

/// The results that the model got, in order.
fn results(session: &Session) -> Vec<String> {
    session
        .history()
        .iter()
        .flat_map(|turn| turn.item.results().map(|result| result.text()).collect::<Vec<_>>())
        .collect()
}

/// How often the model's command ran; the session looks around with others.
fn made(env: &MemoryEnvironment) -> usize {
    let is_make = |command: &Command| matches!(&command.program, Program::Shell(line) if line == "make");
    env.commands().iter().filter(|command| is_make(command)).count()
}

fn content(env: &MemoryEnvironment) -> String {
    String::from_utf8(env.files()[Path::new("/p/a.txt")].clone()).unwrap()
}

#[tokio::test]
async fn the_approver_sees_what_would_happen_and_lets_it() {
    let (env, approver) = (env(), Fixed::new(Decision::Approve));
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
    let rehearsal = write.rehearsal.as_ref().unwrap();
    assert!(rehearsal.changes[0].diff.contains("-two\n+2"), "{rehearsal:?}");
    assert_eq!(command.arguments, json!({"command": "make"}));
    assert_eq!(command.rehearsal, None, "a command is not tried out");
    assert_eq!(made(&env), 1);
}

#[tokio::test]
async fn a_denial_is_told_to_the_model_and_the_session_goes_on() {
    let rows = [
        (Some("not now".to_owned()), "The call of edit_file was denied: not now"),
        (None, "The call of edit_file was denied"),
    ];
    for (reason, expected) in rows {
        let (env, approver) = (env(), Fixed::new(Decision::Deny { reason }));
        let rounds = [calls(&[edit(), ("read_file", json!({"file_path": "a.txt"}))])];
        let session = session(&env, &rounds, |builder| builder.approver(approver));
        let outcome = session.submit("go").await.unwrap();
        assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "done"));
        assert_eq!(results(&session), [expected, "1 | one\n2 | two"]);
        assert_eq!(content(&env), "one\ntwo\n");
        assert_eq!(session.state(), SessionState::Idle);
    }
}

async fn denies_as_broken(approver: impl Approver + 'static) {
    let env = env();
    let session = session(&env, &[calls(&[shell()])], |builder| builder.approver(approver));
    let run = session.submit("go");
    assert_eq!(timeout(SOON, run.outcome()).await.unwrap().unwrap().status, OutcomeStatus::Completed);
    assert_eq!(results(&session), ["The call of shell was denied: the approver is broken"]);
    assert_eq!(made(&env), 0);
}

#[tokio::test]
async fn an_approver_that_panics_denies() {
    denies_as_broken(Panics).await;
    denies_as_broken(PanicsAtOnce).await;
}

#[derive(Clone, Copy)]
enum Stop {
    Abort,
    Interrupt,
}

#[tokio::test]
async fn stopping_ends_at_once_while_an_approver_waits() {
    for (stop, status) in
        [(Stop::Abort, OutcomeStatus::Aborted), (Stop::Interrupt, OutcomeStatus::Interrupted)]
    {
        let (env, approver) = (env(), Silent::default());
        let session = session(&env, &[calls(&[shell()])], |builder| builder.approver(approver.clone()));
        let run = session.submit("go");
        timeout(SOON, approver.asked.notified()).await.unwrap();
        match stop {
            Stop::Abort => session.handle().abort().unwrap(),
            Stop::Interrupt => session.handle().interrupt().unwrap(),
        }
        assert_eq!(timeout(SOON, run.outcome()).await.unwrap().unwrap().status, status);
        timeout(SOON, approver.dropped.notified()).await.expect("its future is dropped");
        assert!(session.handle().approvals().is_empty());
        assert!(session.handle().decide("call_0", Decision::Approve).is_err(), "it comes too late");
        assert_eq!(made(&env), 0);
    }
}

#[tokio::test]
async fn the_host_may_be_faster_and_a_decision_counts_once() {
    let (env, approver) = (env(), Silent::default());
    let session = session(&env, &[calls(&[shell()])], |builder| builder.approver(approver.clone()));
    let handle = session.handle();
    let run = session.submit("go");
    timeout(SOON, approver.asked.notified()).await.unwrap();
    let waiting = handle.approvals();
    let [request] = waiting.as_slice() else { panic!("{waiting:?}") };
    let other = Fingerprint::of(b"another call");
    let refused = handle.decide_exactly(&request.call_id, other, Decision::Approve);
    assert!(matches!(refused, Err(SessionError::NoSuchApproval(_))));
    handle.decide_exactly(&request.call_id, request.fingerprint, Decision::Approve).unwrap();
    // A second one may still be sent, and changes nothing.
    let _too_late = handle.decide(&request.call_id, Decision::Deny { reason: None });
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    timeout(SOON, approver.dropped.notified()).await.expect("it is not asked any more");
    assert_eq!(made(&env), 1);
    let again = handle.decide(&request.call_id, Decision::Approve);
    assert!(matches!(again, Err(SessionError::NoSuchApproval(_))));
}

#[tokio::test]
async fn the_event_says_what_exactly_would_run() {
    let env = env();
    let rounds = [calls(&[("shell", json!({"cmd": "make"}))])];
    let session = session(&env, &rounds, |builder| builder);
    let mut run = session.submit("go");
    while let Some(event) = run.next().await {
        if let EventKind::ApprovalRequested { call_id, arguments, fingerprint, .. } = event.kind {
            assert_eq!(arguments, json!({"command": "make"}), "as it was mended");
            session.handle().decide_exactly(&call_id, fingerprint, Decision::Approve).unwrap();
        }
    }
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(made(&env), 1);
}

#[tokio::test]
async fn one_approval_is_for_one_call() {
    let (env, approver) = (env(), Fixed::new(Decision::Approve));
    let rounds = [calls(&[shell()]), calls(&[shell(), shell()])];
    let session = session(&env, &rounds, |builder| builder.approver(approver.clone()));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    let asked = approver.asked();
    assert_eq!((asked.len(), made(&env)), (3, 3), "the same command is asked about each time");
    let mut fingerprints: Vec<String> =
        asked.iter().map(|asked| format!("{:?}", asked.fingerprint)).collect();
    fingerprints.sort();
    fingerprints.dedup();
    assert_eq!(fingerprints.len(), 3, "and no decision fits another call");
}

#[tokio::test]
async fn a_call_is_judged_again_after_its_approval() {
    /// Changes the file that it is asked about before it agrees.
    #[derive(Debug)]
    struct Meddles(Arc<MemoryEnvironment>);

    #[async_trait]
    impl Approver for Meddles {
        async fn decide(&self, _request: &ApprovalRequest) -> Decision {
            self.0.write_file(Path::new("a.txt"), "mine\ntwo\n").await.unwrap();
            Decision::Approve
        }
    }

    let env = env();
    let rounds = [calls(&[("read_file", json!({"file_path": "a.txt"}))]), calls(&[edit()])];
    let shared = Arc::clone(&env);
    let session = session(&env, &rounds, move |builder| {
        builder.gate(ReadBeforeWrite::new(shared.clone())).approver(Meddles(shared))
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
async fn a_question_that_comes_up_right_before_a_call_refuses_it() {
    /// Has nothing against a call at first.
    #[derive(Debug, Default)]
    struct AsksLate(AtomicUsize);

    #[async_trait]
    impl Gate for AsksLate {
        async fn check(&self, _call: &PreparedCall) -> Verdict {
            match self.0.fetch_add(1, Ordering::SeqCst) {
                0 => Verdict::Allow,
                _ => Verdict::Ask { reason: "the moon is full".to_owned() },
            }
        }
    }

    let (env, approver) = (env(), Fixed::new(Decision::Approve));
    let rounds = [calls(&[("read_file", json!({"file_path": "a.txt"}))]), calls(&[shell()])];
    let session =
        session(&env, &rounds, |builder| builder.gate(AsksLate::default()).approver(approver.clone()));
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    let refused = "The call of read_file was denied: the moon is full, which was not so when it was prepared; \
                   make it again to have it decided";
    assert_eq!(results(&session)[0], refused);
    assert_eq!((approver.asked().len(), made(&env)), (1, 1), "what was approved is not asked about again");
}

#[tokio::test]
async fn a_later_gate_denies_what_an_earlier_one_asks_about() {
    let (env, approver) = (env(), Fixed::new(Decision::Approve));
    let rounds = [calls(&[("write_file", json!({"file_path": "/etc/x", "content": ""}))])];
    let roots = PathGate::new(env.clone());
    let session = session(&env, &rounds, |builder| builder.gate(roots).approver(approver.clone()));
    session.submit("go").await.unwrap();
    assert_eq!(results(&session), ["The call of write_file was denied: /etc/x is outside of /p"]);
    assert!(approver.asked().is_empty(), "nobody is asked in vain");
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_takes_too_long_denies() {
    let (env, approver) = (env(), Silent::default());
    let limits = TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() };
    let session = session(&env, &[calls(&[shell()])], |builder| {
        builder.approver(approver.clone()).config(SessionConfig::default().with_limits(limits))
    });
    assert_eq!(session.submit("go").await.unwrap().status, OutcomeStatus::Completed);
    assert_eq!(results(&session), ["The call of shell was denied: nobody decided in time"]);
    approver.dropped.notified().await;
}
