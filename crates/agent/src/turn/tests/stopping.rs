//! Interrupt, abort and close.

use super::*;

#[test]
fn interrupt_keeps_the_session_and_the_text_so_far() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.wanted();
    harness.tell(InputKind::Interrupt);
    assert_eq!(harness.wanted(), ["cancel model"]);
    harness.failed(ErrorKind::Abort, "I was about");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    harness.submit("again");
    assert_eq!(harness.sent(), ["user go", "assistant i was about", "user again"]);
}

#[test]
fn input_during_an_interrupt_starts_after_it() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Interrupt);
    harness.submit("rather this");
    harness.submit("and this");
    assert_eq!(harness.outcomes.len(), 1, "one input waits, a further one is refused");
    harness.failed(ErrorKind::Abort, "");
    let statuses: Vec<OutcomeStatus> = harness.outcomes.iter().map(|outcome| outcome.status).collect();
    assert_eq!(statuses, [OutcomeStatus::Failed, OutcomeStatus::Interrupted]);
    assert_eq!(harness.sent(), ["user go", "user rather this"]);
    harness.say("done");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn waiting_input_is_interrupted_with_the_turn() {
    for (stop, closed) in [(InputKind::Interrupt, false), (InputKind::Abort, true)] {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.tell(InputKind::Interrupt);
        harness.submit("rather this");
        harness.tell(stop);
        harness.failed(ErrorKind::Abort, "");
        harness.tell(InputKind::CleanedUp);
        assert_eq!(harness.outcomes.len(), 2, "each run has its outcome");
        assert_eq!(harness.outcomes[0].status, OutcomeStatus::Interrupted);
        assert_eq!(harness.machine.state() == SessionState::Closed, closed);
        assert_eq!(harness.requests.len(), 1);
    }
}

#[test]
fn interrupt_in_a_round_answers_every_call() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["done", "running", "queued", "unprepared"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "result");
    harness.prepared(1, Effect::Write, &["/w/a"]);
    harness.tell(InputKind::ToolStarted { call: harness.key(1) });
    harness.prepared(2, Effect::Write, &["/w/a"]);
    harness.wanted();
    harness.tell(InputKind::Interrupt);
    assert_eq!(harness.wanted(), ["cancel 1"]);
    assert!(harness.outcomes.is_empty(), "the running call has no result yet");
    harness.tell(InputKind::ToolLost { call: harness.key(1) });
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    harness.submit("again");
    let results = &harness.sent()[2];
    for part in
        ["a0:result", "b0:Interrupted: the turn was stopped while", "c0:Not run: the turn", "d0:Not run"]
    {
        assert!(results.contains(part), "{part} in {results}");
    }
    let starts = harness.kinds().iter().filter(|kind| *kind == "TOOL_CALL_START").count();
    let ends = harness.kinds().iter().filter(|kind| *kind == "TOOL_CALL_END").count();
    assert_eq!((starts, ends), (4, 4), "starts and ends pair");
}

#[test]
fn call_that_finished_before_its_stop_keeps_its_result() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.tell(InputKind::ToolStarted { call: harness.key(0) });
    harness.tell(InputKind::Interrupt);
    harness.finish_started(0, "real result", None);
    harness.submit("again");
    assert_eq!(harness.sent()[2], "results a0:real result");
}

#[test]
fn abort_closes_from_every_phase() {
    type Prepare = fn(&mut Harness);
    let cases: [(&str, Prepare, &[&str]); 5] = [
        ("idle", |_| {}, &["clean up"]),
        (
            "loading",
            |b| b.tell(InputKind::Submit { run: RunId(1), message: "go".into() }),
            &["load", "clean up"],
        ),
        ("model", |b| b.submit("go"), &["load", "cancel model"]),
        (
            "preparing",
            |b| {
                b.submit("go");
                b.call(&["a"]);
            },
            &["load", "prepare 0", "clean up"],
        ),
        (
            "running",
            |b| {
                b.submit("go");
                b.call(&["a"]);
                b.prepared(0, Effect::Execute, &[]);
                b.tell(InputKind::ToolStarted { call: b.key(0) });
            },
            &["load", "prepare 0", "start 0", "cancel 0"],
        ),
    ];
    for (phase, prepare, wanted) in cases {
        let mut harness = Harness::new();
        prepare(&mut harness);
        harness.tell(InputKind::Abort);
        harness.tell(InputKind::Abort);
        assert_eq!(harness.wanted(), wanted, "{phase}");
        match phase {
            "model" => harness.failed(ErrorKind::Abort, ""),
            "running" => harness.tell(InputKind::ToolLost { call: harness.key(0) }),
            _ => {}
        }
        harness.tell(InputKind::CleanedUp);
        assert_eq!(harness.machine.state(), SessionState::Closed, "{phase}");
        assert_eq!(harness.kinds().last().unwrap(), "SESSION_END", "{phase}");
        if phase != "idle" {
            assert_eq!(harness.outcomes.last().unwrap().status, OutcomeStatus::Aborted, "{phase}");
            assert_eq!(harness.kinds()[harness.kinds().len() - 2], "PROCESSING_END", "{phase}");
        }
        let events = harness.events.len();
        for late in [
            InputKind::Abort,
            InputKind::Close,
            InputKind::Steer { message: "x".into() },
            InputKind::CleanedUp,
        ] {
            harness.tell(late);
        }
        assert_eq!(harness.events.len(), events, "nothing follows the end: {phase}");
        harness.submit("too late");
        let error = harness.outcomes.last().unwrap().error.clone().unwrap();
        assert_eq!(error.message, "the session is closed");
    }
}

