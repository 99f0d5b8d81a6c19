//! Sessions that start with a history.

use std::path::Path;

use super::*;
use crate::protocol::{SessionId, SkippedFile};

fn begin(start: Start) -> Harness {
    let mut harness = Harness::new();
    harness.machine = Machine::starting(start);
    harness.events.clear();
    let [provider, model, working_directory] = ["p", "m", "/w"].map(str::to_owned);
    harness.tell(InputKind::Opened { provider, model, working_directory });
    harness
}

/// An input with steering, and one response.
fn history() -> Vec<Turn> {
    let at = Timestamp::from_millis(0);
    vec![Turn::user("one", at), Turn::steering("so", at), Turn::assistant(Message::assistant("1"), at)]
}

#[test]
fn initial_history_counts_for_the_turn_limit() {
    let limits = TurnLimits { max_turns: 2, ..TurnLimits::default() };
    let mut harness = begin(Start { history: history(), ..Start::new(limits, None) });
    harness.submit("two");
    harness.say("2");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::Completed);
    harness.submit("three");
    assert_eq!(harness.last_outcome().0, OutcomeStatus::TurnLimit);
}

/// A fork may start before and after it, and it does not count for the turn limit.
#[test]
fn interrupted_response_can_be_forked_and_is_no_turn() {
    let mut harness = Harness::with(TurnLimits { max_turns: 1, ..TurnLimits::default() });
    harness.submit("go");
    harness.tell(InputKind::Interrupt);
    harness.failed(ErrorKind::Abort, "I was about");
    let session = SessionId::new("s");
    for (turns, expected) in
        [(1, vec!["user go", "user again"]), (2, vec!["user go", "assistant i was about", "user again"])]
    {
        let start = harness.machine.fork(turns, session.clone()).unwrap();
        let stored = serde_json::to_string(&start).unwrap();
        assert_eq!(stored.matches("interrupted").count(), turns - 1, "{stored}");
        let mut fork = begin(serde_json::from_str(&stored).unwrap());
        fork.submit("again");
        assert_eq!(fork.sent(), expected, "as in the session that was forked");
        fork.say("done");
        assert_eq!(fork.last_outcome().0, OutcomeStatus::Completed);
        fork.submit("and more");
        assert_eq!(fork.last_outcome().0, OutcomeStatus::TurnLimit);
    }
    harness.submit("again");
    assert_eq!(harness.sent(), ["user go", "assistant i was about", "user again"]);
}

#[test]
fn project_of_an_initial_context_is_reported() {
    for (files, expected) in [(0, 1), (1, 2)] {
        let mut context = TurnContext::new("p", "m", "system", 1_000);
        context.project.skipped = vec![SkippedFile::new(Path::new("a"), "unreadable"); files];
        let context = Some(Box::new(context));
        let mut harness = begin(Start { context, ..Start::default() });
        assert_eq!(harness.kinds(), ["SESSION_START", "PROJECT_LOADED"][..expected]);
        harness.submit("go");
        assert_eq!((harness.wanted(), harness.requests.len()), (Vec::new(), 1), "nothing is loaded");
    }
}

#[test]
fn start_is_stored_with_used_subagent_names() {
    for named in [0, 1, 3] {
        let start = Start { subagents_named: named, ..Start::default() };
        let stored = serde_json::to_string(&start).unwrap();
        assert_eq!(stored.contains("subagents_named"), named > 0, "{stored}");
        assert_eq!(serde_json::from_str::<Start>(&stored).unwrap(), start);
        assert_eq!(Machine::starting(start).subagents_named(), named);
    }
}

#[test]
fn fork_answers_calls_without_results() {
    let mut harness = Harness::new();
    harness.submit("go");
    harness.round("a");
    let session = SessionId::new("s");
    let entries: Vec<usize> =
        (0..=3).map(|turns| harness.machine.fork(turns, session.clone()).unwrap().history.len()).collect();
    assert_eq!(entries, [0, 1, 3, 3]);
    assert_eq!(harness.machine.fork(4, session.clone()), None);
    let mut fork = begin(harness.machine.fork(2, session).unwrap());
    fork.submit("instead");
    assert_eq!(fork.machine.context().unwrap().model, "m");
    assert!(
        fork.sent()[2].starts_with("results a0:Not run here: the session was forked"),
        "{:?}",
        fork.sent()
    );
}
