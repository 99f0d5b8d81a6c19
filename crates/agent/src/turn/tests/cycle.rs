//! Handling of one input.

use super::*;

#[test]
fn natural_completion() {
    let mut harness = Harness::new();
    harness.submit("hello");
    assert_eq!(harness.machine.state(), SessionState::Processing);
    assert_eq!(harness.sent(), ["user hello"]);
    harness.say("done");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    assert_eq!(harness.outcomes[0].text, "done");
    assert_eq!(harness.outcomes[0].usage.total_tokens, 11);
    assert_eq!(
        harness.kinds(),
        ["SESSION_START", "USER_INPUT", "REQUEST_PREPARED", "MODEL_RESPONSE", "PROCESSING_END"]
    );
}

#[test]
fn sequential_inputs_share_the_history_and_load_the_context_once() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.say("1");
    harness.submit("two");
    assert_eq!(harness.sent(), ["user one", "assistant 1", "user two"]);
    assert_eq!(harness.wanted().iter().filter(|wanted| *wanted == "load").count(), 1);
}

#[test]
fn question_awaits_its_answer() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.say("Which file do you mean? ");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::AwaitingInput, SessionState::AwaitingInput));
    harness.submit("that one");
    assert_eq!(harness.machine.state(), SessionState::Processing);
    harness.say("ok");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn rejected_submits_change_nothing() {
    let mut harness = Harness::new();
    harness.submit("  \n");
    harness.submit("go");
    harness.submit("me too");
    let messages: Vec<String> =
        harness.outcomes.iter().map(|outcome| outcome.error.as_ref().unwrap().message.clone()).collect();
    assert_eq!(
        messages,
        [
            "the input is empty: expected some text or an image",
            "the session is processing: steer it, queue a follow-up, or wait for the run to end",
        ]
    );
    assert_eq!(harness.machine.history().len(), 1);
    harness.say("fine");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn calls_cut_off_by_the_output_limit_do_not_run() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.wanted();
    harness.reply_with(calls(&[("x", "write_file")]), Finish::Length, Some("max_tokens"));
    assert_eq!(harness.wanted(), [""; 0]);
    assert!(harness.sent()[2].starts_with("results x:Not run: the answer was cut off by the output limit"));
    harness.say("smaller pieces");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn refusal_ends_the_run_and_pause_continues() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.reply_with(Message::assistant("working"), Finish::Other, Some("pause_turn"));
    assert_eq!(harness.requests.len(), 2);
    harness.reply_with(Message::assistant("no"), Finish::ContentFilter, Some("refusal"));
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Refused, SessionState::Idle));
}

#[test]
fn failed_response_fails_the_run_and_answers_its_calls() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.reply_with(calls(&[("x", "a")]), Finish::Error, Some("MALFORMED_FUNCTION_CALL"));
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    harness.submit("again");
    assert!(harness.sent()[2].starts_with("results x:Not run:"));
}

#[test]
fn repeated_call_ids_are_made_unique() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.reply(calls(&[("x", "a"), ("x", "b")]));
    for index in 0..2 {
        harness.prepared(index, Effect::Read, &[]);
        harness.finish(index, "ok");
    }
    harness.reply(calls(&[("x", "c")]));
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "ok");
    assert_eq!(
        harness.sent()[1..],
        ["calls x=a x_2=b", "results x:ok x_2:ok", "calls x_3=c", "results x_3:ok"]
    );
    assert_eq!(harness.kinds().iter().filter(|kind| *kind == "HISTORY_REPAIRED").count(), 2);
    harness.reply(calls(&[("", "d")]));
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "ok");
    assert_eq!(harness.sent()[5..], ["calls call_4=d", "results call_4:ok"], "an empty id is replaced");
}

#[test]
fn empty_response_is_not_sent_back() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.say("");
    harness.say("");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Idle));
    harness.submit("again");
    assert_eq!(harness.sent(), ["user go", "user again"]);
}

