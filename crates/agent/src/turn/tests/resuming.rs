//! Resumption after the driving process died.

use super::*;

/// A round whose only call is starting. [`running`] has started it.
fn starting(effect: Effect) -> Harness {
    let mut harness =
        Harness::with(TurnLimits { budget: Limits::default().with_tool_calls(1), ..TurnLimits::default() });
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
        EventKind::SessionResumed { interrupted, repeated, .. } => Some((interrupted.len(), repeated.len())),
        _ => None,
    };
    harness.events.iter().rev().find_map(of).expect("it was resumed")
}

const HOST_GONE: &str = "results a0:Interrupted: the program that ran this call ended";

#[test]
fn repeated_call_counts_once() {
    for (mut harness, repeated) in [(starting(Effect::Read), 0), (running(Effect::Read), 1)] {
        harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
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
            let budget = Limits::default().with_tokens(1);
            let limits = TurnLimits { budget, ..TurnLimits::default() };
            harness.tell(InputKind::Configure { change: Change::Limits(limits) });
            harness.prepared(0, Effect::Read, &[]);
            harness.tell(InputKind::Configure { change: Change::Limits(TurnLimits::default()) });
        }),
    ];
    for (when, stop) in cases {
        let mut harness = running(Effect::Read);
        harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
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
        harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
        assert_eq!((resumed(&harness), harness.wanted()), (expected, Vec::new()));
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
        harness.submit("again");
        assert!(harness.sent()[2].starts_with(result), "{:?}", harness.sent());
    }
}

#[test]
fn unrepeatable_call_is_answered_and_the_turn_continues() {
    let mut harness = running(Effect::Execute);
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(resumed(&harness), (1, 0));
    assert!(harness.sent()[2].starts_with(HOST_GONE));
}

#[test]
fn model_call_is_repeated_unless_the_turn_was_stopping() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!((harness.requests.len(), harness.outcomes.len()), (2, 0));
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.requests.len(), 2);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
}

#[test]
fn downtime_does_not_count_as_run_time() {
    let budget = Limits::default().with_wall_time(Duration::from_millis(50));
    let mut harness = Harness::with(TurnLimits { budget, ..TurnLimits::default() });
    harness.submit("go");
    harness.clock += 10_000;
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!((harness.requests.len(), harness.outcomes.len()), (2, 0), "the model is asked again");
    harness.clock += 60;
    harness.round("a");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Budget, "the time of the new process counts");
}

#[test]
fn each_phase_resumes() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.wanted(), [""; 0], "nothing was in progress");
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.wanted(), ["load", "load"]);
    harness.tell(InputKind::Abort);
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.wanted(), ["clean up", "clean up"]);
    harness.tell(InputKind::CleanedUp);
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.kinds().last().unwrap(), "SESSION_END", "an ended session stays closed");
}

/// A round whose only call is writing a file.
fn writing() -> Harness {
    let mut harness = running(Effect::Write);
    harness.declare(0);
    harness.wanted();
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!((resumed(&harness), harness.wanted()), ((0, 0), vec!["reconcile 0".to_owned()]));
    harness
}

#[test]
fn files_tell_what_became_of_a_call() {
    let path = vec![PathBuf::from("/w/a")];
    let conflict =
        Reconciliation::Conflict { done: Vec::new(), untouched: Vec::new(), changed: path.clone() };
    let halfway = Reconciliation::Conflict {
        done: path.clone(),
        untouched: vec![PathBuf::from("/w/b")],
        changed: Vec::new(),
    };
    let cases = [
        (Reconciliation::Done, None),
        (conflict, Some(ToolErrorKind::EditConflict)),
        (halfway, Some(ToolErrorKind::EditConflict)),
        (Reconciliation::Unknown { reason: "it is gone".into() }, Some(ToolErrorKind::Cancelled)),
    ];
    let mut results = Vec::new();
    for (result, expected) in cases {
        let mut harness = writing();
        harness.reconciled(0, result);
        let error = harness.events.iter().find_map(|event| match event {
            EventKind::ToolCallEnd { error, .. } => Some(*error),
            _ => None,
        });
        assert_eq!((error, harness.machine.spent().tool_calls), (Some(expected), 1));
        results.push(harness.sent()[2].clone());
    }
    insta::assert_snapshot!(results.join("\n"), @r"
    results a0:The program that ran this call ended before it could report, but the call had done its work. Changed: /w/a.
    results a0:The program that ran this call ended in the middle of it, and it was not run again. Possibly changed by another process since: /w/a. Nothing was overwritten. Read the files before you change them again.
    results a0:The program that ran this call ended in the middle of it, and it was not run again. Changed by this call: /w/a. Not changed: /w/b. Nothing was overwritten. Read the files before you change them again.
    results a0:Interrupted: the program that ran this call ended in the middle of it. Nobody knows whether it had its effect, all of it or part of it. It was not run again. Its files cannot be looked at: it is gone
    ");
}

#[test]
fn untouched_files_let_the_call_run_again_under_the_same_decision() {
    let mut harness = writing();
    harness.reconciled(0, Reconciliation::Untouched);
    assert_eq!((harness.machine.spent().tool_calls, harness.wanted()), (0, vec!["prepare 0".to_owned()]));
    harness.prepared(0, Effect::Write, &["/w/a"]);
    harness.finish(0, "ok");
    assert_eq!((harness.machine.spent().tool_calls, harness.sent()[2].as_str()), (1, "results a0:ok"));
}

#[test]
fn a_call_that_declared_nothing_changed_nothing_and_runs_again() {
    let mut harness = running(Effect::Write);
    harness.wanted();
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!((resumed(&harness), harness.wanted()), ((0, 1), vec!["prepare 0".to_owned()]));
}

/// Nobody waits for an environment that may not answer.
#[test]
fn a_comparison_does_not_hold_up_an_interrupt() {
    let mut harness = writing();
    harness.tell(InputKind::Interrupt);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    harness.reconciled(0, Reconciliation::Done);
    harness.submit("again");
    assert!(harness.sent()[2].starts_with(HOST_GONE), "{:?}", harness.sent());
}

#[test]
fn files_are_looked_at_again_after_another_crash() {
    let mut harness = writing();
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.wanted(), ["reconcile 0"]);
    harness.reconciled(0, Reconciliation::Done);
    assert!(harness.sent()[2].contains("had done its work"), "{:?}", harness.sent());
}
