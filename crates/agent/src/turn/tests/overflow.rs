//! Compaction of conversations that are too long for one request, and the user's own messages beside a summary.

use super::*;
use crate::protocol::{Compaction, CompactionPolicy};

const INTRODUCTION: &str = "Summary of the conversation so far, which it replaces:\n\n";

fn limits() -> TurnLimits {
    TurnLimits { compaction: CompactionPolicy::automatic(), ..TurnLimits::default() }
}

/// Submits an input, to a model with this context window.
fn submit(harness: &mut Harness, message: impl Into<UserMessage>, window: u64) {
    harness.runs += 1;
    harness.tell(InputKind::Submit { run: RunId(harness.runs), message: message.into() });
    if matches!(harness.machine.phase, Phase::LoadingContext { .. }) {
        let mut context = TurnContext::new("p", "m", "system", window);
        context.max_tokens = Some(100);
        harness.load_this(context);
    }
}

/// Handles a round with one reading call, of a server that counts tokens or not.
fn read(harness: &mut Harness, output: &str, counts: bool) {
    let id = format!("a{}", harness.machine.turns);
    let usage = if counts { Usage::new(10, 1) } else { Usage::default() };
    let response = Response::new("p", "m", calls(&[(&id, "read")]))
        .with_finish_reason(FinishReason::new(Finish::ToolCalls))
        .with_usage(usage);
    harness.tell(InputKind::ModelReplied { model_call: harness.model_call(), response: Box::new(response) });
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, output);
}

/// A run with this many rounds, whose outputs have 4,000 characters each, of a model with a window of a million tokens.
fn run_of(rounds: usize, limits: TurnLimits) -> Harness {
    let mut harness = Harness::with(limits);
    harness.is_stored = false;
    submit(&mut harness, "read it all", 1_000_000);
    for round in 0..rounds {
        read(&mut harness, &format!("{round:>4000}"), false);
    }
    harness.is_stored = true;
    harness
}

/// Returns the size of a request in characters.
fn size(request: &Request) -> usize {
    let of = |message: &HistoryItem| {
        let calls: usize =
            message.tool_calls().map(|call| call.name.len() + call.arguments_text().len()).sum();
        let results: usize = message.results().map(|result| result.text().len()).sum();
        message.text().len() + calls + results
    };
    request.messages.iter().map(of).sum()
}

fn is_for_summary(request: &Request) -> bool {
    request.messages.last().is_some_and(|last| last.text().starts_with("This conversation will be shortened"))
}

fn warnings(harness: &Harness) -> Vec<&str> {
    harness.events.iter().filter_map(warning).collect()
}

fn warning(event: &EventKind) -> Option<&str> {
    match event {
        EventKind::Warning { message } => Some(message.as_str()),
        _ => None,
    }
}

/// Answers requests as a server does that refuses those of more than `most` characters, until one of the conversation is
/// answered or the run has ended. Returns the numbers of requests for summaries that were refused and answered.
fn serve(harness: &mut Harness, most: usize) -> (usize, usize) {
    let (mut refused, mut answered) = (0, 0);
    while harness.machine.state() == SessionState::Processing {
        let request = harness.requests.last().unwrap();
        let (fits, summarises) = (size(request) <= most, is_for_summary(request));
        if summarises {
            assert_eq!(harness.machine.continues_compaction(), refused + answered > 0);
            let is_limited = harness.machine.limits.budget.tokens.is_some();
            assert_eq!(harness.machine.reserved().is_some(), is_limited, "each request is reserved");
        }
        match (fits, summarises) {
            (true, true) => {
                answered += 1;
                harness.say("Done so far.");
            }
            (true, false) => break,
            (false, _) => {
                refused += usize::from(summarises);
                harness.failed(ErrorKind::ContextLength, "");
            }
        }
    }
    (refused, answered)
}

/// Returns the requests and the newest summary of a machine that gets the same inputs.
fn replayed(harness: &Harness, limits: TurnLimits) -> (Vec<Request>, Option<Compaction>) {
    let mut machine = Machine::new(limits, None);
    let mut requests = Vec::new();
    for (input, _) in &harness.log {
        for action in machine.step(input.clone()) {
            if let Action::CallModel { request, .. } = action {
                requests.push(*request);
            }
        }
    }
    (requests, machine.compactions.newest().cloned())
}

