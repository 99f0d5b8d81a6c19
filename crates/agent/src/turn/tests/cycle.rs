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

#[test]
fn what_ends_an_answer_decides_what_follows_it() {
    let with_call = || calls(&[("x", "a")]);
    let rows = [
        (Message::assistant("text"), Some("pause_turn"), 2, false),
        (Message::assistant("text"), Some("another"), 1, true),
        (Message::assistant("text"), None, 1, true),
        // Nothing was said, so that the same request would only be made again.
        (Message::assistant(""), Some("pause_turn"), 1, true),
        (with_call(), Some("pause_turn"), 1, false),
        (with_call(), None, 1, false),
    ];
    for (message, raw, requests, is_over) in rows {
        let mut bench = Bench::new();
        bench.submit("go");
        let has_call = message.tool_calls().next().is_some();
        bench.reply_with(message, Finish::Other, raw);
        assert_eq!((bench.requests.len(), bench.outcomes.len() == 1), (requests, is_over), "{raw:?}");
        assert_eq!(bench.wanted().contains(&"prepare 0".to_owned()), has_call);
    }
}

#[test]
fn an_answer_is_kept_with_its_id_and_what_it_took() {
    for (id, expected) in [("resp_1", Some("resp_1")), ("", None)] {
        let mut bench = Bench::new();
        bench.submit("go");
        let mut response = Response::new("p", "m", Message::assistant("done")).with_usage(Usage::new(10, 1));
        response.id = id.to_owned();
        bench.tell(InputKind::ModelReplied { model_call: bench.model_call(), response: Box::new(response) });
        let turn = &bench.machine.history()[1];
        assert_eq!(turn.response_id.as_deref(), expected);
        assert_eq!(turn.usage.as_ref().map(|usage| usage.total_tokens), Some(11));
    }
}

#[test]
fn a_prompt_is_cut_where_it_stays_the_same() {
    for (stable, parts) in [(None, 1), (Some(0), 1), (Some(3), 2), (Some(6), 1), (Some(7), 1)] {
        let mut bench = Bench::new();
        bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.stable_prompt = stable;
        bench.load_this(context);
        let prompt = &bench.requests[0].messages[0];
        assert_eq!((prompt.content.len(), prompt.text().as_str()), (parts, "system"), "{stable:?}");
    }
}

#[test]
fn the_model_may_choose_where_there_is_a_choice() {
    use pintle_llm::{ToolChoice, ToolDefinition};

    let tool = ToolDefinition::new("a", "A.", serde_json::json!({"type": "object"})).unwrap();
    for (tools, expected) in [(Vec::new(), None), (vec![tool], Some(ToolChoice::Auto))] {
        let mut bench = Bench::new();
        bench.tell(InputKind::Submit { run: RunId(1), text: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.tools = tools.into();
        bench.load_this(context);
        assert_eq!(bench.requests[0].tool_choice, expected);
    }
}

#[test]
fn segments_and_retries_are_told_in_their_order() {
    let mut bench = Bench::new();
    bench.submit("go");
    let segment = SegmentId(1);
    for kind in [SegmentKind::Reasoning, SegmentKind::Text] {
        bench.tell(InputKind::SegmentOpened { segment, kind });
        bench.tell(InputKind::SegmentClosed { segment, kind, text: "t".into(), interrupted: true });
    }
    let error = Error::new(ErrorKind::Server, "x").info().clone();
    let delay = Duration::from_millis(1500);
    bench.tell(InputKind::ModelRetrying { model_call: bench.model_call(), attempt: 2, delay, error });
    let kinds = bench.kinds();
    assert_eq!(
        kinds[3..],
        ["REASONING_START", "REASONING_END", "ASSISTANT_TEXT_START", "ASSISTANT_TEXT_END", "WARNING"]
    );
    let told = EventKind::AssistantTextEnd { text: "t".into(), interrupted: true };
    assert!(bench.events.contains(&told));
    let EventKind::Warning { message } = bench.events.last().unwrap() else { panic!("{kinds:?}") };
    assert!(message.starts_with("model call failed, retry 2 in 1.5 s: "), "{message}");
}

#[test]
fn the_run_that_is_served_is_known_while_it_is() {
    let mut bench = Bench::new();
    assert_eq!(bench.machine.served(), None);
    bench.submit("go");
    assert_eq!(bench.machine.served(), Some(RunId(1)));
    bench.say("done");
    assert_eq!(bench.machine.served(), None);
}

#[test]
fn replaced_characters_are_warned_of() {
    use pintle_llm::Warning;

    let mut bench = Bench::new();
    bench.submit("go");
    let warning = |message: &str, code: Option<&str>| Warning {
        message: message.to_owned(),
        code: code.map(str::to_owned),
    };
    let mut response = Response::new("p", "m", Message::assistant("a\u{fffd}"));
    response.warnings = vec![
        warning("stop sequences", None),
        warning("one was replaced", Some(Warning::REPLACED_CHARACTERS)),
    ];
    let model_call = bench.model_call();
    bench.tell(InputKind::ModelReplied { model_call, response: Box::new(response) });
    let warnings: Vec<&EventKind> =
        bench.events.iter().filter(|event| matches!(event, EventKind::Warning { .. })).collect();
    assert_eq!(warnings, [&EventKind::Warning { message: "one was replaced".into() }]);
    assert_eq!(bench.last_outcome().0, OutcomeStatus::Completed);
}
