//! Stops after each poll of the driver: nothing keeps running, and the end is always reported.

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use super::*;
use crate::approval::ApprovalRequest;

/// A child that ignores TERM is killed after two seconds (appendix B); everything else ends at once.
const AT_MOST: Duration = Duration::from_secs(3);

/// More polls than any of these turns takes.
const ENOUGH: usize = 500;

/// Way of stopping a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Abort,
    Close,
    Interrupt,
    DropRun,
    DropSession,
}

/// Future that polls a driver and notifies after a number of polls.
struct CountedDriver<F> {
    driver: Pin<Box<F>>,
    left: usize,
    reached: Arc<Notify>,
    polled: Arc<AtomicUsize>,
}

impl<F: Future> Future for CountedDriver<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let polled = self.driver.as_mut().poll(cx);
        self.polled.fetch_add(1, Ordering::Relaxed);
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.reached.notify_one();
        }
        polled
    }
}

/// Gate that asks about every command, and approver that agrees.
#[derive(Debug)]
struct AskAndApprove;

#[async_trait]
impl Gate for AskAndApprove {
    async fn check(&self, call: &PreparedCall) -> Verdict {
        match call.name() {
            "shell" => Verdict::ask("it runs a command"),
            _ => Verdict::ALLOW,
        }
    }
}

#[async_trait]
impl Approver for AskAndApprove {
    async fn decide(&self, _request: &ApprovalRequest) -> Decision {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Decision::Approve
    }
}

/// A turn with most features: a response that breaks off, reasoning, concurrent calls, one that needs approval, slow
/// commands, and one that stays in the background and ignores TERM.
fn varied_turn() -> FakeAdapter {
    let calls = calling(&[
        ("read_file", json!({"file_path": "/project/a.txt"})),
        ("shell", json!({"command": "slow"})),
        ("write_file", json!({"file_path": "/project/b.txt", "content": "b"})),
        ("shell_start", json!({"command": "stubborn"})),
    ]);
    let stubborn = calling(&[("shell", json!({"command": "stubborn", "timeout_ms": 50}))]);
    let adapter = anthropic().cut("half an ans", Error::new(ErrorKind::Stream, "cut"));
    adapter.message(calls).message(stubborn).answer("done").answer("done").answer("done").answer("done")
}

fn environment() -> MemoryEnvironment {
    env().with_file("/project/a.txt", "a\n").with_commands(|command| match &command.program {
        pintle_env::Program::Shell(line) if line.starts_with("stubborn") => {
            CommandScript::exit(0).stdout("begun\n").hang().ignoring_terminate()
        }
        pintle_env::Program::Shell(_) | pintle_env::Program::Argv { .. } => {
            CommandScript::exit(0).stdout("one\n").pause(Duration::from_millis(20)).stdout("two\n")
        }
    })
}

struct Harness {
    session: Session,
    adapter: Arc<FakeAdapter>,
    env: Arc<MemoryEnvironment>,
    reached: Arc<Notify>,
    polled: Arc<AtomicUsize>,
}

/// A session that notifies when its driver has been polled `polls` times.
fn harness(polls: usize) -> Harness {
    let (adapter, env) = (Arc::new(varied_turn()), Arc::new(environment()));
    let shared = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
    let client = Client::builder().shared_provider(shared).build().unwrap();
    let profile = ProviderProfile::anthropic("claude-opus-4-6");
    let profile = profile.with_tool(pintle_tools::builtin::ShellStart::new()).unwrap();
    let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
    let builder = Session::builder(client, profile, Arc::clone(&env) as Arc<dyn ExecutionEnvironment>)
        .with_config(SessionConfig::default().with_retry(quick))
        .gate(AskAndApprove)
        .approver(AskAndApprove);
    let (mut session, driver, commands) = builder.assemble().unwrap();
    let (reached, polled) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    session.driver.spawn(CountedDriver {
        driver: Box::pin(Box::new(driver).run(commands)),
        left: polls,
        reached: Arc::clone(&reached),
        polled: Arc::clone(&polled),
    });
    Harness { session, adapter, env, reached, polled }
}

async fn drain(run: &mut Run) {
    while run.next().await.is_some() {}
}