#[test]
fn a_refused_conversation_is_summarised_in_requests_that_fit() {
    for (rounds, most, is_divided) in [
        // The oldest outputs are shortened.
        (6, 15_000, false),
        (40, 15_000, true),
        // The oldest exchanges are left out.
        (200, 15_000, true),
        (200, 120_000, true),
    ] {
        let case = format!("{rounds} rounds, {most} characters");
        let mut harness = run_of(rounds, limits());
        assert!(size(harness.requests.last().unwrap()) > most, "{case}");
        let (refused, answered) = serve(&mut harness, most);
        assert!(refused + answered <= 10, "{case}: {refused} refused, {answered} answered");
        assert_eq!(answered > 1, is_divided, "{case}: {answered}");
        let request = harness.requests.last().unwrap();
        assert!(!is_for_summary(request) && size(request) <= most, "{case}");
        let summary = harness.sent()[0].clone();
        assert!(summary.contains("<user_message>\nread it all\n</user_message>"), "{case}: {summary}");
        let newest = harness.machine.compactions.newest().cloned();
        assert_eq!(newest.as_ref().unwrap().through, 2 * rounds - 1, "{case}: all but the last round");
        assert_eq!(replayed(&harness, limits()), (harness.requests.clone(), newest.clone()), "{case}");
        let mut folded = Machine::new(limits(), None);
        for (input, followed) in &harness.log {
            folded.fold(input.clone(), followed);
        }
        assert_eq!(folded.compactions.newest().cloned(), newest, "{case}");
        harness.say("all is read");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle), "{case}");
    }
}

#[test]
fn a_request_for_a_piece_is_text_without_tools() {
    let mut harness = run_of(6, limits());
    harness.failed(ErrorKind::ContextLength, "");
    let request = harness.requests.last().unwrap();
    assert!(is_for_summary(request) && request.tools.is_empty() && request.tool_choice.is_none());
    let roles: Vec<Role> = request.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::User]);
    let text = request.messages.get(1).unwrap().text();
    let (oldest, newest) = (text.find("Call a0 succeeded"), text.find("Call a4 succeeded"));
    let (oldest, newest) = (&text[oldest.unwrap()..][..1_000], &text[newest.unwrap()..]);
    assert!(oldest.contains("characters are left out here"), "{oldest}");
    assert!(!newest.contains("characters are left out here"), "{newest}");
    assert!(!text.contains("Call a5 succeeded"), "the newest round is kept as it is");
}

#[test]
fn a_conversation_beyond_the_window_is_not_sent_for_its_summary() {
    let mut harness = Harness::with(limits());
    submit(&mut harness, "read it all", 10_000);
    for _ in 0..8 {
        read(&mut harness, &"x".repeat(4_000), false);
    }
    // 85 % of the window are not reached yet, and one output exceeds it.
    read(&mut harness, &"x".repeat(20_000), false);
    let (refused, answered) = serve(&mut harness, 40_000);
    assert_eq!((refused, answered > 0), (0, true));
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn a_manual_compaction_that_is_refused_is_made_in_pieces() {
    let mut harness = run_of(40, TurnLimits::default());
    harness.reply_counted("all is read", 0);
    harness.tell(InputKind::Compact);
    let (refused, answered) = serve(&mut harness, 15_000);
    assert!(refused > 0 && answered > 1 && refused + answered <= 10, "{refused} {answered}");
    assert_eq!(harness.machine.state(), SessionState::Idle);
    submit(&mut harness, "more", 1_000_000);
    assert!(size(harness.requests.last().unwrap()) < 15_000);
}

#[test]
fn a_server_that_refuses_everything_ends_the_compaction() {
    let mut harness = run_of(40, limits());
    let (refused, answered) = serve(&mut harness, 0);
    assert!(refused <= 10 && answered == 0, "{refused}");
    assert_eq!(harness.last_outcome(), (OutcomeStatus::ContextFull, SessionState::Idle));
    assert!(warnings(&harness).iter().any(|message| message.contains("was not compacted")));
    submit(&mut harness, "again", 1_000_000);
    serve(&mut harness, 15_000);
    harness.say("done");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed, "the next run is compacted");
}

