//! Points of a session at which commands run.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Point of a session at which external hooks run. The names are those that agents have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
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

    /// Returns whether it comes before a call, so that a hook can decide on it.
    pub(super) const fn is_before_call(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    /// Returns whether it comes after a call, so that a hook can change its result.
    pub(super) const fn is_after_call(self) -> bool {
        matches!(self, Self::PostToolUse | Self::PostToolUseFailure)
    }

    /// Returns whether a matcher selects tools.
    pub(super) const fn is_about_calls(self) -> bool {
        self.is_before_call() || self.is_after_call()
    }

    /// Returns whether a hook can add text for the model.
    pub(super) const fn takes_context(self) -> bool {
        self.takes_plain_text()
            || self.is_after_call()
            || matches!(self, Self::PreToolUse | Self::SubagentStart)
    }

    /// Returns whether a matcher has a meaning.
    pub(super) const fn has_matcher(self) -> bool {
        self.is_about_calls() || matches!(self, Self::SessionStart)
    }

    /// Returns whether a hook can prevent something, or send the model on.
    pub(super) const fn can_block(self) -> bool {
        match self {
            Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::PermissionRequest
            | Self::UserPromptSubmit
            | Self::Stop
            | Self::SubagentStop
            | Self::PreCompact => true,
            Self::SessionStart | Self::SessionEnd | Self::SubagentStart => false,
        }
    }

    /// Returns whether output that is not JSON is text for the model.
    pub(super) const fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
