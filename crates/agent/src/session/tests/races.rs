//! Simultaneous events: whichever is handled first, the result is as intended.

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::time::Duration;

use async_trait::async_trait;
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::*;
use crate::clock::Clock;
use crate::protocol::{Limits, Timestamp};

/// Number of repetitions. The order of two runs in a hash map is random each time.
const OFTEN: usize = 16;

/// Tool that writes until it is released. When it is stopped, it takes this long to end.
#[derive(Clone)]
struct Waits {
    go: Arc<Notify>,
    stops_after: Duration,
}

impl Waits {
    fn stopping_after(stops_after: Duration) -> Self {
        Self { go: Arc::default(), stops_after }
    }
}

impl Tool for Waits {
    type Input = Map<String, Value>;

    fn name(&self) -> &str {
        "waits"
    }

    fn description(&self) -> &str {
        "Waits."
    }

    fn effect(&self) -> Effect {
        Effect::Write
    }

    async fn call(&self, _input: Map<String, Value>, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            () = self.go.notified() => Ok(ToolOutput::new("let go")),
            () = cx.cancel.cancelled() => {
                sleep(self.stops_after).await;
                Ok(ToolOutput::new("brought to its end"))
            }
        }
    }
}

fn waiting_harness(adapter: FakeAdapter, tool: Waits, limits: TurnLimits) -> Harness {
    let tools = move |builder: SessionBuilder| {
        builder.gate(AskForCommands).with_config(SessionConfig::default().with_limits(limits))
    };
    let harness = harness_with(adapter, env_with_sleep(), tools);
    let profile = ProviderProfile::anthropic("claude-opus-4-6").with_tool(tool).unwrap();
    harness.session.handle().set_profile(profile).unwrap();
    harness
}

fn results(session: &Session) -> Vec<String> {
    session.history().iter().flat_map(|turn| turn.item.results()).map(|result| result.text()).collect()
}

/// Lets the driver handle everything that is queued.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn decision_beats_a_timer_that_fires_at_once() {
    let limits = TurnLimits { approval_timeout: Some(Duration::from_secs(60)), ..TurnLimits::default() };
    let calls = calling(&[("waits", json!({})), ("shell", json!({"command": "true"}))]);
    let tool = Waits::stopping_after(Duration::ZERO);
    let harness = waiting_harness(anthropic().message(calls).answer("done"), tool.clone(), limits);
    let mut run = harness.session.submit("go");
    let call_id = asked(&mut run).await;
    sleep(Duration::from_secs(60)).await;
    harness.session.handle().decide(&call_id, Decision::Approve).unwrap();
    // The command is approved and waits for the other call.
    settle().await;
    tool.go.notify_one();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Completed);
    let results = results(&harness.session);
    assert_eq!(results[0], "let go");
    assert!(!results[1].contains("Interrupted"), "{results:?}");
}

