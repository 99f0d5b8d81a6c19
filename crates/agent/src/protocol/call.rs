//! Tool calls: their kind, and how they were prepared.

use std::path::PathBuf;

use pintle_llm::Fingerprint;
use pintle_tools::{ArgumentRepair, Effect, SandboxSide, ToolErrorKind, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Principal;

/// Kind of a tool call, by which a user interface can choose how to draw it. The names of tools differ between toolsets;
/// the kinds do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallKind {
    /// Reads files or lists a directory.
    Read,
    /// Creates, changes or deletes files.
    Edit,
    /// Searches in files or for files.
    Search,
    /// Runs a command, or controls one that runs in the background.
    Command,
    /// Fetches from the network or searches it.
    Fetch,
    /// Spawns a subagent.
    Agent,
    /// Anything else.
    #[default]
    Other,
}

impl CallKind {
    /// Returns the kind of the calls of a tool, from its [canonical kind](pintle_tools::Tool::kind) or, if that is not a
    /// built-in kind, from its effect.
    #[must_use]
    pub fn of_tool(kind: &str, effect: Effect) -> Self {
        match ToolKind::from_name(kind) {
            Some(ToolKind::ReadFile | ToolKind::ReadManyFiles | ToolKind::ListDir) => Self::Read,
            Some(ToolKind::WriteFile | ToolKind::EditFile | ToolKind::ApplyPatch) => Self::Edit,
            Some(ToolKind::Grep | ToolKind::Glob) => Self::Search,
            Some(ToolKind::Shell) => Self::Command,
            Some(ToolKind::SpawnAgent) => Self::Agent,
            None => match effect {
                Effect::Write => Self::Edit,
                Effect::Execute => Self::Command,
                Effect::Network => Self::Fetch,
                Effect::Read => Self::Other,
            },
        }
    }
}

/// Result of preparing a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Preparation {
    /// The call may run.
    Ready(CallPlan),
    /// The call may run if it is approved.
    Ask {
        /// Facts for its scheduling.
        plan: CallPlan,
        /// Arguments that it would run with.
        arguments: Value,
        /// Reason why approval is needed.
        reason: String,
        /// Identifies this call with exactly these arguments.
        fingerprint: Fingerprint,
        /// Side of the sandbox on which the command would run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxSide>,
    },
    /// The call does not run.
    Refused {
        /// Kind of failure.
        error: ToolErrorKind,
        /// Message for the model.
        message: String,
    },
}

/// Arguments of a call that were changed before it ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedArguments {
    /// The arguments that it runs with.
    pub arguments: Value,
    /// Principal that changed them, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
}

impl ChangedArguments {
    /// Returns the note for the model that precedes the result.
    pub(crate) fn note(&self) -> String {
        let by = self.by.as_ref().map_or_else(String::new, |by| format!(" by {by}"));
        format!("[The arguments were changed{by} before the call ran: {}]\n", self.arguments)
    }
}

/// Facts about a call that decide how it is scheduled and recovered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPlan {
    /// Effect of the call.
    pub effect: Effect,
    /// Whether the call can be repeated without harm.
    pub repeatable: bool,
    /// Whether the call declares its file changes before the first change, or spawns a subagent. Without a recorded
    /// declaration or subagent, it has had no effect.
    #[serde(default, skip_serializing_if = "is_false")]
    pub declares_changes: bool,
    /// Files that it may change: absolute, with links resolved, so that each file has one path.
    pub writes: Vec<PathBuf>,
    /// Repairs of its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
}

impl CallPlan {
    /// Returns whether a call that started, and declared nothing, can run again without harm.
    pub(crate) fn may_run_again(&self) -> bool {
        self.repeatable || self.declares_changes
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_kind_follows_tool_kind_then_effect() {
        let cases = [
            ("read_file", Effect::Read, CallKind::Read),
            ("list_dir", Effect::Read, CallKind::Read),
            ("apply_patch", Effect::Write, CallKind::Edit),
            ("grep", Effect::Read, CallKind::Search),
            ("shell", Effect::Read, CallKind::Command),
            ("spawn_agent", Effect::Read, CallKind::Agent),
            ("web_search", Effect::Network, CallKind::Fetch),
            ("rename_symbol", Effect::Write, CallKind::Edit),
            ("deploy", Effect::Execute, CallKind::Command),
            ("ask_user", Effect::Read, CallKind::Other),
        ];
        for (kind, effect, expected) in cases {
            assert_eq!(CallKind::of_tool(kind, effect), expected, "{kind}");
        }
    }
}
