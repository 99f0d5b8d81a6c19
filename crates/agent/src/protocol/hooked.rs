//! What hooks are told, and what they added.

use serde::{Deserialize, Serialize};

/// Why a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEndReason {
    /// It was closed.
    Closed,
    /// It was aborted.
    Aborted,
    /// It failed.
    Failed,
    /// It is left to go on later.
    Suspended,
}

/// Why the older part of a conversation is summarised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionTrigger {
    /// The application asked for it.
    Manual,
    /// The conversation has become too long.
    Automatic,
}

/// What hooks added to a call before it ran.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookAdditions {
    /// Text for the model, which it reads below the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Why the run ends with this round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

impl HookAdditions {
    pub(crate) fn is_empty(&self) -> bool {
        self.context.is_none() && self.stop.is_none()
    }
}

/// Adds the text of a hook to a text for the model.
pub(crate) fn add_context(text: &mut String, context: Option<&str>) {
    if let Some(context) = context.map(str::trim).filter(|context| !context.is_empty()) {
        text.push_str("\n\n[Added by a hook: ");
        text.push_str(context);
        text.push(']');
    }
}
