//! Summaries in place of the beginning of a conversation.

use super::*;
use crate::protocol::{CompactionPolicy, SessionId};

fn automatic() -> TurnLimits {
    TurnLimits { compaction: CompactionPolicy::automatic(), ..TurnLimits::default() }
}

/// Returns role and text of the messages of the newest request, shortened.
fn newest(harness: &Harness) -> Vec<String> {
    let request = harness.requests.last().unwrap();
    let short = |message: &HistoryItem| {
        let text: String = message.text().chars().take(12).collect();
        let parts = message.tool_calls().count() + message.results().count();
        format!("{:?} {text}{}", message.role, "+".repeat(parts))
    };
    request.messages.iter().map(short).collect()
}

/// Replies, with the size of the prompt as a provider would count it.
fn answer(harness: &mut Harness, text: &str) {
    let chars: usize =
        harness.requests.last().unwrap().messages.iter().map(|message| message.text().len()).sum();
    harness.reply_counted(text, chars as u64 / 4);
}

#[test]
fn compaction_on_request_replaces_all_but_the_tail() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.round("a");
    harness.say("done");
    let before = newest(&harness);
    let history = harness.machine.history().to_vec();
    harness.tell(InputKind::Compact);
    assert_eq!(harness.machine.state(), SessionState::Processing);
    let asked = newest(&harness);
    assert_eq!(asked[..before.len()], before, "the beginning is that of the conversation");
    assert_eq!(harness.requests.last().unwrap().tool_choice, None, "there are no tools to forbid");
    harness.say("What mattered.");
    assert_eq!((harness.machine.state(), harness.machine.history()), (SessionState::Idle, &history[..]));

    harness.submit("two");
    let summary = "User Summary of t";
    assert_eq!(newest(&harness), ["System system", summary, "Assistant done", "User two"]);
    assert!(
        harness.requests.last().unwrap().messages.get(1..2).unwrap()[0].text().ends_with("What mattered.")
    );
    harness.round("b");
    assert_eq!(
        newest(&harness)[..4],
        ["System system", summary, "Assistant done", "User two"],
        "it is stable"
    );
    assert!(harness.kinds().contains(&"COMPACTION_END".to_owned()));
}

#[test]
fn compaction_during_a_turn_waits_for_the_next_request() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.call(&["a"]);
    harness.tell(InputKind::Compact);
    let sent = harness.requests.len();
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "read");
    assert_eq!(harness.requests.len(), sent + 1);
    harness.say("Summary.");
    // The call and its result stay together.
    assert_eq!(newest(&harness), ["System system", "User Summary of t", "Assistant +", "Tool +"]);
    harness.say("done");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
}

#[test]
fn long_conversation_is_compacted_before_its_request() {
    let mut harness = Harness::with(automatic());
    harness.submit(&"x".repeat(2_000));
    answer(&mut harness, "first");
    harness.submit(&"y".repeat(1_000));
    answer(&mut harness, "second");
    let sent = harness.requests.len();
    // 85 % of 1,000 tokens are 3,400 characters.
    harness.submit(&"z".repeat(500));
    assert_eq!(harness.requests.len(), sent + 1);
    assert!(newest(&harness).last().unwrap().starts_with("User This conver"), "{:?}", newest(&harness));
    answer(&mut harness, "Both were long.");
    assert_eq!(
        newest(&harness),
        ["System system", "User Summary of t", "Assistant second", "User zzzzzzzzzzzz"],
        "the tail is at most a quarter of the window"
    );
    answer(&mut harness, "third");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
    let turns = harness.machine.history().len();
    assert_eq!(turns, 6, "the history has everything");
}

#[test]
fn second_compaction_summarises_the_first() {
    let mut harness = Harness::with(automatic());
    for text in ["x", "y", "z", "v", "w"] {
        harness.submit(&text.repeat(1_200));
        if newest(&harness).last().unwrap().starts_with("User This") {
            answer(&mut harness, "Short.");
        }
        answer(&mut harness, &format!("answer to {text}"));
    }
    let ends = harness.events.iter().filter_map(|event| match event {
        EventKind::CompactionEnd { from, through, .. } => Some((*from, *through)),
        _ => None,
    });
    let ends: Vec<(u64, u64)> = ends.collect();
    assert!(ends.len() >= 2 && ends[0].0 == 0, "{ends:?}");
    assert!(ends.windows(2).all(|pair| pair[1].0 == pair[0].1), "each continues after the last: {ends:?}");
    let messages = newest(&harness);
    assert_eq!(
        messages.iter().filter(|message| message.starts_with("User Summary")).count(),
        1,
        "{messages:?}"
    );
}