#[test]
fn each_model_error_has_its_effect_on_the_session() {
    let cases = [
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
        // The abort did not come from this machine but from a lower layer.
        (ErrorKind::Abort, SessionState::Idle),
    ];
    for (kind, state) in cases {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.failed(kind, "");
        if harness.wanted().last().is_some_and(|wanted| wanted == "clean up") {
            harness.tell(InputKind::CleanedUp);
        }
        let is_overflow = kind == ErrorKind::ContextLength;
        let status = if is_overflow { OutcomeStatus::ContextFull } else { OutcomeStatus::Failed };
        assert_eq!(harness.last_outcome(), (status, state), "{kind:?}");
        assert_eq!(harness.outcomes[0].error.as_ref().unwrap().kind, kind);
        assert!(harness.kinds().contains(&"ERROR".to_owned()));
        assert_eq!(harness.kinds().contains(&"WARNING".to_owned()), is_overflow);
        assert_eq!(harness.kinds().contains(&"SESSION_END".to_owned()), state == SessionState::Closed);
        if state == SessionState::Idle {
            harness.submit("again");
            assert_eq!(harness.sent(), ["user go", "user again"], "the session stays usable");
        }
    }
}

#[test]
fn late_segments_and_retries_are_ignored() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.say("done");
    let events = harness.events.len();
    let segment = SegmentId(1);
    harness.tell(InputKind::SegmentOpened { segment, kind: SegmentKind::Text });
    harness.tell(InputKind::SegmentClosed {
        segment,
        kind: SegmentKind::Text,
        text: "late".into(),
        interrupted: false,
    });
    harness.tell(InputKind::ModelRetrying {
        model_call: harness.model_call(),
        attempt: 1,
        delay: Duration::ZERO,
        error: Error::new(ErrorKind::Server, "x").info().clone(),
    });
    assert_eq!(harness.events.len(), events);
}

#[test]
fn history_stays_in_order_when_the_clock_jumps_back() {
    let mut harness = Harness::new();
    harness.clock = 1_000;
    harness.submit("go");
    harness.clock = 0;
    harness.say("done");
    let times: Vec<i64> = harness.machine.history().iter().map(|turn| turn.timestamp.as_millis()).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn failed_load_fails_the_run() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
    let error: ErrorInfo = Error::new(ErrorKind::Configuration, "no directory").info().clone();
    harness.tell(InputKind::ContextFailed { load: LoadId(1), error });
    harness.tell(InputKind::CleanedUp);
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Failed, SessionState::Closed));
}

#[test]
fn finish_reason_decides_what_follows() {
    let with_call = || calls(&[("x", "a")]);
    let cases = [
        (Message::assistant("text"), Some("pause_turn"), 2, false),
        (Message::assistant("text"), Some("compaction"), 2, false),
        (Message::assistant("text"), Some("another"), 1, true),
        (Message::assistant("text"), None, 1, true),
        // An empty response is asked for once more, as one without a pause.
        (Message::assistant(""), Some("pause_turn"), 2, false),
        (with_call(), Some("pause_turn"), 1, false),
        (with_call(), None, 1, false),
    ];
    for (message, raw, requests, is_over) in cases {
        let mut harness = Harness::new();
        harness.submit("go");
        let has_call = message.tool_calls().next().is_some();
        harness.reply_with(message, Finish::Other, raw);
        assert_eq!((harness.requests.len(), harness.outcomes.len() == 1), (requests, is_over), "{raw:?}");
        assert_eq!(harness.wanted().contains(&"prepare 0".to_owned()), has_call);
    }
}

#[test]
fn history_has_response_id_and_usage() {
    for (id, expected) in [("resp_1", Some("resp_1")), ("", None)] {
        let mut harness = Harness::new();
        harness.submit("go");
        let mut response = Response::new("p", "m", Message::assistant("done")).with_usage(Usage::new(10, 1));
        response.id = id.to_owned();
        harness
            .tell(InputKind::ModelReplied { model_call: harness.model_call(), response: Box::new(response) });
        let turn = &harness.machine.history()[1];
        assert_eq!(turn.response_id.as_deref(), expected);
        assert_eq!(turn.usage.as_ref().map(|usage| usage.total_tokens), Some(11));
    }
}

