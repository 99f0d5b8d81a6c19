//! Names of the points of a session at which external hooks run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Point of a session at which external hooks run. The names are those that agents have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub enum HookEvent {
    /// Before a call that the gates do not deny.
    PreToolUse,
    /// After a call that succeeded.
    PostToolUse,
    /// After a call that failed.
    PostToolUseFailure,
    /// Before a person is asked about a call.
    PermissionRequest,
    /// Before an input of the user is taken.
    UserPromptSubmit,
    /// When a session starts, or resumes.
    SessionStart,
    /// When a session is closed.
    SessionEnd,
    /// Before a run ends because the model has answered.
    Stop,
    /// When a subagent starts.
    SubagentStart,
    /// Before the run of a subagent ends, or when a subagent that failed is closed.
    SubagentStop,
    /// Before the older part of the conversation is summarised.
    PreCompact,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 11] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
    ];

    /// Returns the name, such as `PreToolUse`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
        }
    }

    /// Returns the event with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_in_json() {
        let names = [
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "UserPromptSubmit",
            "SessionStart",
            "SessionEnd",
            "Stop",
            "SubagentStart",
            "SubagentStop",
            "PreCompact",
        ];
        for (event, name) in HookEvent::ALL.into_iter().zip(names) {
            assert_eq!((event.as_str(), event.to_string().as_str()), (name, name));
            assert_eq!(HookEvent::from_name(name), Some(event));
            assert_eq!(serde_json::to_value(event).unwrap(), name);
            assert_eq!(serde_json::from_value::<HookEvent>(name.into()).unwrap(), event);
        }
        assert_eq!(HookEvent::from_name("preToolUse"), None);
    }
}
