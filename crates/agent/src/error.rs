//! Failures of a session's own interface.

/// Why a session did not take a command.
///
/// What goes wrong inside a run is part of its [`Outcome`](crate::turn::Outcome), not an error here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session is closed, or was dropped.
    #[error("the session is closed")]
    Closed,
    /// More commands wait than the session takes.
    #[error("the session has {0} commands waiting and takes no more")]
    Full(usize),
    /// No call of this id waits for a decision.
    #[error("no call `{0}` waits for a decision")]
    NoSuchApproval(String),
    /// The client has no provider of the profile's name.
    #[error("the profile cannot be used")]
    Profile(#[source] pintle_llm::Error),
    /// The history has fewer entries than the fork should have.
    #[error("the history has no entry {asked}: it has {turns} so far")]
    NoSuchTurn {
        /// How many entries were asked for.
        asked: usize,
        /// How many there are.
        turns: usize,
    },
    /// The session does not keep its inputs.
    #[error("the session has no record: it was built without one")]
    NotRecorded,
    /// The journal does not take the first line of the record.
    #[error("the journal cannot be written")]
    Journal(#[source] std::io::Error),
    /// The record cannot be gone on with.
    #[error("the record cannot be resumed")]
    Resume(#[source] crate::record::ReplayError),
    /// The record tells how the session ended.
    #[error("the session of the record is closed, so it cannot be resumed; it can be forked")]
    Ended,
    /// The session cannot be built as asked.
    #[error("the session cannot be built")]
    Build(#[source] pintle_llm::Error),
}