#[test]
fn request_refused_as_too_long_is_compacted_once() {
    let mut harness = Harness::with(automatic());
    harness.submit("one");
    answer(&mut harness, &"first ".repeat(50));
    harness.submit("two");
    harness.failed(ErrorKind::ContextLength, "");
    assert!(newest(&harness).last().unwrap().starts_with("User This"), "{:?}", newest(&harness));
    answer(&mut harness, "Summary.");
    assert_eq!(newest(&harness), ["System system", "User Summary of t", "User two"], "the shortest tail");
    harness.failed(ErrorKind::ContextLength, "");
    let outcome = harness.outcomes.last().unwrap();
    assert_eq!(outcome.status, OutcomeStatus::ContextFull, "it would only be refused again");
    assert_eq!(outcome.error.as_ref().map(|error| error.kind), Some(ErrorKind::ContextLength));
    let mut folded = Machine::new(automatic(), None);
    let mut end = None;
    for (input, followed) in &harness.log {
        for action in folded.fold(input.clone(), followed) {
            if let Action::Finish { outcome, .. } = action {
                end = Some((outcome.status, outcome.error));
            }
        }
    }
    assert_eq!(end, Some((outcome.status, outcome.error.clone())), "folding keeps the error");
}

#[test]
fn a_refused_request_that_a_compaction_does_not_shrink_ends_the_run() {
    let (long, long_summary) = ("first ".repeat(50), "s".repeat(400));
    for (text, summary, status) in [
        ("first", "Summary.", OutcomeStatus::ContextFull),
        ("first", "A summary that is longer than the conversation.", OutcomeStatus::ContextFull),
        (&*long, &*long_summary, OutcomeStatus::ContextFull),
        (&*long, "Summary.", OutcomeStatus::Completed),
    ] {
        let mut harness = Harness::with(automatic());
        harness.submit("one");
        answer(&mut harness, text);
        harness.submit("two");
        harness.failed(ErrorKind::ContextLength, "");
        let sent = harness.requests.len();
        answer(&mut harness, summary);
        let case = format!("{} characters replaced by {}", text.len(), summary.len());
        if status == OutcomeStatus::Completed {
            harness.say("second");
        } else {
            assert_eq!(harness.requests.len(), sent, "{case}: the request is not repeated");
            let is_said = |event: &EventKind| matches!(event, EventKind::Warning { message } if message.contains("leave no room"));
            assert_eq!(harness.events.iter().filter(|event| is_said(event)).count(), 1, "{case}");
        }
        assert_eq!(harness.last_outcome(), (status, SessionState::Idle), "{case}");
        let mut folded = Machine::new(automatic(), None);
        for (input, followed) in &harness.log {
            folded.fold(input.clone(), followed);
        }
        assert_eq!((folded.state(), folded.current_run()), (SessionState::Idle, None), "{case}");
        harness.submit("three");
        harness.say("third");
        assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed, "{case}: the session stays usable");
    }
}

/// Fails the model call with this status.
fn refuse(harness: &mut Harness, kind: ErrorKind, status: Option<u16>) {
    let error = Error::new(kind, "x");
    let error = status.into_iter().fold(error, Error::with_status);
    harness.failed_with(&error);
}

fn summary_is_requested(harness: &Harness) -> bool {
    newest(harness).last().is_some_and(|message| message.starts_with("User This conver"))
}

/// Limits with which only a request that exceeds the window is preceded by a compaction.
fn late() -> TurnLimits {
    TurnLimits { compaction: CompactionPolicy::automatic().with_at_percent(100), ..TurnLimits::default() }
}

