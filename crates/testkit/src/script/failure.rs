//! Failures that a script gives before a turn.

use std::time::Duration;

use serde::Deserialize;

/// The longest silence of a failure.
const LONGEST_STALL: Duration = Duration::from_secs(600);

/// One failed attempt: what goes wrong, after how long a silence.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawFailure")]
#[non_exhaustive]
pub struct Failure {
    /// What goes wrong.
    pub kind: FailureKind,
    /// Silence before it goes wrong; none by default, 600 s at most.
    pub stall: Duration,
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureKind {
    /// An HTTP error instead of an answer.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// The time to wait, as the `Retry-After` header has it; whole seconds travel in Gemini's body instead.
        retry_after: Option<String>,
        /// The body; by default an error of the dialect's shape.
        body: Option<String>,
    },
    /// The connection is closed in the middle of an answer.
    Cut {
        /// Whole events that are sent before; half of the next one follows them.
        after_events: usize,
    },
    /// An error event in the middle of a stream that began with status 200.
    ///
    /// A request that asks for no stream gets the status that belongs to the error.
    ErrorEvent(ErrorEvent),
    /// The connection is closed without a byte.
    Silence,
}

/// The errors that a provider reports inside a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorEvent {
    /// The provider has too much to do.
    Overloaded,
    /// The client asks too much.
    RateLimit,
    /// The provider failed.
    ServerError,
}

impl Failure {
    /// An HTTP status with an error of the dialect's shape.
    #[must_use]
    pub fn status(status: u16) -> Self {
        FailureKind::Status { status, retry_after: None, body: None }.into()
    }

    /// A connection that is cut after some events.
    #[must_use]
    pub fn cut_after_events(after_events: usize) -> Self {
        FailureKind::Cut { after_events }.into()
    }

    /// An error inside a stream.
    #[must_use]
    pub fn error_event(event: ErrorEvent) -> Self {
        FailureKind::ErrorEvent(event).into()
    }

    /// Silence, then a closed connection.
    #[must_use]
    pub fn silence(stall: Duration) -> Self {
        Self { kind: FailureKind::Silence, stall }
    }

    /// Adds the time to wait to an HTTP status; other kinds have no place for it and stay as they are.
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
        if stall > LONGEST_STALL {
            return Err(format!(
                "stall_ms is {}; expected at most {}",
                stall.as_millis(),
                LONGEST_STALL.as_millis()
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
                return Err("failure is none or several kinds; expected one of status, cut_after_events, \
                            error_event, stall_ms"
                    .to_owned());
            }
        };
        Ok(Self { kind, stall })
    }
}
