//! From an input to its end.

use super::*;

#[test]
fn natural_completion() {
    let mut bench = Bench::new();
    bench.submit("hello");
    assert_eq!(bench.machine.state(), SessionState::Processing);
    assert_eq!(bench.sent(), ["user hello"]);
    bench.say("done");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    assert_eq!(bench.outcomes[0].text, "done");
    assert_eq!(bench.outcomes[0].usage.total_tokens, 11);
    assert_eq!(
        bench.kinds(),
        ["SESSION_START", "USER_INPUT", "REQUEST_PREPARED", "MODEL_RESPONSE", "PROCESSING_END"]
    );
}

#[test]
fn sequential_inputs_share_the_history_and_load_the_context_once() {
    let mut bench = Bench::new();
    bench.submit("one");
    bench.say("1");
    bench.submit("two");
    assert_eq!(bench.sent(), ["user one", "assistant 1", "user two"]);
    assert_eq!(bench.wanted().iter().filter(|wanted| *wanted == "load").count(), 1);
}

#[test]
fn a_question_awaits_its_answer() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("Which file do you mean? ");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::AwaitingInput, SessionState::AwaitingInput));
    bench.submit("that one");
    assert_eq!(bench.machine.state(), SessionState::Processing);
    bench.say("ok");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn submits_that_are_refused_change_nothing() {
    let mut bench = Bench::new();
    bench.submit("  \n");
    bench.submit("go");
    bench.submit("me too");
    let messages: Vec<String> =
        bench.outcomes.iter().map(|outcome| outcome.error.as_ref().unwrap().message.clone()).collect();
    assert_eq!(
        messages,
        [
            "the input is empty: expected some text",
            "the session is processing: steer it, queue a follow-up, or wait for the run to end",
        ]
    );
    assert_eq!(bench.machine.history().len(), 1);
    bench.say("fine");
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn calls_cut_off_by_the_output_limit_do_not_run() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.wanted();
    bench.reply_with(calls(&[("x", "write_file")]), Finish::Length, Some("max_tokens"));
    assert_eq!(bench.wanted(), [""; 0]);
    assert!(bench.sent()[2].starts_with("results x:Not run: the answer was cut off by the output limit"));
    bench.reply_with(Message::assistant("half a sen"), Finish::Length, None);
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
    assert!(bench.kinds().contains(&"WARNING".to_owned()), "the cut is told");
}

#[test]
fn a_refusal_is_its_own_outcome_and_a_pause_goes_on() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.reply_with(Message::assistant("working"), Finish::Other, Some("pause_turn"));
    assert_eq!(bench.requests.len(), 2);
    bench.reply_with(Message::assistant("no"), Finish::ContentFilter, Some("refusal"));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Refused, SessionState::Idle));
}

#[test]
fn an_answer_that_failed_fails_the_run_and_answers_its_calls() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.reply_with(calls(&[("x", "a")]), Finish::Error, Some("MALFORMED_FUNCTION_CALL"));
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    bench.submit("again");
    assert!(bench.sent()[2].starts_with("results x:Not run:"));
}

#[test]
fn an_id_that_comes_twice_is_made_unique() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.reply(calls(&[("x", "a"), ("x", "b")]));
    for index in 0..2 {
        bench.prepared(index, Effect::Read, &[]);
        bench.finish(index, "ok");
    }
    bench.reply(calls(&[("x", "c")]));
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "ok");
    assert_eq!(
        bench.sent()[1..],
        ["calls x=a x_2=b", "results x:ok x_2:ok", "calls x_3=c", "results x_3:ok"]
    );
    assert_eq!(bench.kinds().iter().filter(|kind| *kind == "HISTORY_REPAIRED").count(), 2);
    bench.reply(calls(&[("", "d")]));
    bench.prepared(0, Effect::Read, &[]);
    bench.finish(0, "ok");
    assert_eq!(bench.sent()[5..], ["calls call_4=d", "results call_4:ok"], "no id is none");
}

#[test]
fn an_empty_answer_is_not_sent_back() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("");
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    bench.submit("again");
    assert_eq!(bench.sent(), ["user go", "user again"]);
}

#[test]
fn what_each_error_of_the_model_does_to_the_session() {
    let rows = [
        (ErrorKind::Authentication, SessionState::Closed),
        (ErrorKind::AccessDenied, SessionState::Closed),
        (ErrorKind::Configuration, SessionState::Closed),
        (ErrorKind::RateLimit, SessionState::Idle),
        (ErrorKind::Server, SessionState::Idle),
        (ErrorKind::Network, SessionState::Idle),
        (ErrorKind::Stream, SessionState::Idle),
        (ErrorKind::RequestTimeout, SessionState::Idle),
        (ErrorKind::ContextLength, SessionState::Idle),
        (ErrorKind::InvalidRequest, SessionState::Idle),
        (ErrorKind::NotFound, SessionState::Idle),
        (ErrorKind::QuotaExceeded, SessionState::Idle),
        (ErrorKind::ContentFilter, SessionState::Idle),
        (ErrorKind::UnsupportedToolChoice, SessionState::Idle),
        (ErrorKind::InvalidToolCall, SessionState::Idle),
        // Nobody stopped it here: somebody below did.
        (ErrorKind::Abort, SessionState::Idle),
    ];
    for (kind, state) in rows {
        let mut bench = Bench::new();
        bench.submit("go");
        bench.failed(kind, "");
        if bench.wanted().last().is_some_and(|wanted| wanted == "clean up") {
            bench.tell(InputKind::CleanedUp);
        }
        assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, state), "{kind:?}");
        assert_eq!(bench.outcomes[0].error.as_ref().unwrap().kind, kind);
        assert!(bench.kinds().contains(&"ERROR".to_owned()));
        assert_eq!(bench.kinds().contains(&"WARNING".to_owned()), kind == ErrorKind::ContextLength);
        assert_eq!(bench.kinds().contains(&"SESSION_END".to_owned()), state == SessionState::Closed);
        if state == SessionState::Idle {
            bench.submit("again");
            assert_eq!(bench.sent(), ["user go", "user again"], "the session stays usable");
        }
    }
}

#[test]
fn segments_and_retries_that_come_late_are_no_events() {
    let mut bench = Bench::new();
    bench.submit("go");
    bench.say("done");
    let events = bench.events.len();
    let segment = SegmentId(1);
    bench.tell(InputKind::SegmentOpened { segment, kind: SegmentKind::Text });
    bench.tell(InputKind::SegmentClosed {
        segment,
        kind: SegmentKind::Text,
        text: "late".into(),
        interrupted: false,
    });
    bench.tell(InputKind::ModelRetrying {
        model_call: bench.model_call(),
        attempt: 1,
        delay: Duration::ZERO,
        error: Error::new(ErrorKind::Server, "x").info().clone(),
    });
    assert_eq!(bench.events.len(), events);
}

#[test]
fn a_clock_that_jumps_back_does_not_turn_the_history_round() {
    let mut bench = Bench::new();
    bench.clock = 1_000;
    bench.submit("go");
    bench.clock = 0;
    bench.say("done");
    let times: Vec<i64> = bench.machine.history().iter().map(|turn| turn.timestamp.as_millis()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_failed_context_fails_the_run() {
    let mut bench = Bench::new();
    bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
    let error: ErrorInfo = Error::new(ErrorKind::Configuration, "no folder").info().clone();
    bench.tell(InputKind::ContextFailed { load: LoadId(1), error });
    bench.tell(InputKind::CleanedUp);
    assert_eq!(bench.last_outcome(), (OutcomeStatus::Failed, SessionState::Closed));
}
