//! Ends of requests for approval, and the principals that decide.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::id::text_conversions;

/// How a request for approval ended. Until then it is pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApprovalEnding {
    /// The call may run, once.
    Allowed,
    /// The call does not run.
    Denied,
    /// The request timed out, so the call does not run.
    Expired,
    /// The turn was stopped, so no decision is needed.
    Cancelled,
    /// Another request replaces it: the call has other arguments now, or another grant applies.
    Superseded,
}

/// Author of an action, as the application names them, such as `jan@workstation`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Principal(String);

impl Principal {
    /// Creates a principal with this name. The name is recorded verbatim, so it should not be a secret.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

text_conversions!(Principal);

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
