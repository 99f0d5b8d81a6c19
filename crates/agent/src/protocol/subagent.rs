//! Plain data about subagents, shared by events, records and approvals.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Limits, SessionId};

/// State of a subagent (loop specification, section 7.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum SubagentStatus {
    /// Working on a message.
    Running,
    /// Finished its last message with an answer.
    Completed,
    /// Failed, reached a limit, or was stopped.
    Failed,
}

impl fmt::Display for SubagentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        })
    }
}

/// Identity of a subagent within its tree of sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubagentOrigin {
    /// Name among the subagents of its parent, such as `agent_1`.
    pub agent_id: String,
    /// Id of the subagent's own session.
    pub session_id: SessionId,
    /// Id of the session that spawned it.
    pub parent: SessionId,
    /// Nesting depth: 1 for a subagent of the session that the embedding application built.
    pub depth: u32,
    /// Its role.
    #[serde(default)]
    pub role: SubagentRole,
}

/// Differences between a subagent and the session that spawns it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SubagentSettings {
    /// Directory below the parent's working directory; the parent's if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Model; the parent's if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Limit on model responses; 0 is unlimited.
    #[serde(default)]
    pub max_turns: u64,
    /// Permissions.
    #[serde(default)]
    pub role: SubagentRole,
    /// Name of the type that the embedding application defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Limits of the subagent, in addition to its slice of the parent's budget.
    #[serde(default, skip_serializing_if = "Limits::is_unlimited")]
    pub limits: Limits,
}

/// Permissions of a subagent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubagentRole {
    /// Has the same permissions as its parent.
    #[default]
    Worker,
    /// Must not change files.
    Explorer,
}

impl SubagentRole {
    /// Returns the name of the role: `worker` or `explorer`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Explorer => "explorer",
        }
    }
}

impl SubagentSettings {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

const PREFIX: &str = "agent_";

/// Returns the name of the subagent with this number.
pub(crate) fn agent_name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// Returns the number in a name made by [`agent_name`].
pub(crate) fn agent_number(name: &str) -> Option<u64> {
    name.trim().strip_prefix(PREFIX)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_number_reads_back_a_name() {
        assert_eq!(agent_number(&agent_name(12)), Some(12));
        assert_eq!(agent_number(" agent_3 "), Some(3));
        for other in ["agent_", "agent_x", "Agent_1", "1", "agent_-1", ""] {
            assert_eq!(agent_number(other), None, "{other}");
        }
    }

    #[test]
    fn status_is_spelled_as_in_the_specification() {
        let cases = [
            (SubagentStatus::Running, "\"RUNNING\"", "running"),
            (SubagentStatus::Completed, "\"COMPLETED\"", "completed"),
            (SubagentStatus::Failed, "\"FAILED\"", "failed"),
        ];
        for (status, json, text) in cases {
            assert_eq!(
                (serde_json::to_string(&status).unwrap().as_str(), status.to_string().as_str()),
                (json, text)
            );
        }
    }
}
