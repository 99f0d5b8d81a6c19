//! Inputs and answers of hooks.

use serde::{Deserialize, Serialize};

/// Reason for the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEndReason {
    /// It was closed.
    Closed,
    /// It was aborted.
    Aborted,
    /// It failed.
    Failed,
    /// It was suspended, to be resumed later.
    Suspended,
}

/// Reason for a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactionTrigger {
    /// The application requested it.
    Manual,
    /// The conversation has become too long.
    Automatic,
}

/// Context and stop reason that hooks gave before a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookAdditions {
    /// Text for the model, which it reads below the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Reason to end the run with this round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<String>,
}

impl HookAdditions {
    pub(crate) fn is_empty(&self) -> bool {
        self.context.is_none() && self.stop.is_none()
    }
}

/// Prefix of the text that a hook adds.
const ADDED: &str = "\n\n[Added by a hook: ";

/// Adds the text of a hook to a text for the model.
pub(crate) fn add_context(text: &mut String, context: Option<&str>) {
    if let Some(context) = context.map(str::trim).filter(|context| !context.is_empty()) {
        text.push_str(ADDED);
        text.push_str(context);
        text.push(']');
    }
}

/// Returns a text without the additions of hooks.
pub(crate) fn without_context(text: &str) -> &str {
    if text.ends_with(']') { text.split(ADDED).next().unwrap_or(text) } else { text }
}
