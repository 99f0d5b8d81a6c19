//! Stopping at any step of a turn over real HTTP, with real files and processes, leaves nothing behind.
//!
//! Steps are counted by the clock, which the driver reads before each input of its machine and for each delta. The unit
//! tests of the session do the same after each poll of the driver, with a fake model and a paused clock.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pintle_agent::{Clock, EventKind, Events, OutcomeStatus, Session, SessionConfig, SystemClock, Timestamp};
use pintle_env::{ExecutionEnvironment, LocalEnvironment};
use pintle_llm::RetryPolicy;
use pintle_testkit::{Dialect, Script, ScriptedServer, ServerOptions};
use tempfile::TempDir;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::events::EventOrder;
use crate::harness::{KEY, client, profile};

/// Two seconds for a child that ignores TERM, plus time for a machine that is busy with other tests.
const STUBBORN: Duration = Duration::from_secs(10);

/// Long enough for anything that happens at all.
const SOON: Duration = Duration::from_secs(60);

/// Ways to stop a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Abort,
    Close,
    Interrupt,
    DropRun,
    DropSession,
}

impl Stop {
    const ALL: [Self; 5] = [Self::Abort, Self::Close, Self::Interrupt, Self::DropRun, Self::DropSession];

    fn keeps_the_session(self) -> bool {
        matches!(self, Self::Interrupt | Self::DropRun)
    }
}

/// A clock that signals after a number of readings.
#[derive(Debug)]
struct StepClock {
    left: AtomicUsize,
    reached: Notify,
}

impl StepClock {
    fn new(steps: usize) -> Arc<Self> {
        Arc::new(Self { left: AtomicUsize::new(steps), reached: Notify::new() })
    }
}

impl Clock for StepClock {
    fn now(&self) -> Timestamp {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.reached.notify_one();
        }
        SystemClock.now()
    }
}

/// A response with everything in it, commands that leave background jobs, a provider failure, and more responses.
const TURNS: &str = r#"
    name = "eventful"
    [[turn]]
    reasoning = "I look."
    text = "Both."
    [[turn.call]]
    tool = "shell"
    arguments = { command = "sleep 600 & (setsid sleep 600 &); echo one; sleep 0.02; echo two" }
    [[turn.call]]
    tool = "write_file"
    arguments = { file_path = "b.txt", content = "b\n" }
    [[turn.call]]
    tool = "read_file"
    arguments = { file_path = "a.txt" }
    [[turn]]
    text = "Done."
    [[turn.failure]]
    status = 503
    [[turn.failure]]
    cut_after_events = 3
    [[turn]]
    text = "More."
    [[turn]]
    text = "Yet more."
    "#;

const STUBBORN_TURN: &str = r#"
    name = "stubborn"
    [[turn]]
    [[turn.call]]
    tool = "shell"
    arguments = { command = "trap '' TERM; touch begun; while :; do sleep 1; done", timeout_ms = 600000 }
    [[turn]]
    text = "Going on."
    "#;

struct ShutdownHarness {
    dialect: Dialect,
    server: ScriptedServer,
    directory: TempDir,
    env: Arc<LocalEnvironment>,
    session: Option<Session>,
    events: Events,
}

impl ShutdownHarness {
    async fn new(dialect: Dialect, script: &str, clock: Arc<dyn Clock>) -> Self {
        let script = Script::parse(script).expect("the script parses");
        let server = ScriptedServer::start(script, ServerOptions::new().with_api_key(KEY)).await.unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.txt"), "a\n").unwrap();
        let env = Arc::new(LocalEnvironment::with_host_env(directory.path(), std::env::vars_os()).unwrap());
        let place = Arc::clone(&env) as Arc<dyn ExecutionEnvironment>;
        let quick = RetryPolicy::default().with_base_delay(Duration::from_millis(1));
        let session = Session::builder(client(&server, dialect, KEY), profile(dialect), place)
            .with_config(SessionConfig::default().with_retry(quick))
            .with_clock(clock)
            .build()
            .unwrap();
        let events = session.events();
        Self { dialect, server, directory, env, session: Some(session), events }
    }

    fn session(&self) -> &Session {
        self.session.as_ref().expect("it is not yet closed")
    }

    /// Stops the turn, and waits for the end if that is possible.
    async fn stop(&mut self, how: Stop, run: &mut Option<pintle_agent::Run>) {
        match how {
            Stop::Abort => self.session().handle().close().unwrap(),
            Stop::Close => self.session.take().expect("it is open").close().await,
            Stop::Interrupt => self.session().handle().stop_turn().unwrap(),
            Stop::DropRun => drop(run.take()),
            Stop::DropSession => drop(self.session.take()),
        }
        if how.keeps_the_session() {
            let outcome = timeout(SOON, self.session().submit("Go on")).await.expect("it ends").unwrap();
            assert_eq!(outcome.status, OutcomeStatus::Completed, "{how:?}: {:?}", outcome.error);
            self.session().handle().close().unwrap();
        }
    }