#[test]
fn unknown_refusal_of_a_nearly_full_request_is_an_overflow() {
    use ErrorKind::{InvalidRequest, NotFound, QuotaExceeded, Server};
    for (tokens, kind, status, is_overflow) in [
        (910, InvalidRequest, Some(400), true),
        (910, InvalidRequest, Some(422), true),
        (890, InvalidRequest, Some(400), false),
        // The client refused the request, or the status has one meaning only.
        (910, InvalidRequest, None, false),
        (910, InvalidRequest, Some(409), false),
        (910, QuotaExceeded, Some(400), false),
        (910, NotFound, Some(400), false),
        (910, Server, Some(500), false),
    ] {
        let mut harness = Harness::with(late());
        harness.submit("one");
        harness.reply_counted("first", tokens);
        harness.submit("two");
        refuse(&mut harness, kind, status);
        let case = format!("{tokens} {kind:?} {status:?}");
        assert_eq!(summary_is_requested(&harness), is_overflow, "{case}");
        let is_said = |event: &EventKind| matches!(event, EventKind::Warning { message } if message.contains("it may be too long"));
        assert_eq!(harness.events.iter().any(is_said), is_overflow, "{case}");
        if is_overflow {
            harness.say("Summary.");
            assert_eq!(newest(&harness), ["System system", "User Summary of t", "User two"], "{case}");
            harness.say("second");
        }
        let expected = if is_overflow { OutcomeStatus::Completed } else { OutcomeStatus::Failed };
        assert_eq!(harness.last_outcome().0, expected, "{case}");
    }
}

#[test]
fn tools_count_for_an_assumed_overflow() {
    for (chars, is_overflow) in [(3_700, true), (3_000, false)] {
        let mut harness = Harness::with(late());
        harness.submit("one");
        harness.reply_counted("first", 0);
        harness.tell(InputKind::Configure { change: Change::Context });
        harness.tell(InputKind::Submit { run: RunId(9), message: "two".into() });
        let schema = serde_json::json!({"type": "object"});
        let tool = pintle_llm::ToolDefinition::new("a", "d".repeat(chars), schema).unwrap();
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.tools = vec![tool].into();
        harness.load_this(context);
        refuse(&mut harness, ErrorKind::InvalidRequest, Some(400));
        assert_eq!(summary_is_requested(&harness), is_overflow, "{chars}");
    }
}

#[test]
fn unknown_refusals_are_overflows_once_per_run() {
    let mut harness = Harness::with(late());
    harness.submit("one");
    harness.reply_counted("first", 910);
    harness.submit("two");
    refuse(&mut harness, ErrorKind::InvalidRequest, Some(400));
    harness.say("Summary.");
    // The run continues with a request that is as large.
    harness.tell(InputKind::Steer { message: "more".into() });
    harness.reply_counted("second", 910);
    refuse(&mut harness, ErrorKind::InvalidRequest, Some(400));
    assert!(!summary_is_requested(&harness), "{:?}", newest(&harness));
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Failed);

    harness.submit("again");
    refuse(&mut harness, ErrorKind::InvalidRequest, Some(400));
    assert!(summary_is_requested(&harness), "{:?}", newest(&harness));
}

#[test]
fn failed_compaction_is_said_and_the_turn_goes_on() {
    for reply in ["", "fails"] {
        let mut harness = Harness::with(automatic());
        harness.submit(&"x".repeat(2_000));
        answer(&mut harness, "first");
        harness.submit(&"y".repeat(1_600));
        if reply.is_empty() {
            answer(&mut harness, "");
        } else {
            harness.failed(ErrorKind::Server, "");
        }
        assert_eq!(newest(&harness).len(), 4, "the request has everything: {:?}", newest(&harness));
        answer(&mut harness, "second");
        assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
        let is_told = |event: &EventKind| matches!(event, EventKind::Warning { message } if message.starts_with("the conversation was not compacted"));
        assert_eq!(harness.events.iter().filter(|event| is_told(event)).count(), 1);
    }
}

#[test]
fn compaction_that_gains_little_is_not_repeated_at_once() {
    let mut harness = Harness::with(automatic());
    harness.submit(&"x".repeat(200));
    answer(&mut harness, "first");
    harness.submit(&"y".repeat(3_300));
    answer(&mut harness, &"s".repeat(190));
    let sent = harness.requests.len();
    harness.round("a");
    assert_eq!(harness.requests.len(), sent + 1, "{:?}", newest(&harness));
    assert!(!newest(&harness).last().unwrap().starts_with("User This"));
}

