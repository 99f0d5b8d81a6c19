//! Hashes of journal lines and of blobs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// BLAKE3 hash. Its text is 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Hash([u8; 32]);

/// The text is not a [`struct@Hash`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected 64 hexadecimal digits in lower case")]
pub struct InvalidHash;

impl Hash {
    /// Number of digits of the text form.
    pub(crate) const DIGITS: usize = 64;

    /// Returns the hash of these bytes, which is the name of a blob.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Predecessor hash of the first line of a journal.
    pub const START: Self = Self([0; 32]);

    /// Creates a hash from its bytes, such as bytes that were kept elsewhere.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        // A hash has only one text form, so that a changed letter does not go unnoticed.
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(InvalidHash);
        }
        blake3::Hash::from_hex(text).map(|hash| Self(*hash.as_bytes())).map_err(|_| InvalidHash)
    }
}

impl TryFrom<String> for Hash {
    type Error = InvalidHash;

    fn try_from(text: String) -> Result<Self, InvalidHash> {
        text.parse()
    }
}

impl From<Hash> for String {
    fn from(hash: Hash) -> Self {
        hash.to_string()
    }
}
