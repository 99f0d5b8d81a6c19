//! How a conversation ends: by leaving, or by switching to another session.

use pintle_agent::SessionId;
use pintle_governance::Mode;

/// Successor of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversationEnd {
    /// None: the user has left.
    Leave,
    /// A new session with the same settings.
    New(ConversationSettings),
    /// The session with this id or id prefix.
    Resume(String),
    /// A new session with the history of this one, or with its first entries.
    Fork {
        /// Session whose history is copied.
        id: SessionId,
        /// Number of entries to copy. All entries if not set.
        turns: Option<usize>,
        /// Settings of the new session.
        settings: ConversationSettings,
    },
    /// The same session, rewound to an earlier entry with its files.
    Rewind {
        /// The session.
        id: SessionId,
        /// Number of entries to keep.
        turns: usize,
        /// Whether to restore files that another process has changed.
        forced: bool,
        /// Input that is not sent yet.
        draft: String,
        /// Settings of the session.
        settings: ConversationSettings,
    },
}

/// Settings that the user may have changed, and that another session adopts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversationSettings {
    /// Name of the model.
    pub model: String,
    /// Reasoning effort, if it is set.
    pub effort: Option<String>,
    /// Mode of the policy.
    pub mode: Mode,
}
