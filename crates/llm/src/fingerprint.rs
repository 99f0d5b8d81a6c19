//! Fingerprints of content.

use std::fmt::{self, Write as _};
use std::hash::Hasher as _;
use std::io;

use serde::{Deserialize, Serialize};
use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Hash of content, the same in every process and on every machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Returns the fingerprint of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(bytes);
        Self(hasher.finish128().as_u128())
    }

    /// Returns the fingerprint of a text without building the text.
    #[must_use]
    pub fn from_display(text: impl fmt::Display) -> Self {
        let mut writer = HashWriter(SipHasher13::new());
        // Writing to a hasher cannot fail.
        let _ = write!(writer, "{text}");
        Self(writer.0.finish128().as_u128())
    }

    /// Returns the fingerprint of a value's JSON, without building the JSON.
    pub(crate) fn from_json(value: &impl Serialize) -> Self {
        let mut writer = HashWriter(SipHasher13::new());
        // The values used here always serialise; a truncated one would only weaken the hash.
        let _ = serde_json::to_writer(&mut writer, value);
        Self(writer.0.finish128().as_u128())
    }

    /// Returns the fingerprint of a sequence: `self` for everything before, then `next`.
    #[must_use]
    pub fn chain(self, next: Self) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(&self.0.to_le_bytes());
        hasher.write(&next.0.to_le_bytes());
        Self(hasher.finish128().as_u128())
    }
}

struct HashWriter(SipHasher13);

impl fmt::Write for HashWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> Self {
        fingerprint.to_string()
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        u128::from_str_radix(&text, 16).map(Self)
    }
}
