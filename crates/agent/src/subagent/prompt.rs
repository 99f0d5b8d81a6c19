//! Base instructions of a subagent.

use crate::protocol::SubagentRole;

/// Returns the parent's base instructions, followed by the instructions for a subagent of this role.
pub(super) fn instructions(parents: &str, role: SubagentRole) -> String {
    let role = match role {
        SubagentRole::Worker => WORKER,
        SubagentRole::Explorer => EXPLORER,
    };
    format!("{}\n\n{SUBAGENT}{role}", parents.trim_end()).trim_start().to_owned()
}

const SUBAGENT: &str = include_str!("../../prompts/subagent/base.md");

const WORKER: &str = include_str!("../../prompts/subagent/worker.md").trim_ascii_end();

const EXPLORER: &str = include_str!("../../prompts/subagent/explorer.md").trim_ascii_end();
