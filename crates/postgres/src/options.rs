//! What an application may choose.

use std::fmt;
use std::time::Duration;

use pintle_store::StoreError;

use crate::failure::refused;

/// Longest name of a schema. A channel of notifications has it and a number in its name, of at most 63 bytes.
const MAX_SCHEMA: usize = 40;

/// Shortest lease: below it, a busy server would be taken for a lost one.
const MIN_LEASE: Duration = Duration::from_millis(500);

/// Options of a [`PostgresStore`](crate::PostgresStore).
#[derive(Clone, PartialEq, Eq)]
pub struct Options {
    pub(crate) schema: String,
    pub(crate) lease: Duration,
    pub(crate) allows_plain_hosts: bool,
    pub(crate) password: Option<String>,
}

impl Options {
    /// Creates the default options: schema `pintle`, leases of 30 s, servers on this host only.
    #[must_use]
    pub fn new() -> Self {
        Self {
            schema: "pintle".to_owned(),
            lease: Duration::from_secs(30),
            allows_plain_hosts: false,
            password: None,
        }
    }

    /// Sets the schema that has the tables, and is created with them: 1 to 40 lower-case letters, digits and `_`, with no
    /// digit at the beginning. Stores in different schemas have nothing in common.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets how long a session stays with a writer of which nothing is heard. It is renewed three times as often. At least
    /// 500 ms.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the password, which takes the place of one in the connection string.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Allows servers on other hosts, although the connection is not encrypted, as `sslmode=disable` in the connection string
    /// does. Only for networks that encrypt by themselves: everybody else on the way can read and change all sessions.
    #[must_use]
    pub fn allow_plain_hosts(mut self) -> Self {
        self.allows_plain_hosts = true;
        self
    }

    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let starts_with_digit = self.schema.starts_with(|first: char| first.is_ascii_digit());
        if !(1..=MAX_SCHEMA).contains(&self.schema.len())
            || starts_with_digit
            || !self.schema.bytes().all(is_name)
        {
            let expected = "expected 1 to 40 lower-case letters, digits and `_`, not a digit first";
            return Err(refused("use the schema", expected));
        }
        if self.lease < MIN_LEASE {
            return Err(refused("use the lease", "expected at least 500 ms"));
        }
        Ok(())
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .field("allows_plain_hosts", &self.allows_plain_hosts)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}