#[test]
fn prompt_is_split_at_its_stable_end() {
    for (stable, parts) in [(None, 1), (Some(0), 1), (Some(3), 2), (Some(6), 1), (Some(7), 1)] {
        let mut harness = Harness::new();
        harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.stable_prompt = stable;
        harness.load_this(context);
        let prompt = &harness.requests[0].messages[0];
        assert_eq!((prompt.content.len(), prompt.text().as_str()), (parts, "system"), "{stable:?}");
    }
}

#[test]
fn tool_choice_is_auto_if_there_are_tools() {
    use pintle_llm::{ToolChoice, ToolDefinition};

    let tool = ToolDefinition::new("a", "A.", serde_json::json!({"type": "object"})).unwrap();
    for (tools, expected) in [(Vec::new(), None), (vec![tool], Some(ToolChoice::Auto))] {
        let mut harness = Harness::new();
        harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.tools = tools.into();
        harness.load_this(context);
        assert_eq!(harness.requests[0].tool_choice, expected);
    }
}

#[test]
fn segments_and_retries_keep_their_order() {
    let mut harness = Harness::new();
    harness.submit("go");
    let segment = SegmentId(1);
    for kind in [SegmentKind::Reasoning, SegmentKind::Text] {
        harness.tell(InputKind::SegmentOpened { segment, kind });
        harness.tell(InputKind::SegmentClosed { segment, kind, text: "t".into(), interrupted: true });
    }
    let error = Error::new(ErrorKind::Server, "x").info().clone();
    let delay = Duration::from_millis(1500);
    harness.tell(InputKind::ModelRetrying { model_call: harness.model_call(), attempt: 2, delay, error });
    let kinds = harness.kinds();
    assert_eq!(
        kinds[3..],
        [
            "REASONING_START",
            "REASONING_END",
            "ASSISTANT_TEXT_START",
            "ASSISTANT_TEXT_END",
            "WARNING",
            "MODEL_RETRYING"
        ]
    );
    let reported = EventKind::AssistantTextEnd { text: "t".into(), interrupted: true };
    assert!(harness.events.contains(&reported));
    let [.., EventKind::Warning { message }, EventKind::ModelRetrying { attempt: 2, delay_ms: 1500, error }] =
        harness.events.as_slice()
    else {
        panic!("{kinds:?}")
    };
    assert!(message.starts_with("model call failed, retry 2 in 1.5 s: "), "{message}");
    assert_eq!(error.kind, ErrorKind::Server);
}

#[test]
fn current_run_is_known_while_it_lasts() {
    let mut harness = Harness::new();
    assert_eq!(harness.machine.current_run(), None);
    harness.submit("go");
    assert_eq!(harness.machine.current_run(), Some(RunId(1)));
    harness.say("done");
    assert_eq!(harness.machine.current_run(), None);
}

#[test]
fn replaced_characters_cause_a_warning() {
    use pintle_llm::Warning;

    let mut harness = Harness::new();
    harness.submit("go");
    let warning = |message: &str, code: Option<&str>| Warning {
        message: message.to_owned(),
        code: code.map(str::to_owned),
    };
    let mut response = Response::new("p", "m", Message::assistant("a\u{fffd}"));
    response.warnings = vec![
        warning("stop sequences", None),
        warning("one character was replaced", Some(Warning::REPLACED_CHARACTERS)),
    ];
    let model_call = harness.model_call();
    harness.tell(InputKind::ModelReplied { model_call, response: Box::new(response) });
    let warnings: Vec<&EventKind> =
        harness.events.iter().filter(|event| matches!(event, EventKind::Warning { .. })).collect();
    assert_eq!(warnings, [&EventKind::Warning { message: "one character was replaced".into() }]);
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}
