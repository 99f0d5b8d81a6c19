//! Another host goes on where one has died.

use super::*;

/// How far the one call of a round had come when its host died.
fn told_to_run(effect: Effect) -> Bench {
    let mut bench =
        Bench::with(TurnLimits { budget: Budget::default().with_tool_calls(1), ..TurnLimits::default() });
    bench.submit("go");
    bench.call(&["a"]);
    bench.prepared(0, effect, &[]);
    bench
}

fn running(effect: Effect) -> Bench {
    let mut bench = told_to_run(effect);
    bench.tell(InputKind::ToolStarted { call: bench.key(0) });
    bench
}

fn resumed(bench: &Bench) -> (usize, usize) {
    let of = |event: &EventKind| match event {
        EventKind::SessionResumed { interrupted, repeated } => Some((interrupted.len(), repeated.len())),
        _ => None,
    };
    bench.events.iter().rev().find_map(of).expect("it was resumed")
}

const HOST_GONE: &str = "results a0:Interrupted: the program that ran this call ended";

#[test]
fn a_call_that_is_made_again_counts_once() {
    for (mut bench, repeated) in [(told_to_run(Effect::Read), 0), (running(Effect::Read), 1)] {
        bench.tell(InputKind::Resumed);
        assert_eq!(resumed(&bench), (0, repeated));
        bench.wanted();
        bench.prepared(0, Effect::Read, &[]);
        assert_eq!(bench.wanted(), ["run 0"], "the one call that may be made is this one");
        bench.finish(0, "ok");
        assert_eq!(bench.machine.spent().tool_calls, 1);
        assert_eq!(bench.sent()[2], "results a0:ok");
        let starts = bench.kinds().iter().filter(|kind| *kind == "TOOL_CALL_START").count();
        assert_eq!(starts, 1, "it does not begin twice");
    }
}

/// It may have had its effect under the host before, so that it is no call that has not run.
#[test]
fn a_call_that_was_to_be_made_again_and_is_not_is_answered_truthfully() {
    type Stop = fn(&mut Bench);
    let rows: [(&str, Stop); 3] = [
        ("before it is prepared", |bench| bench.tell(InputKind::Interrupt)),
        ("while somebody decides", |bench| {
            bench.asks(0);
            bench.tell(InputKind::Interrupt);
        }),
        ("at a limit", |bench| {
            let budget = Budget::default().with_tokens(1);
            let limits = TurnLimits { budget, ..TurnLimits::default() };
            bench.tell(InputKind::Configure { change: Change::Limits(limits) });
            bench.prepared(0, Effect::Read, &[]);
            bench.tell(InputKind::Configure { change: Change::Limits(TurnLimits::default()) });
        }),
    ];
    for (when, stop) in rows {
        let mut bench = running(Effect::Read);
        bench.tell(InputKind::Resumed);
        stop(&mut bench);
        assert_eq!(bench.outcomes.len(), 1, "{when}");
        bench.submit("again");
        assert!(bench.sent()[2].starts_with(HOST_GONE), "{when}: {:?}", bench.sent());
        let starts = bench.kinds().iter().filter(|kind| *kind == "TOOL_CALL_START").count();
        let ends = bench.kinds().iter().filter(|kind| *kind == "TOOL_CALL_END").count();
        assert_eq!((starts, ends), (1, 1), "{when}");
    }
}

#[test]
fn a_call_of_a_turn_that_was_being_stopped_is_not_made_again() {
    let rows = [
        (running(Effect::Read), (1, 0), HOST_GONE),
        (running(Effect::Execute), (1, 0), HOST_GONE),
        (told_to_run(Effect::Read), (0, 0), "results a0:Not run: the turn was stopped"),
    ];
    for (mut bench, expected, result) in rows {
        bench.tell(InputKind::Interrupt);
        bench.wanted();
        bench.tell(InputKind::Resumed);
        assert_eq!((resumed(&bench), bench.wanted()), (expected, Vec::new()));
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
        bench.submit("again");
        assert!(bench.sent()[2].starts_with(result), "{:?}", bench.sent());
    }
}

#[test]
fn a_call_that_must_not_be_repeated_is_answered_and_the_turn_goes_on() {
    let mut bench = running(Effect::Execute);
    bench.tell(InputKind::Resumed);
    assert_eq!(resumed(&bench), (1, 0));
    assert!(bench.sent()[2].starts_with(HOST_GONE));
}

#[test]
fn the_model_is_asked_again_unless_the_turn_was_being_stopped() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.tell(InputKind::Resumed);
    assert_eq!((bench.requests.len(), bench.outcomes.len()), (2, 0));
    bench.tell(InputKind::Interrupt);
    bench.tell(InputKind::Resumed);
    assert_eq!(bench.requests.len(), 2);
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
}

#[test]
fn the_time_in_which_no_host_ran_is_not_time_of_the_run() {
    let budget = Budget::default().with_wall_time(Duration::from_millis(50));
    let mut bench = Bench::with(TurnLimits { budget, ..TurnLimits::default() });
    bench.submit("go");
    bench.clock += 10_000;
    bench.tell(InputKind::Resumed);
    assert_eq!((bench.requests.len(), bench.outcomes.len()), (2, 0), "the model is asked again");
    bench.clock += 60;
    bench.round("a");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Budget, "and the time of the new host counts");
}

#[test]
fn each_phase_is_taken_up_where_it_was() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Resumed);
    assert_eq!(bench.wanted(), [""; 0], "nothing was going on");
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    bench.tell(InputKind::Resumed);
    assert_eq!(bench.wanted(), ["load", "load"]);
    bench.tell(InputKind::Abort);
    bench.tell(InputKind::Resumed);
    assert_eq!(bench.wanted(), ["clean up", "clean up"]);
    bench.tell(InputKind::CleanedUp);
    bench.tell(InputKind::Resumed);
    assert_eq!(bench.kinds().last().unwrap(), "SESSION_END", "what is over stays over");
}