#[test]
fn interrupt_ends_a_compaction() {
    for is_idle in [true, false] {
        let mut harness = Harness::new();
        harness.submit("one");
        harness.say("first");
        harness.submit("two");
        if is_idle {
            harness.say("second");
        }
        harness.tell(InputKind::Compact);
        if !is_idle {
            harness.round("a");
        }
        harness.tell(InputKind::Interrupt);
        if !is_idle {
            assert_eq!(harness.wanted.last().unwrap(), "cancel model");
            harness.failed(ErrorKind::Abort, "");
            assert_eq!(harness.last_outcome().0, OutcomeStatus::Interrupted);
        } else {
            assert_eq!(harness.wanted.last().unwrap(), "cancel model");
            harness.failed(ErrorKind::Abort, "");
        }
        assert_eq!(harness.machine.state(), SessionState::Idle);
        harness.submit("three");
        assert!(newest(&harness).iter().all(|message| !message.starts_with("User Summary")));
    }
}

/// A session after two runs that is being compacted.
fn compacting_between_runs(limits: TurnLimits) -> Harness {
    let mut harness = Harness::with(limits);
    for input in ["one", "two"] {
        harness.submit(input);
        harness.say("done");
    }
    harness.tell(InputKind::Compact);
    assert_eq!(harness.machine.state(), SessionState::Processing);
    harness
}

fn ends_of_runs(harness: &Harness) -> usize {
    harness.events.iter().filter(|event| matches!(event, EventKind::ProcessingEnd { .. })).count()
}

/// The summary was all that was in progress.
#[test]
fn a_session_that_ends_during_a_compaction_between_runs_is_idle_until_it_is_closed() {
    for stop in [InputKind::Abort, InputKind::Close] {
        for last in ["replies", "fails", "is gone"] {
            let mut harness = compacting_between_runs(TurnLimits::default());
            harness.tell(stop.clone());
            match last {
                "replies" => harness.say("Summary."),
                "fails" => harness.failed(ErrorKind::Abort, ""),
                _ => harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None }),
            }
            assert_eq!(harness.machine.state(), SessionState::Idle, "the model {last} after {stop:?}");
            harness.tell(InputKind::CleanedUp);
            assert_eq!(harness.machine.state(), SessionState::Closed);
            assert_eq!(ends_of_runs(&harness), 2, "no run ended with it");
        }
    }
}