#[test]
fn a_compaction_that_fails_after_a_piece_is_reported_as_partial() {
    for (pieces, expected) in [(0, "was not compacted"), (1, "was compacted in part")] {
        let mut harness = run_of(40, limits());
        while size(harness.requests.last().unwrap()) > 15_000 {
            harness.failed(ErrorKind::ContextLength, "");
        }
        for _ in 0..pieces {
            harness.say("Done so far.");
        }
        assert!(is_for_summary(harness.requests.last().unwrap()), "{pieces}");
        harness.failed(ErrorKind::Server, "");
        let found: Vec<&str> = warnings(&harness)
            .into_iter()
            .filter(|message| message.contains("compacted: ") || message.contains("in part: "))
            .collect();
        assert!(matches!(found.as_slice(), [message] if message.contains(expected)), "{pieces}: {found:?}");
    }
}

#[test]
fn an_interrupt_ends_a_compaction_between_two_pieces() {
    for is_idle in [false, true] {
        for is_late in [false, true] {
            let mut harness = run_of(40, limits());
            if is_idle {
                harness.say("all is read");
                harness.tell(InputKind::Compact);
            }
            while size(harness.requests.last().unwrap()) > 15_000 {
                harness.failed(ErrorKind::ContextLength, "");
            }
            harness.say("Done so far.");
            assert!(is_for_summary(harness.requests.last().unwrap()));
            let sent = harness.requests.len();
            harness.tell(InputKind::Interrupt);
            assert_eq!(harness.wanted.last().unwrap(), "cancel model");
            if is_late {
                harness.say("Done too.")
            } else {
                harness.failed(ErrorKind::Abort, "")
            }
            assert_eq!(harness.requests.len(), sent, "idle: {is_idle}, late: {is_late}");
            assert_eq!(harness.machine.state(), SessionState::Idle);
            submit(&mut harness, "what now?", 1_000_000);
            assert!(harness.sent()[0].starts_with("user summary of the"), "the first piece counts");
        }
    }
}

#[test]
fn a_compaction_in_pieces_is_held_to_the_budget() {
    let budget = |tokens| TurnLimits { budget: Limits::default().with_tokens(tokens), ..limits() };
    for is_lowered in [false, true] {
        let mut harness = Harness::with(budget(1_000_000));
        submit(&mut harness, "read it all", 1_000_000);
        for _ in 0..8 {
            read(&mut harness, &"x".repeat(4_000), true);
        }
        harness.failed(ErrorKind::ContextLength, "");
        if is_lowered {
            let sent = harness.requests.len();
            harness.tell(InputKind::Configure { change: Change::Limits(budget(1)) });
            harness.say("Done so far.");
            assert_eq!(harness.requests.len(), sent);
            assert_eq!(harness.last_outcome().0, OutcomeStatus::Budget);
        } else {
            let (_, answered) = serve(&mut harness, 15_000);
            assert!(answered > 1, "{answered}");
            harness.say("done");
            assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
            let (committed, spent) = (harness.machine.committed(), harness.machine.spent());
            assert_eq!(committed.tokens(), spent.tokens(), "the rest returns");
        }
    }
}

#[test]
fn a_resumed_session_compacts_again_after_a_refusal() {
    let mut harness = run_of(6, limits());
    harness.failed(ErrorKind::ContextLength, "");
    harness.tell(InputKind::Resumed { attached: Vec::new(), asks: None });
    assert!(!is_for_summary(harness.requests.last().unwrap()));
    serve(&mut harness, 15_000);
    harness.say("all is read");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
}

