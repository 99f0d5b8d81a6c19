//! Texts for the model, which are in `prompts/subagent/`.

use super::super::prompt::instructions;
use super::super::recorded::{LOST, NOT_KEPT};
use super::super::worker::{LATE, STOPPED};
use crate::protocol::SubagentRole;

const BASE: &str = "Base.\n\n# You are a subagent\n\nAnother agent gave you the task that follows as the first message, and no person \
                    reads along.\nWork on it by yourself until it is done.\nYour last message is all that the other agent gets of your \
                    work: say what you found or did, which files you changed, what you checked, and what is still open.\n";

#[test]
fn texts_are_those_of_earlier_sessions() {
    let texts = [
        (
            instructions("Base.\n", SubagentRole::Worker),
            format!(
                "{BASE}Others may be working on the same files at this moment: change only what your task needs, and read a \
                 file again before you edit it."
            ),
        ),
        (
            instructions("Base.\n", SubagentRole::Explorer),
            format!(
                "{BASE}You look and report, and change nothing: calls that write files are refused, and commands must not \
                 change anything either."
            ),
        ),
        (
            LOST.to_owned(),
            "the program that ran it ended, and the agent with it; what it had changed is still there"
                .to_owned(),
        ),
        (
            NOT_KEPT.to_owned(),
            "(The program that ran this agent has ended since, and its last message was not kept.)"
                .to_owned(),
        ),
        (LATE.to_owned(), "You had finished before this reached you:".to_owned()),
        (STOPPED.to_owned(), "You were stopped before this reached you:".to_owned()),
    ];
    for (text, expected) in texts {
        assert_eq!(text, expected);
    }
}
