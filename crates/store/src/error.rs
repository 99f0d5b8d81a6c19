//! Errors of stores.

use std::io;
use std::path::PathBuf;

use pintle_agent::SessionId;

use crate::hash::Hash;
use crate::holder::Holder;

/// Reason why an operation of a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such session.
    #[error("there is no session `{0}`")]
    NotFound(SessionId),
    /// There is a session with this id already.
    #[error("there is a session `{0}` already")]
    Exists(SessionId),
    /// Another writer has the session.
    #[error("session `{session}` is in use by {holder}")]
    InUse {
        /// The session.
        session: SessionId,
        /// The holder of the session.
        holder: Holder,
    },
    /// The writer lost the session to another one, or ended after an error.
    #[error("this process does not own session `{0}` any more")]
    Lost(SessionId),
    /// Lines that a reader returned are void: they were never synced, and a new writer did not follow them.
    #[error("the lines of session `{session}` from {seq} on are void: another writer did not follow them")]
    Reset {
        /// The session.
        session: SessionId,
        /// Number of the first void line.
        seq: u64,
    },
    /// A line that was on disk was changed, or is missing.
    #[error("the journal of session `{session}` is damaged at line {seq}: {problem}")]
    Damaged {
        /// The session.
        session: SessionId,
        /// Number of the first wrong line.
        seq: u64,
        /// The problem.
        problem: &'static str,
    },
    /// The journal has no line with this number.
    #[error("session `{session}` has no line {seq}")]
    NoSuchLine {
        /// The session.
        session: SessionId,
        /// Number of the line.
        seq: u64,
    },
    /// The journal was written by a newer version.
    #[error("the journal of session `{session}` has version {found}; this program reads up to {expected}")]
    Version {
        /// The session.
        session: SessionId,
        /// Version of the journal.
        found: u64,
        /// Newest version that is read.
        expected: u64,
    },
    /// A file with the name of a journal is not a journal.
    #[error("`{}` is not a journal", .0.display())]
    NotAJournal(PathBuf),
    /// The id cannot be stored.
    #[error("`{0}` cannot be the id of a stored session: expected 1 to 200 bytes")]
    InvalidId(SessionId),
    /// The name of a ledger cannot be stored.
    #[error("`{0}` cannot be the name of a ledger: expected 1 to 100 letters, digits, `-` and `_`")]
    InvalidName(String),
    /// A blob was removed.
    #[error("the value {0} was removed")]
    MissingBlob(Hash),
    /// The bytes of a blob were changed.
    #[error("the value {0} is damaged")]
    DamagedBlob(Hash),
    /// An operation of the file system failed.
    #[error("cannot {action} `{}`", .path.display())]
    Io {
        /// The operation, such as `write`.
        action: &'static str,
        /// Its file or directory.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// An operation of a database, or of another service that keeps sessions, failed.
    #[error("cannot {action}")]
    Service {
        /// The operation, such as `connect to the database`.
        action: &'static str,
        /// The cause, as text of the service. Its kind distinguishes a lost connection from a timeout.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// Returns whether a stored value was changed or is missing. The values stored before it can still be read.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            Self::Damaged { .. } | Self::NotAJournal(_) | Self::MissingBlob(_) | Self::DamagedBlob(_)
        )
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        let kind = if let StoreError::Io { source, .. } | StoreError::Service { source, .. } = &error {
            source.kind()
        } else if let StoreError::InvalidName(_) = &error {
            io::ErrorKind::InvalidInput
        } else {
            io::ErrorKind::Other
        };
        Self::new(kind, error)
    }
}