#[test]
fn messages_of_the_user_survive_a_compaction_verbatim() {
    let mut harness = Harness::new();
    harness.submit("Fix the *parser*\n  now.\n\n[Added by a hook: use tabs]");
    harness.tell(InputKind::FollowUp { message: "Then the docs.".into() });
    harness.tell(InputKind::Steer { message: "Mind the tests!".into() });
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "an output");
    harness.tell(InputKind::SentOn { model_call: harness.model_call(), text: "lint it".into() });
    harness.say("fixed");
    harness.reply_with(Message::assistant("lin"), Finish::Length, None);
    harness.say("ted");
    harness.say("written");
    let kinds: Vec<TurnKind> = harness.machine.history().iter().map(|turn| turn.kind).collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == TurnKind::Steering).count(), 3, "{kinds:?}");
    harness.tell(InputKind::Compact);
    harness.say("All is done.");
    harness.submit("next");
    let expected = "Messages of the user in it, verbatim, the oldest first:\n\n\
        <user_message>\nFix the *parser*\n  now.\n</user_message>\n\n\
        <user_message>\nMind the tests!\n</user_message>\n\n\
        <user_message>\nThen the docs.\n</user_message>\n\nAll is done.";
    let sent = harness.requests.last().unwrap().messages.get(1).unwrap().text();
    assert_eq!(sent, format!("{INTRODUCTION}{expected}"));
}

#[test]
fn messages_of_the_user_have_a_limit() {
    let long = |character: char, count: usize| character.to_string().repeat(count);
    let (a, b, c) = (long('a', 2_000), long('b', 2_000), long('c', 2_000));
    // Window, inputs, what the summary message contains, and how many of the first character at most and at least.
    for (window, inputs, contains, chars) in [
        // 15 % of the window are 6,000 characters.
        (10_000, vec![a.clone(), b.clone(), c.clone()], vec![&*b, &*c, "left out: 1]"], 0..=50),
        (10_000, vec![long('a', 20_000), "go on".into()], vec!["go on", "left out here]"], 5_700..=6_000),
        (10_000, vec![long('ä', 20_000)], vec!["left out here]"], 5_700..=6_000),
        // 20,000 tokens are 80,000 characters.
        (10_000_000, vec![long('a', 200_000)], vec!["left out here]"], 79_700..=80_000),
        (10_000_000, vec![long('a', 79_000)], vec![], 79_000..=79_010),
    ] {
        let mut harness = Harness::new();
        for input in &inputs {
            submit(&mut harness, input, window);
            harness.say("done");
        }
        harness.tell(InputKind::Compact);
        harness.say("S");
        submit(&mut harness, "next", window);
        let text = harness.requests.last().unwrap().messages.get(1).unwrap().text();
        for expected in contains {
            assert!(text.contains(expected), "{window}: {}", text.len());
        }
        let first = inputs[0].chars().next().unwrap();
        let words = text.replace(INTRODUCTION, "");
        let found = words.chars().filter(|character| *character == first).count();
        assert!(chars.contains(&found), "{window}: {found}, expected {chars:?}");
        assert!(text.ends_with("\n\nS"), "{window}");
    }
}

/// Before the first input, the context is not loaded, so no request could be made.
#[test]
fn a_manual_compaction_of_an_empty_conversation_is_reported_at_once() {
    let mut harness = Harness::new();
    let nothing = "the conversation was not compacted: there is nothing to summarize yet";
    harness.tell(InputKind::Compact);
    assert_eq!(warnings(&harness), [nothing]);
    harness.submit("one");
    harness.say("first");
    assert_eq!(warnings(&harness), [nothing], "the request does not wait for the input");
}

#[test]
fn a_manual_compaction_that_gains_nothing_says_so() {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.say("first");
    harness.tell(InputKind::Compact);
    harness.say("A summary that is longer than the conversation.");
    assert!(warnings(&harness).last().unwrap().starts_with("the compaction gained nothing"));
    harness.tell(InputKind::Compact);
    assert_eq!(
        *warnings(&harness).last().unwrap(),
        "the conversation was not compacted: there is nothing to summarize yet"
    );
    let mut harness = Harness::new();
    harness.submit(&"one ".repeat(200));
    harness.say("first");
    harness.tell(InputKind::Compact);
    harness.say("S");
    assert_eq!(warnings(&harness), [""; 0], "it gained something");
    let mut harness = Harness::new();
    harness.tell(InputKind::Compact);
    assert!(warnings(&harness)[0].contains("there is nothing to summarize yet"), "before the first input");
}

