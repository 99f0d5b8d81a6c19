//! Errors of the host, of the client, and of the connection.

use std::error::Error;
use std::path::PathBuf;

use pintle_llm::error_chain;
use serde_json::json;

use crate::outbox::Disconnected;
use crate::rpc::RpcError;

/// Reason why the host did not fulfil a client's request. The client gets it as the error of the response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The host does not support the request.
    #[error("this agent does not support {0}")]
    Unsupported(String),
    /// The client has to authenticate first.
    #[error("authentication is required")]
    AuthenticationRequired,
    /// There is no session with this id.
    #[error("there is no session `{0}`")]
    NoSuchSession(String),
    /// Another process or connection has the session.
    #[error("session `{id}` is in use by {holder}")]
    Held {
        /// Id of the session.
        id: String,
        /// Holder, as text for users, such as `pintle with process id 4711`.
        holder: String,
    },
    /// The session works in a directory other than the requested one.
    #[error("session `{id}` works in {}", directory.display())]
    OtherDirectory {
        /// Id of the session.
        id: String,
        /// Working directory of the session.
        directory: PathBuf,
    },
    /// A parameter of the request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// Any other failure.
    #[error("{what}")]
    Failed {
        /// Description of the failure.
        what: String,
        /// The cause.
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl HostError {
    /// Creates [`Failed`](Self::Failed) with a cause.
    #[must_use]
    pub fn failed(what: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed { what: what.into(), source: Some(source.into()) }
    }

    pub(crate) fn to_rpc(&self) -> RpcError {
        let (code, reason) = match self {
            Self::Unsupported(_) => (RpcError::METHOD_NOT_FOUND, "unsupported"),
            Self::AuthenticationRequired => (RpcError::AUTHENTICATION_REQUIRED, "authentication_required"),
            Self::NoSuchSession(_) => (RpcError::NOT_FOUND, "no_such_session"),
            Self::Held { .. } => (RpcError::CONFLICT, "session_held"),
            Self::OtherDirectory { .. } => (RpcError::INVALID_PARAMS, "other_directory"),
            Self::Invalid(_) => (RpcError::INVALID_PARAMS, "invalid"),
            Self::Failed { .. } => (RpcError::INTERNAL, "failed"),
        };
        RpcError::new(code, error_chain(self)).with_data(json!({"reason": reason}))
    }
}

/// Reason why the client did not fulfil a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The client has closed the connection.
    #[error("the client is gone")]
    Disconnected,
    /// The client answered with an error.
    #[error("the client answered with error {code}: {message}")]
    Refused {
        /// JSON-RPC error code.
        code: i64,
        /// Error message.
        message: String,
    },
    /// The client's result does not have the form that the protocol requires.
    #[error("the client's result is malformed")]
    Malformed(#[source] serde_json::Error),
}

impl From<Disconnected> for ClientError {
    fn from(Disconnected: Disconnected) -> Self {
        Self::Disconnected
    }
}

/// Error that ended a connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Reading from the client failed.
    #[error("cannot read from the client")]
    Read(#[source] std::io::Error),
    /// Writing to the client failed.
    #[error("cannot write to the client")]
    Write(#[source] std::io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_errors_have_a_code_and_a_reason() {
        let cases = [
            (HostError::Unsupported("lists".into()), -32601, "unsupported"),
            (HostError::AuthenticationRequired, -32000, "authentication_required"),
            (HostError::NoSuchSession("x".into()), -32002, "no_such_session"),
            (HostError::Held { id: "x".into(), holder: "another process".into() }, -32010, "session_held"),
            (
                HostError::OtherDirectory { id: "x".into(), directory: "/work".into() },
                -32602,
                "other_directory",
            ),
            (HostError::Invalid("no".into()), -32602, "invalid"),
            (HostError::failed("cannot open the store", "disk full"), -32603, "failed"),
        ];
        for (error, code, reason) in cases {
            let rpc = error.to_rpc();
            assert_eq!((rpc.code, rpc.data), (code, Some(json!({"reason": reason}))), "{error}");
        }
        let failed = HostError::failed("cannot open the store", "disk full").to_rpc();
        assert_eq!(failed.message, "cannot open the store: disk full");
    }
}
