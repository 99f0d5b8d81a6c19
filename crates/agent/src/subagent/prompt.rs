//! Base instructions of a subagent.

use crate::protocol::SubagentRole;

/// Returns the parent's base instructions followed by those for a subagent of this role.
pub(super) fn instructions(parents: &str, role: SubagentRole) -> String {
    let role = match role {
        SubagentRole::Worker => WORKER,
        SubagentRole::Explorer => EXPLORER,
    };
    format!("{}\n\n{SUBAGENT}{role}", parents.trim_end()).trim_start().to_owned()
}

const SUBAGENT: &str = "\
# You are a subagent

Another agent gave you the task that follows as the first message, and no person reads along.
Work on it by yourself until it is done.
Your last message is all that the other agent gets of your work: say what you found or did, which files you changed, \
what you checked, and what is still open.
";

const WORKER: &str = "\
Others may be working on the same files at this moment: change only what your task needs, and read a file again before \
you edit it.";

const EXPLORER: &str = "\
You look and report, and change nothing: calls that write files are refused, and commands must not change anything either.";
