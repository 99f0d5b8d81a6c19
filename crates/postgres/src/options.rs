//! Options of a store.

use std::fmt;
use std::time::Duration;

use pintle_store::StoreError;

use crate::statement_error::refused_input;

/// Longest name of a schema. The name of a notification channel contains it and a number, and has at most 63 bytes.
const MAX_SCHEMA: usize = 40;

/// Shortest lease. With a shorter one, a busy server would look like a lost one.
const MIN_LEASE: Duration = Duration::from_millis(500);

/// Options of a [`PostgresStore`](crate::PostgresStore).
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresOptions {
    pub(crate) schema: String,
    pub(crate) lease: Duration,
    pub(crate) allows_plain_hosts: bool,
    pub(crate) password: Option<String>,
}

impl PostgresOptions {
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

    /// Sets the schema of the tables, which is created with them: 1 to 40 lower-case letters, digits and `_`, not a digit
    /// first. Stores in different schemas share nothing.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the length of a lease, which is how long an unresponsive writer keeps its session. A writer renews its lease
    /// three times in this time. At least 500 ms.
    #[must_use]
    pub fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// Sets the password, which overrides the one in the connection string.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Allows servers on other hosts, although the connection is not encrypted, as `sslmode=disable` in the connection
    /// string does. Only for networks that encrypt their traffic: on any other network, every host on the path can read and
    /// change all sessions.
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
            return Err(refused_input("use the schema", expected));
        }
        if self.lease < MIN_LEASE {
            return Err(refused_input("use the lease", "expected at least 500 ms"));
        }
        Ok(())
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("schema", &self.schema)
            .field("lease", &self.lease)
            .field("allows_plain_hosts", &self.allows_plain_hosts)
            .finish_non_exhaustive()
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self::new()
    }
}
