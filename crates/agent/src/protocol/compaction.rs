//! Compaction of long conversations: the policy, and its result.

use serde::{Deserialize, Serialize};

use super::event::EventKind;

/// Trigger and model of compactions.
///
/// A compaction is a view: requests start with a summary in place of the older entries, and the history keeps them all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CompactionPolicy {
    /// Share of the context window, less the limit on output tokens, in percent from 1 to 100: a larger request is
    /// preceded by a compaction. `None` compacts on request only. Default `None`.
    pub at_percent: Option<u8>,
    /// Model of the same provider that writes the summary; the session's own if `None`.
    pub model: Option<String>,
}

impl CompactionPolicy {
    /// Share of the window at which hosts that compact automatically should do so.
    pub const AUTOMATIC: u8 = 85;

    /// Creates a policy that compacts automatically, at [`AUTOMATIC`](Self::AUTOMATIC) percent.
    #[must_use]
    pub fn automatic() -> Self {
        Self { at_percent: Some(Self::AUTOMATIC), model: None }
    }

    /// Sets the share of the window in percent, at most 100.
    #[must_use]
    pub fn with_at_percent(mut self, percent: u8) -> Self {
        self.at_percent = Some(percent.clamp(1, 100));
        self
    }

    /// Sets the model that writes summaries.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }
}

/// Result of a requested compaction.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CompactionReport {
    /// [`CompactionEnd`](EventKind::CompactionEnd) events of the compaction, one for each summary, and its warnings, such as
    /// the reason why no summary was written. Other warnings of the session are not included. Empty after an interrupt.
    pub events: Vec<EventKind>,
    /// Whether the conversation is compacted before the next model call, or after the turn.
    pub is_deferred: bool,
}

/// Summary in place of the beginning of a history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compaction {
    /// Number of entries that the summary replaces.
    pub through: usize,
    /// Number of history entries when the summary was made.
    pub made_at: usize,
    /// The summary.
    pub summary: String,
    /// The user's own messages in the replaced entries, verbatim, the oldest first: as many of the newest as fit the smaller
    /// of 20,000 tokens and 15 % of the context window.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user_messages: String,
}

impl Compaction {
    /// Returns its approximate size in requests, in characters.
    pub(crate) fn chars(&self) -> u64 {
        (self.summary.chars().count() + self.user_messages.chars().count()) as u64
    }
}
