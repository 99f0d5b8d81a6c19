//! Responses without calls that are cut off by the output limit, or empty.

use super::*;

/// Part of a final response.
#[derive(Clone, Copy, Debug)]
enum Part {
    /// Text that the output limit cuts off.
    Cut(&'static str),
    /// Reasoning that the output limit cuts off.
    CutReasoning,
    /// Only reasoning.
    Reasoning,
    /// A complete text, or an empty one.
    Whole(&'static str),
}

fn thinking() -> Message {
    Message::new(Role::Assistant, vec![ContentPart::Thinking(ThinkingData::new("hm"))])
}

fn answer(harness: &mut Harness, parts: &[Part]) {
    for part in parts {
        match part {
            Part::Cut(text) => {
                harness.reply_with(Message::assistant(*text), Finish::Length, Some("max_tokens"))
            }
            Part::CutReasoning => harness.reply_with(thinking(), Finish::Length, Some("max_tokens")),
            Part::Reasoning => harness.reply_with(thinking(), Finish::Stop, None),
            Part::Whole("") => {
                harness.reply_with(Message::new(Role::Assistant, Vec::new()), Finish::Stop, None)
            }
            Part::Whole(text) => harness.say(text),
        }
    }
}

#[test]
fn a_cut_off_or_empty_response_is_asked_for_again_and_reported() {
    use OutcomeStatus::{AwaitingInput, Completed, Failed, OutputLimit};
    use Part::{Cut, CutReasoning, Reasoning, Whole};
    for (parts, status, text) in [
        (&[Cut("one, "), Whole("two")][..], Completed, "one, two"),
        (&[Cut("one, "), Cut("two, "), Whole("three")], Completed, "one, two, three"),
        (&[Cut("one, "), Cut("two, "), Cut("three")], OutputLimit, "one, two, three"),
        (&[Cut("one, "), Whole("or two?")], AwaitingInput, "one, or two?"),
        (&[Cut("one"), Whole("")], Completed, "one"),
        (&[Cut("one"), CutReasoning], OutputLimit, "one"),
        (&[Cut("one"), Cut(" ")], OutputLimit, "one "),
        (&[Cut("")], OutputLimit, ""),
        (&[CutReasoning], OutputLimit, ""),
        (&[Whole(""), Whole("two")], Completed, "two"),
        (&[Reasoning, Whole("two")], Completed, "two"),
        (&[Whole(""), Whole("")], Failed, ""),
        (&[Reasoning, Whole("")], Failed, ""),
        (&[Whole(""), Cut("one, "), Whole("two")], Completed, "one, two"),
    ] {
        let mut harness = Harness::new();
        harness.submit("go");
        answer(&mut harness, parts);
        let outcome = &harness.outcomes[0];
        assert_eq!((outcome.status, outcome.text.as_str()), (status, text), "{parts:?}");
        let state = harness.machine.state();
        let end = EventKind::ProcessingEnd { state, outcome: Some(status) };
        assert_eq!(harness.events.last(), Some(&end), "{parts:?}");
        assert_eq!(outcome.model_calls, parts.len() as u64, "{parts:?}");
        assert_eq!(outcome.usage.total_tokens, 11 * parts.len() as u64, "{parts:?}");
        assert_eq!(outcome.warning, None, "{parts:?}");
        assert_eq!(harness.requests.len(), parts.len(), "each repetition is a request: {parts:?}");
    }
}

#[test]
fn a_continuation_has_the_partial_text_and_a_prompt() {
    let mut harness = Harness::new();
    harness.submit("go");
    answer(&mut harness, &[Part::Cut("one, ")]);
    let sent = harness.sent();
    assert_eq!(sent[..2], ["user go", "assistant one, "]);
    assert!(sent[2].starts_with("user the output limit cut off your last response."), "{sent:?}");
    answer(&mut harness, &[Part::Whole("two")]);
    harness.submit("next");
    assert_eq!(harness.sent()[3..], ["assistant two", "user next"]);
}

#[test]
fn an_empty_response_leaves_nothing_in_the_history() {
    for part in [Part::Whole(""), Part::Reasoning, Part::CutReasoning] {
        let mut harness = Harness::new();
        harness.machine = Machine::new(TurnLimits::default(), Some(ReasoningEffort::from("high".to_owned())));
        harness.submit("go");
        answer(&mut harness, &[part]);
        assert_eq!(harness.sent(), ["user go"], "{part:?}");
    }
}

#[test]
fn a_second_empty_response_ends_a_run_with_results() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.round("look");
    answer(&mut harness, &[Part::Whole(""), Part::Whole("")]);
    assert_eq!(harness.outcomes[0].status, OutcomeStatus::Completed);
    assert_eq!(harness.outcomes[0].warning.as_deref(), Some("the final response is empty"));
    // The calls of an earlier input are no result of this one.
    harness.submit("again");
    answer(&mut harness, &[Part::Whole(""), Part::Whole("")]);
    assert_eq!(harness.outcomes[1].status, OutcomeStatus::Failed);
    let error = harness.outcomes[1].error.as_ref().unwrap();
    assert_eq!(error.to_string(), "the provider failed: the model returned an empty response twice");
}

#[test]
fn cut_off_reasoning_is_repeated_once_with_the_next_lower_effort() {
    for (effort, next) in
        [("max", "xhigh"), ("high", "medium"), ("medium", "low"), ("low", ""), ("minimal", ""), ("none", "")]
    {
        let mut harness = Harness::new();
        harness.machine = Machine::new(TurnLimits::default(), Some(ReasoningEffort::from(effort.to_owned())));
        harness.submit("go");
        answer(&mut harness, &[Part::CutReasoning]);
        if next.is_empty() {
            assert_eq!(harness.outcomes[0].status, OutcomeStatus::OutputLimit, "{effort}");
            continue;
        }
        let used = harness.requests.last().unwrap().reasoning_effort.clone();
        assert_eq!(used.as_ref().map(ReasoningEffort::as_str), Some(next));
        answer(&mut harness, &[Part::CutReasoning]);
        assert_eq!(harness.outcomes[0].status, OutcomeStatus::OutputLimit, "{effort}");
        harness.submit("again");
        let used = harness.requests.last().unwrap().reasoning_effort.clone();
        assert_eq!(used.as_ref().map(ReasoningEffort::as_str), Some(effort), "only for one response");
    }
}

#[test]
fn follow_ups_wait_after_a_response_that_was_cut_off() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::FollowUp { message: "later".into() });
    answer(&mut harness, &[Part::Cut("")]);
    assert_eq!(harness.outcomes[0].status, OutcomeStatus::OutputLimit);
    assert_eq!(harness.requests.len(), 1);
}