    /// Checks that nothing is left, and that every subscriber saw the end.
    async fn assert_nothing_left(mut self, how: Stop, when: &str) {
        let mut order = EventOrder::default();
        let mut last = None;
        while let Some(event) = timeout(SOON, self.events.next()).await.expect("the events end") {
            order.take(&event);
            last = Some(event.kind);
        }
        if how != Stop::DropSession {
            assert!(matches!(last, Some(EventKind::SessionEnd { .. })), "{when}: {last:?}");
            assert_eq!(processes_in(self.directory.path()), [0_u32; 0], "{when}: a process is left");
            assert_eq!(unexpected_files_in(self.directory.path()), [""; 0], "{when}: a file is left");
        }
        drop((self.session.take(), self.events));
        // A dropped session cannot wait: threads of the environment terminate its commands and discard partial writes.
        until(|| processes_in(self.directory.path()).is_empty(), &format!("{when}: a process is left")).await;
        until(|| unexpected_files_in(self.directory.path()).is_empty(), &format!("{when}: a file is left"))
            .await;
        until(|| Arc::strong_count(&self.env) == 1, &format!("{when}: a task is left")).await;
        for request in self.server.requests() {
            assert_eq!(request.violations, [], "{when}, {:?}: {}", self.dialect, request.body);
        }
        self.server.shutdown().await;
    }
}

/// Returns files that no call should have created.
fn unexpected_files_in(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| !["a.txt", "b.txt", "begun"].contains(&name.as_str())).collect()
}

/// Returns the processes whose working directory is in `directory`.
fn processes_in(directory: &Path) -> Vec<u32> {
    let directory = directory.canonicalize().unwrap();
    let pid = |entry: std::fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let works_there =
        |pid: &u32| std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd == directory);
    std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(pid).filter(works_there).collect()
}

async fn until(is_so: impl Fn() -> bool, otherwise: &str) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < STUBBORN, "{otherwise}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn run_to_end(run: &mut pintle_agent::Run) {
    while run.next().await.is_some() {}
}

/// Stops after `steps` steps. Returns false if the turn had fewer.
async fn stopped_after(steps: usize, how: Stop) -> bool {
    let dialect = Dialect::ALL[steps % Dialect::ALL.len()];
    let clock = StepClock::new(steps);
    let mut harness = ShutdownHarness::new(dialect, TURNS, Arc::clone(&clock) as Arc<dyn Clock>).await;
    let mut run = Some(harness.session().submit("Go"));
    let early = tokio::select! {
        biased;
        () = clock.reached.notified() => true,
        () = run_to_end(run.as_mut().expect("it runs")) => false,
    };
    harness.stop(how, &mut run).await;
    harness.assert_nothing_left(how, &format!("{how:?} after step {steps} in {dialect}")).await;
    early
}

/// Tries every third step, since each try starts real processes; the five ways to stop start at different steps.
async fn stops_at_many_steps(how: Stop) {
    let mut steps = 1 + how as usize % 3;
    while stopped_after(steps, how).await {
        steps += 3;
        assert!(steps < 1_000, "the turn has no end");
    }
    assert!(steps > 20, "{how:?}: the turn has but {steps} steps");
}

#[tokio::test]
async fn abort_at_any_step_leaves_nothing_behind() {
    stops_at_many_steps(Stop::Abort).await;
}

#[tokio::test]
async fn close_at_any_step_leaves_nothing_behind() {
    stops_at_many_steps(Stop::Close).await;
}

#[tokio::test]
async fn interrupt_at_any_step_keeps_the_session_usable() {
    stops_at_many_steps(Stop::Interrupt).await;
}

#[tokio::test]
async fn dropping_the_run_at_any_step_keeps_the_session() {
    stops_at_many_steps(Stop::DropRun).await;
}

#[tokio::test]
async fn dropping_the_session_leaves_nothing_behind() {
    stops_at_many_steps(Stop::DropSession).await;
}

async fn ends_a_stubborn_child(dialect: Dialect, how: Stop) {
    let mut harness = ShutdownHarness::new(dialect, STUBBORN_TURN, Arc::new(SystemClock)).await;
    let mut run = Some(harness.session().submit("Go"));
    let begun = harness.directory.path().join("begun");
    until(|| begun.exists(), "the command never started").await;
    let start = Instant::now();
    harness.stop(how, &mut run).await;
    harness.assert_nothing_left(how, &format!("{how:?} in {dialect}")).await;
    assert!(start.elapsed() < STUBBORN, "{how:?} in {dialect}: it took {:?}", start.elapsed());
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_is_killed() {
    let stops = Stop::ALL.into_iter().zip(Dialect::ALL.into_iter().cycle());
    futures_util::future::join_all(stops.map(|(how, dialect)| ends_a_stubborn_child(dialect, how))).await;
}
