//! Texts for the model, which are in `prompts/`: a recorded session has to send the same bytes again.

use super::super::compaction::{INTRODUCTION, PIECE, USER_MESSAGES};
use super::super::rewind::REWOUND;
use super::super::round::{HOST_GONE, LOST, NotRunReason};
use super::super::start::FORKED;

#[test]
fn texts_are_those_of_earlier_sessions() {
    let texts = [
        (
            HOST_GONE,
            "Interrupted: the program that ran this call ended in the middle of it. Nobody knows whether it had its \
             effect, all of it or part of it. It was not run again.",
        ),
        (LOST, "Interrupted: the turn was stopped while this call ran. It may have had part of its effect."),
        (FORKED, "Not run here: the session was forked before this call had a result."),
        (REWOUND, "Not run here: the session was rewound to before this call had a result."),
        (
            NotRunReason::CutOff.for_model(),
            "Not run: the answer was cut off by the output limit, so this call may be incomplete. Make it again, in \
             smaller pieces if it is long.",
        ),
        (NotRunReason::Blocked.for_model(), "Not run: the answer was blocked by a content filter."),
        (NotRunReason::Stopped.for_model(), "Not run: the turn was stopped before this call started."),
        (
            NotRunReason::OverBudget.for_model(),
            "Not run: the session has reached a limit on what it may spend. No call runs until the limit is raised.",
        ),
        (INTRODUCTION, "Summary of the conversation so far, which it replaces:\n\n"),
        (USER_MESSAGES, "Messages of the user in it, verbatim, the oldest first:\n\n"),
        (PIECE, "Part of the conversation to summarize:\n\n"),
    ];
    for (text, expected) in texts {
        assert_eq!(text, expected);
    }
}
