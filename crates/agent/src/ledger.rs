//! Small texts that an application keeps beside its sessions.

use std::fmt;
use std::io;

use async_trait::async_trait;

/// Keeps ledgers: small texts under a name, such as what all sessions of a day have spent. Whoever changes one replaces it
/// as a whole, if nobody else has changed it since it was read.
#[async_trait]
pub trait Ledgers: fmt::Debug + Send + Sync {
    /// Returns a ledger. One that was never written is empty and has version 0.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) for a name that is not 1 to 100 letters, digits, `-` and `_`; otherwise
    /// the cause.
    async fn ledger(&self, name: &str) -> io::Result<Ledger>;

    /// Replaces the text of a ledger that still has this version, and returns whether it did: otherwise somebody else has
    /// changed it, or is changing it, and it has to be read again. The new text survives the death of the machine once this
    /// returns. An empty text removes the ledger, whose versions then begin anew.
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
    /// Number of times that it was replaced.
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
