//! Reasons to refuse a connection.

use std::net::IpAddr;

/// Reason why the proxy refuses a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// No rule allows the name.
    #[error("no rule names it")]
    Unnamed,
    /// The target is an address, and no rule allows the address as such.
    #[error("it is an address, and no rule names the address")]
    UnnamedAddress,
    /// A rule denies the name or one of its addresses.
    #[error("the rule `{rule}` denies it")]
    Denied {
        /// The pattern of the rule.
        rule: String,
    },
    /// The name has an address that is not public, and no rule allows the address as such.
    #[error("{address} is {class}, and no rule names the address")]
    SpecialAddress {
        /// The address.
        address: IpAddr,
        /// Its class, such as `a private address`.
        class: &'static str,
    },
    /// The request in the connection names another host.
    #[error("the request names the host `{found}`")]
    OtherHost {
        /// The server name of TLS, or the `Host` of HTTP.
        found: String,
    },
    /// The TLS handshake in the connection names no host.
    #[error("the TLS handshake names no host")]
    NoServerName,
    /// The port requires TLS or HTTP, and the connection has something else.
    #[error("expected {expected} on this port")]
    OtherProtocol {
        /// The protocol of the port.
        expected: &'static str,
    },
    /// The request is invalid.
    #[error("invalid request: {reason}")]
    Invalid {
        /// The expectation that it does not meet.
        reason: &'static str,
    },
    /// The name has no address.
    #[error("the name cannot be resolved")]
    Unresolved,
    /// No address accepts a connection.
    #[error("no connection")]
    Unreachable,
}
