//! Limits on rounds and turns, loop detection and the context window.

use super::*;

#[test]
fn round_limit() {
    let mut harness = Harness::with(TurnLimits { max_tool_rounds_per_input: 2, ..TurnLimits::default() });
    for input in 1..=2 {
        harness.submit("go");
        harness.round("a");
        harness.round("b");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::RoundLimit, SessionState::Idle), "input {input}");
        assert!(matches!(
            harness.events[harness.events.len() - 2],
            EventKind::TurnLimit { round: Some(2), .. }
        ));
    }
    assert_eq!(harness.requests.len(), 4, "the limit counts per input");
}

#[test]
fn turn_limit_counts_over_all_inputs() {
    let mut harness = Harness::with(TurnLimits { max_turns: 3, ..TurnLimits::default() });
    harness.submit("one");
    harness.round("a");
    harness.say("1");
    harness.submit("two");
    harness.round("b");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::TurnLimit, SessionState::Idle));
    assert!(matches!(
        harness.events[harness.events.len() - 2],
        EventKind::TurnLimit { total_turns: Some(3), .. }
    ));
    harness.submit("three");
    assert_eq!((harness.outcomes.len(), harness.requests.len()), (3, 3), "the limit is still reached");
}

#[test]
fn loop_is_reported_once_per_window() {
    let mut harness = Harness::with(TurnLimits { loop_detection_window: 4, ..TurnLimits::default() });
    harness.submit("go");
    let mut reported = Vec::new();
    for round in 1..=9 {
        harness.round("same");
        if harness.kinds().iter().filter(|kind| *kind == "LOOP_DETECTION").count() > reported.len() {
            reported.push(round);
            assert_eq!(
                harness.sent().last().unwrap(),
                "user loop detected: the last 4 tool calls follow a repeating pattern. try a different approach."
            );
        }
    }
    assert_eq!(reported, [4, 8]);
    assert_eq!(harness.machine.history().iter().filter(|turn| turn.kind == TurnKind::Steering).count(), 2);
}

#[test]
fn polling_with_new_results_is_no_loop() {
    for (results, is_loop) in [(["1", "2", "3", "4"], false), (["1", "1", "1", "1"], true)] {
        let mut harness = Harness::with(TurnLimits { loop_detection_window: 4, ..TurnLimits::default() });
        harness.submit("go");
        for result in results {
            harness.call(&["poll"]);
            harness.prepared(0, Effect::Read, &[]);
            harness.finish(0, result);
        }
        assert_eq!(harness.kinds().contains(&"LOOP_DETECTION".to_owned()), is_loop, "{results:?}");
    }
}

#[test]
fn loop_detection_can_be_turned_off() {
    let limits =
        TurnLimits { loop_detection_window: 2, enable_loop_detection: false, ..TurnLimits::default() };
    let mut harness = Harness::with(limits);
    harness.submit("go");
    for _ in 0..5 {
        harness.round("same");
    }
    assert!(!harness.kinds().contains(&"LOOP_DETECTION".to_owned()));
}

#[test]
fn context_usage_causes_one_warning() {
    let mut harness = Harness::new();
    harness.submit(&"x".repeat(3_300));
    harness.round("a");
    harness.say("done");
    let warnings: Vec<&EventKind> =
        harness.events.iter().filter(|event| matches!(event, EventKind::Warning { .. })).collect();
    assert_eq!(warnings, [&EventKind::Warning { message: "Context usage at ~83% of context window".into() }]);
}

#[test]
fn request_beyond_the_window_is_not_sent() {
    let mut harness = Harness::new();
    harness.submit(&"x".repeat(8_008 - "system".len()));
    assert_eq!(harness.last_outcome(), (OutcomeStatus::ContextFull, SessionState::Idle));
    assert!(harness.events.contains(&EventKind::ContextFull { least_tokens: 1_001, context_window: 1_000 }));
    assert!(harness.requests.is_empty());
}

#[test]
fn request_that_may_fit_is_sent() {
    let mut harness = Harness::new();
    harness.submit(&"x".repeat(8_007 - "system".len()));
    assert_eq!((harness.requests.len(), harness.outcomes.len()), (1, 0));
}

#[test]
fn counted_prompt_takes_precedence_over_its_characters() {
    for (tokens, more, is_full) in [(900, 799, false), (900, 809, true), (1_000, 7, false), (1_000, 8, true)]
    {
        let mut harness = Harness::new();
        harness.submit("go");
        harness.reply_counted("done", tokens);
        harness.submit(&"x".repeat(more - "done".len()));
        let full = harness.events.iter().find(|event| matches!(event, EventKind::ContextFull { .. }));
        assert_eq!(full.is_some(), is_full, "{tokens} {more}: {full:?}");
        assert_eq!(harness.requests.len(), if is_full { 1 } else { 2 });
    }
}

