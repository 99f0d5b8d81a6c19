//! How a conversation ends: for good, or for another session.

use pintle_agent::SessionId;
use pintle_governance::Mode;

/// What follows a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the user has left.
    Leave,
    /// A new session with the same settings.
    New(Settings),
    /// The session of this id, or of which it is the beginning.
    Resume(String),
    /// A new session with the history of this one, or with the first entries of it.
    Fork { id: SessionId, turns: Option<usize>, settings: Settings },
    /// The same session, back at an earlier entry with its files.
    Rewind { id: SessionId, turns: usize, forced: bool, draft: String, settings: Settings },
}

/// Settings that the user may have changed, and another session is to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) model: String,
    pub(crate) effort: Option<String>,
    pub(crate) mode: Mode,
}
