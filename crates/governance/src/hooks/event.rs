//! Effects of external hooks at each event.

pub use pintle_agent::HookEvent;

/// Effects that a hook can have at an event.
pub(super) trait HookEventExt: Copy {
    /// Returns whether it comes before a call, so that a hook can decide on it.
    fn is_before_call(self) -> bool;

    /// Returns whether it comes after a call, so that a hook can change its result.
    fn is_after_call(self) -> bool;

    /// Returns whether a matcher selects tools.
    fn is_about_calls(self) -> bool;

    /// Returns whether a hook can add text for the model.
    fn takes_context(self) -> bool;

    /// Returns whether a matcher has a meaning.
    fn has_matcher(self) -> bool;

    /// Returns whether a hook can block the event, or make the model continue.
    fn can_block(self) -> bool;

    /// Returns whether output that is not JSON is text for the model.
    fn takes_plain_text(self) -> bool;
}

impl HookEventExt for HookEvent {
    fn is_before_call(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    fn is_after_call(self) -> bool {
        matches!(self, Self::PostToolUse | Self::PostToolUseFailure)
    }

    fn is_about_calls(self) -> bool {
        self.is_before_call() || self.is_after_call()
    }

    fn takes_context(self) -> bool {
        self.takes_plain_text()
            || self.is_after_call()
            || matches!(self, Self::PreToolUse | Self::SubagentStart)
    }

    fn has_matcher(self) -> bool {
        self.is_about_calls() || matches!(self, Self::SessionStart)
    }

    fn can_block(self) -> bool {
        match self {
            Self::PreToolUse
            | Self::PostToolUse
            | Self::PostToolUseFailure
            | Self::PermissionRequest
            | Self::UserPromptSubmit
            | Self::Stop
            | Self::SubagentStop
            | Self::PreCompact => true,
            Self::SessionStart | Self::SessionEnd | Self::SubagentStart | _ => false,
        }
    }

    fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }
}