#[test]
fn a_compaction_between_runs_without_budget_for_a_retry_is_said_and_ends_no_run() {
    for last in ["fails", "is gone"] {
        let budget = Limits::default().with_tokens(2_000);
        let mut harness = compacting_between_runs(TurnLimits { budget, ..TurnLimits::default() });
        harness.tell(InputKind::ModelRetrying {
            model_call: harness.model_call(),
            attempt: 1,
            delay: Duration::ZERO,
            error: Error::new(ErrorKind::Stream, "x").info().clone(),
        });
        assert_eq!(harness.wanted.last().unwrap(), "cancel model");
        let told = harness.events.len();
        match last {
            "fails" => harness.failed(ErrorKind::Abort, ""),
            _ => harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None }),
        }
        assert_eq!(harness.machine.state(), SessionState::Idle, "the model {last}");
        assert_eq!(ends_of_runs(&harness), 2, "no run ended");
        match &harness.events[told..] {
            [EventKind::Warning { message }] => assert_eq!(
                message,
                "the conversation was not compacted: too little of the budget is left for another attempt"
            ),
            [EventKind::SessionResumed { .. }] => assert_eq!(last, "is gone"),
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the warnings so far, and the number of them that are results of compactions.
fn warnings(harness: &mut Harness) -> (Vec<String>, usize) {
    let warnings = harness.events.iter().filter_map(|event| match event {
        EventKind::Warning { message } => Some(message.clone()),
        _ => None,
    });
    (warnings.collect(), harness.machine.take_compaction_results().len())
}

#[test]
fn a_compaction_that_is_requested_during_the_last_request_can_follow_the_turn() {
    let mut harness = Harness::new();
    harness.submit("one");
    assert!(!harness.machine.can_start_requested_compaction(), "none is requested");
    harness.tell(InputKind::Compact);
    let said = "the conversation is compacted before the next request, or after this turn".to_owned();
    assert_eq!(warnings(&mut harness), (vec![said], 0), "it is acknowledged at once");
    assert!(!harness.machine.can_start_requested_compaction(), "the turn runs");
    harness.say("done");
    assert_eq!(harness.machine.state(), SessionState::Idle);
    assert!(harness.machine.can_start_requested_compaction());
    harness.tell(InputKind::Compact);
    assert_eq!(harness.machine.state(), SessionState::Processing);
    harness.say("Summary.");
    assert!(warnings(&mut harness).1 > 0, "the end of the compaction is its result");
    assert!(!harness.machine.can_start_requested_compaction(), "it has been made");
    harness.submit("two");
    assert_eq!(newest(&harness), ["System system", "User Summary of t", "Assistant done", "User two"]);
}

#[test]
fn other_warnings_are_no_result_of_a_compaction() {
    let mut harness = Harness::new();
    harness.tell(InputKind::Compact);
    let (said, results) = warnings(&mut harness);
    assert_eq!((said.len(), results), (1, 1), "there is nothing to summarize: {said:?}");
    harness.submit("one");
    harness.say("first");
    harness.tell(InputKind::Compact);
    harness.events.clear();
    // It is refused while the summary is written.
    harness.tell(InputKind::Rewind { turns: 0 });
    let (said, results) = warnings(&mut harness);
    assert_eq!((said.len(), results), (1, 0), "{said:?}");
    harness.failed(ErrorKind::Server, "");
    let (said, results) = warnings(&mut harness);
    assert_eq!((said.len(), results), (2, 1), "{said:?}");
}

#[test]
fn input_during_a_compaction_is_sent_after_it() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.say("first");
    harness.tell(InputKind::Compact);
    let sent = harness.requests.len();
    harness.submit("two");
    assert_eq!(harness.requests.len(), sent, "the summary is being written");
    harness.say("Summary.");
    assert_eq!(newest(&harness), ["System system", "User Summary of t", "Assistant first", "User two"]);
    harness.say("second");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn compaction_that_was_cut_off_is_made_again_or_forgotten() {
    let mut harness = Harness::with(automatic());
    harness.submit(&"x".repeat(2_000));
    answer(&mut harness, "first");
    harness.submit(&"y".repeat(1_600));
    let asked = newest(&harness);
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(newest(&harness), asked, "it is asked for again");
    harness.say("Summary.");
    harness.say("second");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);

    let mut harness = Harness::new();
    harness.submit("one");
    harness.say("first");
    harness.tell(InputKind::Compact);
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert_eq!(harness.machine.state(), SessionState::Idle);
}

#[test]
fn fork_has_the_newest_summary_before_its_cut() {
    let mut harness = Harness::new();
    for (input, answer) in [("one", "first"), ("two", "second"), ("three", "third")] {
        harness.submit(input);
        harness.say(answer);
        harness.tell(InputKind::Compact);
        harness.say(&format!("Summary after {input}."));
    }
    let id = SessionId::new("s");
    for (turns, expected) in
        [(1, None), (2, Some("one")), (3, Some("one")), (5, Some("two")), (6, Some("three"))]
    {
        let start = harness.machine.fork(turns, id.clone()).unwrap();
        let newest = start.compactions.last().map(|compaction| compaction.summary.clone());
        assert_eq!(newest, expected.map(|input| format!("Summary after {input}.")), "{turns}");
        let mut fork = Machine::starting(start);
        let out = fork.step(Input::new(
            Timestamp::from_millis(1),
            InputKind::Submit { run: RunId(0), message: "x".into() },
        ));
        let request = out.iter().find_map(|action| match action {
            Action::CallModel { request, .. } => Some(request),
            _ => None,
        });
        let texts: Vec<String> = request.unwrap().messages.iter().map(|message| message.text()).collect();
        let shows =
            texts.iter().any(|text| expected.is_some_and(|input| text.ends_with(&format!("after {input}."))));
        assert_eq!(shows, expected.is_some(), "{turns}: {texts:?}");
    }
}

#[test]
fn use_of_the_context_is_reported_in_steps() {
    let mut harness = Harness::new();
    harness.submit("short");
    harness.say("first");
    harness.submit(&"x".repeat(1_200));
    answer(&mut harness, "second");
    harness.submit("short");
    let reports: Vec<&EventKind> =
        harness.events.iter().filter(|event| matches!(event, EventKind::ContextUsage { .. })).collect();
    let [EventKind::ContextUsage { window: 1_000, used, system, tools: 0, history }] = reports[..] else {
        panic!("{reports:?}")
    };
    assert_eq!((used, system), (&(system + history), &1));
    assert!((290..330).contains(used), "{used}");
}
