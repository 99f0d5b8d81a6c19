//! How a conversation ends: by leaving, or by switching to another session.

use pintle_agent::SessionId;
use pintle_governance::Mode;

/// Successor of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// None: the user has left.
    Leave,
    /// A new session with the same settings.
    New(Settings),
    /// The session with this id or id prefix.
    Resume(String),
    /// A new session with the history of this one, or with its first entries.
    Fork { id: SessionId, turns: Option<usize>, settings: Settings },
    /// The same session, rewound to an earlier entry with its files.
    Rewind { id: SessionId, turns: usize, forced: bool, draft: String, settings: Settings },
}

/// Settings that the user may have changed, and that another session adopts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) model: String,
    pub(crate) effort: Option<String>,
    pub(crate) mode: Mode,
}
