//! Scripted failures before a turn.

use std::time::Duration;

use serde::Deserialize;

/// Maximum stall of a failure.
const MAX_STALL: Duration = Duration::from_secs(600);

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawFailure")]
#[non_exhaustive]
pub struct Failure {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Silence before the failure; none by default, at most 600 s.
    pub stall: Duration,
}

/// Kind of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// An HTTP error instead of a response.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// Value of the `Retry-After` header. For Gemini, whole seconds are sent in the body instead.
        retry_after: Option<String>,
        /// The body; by default an error in the form of the dialect.
        body: Option<String>,
    },
    /// The connection is closed within a response.
    Cut {
        /// Number of complete events sent before half of the next one.
        after_events: usize,
    },
    /// An error event within a stream that started with status 200.
    ///
    /// A request without streaming gets the status of the error.
    ErrorEvent(ErrorEvent),
    /// The connection is closed without a response.
    Silence,
}

/// Errors that a provider reports within a stream.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorEvent {
    /// The provider is overloaded.
    Overloaded,
    /// The client exceeds a rate limit.
    RateLimit,
    /// The provider failed.
    ServerError,
}

impl Failure {
    /// Creates an HTTP error in the form of the dialect.
    #[must_use]
    pub fn status(status: u16) -> Self {
        FailureKind::Status { status, retry_after: None, body: None }.into()
    }

    /// Creates a connection loss after some events.
    #[must_use]
    pub fn cut_after_events(after_events: usize) -> Self {
        FailureKind::Cut { after_events }.into()
    }

    /// Creates an error within a stream.
    #[must_use]
    pub fn error_event(event: ErrorEvent) -> Self {
        FailureKind::ErrorEvent(event).into()
    }

    /// Creates a silence followed by a closed connection.
    #[must_use]
    pub fn silence(stall: Duration) -> Self {
        Self { kind: FailureKind::Silence, stall }
    }

    /// Sets the retry delay of an HTTP error: the value of its `Retry-After` header, seconds or a date. Has no effect
    /// on other kinds.
    #[must_use]
    pub fn with_retry_after(mut self, wait: impl Into<String>) -> Self {
        if let FailureKind::Status { retry_after, .. } = &mut self.kind {
            *retry_after = Some(wait.into());
        }
        self
    }
}

impl From<FailureKind> for Failure {
    fn from(kind: FailureKind) -> Self {
        Self { kind, stall: Duration::ZERO }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFailure {
    status: Option<u16>,
    retry_after: Option<String>,
    body: Option<String>,
    cut_after_events: Option<usize>,
    error_event: Option<ErrorEvent>,
    stall_ms: Option<u64>,
}

impl TryFrom<RawFailure> for Failure {
    type Error = String;

    fn try_from(raw: RawFailure) -> Result<Self, String> {
        let stall = Duration::from_millis(raw.stall_ms.unwrap_or(0));
        if stall > MAX_STALL {
            return Err(format!(
                "stall_ms is {}; expected at most {}",
                stall.as_millis(),
                MAX_STALL.as_millis()
            ));
        }
        let has_status_parts = raw.retry_after.is_some() || raw.body.is_some();
        let kind = match (raw.status, raw.cut_after_events, raw.error_event) {
            (Some(status @ 400..=599), None, None) => {
                FailureKind::Status { status, retry_after: raw.retry_after, body: raw.body }
            }
            (Some(status), None, None) => return Err(format!("status is {status}; expected 400 to 599")),
            (None, _, _) if has_status_parts => {
                return Err(
                    "retry_after and body belong to a status; expected `status` beside them".to_owned()
                );
            }
            (None, Some(after_events), None) => FailureKind::Cut { after_events },
            (None, None, Some(event)) => FailureKind::ErrorEvent(event),
            (None, None, None) if raw.stall_ms.is_some() => FailureKind::Silence,
            _ => {
                return Err("a failure has one kind; expected one of status, cut_after_events, \
                            error_event, stall_ms"
                    .to_owned());
            }
        };
        Ok(Self { kind, stall })
    }
}
