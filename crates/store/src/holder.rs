//! The holder of a session.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Process that has a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Holder {
    /// Name of its host.
    pub host: String,
    /// Its process id on that host.
    pub pid: u32,
}

impl Holder {
    /// Creates the description of a process.
    #[must_use]
    pub fn new(host: impl Into<String>, pid: u32) -> Self {
        Self { host: host.into(), pid }
    }

    /// Returns this process. If the host name cannot be read, it is `this host`.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the name of this host is not in a file of an environment")]
    pub fn this_process() -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
        Self::new(host.as_deref().map_or("this host", str::trim), std::process::id())
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}
