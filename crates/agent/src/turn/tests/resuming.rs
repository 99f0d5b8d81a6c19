//! Resumption after the driving process died.

use super::*;

/// A round whose only call is starting. [`running`] has started it.
fn starting(effect: Effect) -> Harness {
    let mut harness =
        Harness::with(TurnLimits { budget: Budget::default().with_tool_calls(1), ..TurnLimits::default() });
    harness.submit("go");
    harness.call(&["a"]);
    harness.prepared(0, effect, &[]);
    harness
}

fn running(effect: Effect) -> Harness {
    let mut harness = starting(effect);
    harness.tell(InputKind::ToolStarted { call: harness.key(0) });
    harness
}

fn resumed(harness: &Harness) -> (usize, usize) {
    let of = |event: &EventKind| match event {
        EventKind::SessionResumed { interrupted, repeated } => Some((interrupted.len(), repeated.len())),
        _ => None,
    };
    harness.events.iter().rev().find_map(of).expect("it was resumed")
}

const HOST_GONE: &str = "results a0:Interrupted: the program that ran this call ended";

#[test]
fn repeated_call_counts_once() {
    for (mut harness, repeated) in [(starting(Effect::Read), 0), (running(Effect::Read), 1)] {
        harness.tell(InputKind::Resumed);
        assert_eq!(resumed(&harness), (0, repeated));
        harness.wanted();
        harness.prepared(0, Effect::Read, &[]);
        assert_eq!(harness.wanted(), ["start 0"], "only this call may run");
        harness.finish(0, "ok");
        assert_eq!(harness.machine.spent().tool_calls, 1);
        assert_eq!(harness.sent()[2], "results a0:ok");
        let starts = harness.kinds().iter().filter(|kind| *kind == "TOOL_CALL_START").count();
        assert_eq!(starts, 1, "it does not start twice");
    }
}

/// It may have had its effect in the previous process, so it is not a call that has not run.
#[test]
fn abandoned_repeat_is_answered_as_interrupted() {
    type Stop = fn(&mut Harness);
    let cases: [(&str, Stop); 3] = [
        ("before it is prepared", |harness| harness.tell(InputKind::Interrupt)),
        ("while somebody decides", |harness| {
            harness.asks(0);
            harness.tell(InputKind::Interrupt);
        }),
        ("at a limit", |harness| {
            let budget = Budget::default().with_tokens(1);
            let limits = TurnLimits { budget, ..TurnLimits::default() };
            harness.tell(InputKind::Configure { change: Change::Limits(limits) });
            harness.prepared(0, Effect::Read, &[]);
            harness.tell(InputKind::Configure { change: Change::Limits(TurnLimits::default()) });
        }),
    ];
    for (when, stop) in cases {
        let mut harness = running(Effect::Read);
        harness.tell(InputKind::Resumed);
        stop(&mut harness);
        assert_eq!(harness.outcomes.len(), 1, "{when}");
        harness.submit("again");
        assert!(harness.sent()[2].starts_with(HOST_GONE), "{when}: {:?}", harness.sent());
        let starts = harness.kinds().iter().filter(|kind| *kind == "TOOL_CALL_START").count();
        let ends = harness.kinds().iter().filter(|kind| *kind == "TOOL_CALL_END").count();
        assert_eq!((starts, ends), (1, 1), "{when}");
    }
}

#[test]
fn calls_of_a_stopping_turn_are_not_repeated() {
    let cases = [
        (running(Effect::Read), (1, 0), HOST_GONE),
        (running(Effect::Execute), (1, 0), HOST_GONE),
        (starting(Effect::Read), (0, 0), "results a0:Not run: the turn was stopped"),
    ];
    for (mut harness, expected, result) in cases {
        harness.tell(InputKind::Interrupt);
        harness.wanted();
        harness.tell(InputKind::Resumed);
        assert_eq!((resumed(&harness), harness.wanted()), (expected, Vec::new()));
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
        harness.submit("again");
        assert!(harness.sent()[2].starts_with(result), "{:?}", harness.sent());
    }
}

#[test]
fn unrepeatable_call_is_answered_and_the_turn_continues() {
    let mut harness = running(Effect::Execute);
    harness.tell(InputKind::Resumed);
    assert_eq!(resumed(&harness), (1, 0));
    assert!(harness.sent()[2].starts_with(HOST_GONE));
}

#[test]
fn model_call_is_repeated_unless_the_turn_was_stopping() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Resumed);
    assert_eq!((harness.requests.len(), harness.outcomes.len()), (2, 0));
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::Resumed);
    assert_eq!(harness.requests.len(), 2);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
}

#[test]
fn downtime_does_not_count_as_run_time() {
    let budget = Budget::default().with_wall_time(Duration::from_millis(50));
    let mut harness = Harness::with(TurnLimits { budget, ..TurnLimits::default() });
    harness.submit("go");
    harness.clock += 10_000;
    harness.tell(InputKind::Resumed);
    assert_eq!((harness.requests.len(), harness.outcomes.len()), (2, 0), "the model is asked again");
    harness.clock += 60;
    harness.round("a");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Budget, "the time of the new process counts");
}

#[test]
fn each_phase_resumes() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Resumed);
    assert_eq!(harness.wanted(), [""; 0], "nothing was in progress");
    harness.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    harness.tell(InputKind::Resumed);
    assert_eq!(harness.wanted(), ["load", "load"]);
    harness.tell(InputKind::Abort);
    harness.tell(InputKind::Resumed);
    assert_eq!(harness.wanted(), ["clean up", "clean up"]);
    harness.tell(InputKind::CleanedUp);
    harness.tell(InputKind::Resumed);
    assert_eq!(harness.kinds().last().unwrap(), "SESSION_END", "an ended session stays closed");
}