#[test]
fn change_of_model_discards_the_counted_prompt() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.reply_counted("done", 1_001);
    harness.submit("more");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::ContextFull);
    harness.tell(InputKind::Configure { change: Change::Context });
    harness.tell(InputKind::Submit { run: RunId(9), message: "again".into() });
    harness.load_this(TurnContext::new("p", "another", "system", 1_000));
    assert_eq!(harness.requests.len(), 2);
}

#[test]
fn repeatedly_cut_off_calls_are_a_loop() {
    let mut harness = Harness::with(TurnLimits { loop_detection_window: 3, ..TurnLimits::default() });
    harness.submit("go");
    for _ in 0..3 {
        assert!(!harness.kinds().contains(&"LOOP_DETECTION".to_owned()));
        harness.reply_with(calls(&[("x", "write_file")]), Finish::Length, None);
    }
    assert!(harness.kinds().contains(&"LOOP_DETECTION".to_owned()));
}

#[test]
fn context_warning_is_above_the_share() {
    for (chars, is_warned) in [(3_200, false), (3_203, false), (3_204, true)] {
        let mut harness = Harness::new();
        harness.submit(&"x".repeat(chars - "system".len()));
        assert_eq!(harness.kinds().contains(&"WARNING".to_owned()), is_warned, "{chars}");
    }
}

/// A context with one tool whose definition takes about this many characters.
fn with_tool(chars: usize) -> TurnContext {
    let schema = serde_json::json!({"type": "object"});
    let tool = pintle_llm::ToolDefinition::new("a", "d".repeat(chars), schema).unwrap();
    let mut context = TurnContext::new("p", "m", "system", 1_000);
    context.tools = vec![tool].into();
    context
}

fn warnings(harness: &Harness) -> usize {
    harness.kinds().iter().filter(|kind| *kind == "WARNING").count()
}

#[test]
fn context_warning_includes_tools_and_the_count_of_the_provider() {
    // Characters of tools and of the first input, tokens that the provider counts, and warnings before the first and the
    // second request.
    for (tools, input, counted, expected) in [
        (0, 3_300, 10, (1, 1)),
        (3_300, 2, 10, (1, 1)),
        (1_700, 1_700, 10, (1, 1)),
        (1_000, 1_000, 10, (0, 0)),
        (0, 2, 810, (0, 1)),
        (1_000, 1_000, 810, (0, 1)),
        (1_000, 1_000, 790, (0, 0)),
        // A server that does not count.
        (1_000, 1_000, 0, (0, 0)),
    ] {
        let mut harness = Harness::new();
        harness.tell(InputKind::Submit { run: RunId(1), message: "x".repeat(input).into() });
        harness.load_this(with_tool(tools));
        let first = warnings(&harness);
        harness.reply_counted("done", counted);
        harness.tell(InputKind::Submit { run: RunId(2), message: "y".into() });
        assert_eq!((first, warnings(&harness)), expected, "{tools} {input} {counted}");
    }
}

#[test]
fn a_prompt_that_outgrows_the_window_was_warned_of() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.reply_counted("first", 810);
    harness.submit("two");
    assert_eq!(warnings(&harness), 1);
    harness.reply_counted("second", 1_018);
    harness.submit("three");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::ContextFull);
}

#[test]
fn tools_that_are_added_are_added_to_the_count() {
    for (tools, expected) in [(300, 0), (1_000, 1)] {
        let mut harness = Harness::new();
        harness.submit("one");
        harness.reply_counted("first", 700);
        harness.tell(InputKind::Configure { change: Change::Context });
        harness.tell(InputKind::Submit { run: RunId(9), message: "two".into() });
        harness.load_this(with_tool(tools));
        assert_eq!(warnings(&harness), expected, "{tools}");
    }
}

#[test]
fn entry_size_includes_all_its_parts() {
    use pintle_llm::{ContentPart, ThinkingData};

    let call = ToolCall::from_raw("id", "grep", r#"{"a":1}"#);
    let parts = vec![
        ContentPart::text("hello"),
        ContentPart::Thinking(ThinkingData::new("hmm")),
        ContentPart::ToolCall(call),
        ContentPart::ToolResult(ToolResult::new("id", "found it", false)),
    ];
    let turn = Turn::assistant(Message::new(Role::Assistant, parts), Timestamp::from_millis(0));
    assert_eq!(turn.chars(), 5 + 3 + 4 + 7 + 8);
}
