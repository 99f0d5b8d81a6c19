//! Errors of the session interface.

mod run_error;

pub use self::run_error::RunError;

/// Reason why a session rejected a command.
///
/// The failure of a run is a [`RunError`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// The session is closed, or was dropped.
    #[error("the session is closed")]
    Closed,
    /// The command queue of the session is full.
    #[error("the session has {0} pending commands and accepts no more")]
    Full(usize),
    /// The message was refused: it is empty, or too many are waiting already.
    #[error("the message was not queued: {0}")]
    Refused(String),
    /// The session cannot be rewound now, or not to this point.
    #[error("the session was not rewound: {0}")]
    NotRewound(String),
    /// A subagent could not be spawned: its type is unknown, its task is empty, or too many subagents are running.
    #[error("the subagent was not spawned: {0}")]
    NotSpawned(String),
    /// The message could not be recorded and was not accepted. The session ends.
    #[error("the message could not be recorded")]
    Unrecorded(#[source] pintle_llm::Error),
    /// No call with this id is waiting for a decision.
    #[error("no call `{0}` is waiting for a decision")]
    NoSuchApproval(String),
    /// The client has no provider with the profile's name.
    #[error("the profile cannot be used")]
    Profile(#[source] pintle_llm::Error),
    /// The history has fewer entries than the fork requires.
    #[error("the history has no entry {asked}: it has {entries} so far")]
    NoSuchEntry {
        /// Number of entries of the fork.
        asked: usize,
        /// Number of entries of the history.
        entries: usize,
    },
    /// The session does not record its inputs.
    #[error("the session has no record: it was built without one")]
    NotRecorded,
    /// The first line of the record could not be written to the journal.
    #[error("the journal cannot be written")]
    Journal(#[source] std::io::Error),
    /// The record does not replay, so the session cannot be resumed from it.
    #[error("the record cannot be resumed")]
    Resume(#[source] crate::record::ReplayError),
    /// The session of the record was closed.
    #[error("the session of the record is closed, so it cannot be resumed; it can be forked")]
    Ended,
    /// [`SessionBuilder::build`](crate::SessionBuilder::build) was called outside a tokio runtime, which drives the session.
    #[error("a session can only be built within a tokio runtime")]
    NoRuntime,
    /// The session cannot be built as configured.
    #[error("the session cannot be built")]
    Build(#[source] pintle_llm::Error),
}