#[tokio::test(start_paused = true)]
async fn changed_wall_time_beats_a_fired_timer() {
    let command = json!({"command": "sleep 1000", "timeout_ms": 100_000});
    for (seconds, expected) in [(300, OutcomeStatus::Completed), (30, OutcomeStatus::Budget)] {
        let timed = |seconds| {
            let budget = Limits::default().with_wall_time(Duration::from_secs(seconds));
            SessionConfig::default().with_budget(budget)
        };
        let adapter = anthropic().message(calling(&[("shell", command.clone())])).answer("done");
        let harness = harness_with(adapter, env_with_sleep(), |builder| builder.with_config(timed(60)));
        let mut run = harness.session.submit("go");
        until(&mut run, "USER_INPUT").await;
        sleep(Duration::from_secs(60)).await;
        harness.session.handle().set_limits(timed(seconds).limits).unwrap();
        assert_eq!(run.await.unwrap().status, expected, "{seconds} s more");
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_an_interrupted_run_keeps_the_waiting_one() {
    for _ in 0..OFTEN {
        let adapter = anthropic().message(calling(&[("waits", json!({}))])).answer("next done");
        let tool = Waits::stopping_after(Duration::from_millis(100));
        let harness = waiting_harness(adapter, tool, TurnLimits::default());
        let mut first = harness.session.submit("go");
        until(&mut first, "TOOL_CALL_START").await;
        harness.session.handle().stop_turn().unwrap();
        let second = harness.session.submit("next");
        settle().await;
        drop(first);
        let outcome = second.await.unwrap();
        assert_eq!((outcome.status, outcome.text.as_str()), (OutcomeStatus::Completed, "next done"));
    }
}

#[tokio::test(start_paused = true)]
async fn dropped_waiting_run_never_starts() {
    for round in 0..OFTEN {
        let adapter = anthropic().message(calling(&[("waits", json!({}))])).answer("done");
        let tool = Waits::stopping_after(Duration::from_millis(100));
        let harness = waiting_harness(adapter, tool, TurnLimits::default());
        let mut first = harness.session.submit("go");
        until(&mut first, "TOOL_CALL_START").await;
        harness.session.handle().stop_turn().unwrap();
        let second = harness.session.submit("never mind");
        settle().await;
        drop(second);
        if round % 2 == 0 {
            first.detach();
        } else {
            assert_eq!(first.await.unwrap().status, OutcomeStatus::Interrupted);
        }
        sleep(Duration::from_secs(1)).await;
        let inputs = harness.session.history().iter().filter(|turn| turn.kind == TurnKind::User).count();
        assert_eq!((inputs, harness.adapter.requests().len()), (1, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn call_that_ends_with_its_grace_period_has_ended() {
    for _ in 0..OFTEN {
        let adapter = anthropic().message(calling(&[("waits", json!({}))]));
        let tool = Waits::stopping_after(Duration::from_millis(500));
        let harness = waiting_harness(adapter, tool, TurnLimits::default());
        let mut run = harness.session.submit("go");
        until(&mut run, "TOOL_CALL_START").await;
        settle().await;
        harness.session.handle().stop_turn().unwrap();
        run.await.unwrap();
        assert_eq!(results(&harness.session), ["brought to its end"]);
    }
}

#[tokio::test(start_paused = true)]
async fn run_has_only_its_own_events() {
    let adapter = anthropic().message(calling(&[("waits", json!({}))])).answer("next done");
    let tool = Waits::stopping_after(Duration::from_millis(100));
    let harness = waiting_harness(adapter, tool, TurnLimits::default());
    let handle = harness.session.handle();
    let mut first = harness.session.submit("go");
    until(&mut first, "TOOL_CALL_START").await;
    // An empty message causes a warning.
    assert!(matches!(handle.steer("").await, Err(SessionError::Refused(_))));
    assert!(all(harness.session.submit("me too")).await.is_empty(), "it was refused");
    handle.stop_turn().unwrap();
    let second = harness.session.submit("next");
    assert!(all(harness.session.submit("and me")).await.is_empty(), "one waits already");
    let second = all(second).await;
    let kinds: Vec<String> = second.iter().map(kind).collect();
    assert_eq!((kinds[0].as_str(), kinds[1].as_str()), ("USER_INPUT", "REQUEST_PREPARED"), "{kinds:?}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "PROCESSING_END").count(), 1, "{kinds:?}");
    let rest: Vec<String> = all(first).await.iter().map(kind).collect();
    assert_eq!(rest.last().map(String::as_str), Some("PROCESSING_END"));
}

#[tokio::test(start_paused = true)]
async fn waiting_for_the_outcome_keeps_no_events() {
    let adapter = anthropic().message(calling(&[("waits", json!({}))])).answer("done");
    let tool = Waits::stopping_after(Duration::ZERO);
    let harness = waiting_harness(adapter, tool.clone(), TurnLimits::default());
    let mut waiting = JoinSet::new();
    waiting.spawn(harness.session.submit("go").outcome());
    let mut events = harness.session.events();
    let start = loop {
        let event = events.next().await.unwrap();
        if kind(&event) == "TOOL_CALL_START" {
            break event.seq;
        }
    };
    drop(events);
    assert_eq!(harness.session.forget_events(u64::MAX), start, "only open segments are kept");
}

/// Clock that goes back by a second each time.
#[derive(Debug)]
struct Backwards(AtomicI64);

impl Clock for Backwards {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.fetch_sub(1_000, Ordering::Relaxed))
    }
}

#[tokio::test]
async fn event_times_never_go_back() {
    let adapter = anthropic().message(hanging());
    let backwards = |from| Arc::new(Backwards(AtomicI64::new(from)));
    let first = harness_with(adapter, env_with_sleep(), |builder| {
        builder.with_clock(backwards(1_790_000_000_000)).record(true)
    });
    let mut run = first.session.submit("go");
    until(&mut run, "TOOL_CALL_START").await;
    let record = first.session.record().unwrap();
    drop(first);
    // Another process resumes, whose clock is an hour behind.
    let second = harness_with(anthropic().answer("done"), env_with_sleep(), |builder| {
        builder.with_clock(backwards(1_789_996_400_000)).resume(record)
    });
    let mut session = second.session;
    assert_eq!(session.resumed().unwrap().await.unwrap().status, OutcomeStatus::Completed);
    let mut events = session.events();
    session.close().await;
    let mut times = Vec::new();
    while let Some(event) = events.next().await {
        times.push(event.timestamp);
    }
    assert!(times.is_sorted(), "{times:?}");
}

/// Gate that waits for a person who never answers, and records whether anybody still waits for it.
#[derive(Clone, Debug, Default)]
struct Asks {
    is_asking: Arc<AtomicBool>,
}

struct Asking(Arc<AtomicBool>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

#[async_trait]
impl Gate for Asks {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        self.is_asking.store(true, Ordering::Relaxed);
        let _asking = Asking(Arc::clone(&self.is_asking));
        std::future::pending().await
    }
}

#[tokio::test]
async fn interrupt_stops_the_preparation_of_calls() {
    let gate = Asks::default();
    let is_asking = Arc::clone(&gate.is_asking);
    let adapter = anthropic().message(calling(&[("shell", json!({"command": "true"}))]));
    let harness = harness_with(adapter, env_with_sleep(), |builder| builder.gate(gate));
    let run = harness.session.submit("go");
    while !is_asking.load(Ordering::Relaxed) {
        tokio::task::yield_now().await;
    }
    harness.session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    settle().await;
    assert!(!is_asking.load(Ordering::Relaxed), "the gate still asks about a call that will not run");
}

#[tokio::test(start_paused = true)]
async fn simultaneous_commands_keep_the_session_usable() {
    let mut seen = Vec::new();
    for order in 0..4 {
        let adapter = anthropic().message(calling(&[("waits", json!({}))])).answer("one").answer("two");
        let tool = Waits::stopping_after(Duration::from_millis(500));
        let harness = waiting_harness(adapter, tool.clone(), TurnLimits::default());
        let handle = harness.session.handle();
        let mut run = harness.session.submit("go");
        until(&mut run, "TOOL_CALL_START").await;
        if order % 2 == 0 {
            tool.go.notify_one();
            handle.stop_turn().unwrap();
        } else {
            handle.stop_turn().unwrap();
            tool.go.notify_one();
        }
        if order < 2 {
            drop(run);
        } else {
            seen.push(run.await.unwrap().status);
        }
        let outcome = harness.session.submit("again").await.unwrap();
        assert_eq!(outcome.status, OutcomeStatus::Completed);
        assert_eq!(results(&harness.session).len(), 1, "the call has one result");
    }
    assert_eq!(seen, [OutcomeStatus::Interrupted; 2]);
}

#[tokio::test]
async fn interrupt_stops_the_load_of_the_context() {
    let place = env().with_file("/project/.git/HEAD", "ref: refs/heads/main\n");
    let place = place.with_commands(|_| CommandScript::exit(0).hang());
    let harness = harness(anthropic().answer("done"), place);
    let run = harness.session.submit("go");
    settle().await;
    assert_eq!(harness.env.running(), 1, "git is running");
    harness.session.handle().stop_turn().unwrap();
    assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
    settle().await;
    assert_eq!(harness.env.running(), 0, "nothing waits for it");
}

/// Gate whose second check of a call, just before it runs, waits until it is notified.
#[derive(Clone, Debug, Default)]
struct SlowSecondCheck {
    checks: Arc<AtomicI64>,
    go: Arc<Notify>,
}

#[async_trait]
impl Gate for SlowSecondCheck {
    async fn check(&self, _call: &PreparedCall) -> Verdict {
        if self.checks.fetch_add(1, Ordering::Relaxed) > 0 {
            self.go.notified().await;
        }
        Verdict::ALLOW
    }
}

/// Whether or not the gate ends in time, the model learns that the call had no effect.
#[tokio::test(start_paused = true)]
async fn call_stopped_before_its_effect_has_none() {
    for gate_ends in [true, false] {
        let gate = SlowSecondCheck::default();
        let observed = gate.clone();
        let write = calling(&[("write_file", json!({"file_path": "/project/a", "content": "x"}))]);
        let harness = harness_with(anthropic().message(write), env(), |builder| builder.gate(gate));
        let mut run = harness.session.submit("go");
        until(&mut run, "TOOL_CALL_START").await;
        settle().await;
        assert_eq!(observed.checks.load(Ordering::Relaxed), 2, "it is checked again");
        harness.session.handle().stop_turn().unwrap();
        settle().await;
        if gate_ends {
            observed.go.notify_one();
        }
        assert_eq!(run.await.unwrap().status, OutcomeStatus::Interrupted);
        assert!(harness.env.files().is_empty(), "nothing starts after the stop");
        assert_eq!(results(&harness.session), ["Not run: the turn was stopped before this call started."]);
    }
}

/// A message that is said soonest is heard once, whatever happens meanwhile.
#[tokio::test(start_paused = true)]
async fn what_is_said_at_any_moment_is_heard_once() {
    for delay in 0..OFTEN as u64 {
        let adapter = anthropic().message(calling(&[("waits", json!({}))])).answer("done").answer("heard");
        let tool = Waits::stopping_after(Duration::from_millis(3));
        let go = Arc::clone(&tool.go);
        let harness = waiting_harness(adapter, tool, TurnLimits::default());
        let handle = harness.session.handle();
        let mut other = JoinSet::new();
        other.spawn(async move {
            sleep(Duration::from_millis(OFTEN as u64 / 2)).await;
            go.notify_one();
        });
        let mut events = harness.session.events();
        handle.say("go").await.unwrap();
        sleep(Duration::from_millis(delay)).await;
        if delay % 3 == 0 {
            handle.stop_turn().unwrap();
        }
        handle.say("and this").await.unwrap();
        sleep(Duration::from_secs(1)).await;
        let said: Vec<String> = harness
            .session
            .history()
            .iter()
            .filter(|turn| matches!(turn.kind, TurnKind::User | TurnKind::Steering))
            .map(|turn| turn.item.text())
            .collect();
        assert_eq!(said, ["go", "and this"], "after {delay} ms");
        assert!(handle.queued().is_empty());
        drop(harness);
        while events.next().await.is_some() {}
    }
}

#[tokio::test]
async fn nothing_said_is_refused() {
    let harness = harness(anthropic(), env());
    assert!(matches!(harness.session.handle().say(" ").await, Err(SessionError::Refused(_))));
    assert_eq!(harness.adapter.requests().len(), 0);
}