/// Replies to requests for summaries until another request follows or the run has ended. Returns the number of replies.
fn summarize(harness: &mut Harness, text: &str, finish: Finish) -> usize {
    let mut replies = 0;
    while harness.machine.state() == SessionState::Processing
        && is_for_summary(harness.requests.last().unwrap())
    {
        harness.reply_with(Message::assistant(text), finish, None);
        replies += 1;
    }
    replies
}

#[test]
fn a_summary_that_is_cut_off_or_refused_is_reported() {
    use Finish::{ContentFilter, Error, Length};
    let failed = |problem: &str| format!("the conversation was not compacted: {problem}");
    for (finish, text, is_repeated, summary, warning) in [
        (
            ContentFilter,
            "I cannot.",
            false,
            None,
            failed("the model or a content filter refused to write a summary"),
        ),
        (Error, "Half a", false, None, failed("the model stopped in the middle of the summary")),
        (Length, "", true, None, failed("the output limit cut off the summary before its text")),
        (
            Length,
            "Half a",
            true,
            Some("Half a"),
            "the output limit cut off the summary: its end is missing".to_owned(),
        ),
    ] {
        let case = format!("{finish:?} {text:?}");
        let mut harness = Harness::with(limits());
        submit(&mut harness, "x".repeat(2_000).as_str(), 1_000);
        harness.reply_counted("first", 500);
        submit(&mut harness, "y".repeat(1_300).as_str(), 1_000);
        let replies = summarize(&mut harness, text, finish);
        assert_eq!(replies > 1, is_repeated, "{case}: {replies}");
        let newest = harness.machine.compactions.newest().cloned();
        assert_eq!(newest.as_ref().map(|made| made.summary.as_str()), summary, "{case}");
        assert!(warnings(&harness).contains(&warning.as_str()), "{case}: {:?}", warnings(&harness));
        let is_first = |warning: &&&str| warning.contains("it is requested again");
        assert_eq!(warnings(&harness).iter().filter(is_first).count(), usize::from(is_repeated), "{case}");
        harness.say("second");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle), "{case}");
        assert_eq!(replayed(&harness, limits()), (harness.requests.clone(), newest.clone()), "{case}");
        let mut folded = Machine::new(limits(), None);
        for (input, followed) in &harness.log {
            folded.fold(input.clone(), followed);
        }
        let folded = folded.compactions.newest().map(|made| (made.through, made.summary.clone()));
        assert_eq!(folded, newest.map(|made| (made.through, made.summary)), "{case}");
    }
}

#[test]
fn a_summary_that_was_cut_off_once_is_made_of_smaller_pieces() {
    let mut harness = Harness::with(limits());
    submit(&mut harness, "x".repeat(2_000).as_str(), 1_000);
    harness.reply_counted("first", 500);
    submit(&mut harness, "y".repeat(1_300).as_str(), 1_000);
    let whole = size(harness.requests.last().unwrap());
    harness.reply_with(Message::assistant("Half a"), Finish::Length, None);
    let request = harness.requests.last().unwrap();
    assert!(is_for_summary(request) && size(request) < whole, "{} of {whole}", size(request));
    assert_eq!(harness.machine.compactions.newest(), None);
    summarize(&mut harness, "Whole.", Finish::Stop);
    assert_eq!(harness.machine.compactions.newest().unwrap().summary, "Whole.");
    assert!(warnings(&harness).iter().all(|warning| !warning.contains("is missing")));
}

#[test]
fn a_short_summary_that_is_cut_off_is_not_requested_again() {
    let mut harness = Harness::with(limits());
    for text in ["one", "two"] {
        submit(&mut harness, text, 1_000);
        harness.say("done");
    }
    harness.tell(InputKind::Compact);
    assert_eq!(summarize(&mut harness, "Half a", Finish::Length), 1);
    assert_eq!(harness.machine.compactions.newest().unwrap().summary, "Half a");
    assert!(warnings(&harness).contains(&"the output limit cut off the summary: its end is missing"));
}
