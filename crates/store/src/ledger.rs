//! Small texts that an application keeps beside its sessions.

use std::fmt;

use async_trait::async_trait;

use crate::error::StoreError;

/// Longest name of a ledger, in bytes.
const MAX_NAME: usize = 100;

/// Keeps ledgers: small texts under a name, such as what all sessions of a day have spent. Whoever changes one replaces it
/// as a whole, if nobody else has changed it since it was read.
///
/// ```
/// # use pintle_store::{Ledgers, StoreError};
/// /// Adds one to a number that any number of processes count.
/// async fn count(ledgers: &dyn Ledgers) -> Result<u64, StoreError> {
///     loop {
///         let ledger = ledgers.ledger("count").await?;
///         let number = ledger.text.parse::<u64>().unwrap_or(0) + 1;
///         if ledgers.replace_ledger("count", ledger.version, &number.to_string()).await? {
///             return Ok(number);
///         }
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let store = pintle_store::MemoryStore::new();
/// # count(&store).await.unwrap();
/// assert_eq!(count(&store).await.unwrap(), 2);
/// # }
/// ```
#[async_trait]
pub trait Ledgers: fmt::Debug + Send + Sync {
    /// Returns a ledger. One that was never written is empty and has version 0.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidName`], [`StoreError::Io`] and the like.
    async fn ledger(&self, name: &str) -> Result<Ledger, StoreError>;

    /// Replaces the text of a ledger that still has this version, and returns whether it did: otherwise somebody else has
    /// changed it, or is changing it, and it has to be read again. The new text survives the death of the machine once this
    /// returns. An empty text removes the ledger, whose versions then begin anew.
    ///
    /// # Errors
    ///
    /// [`StoreError::InvalidName`], [`StoreError::Io`] and the like. The text may have been replaced nevertheless.
    async fn replace_ledger(&self, name: &str, version: u64, text: &str) -> Result<bool, StoreError>;
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

/// Checks the name of a ledger: 1 to 100 letters, digits, `-` and `_`.
///
/// # Errors
///
/// [`StoreError::InvalidName`].
pub fn check_ledger_name(name: &str) -> Result<(), StoreError> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_known) {
        return Err(StoreError::InvalidName(name.to_owned()));
    }
    Ok(())
}
