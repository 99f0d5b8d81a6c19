//! Audit log of mutating requests.

use std::fmt;
use std::net::IpAddr;

use pintle_agent::Timestamp;
use serde::Serialize;

/// Stores a line for each mutating request with a valid token. Requests without a valid token are only counted, among the
/// responses in [`Server`](crate::Server)'s metrics. Implemented by embedding applications.
pub trait AuditLog: fmt::Debug + Send + Sync {
    /// Stores a line. Called before the response is sent, so it must return quickly. The implementation reports lines that
    /// it cannot store.
    fn write(&self, line: &AuditLine);
}

const _: fn(&dyn AuditLog) = |_| {};

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditLine {
    /// Time of the response.
    pub at: Timestamp,
    /// Name of the token; `None` if the server has no tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Tenant of the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// HTTP method.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Idempotency key of the request, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Address of the client, or of the proxy in front of it; `None` on a unix socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// HTTP status of the response.
    pub status: u16,
}
