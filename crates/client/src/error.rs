//! Errors of requests and streams.

use std::error::Error as StdError;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Problem details of the server (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerProblem {
    /// Kind of the problem, such as `/problems/not_found`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The kind as text.
    #[serde(default)]
    pub title: String,
    /// HTTP status.
    #[serde(default)]
    pub status: u16,
    /// Explanation for this request, with the expected value.
    pub detail: String,
}

impl ServerProblem {
    /// Returns the last part of the kind, such as `not_found` or `conflict`.
    #[must_use]
    pub fn code(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }
}

type ErrorSource = Box<dyn StdError + Send + Sync>;

/// Failure of a request, or of a stream that cannot continue. Its text never contains the token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Invalid server address.
    #[error("`{url}` is not an address of a server: {reason}")]
    InvalidUrl {
        /// Address, without its fragment.
        url: String,
        /// Reason.
        reason: String,
    },
    /// The token or the idempotency key has characters that are invalid in a header.
    #[error("the {0} has characters that cannot be sent")]
    InvalidHeader(&'static str),
    /// The id would change the path of the URL.
    #[error("`{0}` is no id")]
    InvalidId(String),
    /// An image of a message is a URL or a path instead of bytes.
    #[error("expected the bytes of an image, not a URL or a path")]
    ImageSource,
    /// The server does not support this kind of decision.
    #[error("the server takes no decision such as {0}")]
    Decision(String),
    /// HTTP, TLS or random numbers are not available on this machine.
    #[error("cannot set up HTTP on this machine")]
    Setup(#[source] ErrorSource),
    /// Connecting to the server failed.
    #[error("cannot connect to {host}")]
    Connect {
        /// Host and port, or the socket.
        host: String,
        /// Cause.
        source: ErrorSource,
    },
    /// The connection failed after it was established.
    #[error("the connection to {host} was lost")]
    Lost {
        /// Host and port, or the socket.
        host: String,
        /// Cause.
        source: ErrorSource,
    },
    /// No byte arrived for this time.
    #[error("nothing arrived for {0:?}")]
    Silent(Duration),
    /// The server ended a stream, for example because it shuts down.
    #[error("the server ended the stream")]
    Ended,
    /// The server refused the request.
    #[error("{}", problem.detail)]
    Refused {
        /// Problem details.
        problem: ServerProblem,
        /// Time after which the request may be repeated, if the server named one.
        retry_after: Option<Duration>,
    },
    /// A proxy, or a server other than Pintle, responded with an error.
    #[error("the response has the status {status} and no problem details")]
    Status {
        /// HTTP status.
        status: u16,
        /// Time after which the request may be repeated, if the response named one.
        retry_after: Option<Duration>,
    },
    /// The response is not of the expected type.
    #[error("expected {expected} in the response")]
    Unexpected {
        /// Expected type.
        expected: &'static str,
        /// Cause, if there is one.
        source: Option<ErrorSource>,
    },
    /// A line, an event or a response is longer than [`ClientOptions::max_bytes`](crate::ClientOptions::max_bytes).
    #[error("the response has more than {0} bytes in one piece")]
    TooLong(usize),
}

impl ClientError {
    pub(crate) fn setup(error: impl Into<ErrorSource>) -> Self {
        Self::Setup(error.into())
    }

    pub(crate) fn unexpected(expected: &'static str, error: impl Into<ErrorSource>) -> Self {
        Self::Unexpected { expected, source: Some(error.into()) }
    }

    /// Returns the problem details of the server.
    #[must_use]
    pub fn problem(&self) -> Option<&ServerProblem> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others have none")]
        match self {
            Self::Refused { problem, .. } => Some(problem),
            _ => None,
        }
    }

    /// Returns the kind of the problem, such as `not_found`; `conflict` if another client was first, `ended` for a session
    /// that has ended, and `rate` for a client that exceeds its rate limit.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.problem().map(ServerProblem::code)
    }

    /// Returns the HTTP status of the response that reports the failure.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others have none")]
        match self {
            Self::Refused { problem, .. } => Some(problem.status),
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Returns the time after which the request may be repeated, if the response names one.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others have none")]
        match self {
            Self::Refused { retry_after, .. } | Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Returns whether the same request may succeed later: the connection failed, the status is 502, 503 or 504, or the
    /// status is 429 with a `retry-after`.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self.status() {
            Some(429) => self.retry_after().is_some(),
            Some(status) => matches!(status, 502..=504),
            None => self.is_of_connection(),
        }
    }

    /// Returns whether a stream may continue later.
    pub(crate) fn is_transient(&self) -> bool {
        match self.status() {
            Some(status) => status >= 500 || matches!(status, 408 | 429),
            None => self.is_of_connection(),
        }
    }

    fn is_of_connection(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Lost { .. } | Self::Silent(_) | Self::Ended)
    }
}
