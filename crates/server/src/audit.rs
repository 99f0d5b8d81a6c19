//! Lines about requests that change something.

use std::fmt;
use std::net::IpAddr;

use pintle_agent::Timestamp;
use serde::Serialize;

/// Keeps a line about each request with a valid token that changes something. Those without are counted only, among the answers
/// of [`Server`](crate::Server)'s metrics. Implemented by embedding applications.
pub trait AuditLog: fmt::Debug + Send + Sync {
    /// Keeps a line. Called before the answer is sent, so it should not take long. What cannot be kept is the
    /// implementation's to report.
    fn write(&self, line: &AuditLine);
}

const _: fn(&dyn AuditLog) = |_| {};

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditLine {
    /// Time of the answer.
    pub at: Timestamp,
    /// Name of the token; `None` without a valid one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tenant of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path, without a query.
    pub path: String,
    /// Key of the request, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Address of the client, or of the proxy before it; `None` on a unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// HTTP status of the answer.
    pub status: u16,
}
