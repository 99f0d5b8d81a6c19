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
    /// The session cannot be built as asked.
    #[error("the session cannot be built")]
    Build(#[source] pintle_llm::Error),
}
