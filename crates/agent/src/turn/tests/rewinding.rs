//! Rewinding of the conversation, and checkpoints of the workspace.

use super::*;
use crate::protocol::{Checkpoint, CheckpointReason};

/// A session with two answered inputs, the first of them with a call.
fn worked() -> Harness {
    let mut harness = Harness::new();
    harness.submit("one");
    harness.call(&["a"]);
    harness.prepared(0, Effect::Read, &[]);
    harness.finish(0, "ok");
    harness.say("first");
    harness.submit("two");
    harness.say("second");
    harness
}

fn rewind(harness: &mut Harness, turns: usize) {
    harness.tell(InputKind::Rewind { turns });
}

#[test]
fn the_next_request_has_what_is_left() {
    for (turns, left) in [
        (6, vec!["user one", "calls a0", "results a0:ok", "assistant first", "user two", "assistant second"]),
        (5, vec!["user one", "calls a0", "results a0:ok", "assistant first", "user two"]),
        (4, vec!["user one", "calls a0", "results a0:ok", "assistant first"]),
        (2, vec!["user one", "calls a0", "results a0:Not run here: the session was rewound"]),
        (1, vec!["user one"]),
        (0, vec![]),
    ] {
        let mut harness = worked();
        let (spent, repairs) = (harness.machine.spent(), harness.machine.repairs());
        rewind(&mut harness, turns);
        let kept = harness.machine.history().len();
        assert!(matches!(harness.events.last(), Some(EventKind::Rewound { turns }) if *turns == kept));
        assert_eq!((harness.machine.spent(), harness.machine.repairs()), (spent, repairs + 1));
        harness.submit("three");
        let sent = harness.sent();
        let (last, before) = sent.split_last().unwrap();
        assert_eq!(last, "user three");
        assert_eq!(before.len(), left.len(), "after {turns}: {sent:?}");
        for (sent, expected) in before.iter().zip(&left) {
            assert!(sent.starts_with(expected), "after {turns}: {sent} is not {expected}");
        }
        harness.say("third");
        assert_eq!(harness.last_outcome(), (OutcomeStatus::Completed, SessionState::Idle));
    }
}

#[test]
fn a_rewind_is_refused_while_something_runs_and_beyond_the_history() {
    let warns = |harness: &Harness| {
        matches!(harness.events.last(), Some(EventKind::Warning { message })
            if message.starts_with("the session was not rewound: "))
    };
    let mut harness = worked();
    rewind(&mut harness, 7);
    assert!(warns(&harness) && harness.machine.history().len() == 6);
    harness.submit("three");
    rewind(&mut harness, 1);
    assert!(warns(&harness), "{:?}", harness.events.last());
    harness.say("third");
    assert_eq!(harness.machine.history().len(), 8);
    harness.tell(InputKind::Close);
    harness.tell(InputKind::CleanedUp);
    let events = harness.events.len();
    rewind(&mut harness, 1);
    assert_eq!(harness.events.len(), events, "no event follows the end");
}

#[test]
fn a_rewind_uses_the_newest_compaction_before_its_cut() {
    let mut harness = worked();
    harness.tell(InputKind::Compact);
    harness.say("summary");
    harness.submit("three");
    harness.say("third");
    rewind(&mut harness, 7);
    harness.submit("again");
    assert!(harness.sent()[0].contains("summary"), "{:?}", harness.sent());
    harness.say("done");
    rewind(&mut harness, 4);
    rewind(&mut harness, 7);
    rewind(&mut harness, 4);
    harness.submit("again");
    assert_eq!(harness.sent()[0], "user one", "the compaction was made later");
}

#[test]
fn a_rewind_can_be_undone_until_something_follows() {
    let mut harness = worked();
    let before: Vec<_> = harness.machine.history().to_vec();
    rewind(&mut harness, 2);
    rewind(&mut harness, 1);
    assert_eq!((harness.machine.history().len(), harness.machine.rewindable_entries()), (1, 6));
    rewind(&mut harness, 5);
    assert_eq!(harness.machine.history(), &before[..5]);
    rewind(&mut harness, 6);
    assert_eq!((harness.machine.history(), harness.machine.rewindable_entries()), (&before[..], 6));
    harness.submit("three");
    assert_eq!(harness.sent()[..6].last().unwrap(), "assistant second");
    harness.say("third");

    rewind(&mut harness, 4);
    harness.submit("another way");
    harness.say("fourth");
    assert_eq!(harness.machine.rewindable_entries(), 6, "what was cut off is gone");
    rewind(&mut harness, 7);
    assert!(matches!(harness.events.last(), Some(EventKind::Warning { .. })), "{:?}", harness.events.last());
}

#[test]
fn queued_messages_and_ids_of_calls_survive_a_rewind() {
    let mut harness = worked();
    harness.tell(InputKind::Steer { message: "wait".into() });
    rewind(&mut harness, 1);
    harness.submit("again");
    assert_eq!(harness.sent()[1..], ["user again", "user wait"]);
    harness.reply(calls(&[("a0", "a")]));
    let ids: Vec<&str> =
        harness.machine.history().last().unwrap().item.tool_calls().map(|call| call.id.as_str()).collect();
    assert_ne!(ids, ["a0"], "an id never means two calls");
}

#[test]
fn a_checkpoint_is_reported_with_its_place_in_the_history() {
    let mut harness = worked();
    let checkpoint = Checkpoint::new("c1", 3).with_partial(Some("one file is too large".into()));
    harness.tell(InputKind::CheckpointTaken {
        reason: CheckpointReason::BeforeCall,
        checkpoint: checkpoint.clone(),
    });
    let expected = EventKind::CheckpointTaken { reason: CheckpointReason::BeforeCall, checkpoint, turns: 6 };
    assert_eq!(harness.events.last(), Some(&expected));
}