#[test]
fn cut_off_reasoning_without_a_set_effort_is_repeated_with_the_lowest() {
    let hidden = || {
        let mut usage = Usage::new(10, 1);
        usage.reasoning_tokens = Some(1);
        Response::new("p", "m", Message::new(Role::Assistant, Vec::new()))
            .with_finish_reason(FinishReason::new(Finish::Length))
            .with_usage(usage)
    };
    let visible =
        || Response::new("p", "m", thinking()).with_finish_reason(FinishReason::new(Finish::Length));
    for (response, supports_reasoning, next) in
        [(hidden(), true, Some("low")), (visible(), true, Some("low")), (hidden(), false, None)]
    {
        let mut harness = Harness::new();
        harness.runs += 1;
        harness.tell(InputKind::Submit { run: RunId(1), message: "go".into() });
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.supports_reasoning = supports_reasoning;
        harness.load_this(context);
        assert_eq!(harness.requests[0].reasoning_effort, None);
        harness
            .tell(InputKind::ModelReplied { model_call: harness.model_call(), response: Box::new(response) });
        let Some(next) = next else {
            assert_eq!(harness.outcomes[0].status, OutcomeStatus::OutputLimit);
            continue;
        };
        let used = harness.requests.last().unwrap().reasoning_effort.clone();
        assert_eq!((harness.requests.len(), used.as_ref().map(ReasoningEffort::as_str)), (2, Some(next)));
        harness.say("done");
        assert_eq!(harness.outcomes[0].status, OutcomeStatus::Completed);
        harness.submit("again");
        assert_eq!(harness.requests.last().unwrap().reasoning_effort, None, "only for one response");
    }
}

#[test]
fn an_unknown_finish_reason_is_a_warning() {
    for (raw, warning) in [
        (Some("odd"), Some("the response ended for an unknown reason, `odd`; it may be incomplete")),
        (None, None),
    ] {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.reply_with(Message::assistant("text"), Finish::Other, raw);
        let outcome = &harness.outcomes[0];
        assert_eq!((outcome.status, outcome.warning.as_deref()), (OutcomeStatus::Completed, warning));
        let expected = warning.map(|message| EventKind::Warning { message: message.to_owned() });
        let found = harness.events.iter().find(|event| matches!(event, EventKind::Warning { .. }));
        assert_eq!(found.cloned(), expected);
    }
}

#[test]
fn a_follow_up_has_its_own_response() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.tell(InputKind::FollowUp { message: "later".into() });
    answer(&mut harness, &[Part::Cut("one, "), Part::Whole("two"), Part::Whole("three")]);
    assert_eq!(harness.outcomes[0].text, "three");
}
