//! Small texts that an application keeps beside its sessions.

use std::fmt;
use std::io;

use async_trait::async_trait;

/// Stores ledgers: small named texts, such as the spending of all sessions of a day. A writer replaces the whole text,
/// on the condition that the ledger has not changed since it was read.
#[async_trait]
pub trait Ledgers: fmt::Debug + Send + Sync {
    /// Returns a ledger. A ledger that was never written is empty and has version 0.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a name that is not 1 to 100 letters, digits, `-` and `_`; otherwise
    /// the cause.
    async fn ledger(&self, name: &str) -> io::Result<Ledger>;

    /// Replaces the text of a ledger if it still has this version. Returns `false` if another writer has changed the
    /// ledger or is changing it; the caller must read it again. The new text survives a crash of the machine once this
    /// returns. An empty text removes the ledger, and its versions restart at 0.
    ///
    /// # Errors
    ///
    /// As for [`ledger`](Self::ledger). The text may have been replaced nevertheless.
    async fn replace_ledger(&self, name: &str, version: u64, text: &str) -> io::Result<bool>;
}

/// Text of a ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ledger {
    /// Number of times that the ledger was replaced.
    pub version: u64,
    /// The text.
    pub text: String,
}

impl Ledger {
    /// Creates a ledger with its version.
    #[must_use]
    pub fn new(version: u64, text: impl Into<String>) -> Self {
        Self { version, text: text.into() }
    }
}