/// Runs the turn and stops it after `polls` polls of the driver. Returns whether there were so many.
async fn stopped_after(polls: usize, how: Stop) -> bool {
    let Harness { session, adapter, env, reached, polled } = harness(polls);
    let mut events = session.events();
    let mut run = Some(session.submit("go"));
    let early = tokio::select! {
        biased;
        () = reached.notified() => true,
        () = drain(run.as_mut().unwrap()) => false,
    };
    let began = Instant::now();
    let mut session = Some(session);
    match how {
        Stop::Abort => session.as_ref().unwrap().handle().close().unwrap(),
        Stop::Close => session.take().unwrap().close().await,
        Stop::Interrupt => session.as_ref().unwrap().handle().stop_turn().unwrap(),
        Stop::DropRun => drop(run.take()),
        Stop::DropSession => drop(session.take()),
    }
    if matches!(how, Stop::Interrupt | Stop::DropRun) {
        let session = session.as_ref().unwrap();
        assert_usable(session, &adapter, polls, how).await;
        session.handle().close().unwrap();
    }
    let mut seen = Vec::new();
    while let Some(event) = timeout(AT_MOST * 10, events.next()).await.expect("the events end") {
        seen.push(event);
    }
    if !matches!(how, Stop::Interrupt | Stop::DropRun) {
        assert!(began.elapsed() < AT_MOST, "{how:?} after {polls}: it took {:?}", began.elapsed());
    }
    assert_eq!(env.running(), 0, "{how:?} after {polls}: a command runs on");
    assert_in_order(&seen, how != Stop::DropSession, &format!("{how:?} after {polls}"));
    drop((session, run, events));
    assert_all_ended(&env, &adapter, &format!("{how:?} after {polls}")).await;
    early && polled.load(Ordering::Relaxed) >= polls
}

/// Checks that the session accepts another input and sends a well-formed request.
async fn assert_usable(session: &Session, adapter: &FakeAdapter, polls: usize, how: Stop) {
    let outcome = timeout(AT_MOST * 10, session.submit("again")).await.expect("it ends").unwrap();
    assert_eq!(outcome.status, OutcomeStatus::Completed, "{how:?} after {polls}: {:?}", outcome.error);
    for request in adapter.requests() {
        let mut open = BTreeSet::new();
        for item in &request.messages {
            let results: Vec<String> = item.results().map(|result| result.tool_call_id.clone()).collect();
            assert_eq!(results.iter().cloned().collect::<BTreeSet<_>>(), open, "{how:?} after {polls}");
            assert_eq!(results.len(), open.len(), "{how:?} after {polls}: a call has two results");
            open = item.tool_calls().map(|call| call.id.clone()).collect();
        }
        assert!(open.is_empty(), "{how:?} after {polls}: a call has no result");
    }
}

/// Checks that events are gapless, that starts and ends pair, and that the end is the last event, if there is one.
fn assert_in_order(events: &[SessionEvent], ended: bool, when: &str) {
    let numbers: Vec<u64> =
        events.iter().filter(|event| event.offset.is_none()).map(|event| event.seq).collect();
    assert!(numbers.iter().copied().eq(0..numbers.len() as u64), "{when}: {numbers:?}");
    if !ended {
        return;
    }
    assert_eq!(events.last().map(kind).as_deref(), Some("SESSION_END"), "{when}");
    let kinds: Vec<String> = events.iter().map(kind).collect();
    let count = |wanted: &str| kinds.iter().filter(|kind| *kind == wanted).count();
    for segment in ["ASSISTANT_TEXT", "TOOL_CALL"] {
        let (starts, ends) = (count(&format!("{segment}_START")), count(&format!("{segment}_END")));
        assert_eq!(starts, ends, "{when}: {segment} in {kinds:?}");
    }
}

/// Checks that no task is left and that the parts of the session are released.
async fn assert_all_ended(env: &Arc<MemoryEnvironment>, adapter: &Arc<FakeAdapter>, when: &str) {
    // Aborted tasks end with the next turn of the runtime.
    for _ in 0..100 {
        if Handle::current().metrics().num_alive_tasks() == 0 {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "{when}: a task is left");
    assert_eq!((Arc::strong_count(env), Arc::strong_count(adapter)), (1, 1), "{when}: something is held");
}

async fn stops_after_each_poll(how: Stop) {
    let mut polls = 1;
    while stopped_after(polls, how).await {
        polls += 1;
        assert!(polls < ENOUGH, "the turn has no end");
    }
    assert!(polls > 10, "{how:?}: the turn has but {polls} polls");
}

#[tokio::test(start_paused = true)]
async fn abort_after_each_poll_ends_everything() {
    stops_after_each_poll(Stop::Abort).await;
}

#[tokio::test(start_paused = true)]
async fn close_after_each_poll_ends_everything() {
    stops_after_each_poll(Stop::Close).await;
}

#[tokio::test(start_paused = true)]
async fn interrupt_after_each_poll_keeps_the_session() {
    stops_after_each_poll(Stop::Interrupt).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_after_each_poll_keeps_the_session() {
    stops_after_each_poll(Stop::DropRun).await;
}

#[tokio::test(start_paused = true)]
async fn dropping_the_session_after_each_poll_ends_everything() {
    stops_after_each_poll(Stop::DropSession).await;
}