#[test]
fn call_that_never_started_has_start_and_end() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::ToolLost { call: harness.key(0) });
    let kinds = harness.kinds();
    assert_eq!(kinds[kinds.len() - 3..], ["TOOL_CALL_START", "TOOL_CALL_END", "PROCESSING_END"]);
    harness.submit("again");
    assert!(harness.sent()[2].starts_with("results a0:Not run: the turn was stopped"));
}

#[test]
fn call_that_failed_before_the_stop_keeps_its_error() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.call(&["fails", "runs"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.prepared(1, Effect::Read, &[]);
    harness.tell(InputKind::ToolStarted { call: harness.key(0) });
    harness.finish_started(0, "no such file", Some(ToolErrorKind::NotFound));
    harness.tell(InputKind::ToolStarted { call: harness.key(1) });
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::ToolLost { call: harness.key(1) });
    let results: Vec<ToolResult> = harness.machine.history()[2].item.results().cloned().collect();
    assert_eq!(results[0].text(), "no such file");
    assert!(results.iter().all(|result| result.is_error));
}

#[test]
fn stop_withdraws_pending_approvals() {
    for stop in [InputKind::Interrupt, InputKind::Abort, InputKind::Close] {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.call(&["a"]);
        harness.asks(0);
        harness.wanted();
        harness.tell(stop);
        assert_eq!(harness.wanted()[0], "withdraw 0");
        let late =
            InputKind::ApprovalDecided { call: harness.key(0), approved: true, reason: None, by: None };
        harness.tell(late);
        assert!(!harness.wanted().contains(&"start 0".to_owned()));
    }
}

/// A response that arrives after the stop is not lost, but its calls do not run.
#[test]
fn response_after_the_stop_is_kept_without_running_calls() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.wanted();
    harness.tell(InputKind::Interrupt);
    harness.call(&["a"]);
    assert_eq!(harness.wanted(), ["cancel model"]);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Interrupted, SessionState::Idle));
    harness.submit("again");
    assert!(harness.sent()[2].starts_with("results a0:Not run: the turn was stopped"));
}

#[test]
fn interrupt_of_an_idle_session_changes_nothing() {
    let mut harness = Harness::new();
    let events = harness.events.len();
    harness.tell(InputKind::Interrupt);
    assert_eq!((harness.events.len(), harness.wanted().len()), (events, 0));
    harness.submit("go");
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn abort_overrides_an_interrupt() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::Interrupt);
    harness.tell(InputKind::Abort);
    harness.tell(InputKind::Interrupt);
    harness.failed(ErrorKind::Abort, "");
    harness.tell(InputKind::CleanedUp);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Aborted, SessionState::Closed));
}

/// The error that closes the session is reported in any case.
#[test]
fn abort_does_not_hide_a_fatal_error() {
    for stop in [InputKind::Abort, InputKind::Close] {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.call(&["a"]);
        harness.prepared(0, Effect::Execute, &[]);
        harness.tell(InputKind::ToolStarted { call: harness.key(0) });
        let error = Error::new(ErrorKind::Configuration, "the disk is full").info().clone();
        harness.tell(InputKind::Unrecorded { error: error.clone() });
        harness.tell(stop);
        harness.tell(InputKind::ToolLost { call: harness.key(0) });
        harness.tell(InputKind::CleanedUp);
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Closed));
        assert_eq!(harness.outcomes[0].error, Some(error));
    }
}

#[test]
fn journal_failure_during_shutdown_is_ignored() {
    let unrecorded = || {
        let error = Error::new(ErrorKind::Configuration, "the disk is full").info().clone();
        InputKind::Unrecorded { error }
    };
    let mut harness = Harness::new();
    harness.tell(InputKind::Close);
    harness.wanted();
    harness.tell(unrecorded());
    assert_eq!((harness.wanted(), harness.kinds()), (Vec::new(), vec!["SESSION_START".to_owned()]));
    harness.tell(InputKind::CleanedUp);
    harness.tell(unrecorded());
    assert_eq!(harness.kinds(), ["SESSION_START", "SESSION_END"]);
}

/// A limit that held calls back in a stopped turn does not affect the next one.
#[test]
fn limit_of_a_stopped_turn_is_checked_again() {
    let one_call = TurnLimits { budget: Limits::default().with_tool_calls(1), ..TurnLimits::default() };
    for is_lost in [false, true] {
        let mut harness = Harness::with(one_call.clone());
        harness.submit("go");
        harness.call(&["runs", "is held"]);
        harness.prepared(0, Effect::Read, &[]);
        harness.tell(InputKind::ToolStarted { call: harness.key(0) });
        if is_lost {
            harness.finish_started(0, "gone", Some(ToolErrorKind::EnvironmentLost));
        } else {
            harness.tell(InputKind::Interrupt);
            harness.tell(InputKind::ToolLost { call: harness.key(0) });
        }
        let expected = if is_lost { OutcomeStatus::Failed } else { OutcomeStatus::Interrupted };
        assert_eq!(harness.last_outcome().0, expected);
        harness.submit("again");
        assert_eq!(harness.requests.len(), 2, "the model may answer without a call: {expected:?}");
    }
}
