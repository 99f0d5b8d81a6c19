//! Errors of the database as errors of a store.

use std::error::Error as _;
use std::io;

use pintle_store::StoreError;
use tokio_postgres::error::SqlState;

/// A failed statement.
#[derive(Debug)]
pub(crate) struct StatementError {
    action: &'static str,
    source: io::Error,
    /// Whether the connection was lost, so that it is unknown whether the statement was executed.
    pub(crate) is_lost: bool,
    /// Whether the statement violated a foreign key.
    pub(crate) is_dangling: bool,
}

impl StatementError {
    pub(crate) fn new(action: &'static str, error: &tokio_postgres::Error) -> Self {
        let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        let code = error.code();
        // Class 08 contains failures of the connection. 57P contains shutdowns and restarts of the server.
        let is_shutdown =
            code.is_some_and(|code| code.code().starts_with("08") || code.code().starts_with("57P"));
        let is_lost = error.is_closed() || cause.is_some() || is_shutdown;
        let kind = match cause {
            Some(cause) => cause.kind(),
            None if is_lost => io::ErrorKind::ConnectionReset,
            None if code == Some(&SqlState::QUERY_CANCELED) => io::ErrorKind::TimedOut,
            None => io::ErrorKind::Other,
        };
        // Omits the detail of the error, which may contain values. No part of the error contains the password.
        let text = match error.as_db_error() {
            Some(error) => {
                format!("{}: {} ({})", error.severity(), error.message(), error.code().code())
            }
            None => error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}")),
        };
        let is_dangling = code == Some(&SqlState::FOREIGN_KEY_VIOLATION);
        Self { action, source: io::Error::new(kind, text), is_lost, is_dangling }
    }

    pub(crate) fn timed_out(action: &'static str) -> Self {
        let source = io::Error::new(io::ErrorKind::TimedOut, "the server did not answer in time");
        Self { action, source, is_lost: true, is_dangling: false }
    }
}

impl From<StatementError> for StoreError {
    fn from(failure: StatementError) -> Self {
        Self::Service { action: failure.action, source: failure.source }
    }
}

/// Returns the error for an input or a state that the store refuses, not the database.
pub(crate) fn refused_input(action: &'static str, reason: &'static str) -> StoreError {
    StoreError::Service { action, source: io::Error::new(io::ErrorKind::InvalidInput, reason) }
}

/// Returns the error for a row of an unexpected form.
pub(crate) fn unreadable_row(action: &'static str, error: &tokio_postgres::Error) -> StoreError {
    StatementError::new(action, error).into()
}
