//! One error for everything that can go wrong between a request and its answer.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::readable_duration::ReadableDuration;

/// What went wrong, in the terms of the client specification (section 6.1).
///
/// The kind says what happened; whether trying again may help is a separate fact ([`Error::retry`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing, wrong or expired (401).
    Authentication,
    /// The key is good but not for this (403).
    AccessDenied,
    /// No such model or endpoint (404).
    NotFound,
    /// The provider refused the request as it stands (400, 422).
    InvalidRequest,
    /// Too many requests or tokens for now (429).
    RateLimit,
    /// The provider failed (500 to 599).
    Server,
    /// A safety filter stopped the answer.
    ContentFilter,
    /// Input and output together exceed the model's window (413, or 400 that says so).
    ContextLength,
    /// The account has nothing left to spend.
    QuotaExceeded,
    /// The provider or the client gave up waiting.
    RequestTimeout,
    /// The caller cancelled.
    Abort,
    /// No connection, or it broke before an answer began.
    Network,
    /// The answer began and did not end as the dialect says it must.
    Stream,
    /// The arguments of a tool call do not fit the tool's schema.
    InvalidToolCall,
    /// The provider has no such tool choice mode.
    UnsupportedToolChoice,
    /// Structured output could not be parsed or does not fit its schema.
    NoObjectGenerated,
    /// The client is set up wrongly: no provider, an unknown one, a contradictory request.
    Configuration,
}

impl ErrorKind {
    /// The kind that an HTTP status means on its own (specification section 6.4).
    #[must_use]
    pub fn from_status(status: u16) -> Self {
        match status {
            401 => Self::Authentication,
            403 => Self::AccessDenied,
            404 => Self::NotFound,
            408 => Self::RequestTimeout,
            413 => Self::ContextLength,
            429 => Self::RateLimit,
            400..=499 => Self::InvalidRequest,
            _ => Self::Server,
        }
    }

    /// Whether an error of this kind is retried unless something more precise is known (section 6.3).
    #[must_use]
    pub fn default_retry(self) -> Retry {
        match self {
            Self::RateLimit | Self::Server | Self::Network | Self::Stream => Retry::After(None),
            Self::Authentication
            | Self::AccessDenied
            | Self::NotFound
            | Self::InvalidRequest
            | Self::ContentFilter
            | Self::ContextLength
            | Self::QuotaExceeded
            | Self::RequestTimeout
            | Self::Abort
            | Self::InvalidToolCall
            | Self::UnsupportedToolChoice
            | Self::NoObjectGenerated
            | Self::Configuration => Retry::Never,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Authentication => "authentication failed",
            Self::AccessDenied => "access denied",
            Self::NotFound => "not found",
            Self::InvalidRequest => "invalid request",
            Self::RateLimit => "rate limit reached",
            Self::Server => "the provider failed",
            Self::ContentFilter => "blocked by a content filter",
            Self::ContextLength => "context window exceeded",
            Self::QuotaExceeded => "quota exhausted",
            Self::RequestTimeout => "timed out",
            Self::Abort => "cancelled",
            Self::Network => "network failure",
            Self::Stream => "broken answer stream",
            Self::InvalidToolCall => "invalid tool call",
            Self::UnsupportedToolChoice => "unsupported tool choice",
            Self::NoObjectGenerated => "no object generated",
            Self::Configuration => "configuration error",
        }
    }
}

/// Whether and when to try again: closed, so that a caller handles both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// Trying the same again gives the same.
    Never,
    /// May succeed; after this delay where the provider named one, else by the policy's backoff.
    After(Option<Duration>),
}

/// The facts of an [`Error`] without its source: plain data for journals and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ErrorInfo {
    /// What went wrong.
    pub kind: ErrorKind,
    /// For a person; holds no secret.
    pub message: String,
    /// Whether and when to try again.
    pub retry: Retry,
    /// The provider that answered, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// HTTP status, where there was an HTTP answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's own code for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The provider's id for the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The provider's error body, bounded in size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// What lies beneath, the nearest first: the chain of [`source`](StdError::source) in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// How many causes are kept in words.
const MAX_CAUSES: usize = 8;

/// The error of this crate and of every adapter: one pointer wide.
///
/// `Display` tells this level only, with the delay that the provider asked for (`retry after 24 h`);
/// [`source`](StdError::source) leads to the cause.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    info: ErrorInfo,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of this kind with the retry that the kind implies.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        ErrorInfo {
            kind,
            message: message.into(),
            retry: kind.default_retry(),
            provider: None,
            status: None,
            error_code: None,
            request_id: None,
            raw: None,
            causes: Vec::new(),
        }
        .into()
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.info.kind
    }

    /// Whether and when to try again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.inner.info.retry
    }

    /// `true` if trying again may succeed (specification section 6.2).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retry() != Retry::Never
    }

    /// The delay that the provider asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.retry() {
            Retry::Never => None,
            Retry::After(delay) => delay,
        }
    }

    /// `true` if the provider may have processed the request, and charged for it, before the failure: after a
    /// time-out, a broken stream or a cancellation, unless the status was an error.
    #[must_use]
    pub fn may_be_billed(&self) -> bool {
        let interrupted =
            matches!(self.kind(), ErrorKind::RequestTimeout | ErrorKind::Stream | ErrorKind::Abort);
        interrupted && self.status().is_none_or(|status| status < 400)
    }

    /// The message without the description of the kind.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.info.message
    }

    /// The provider that answered, where one did.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.inner.info.provider.as_deref()
    }

    /// HTTP status, where there was an HTTP answer.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.inner.info.status
    }

    /// The provider's own code for the error.
    #[must_use]
    pub fn error_code(&self) -> Option<&str> {
        self.inner.info.error_code.as_deref()
    }

    /// The provider's id for the request.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.inner.info.request_id.as_deref()
    }

    /// The provider's error body, bounded in size.
    #[must_use]
    pub fn raw(&self) -> Option<&Value> {
        self.inner.info.raw.as_ref()
    }

    /// All facts as plain data.
    #[must_use]
    pub fn info(&self) -> &ErrorInfo {
        &self.inner.info
    }

    /// With the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        let first: &(dyn StdError + 'static) = source.as_ref();
        let chain = std::iter::successors(Some(first), |error: &&(dyn StdError + 'static)| (*error).source());
        self.inner.info.causes = chain.take(MAX_CAUSES).map(ToString::to_string).collect();
        self.inner.source = Some(source);
        self
    }

    /// With another retry than the kind implies.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.inner.info.retry = retry;
        self
    }

    /// With the name of the provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.inner.info.provider = Some(provider.into());
        self
    }

    /// With the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.inner.info.status = Some(status);
        self
    }

    /// With the provider's own code.
    #[must_use]
    pub fn with_error_code(mut self, code: impl Into<String>) -> Self {
        self.inner.info.error_code = Some(code.into());
        self
    }

    /// With the provider's request id.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.inner.info.request_id = Some(id.into());
        self
    }

    /// With the provider's error body.
    #[must_use]
    pub fn with_raw(mut self, raw: Value) -> Self {
        self.inner.info.raw = Some(raw);
        self
    }
}

impl From<ErrorInfo> for Error {
    fn from(info: ErrorInfo) -> Self {
        Self { inner: Box::new(Inner { info, source: None }) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner.info, f)
    }
}

impl fmt::Display for ErrorInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.words())?;
        match (&self.provider, self.status) {
            (Some(provider), Some(status)) => write!(f, " ({provider}, HTTP {status})")?,
            (Some(provider), None) => write!(f, " ({provider})")?,
            (None, Some(status)) => write!(f, " (HTTP {status})")?,
            (None, None) => {}
        }
        if !self.message.is_empty() {
            write!(f, ": {}", self.message)?;
        }
        match self.retry {
            Retry::After(Some(delay)) if !delay.is_zero() => {
                write!(f, "; retry after {}", ReadableDuration(delay))
            }
            Retry::After(_) | Retry::Never => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error").field("info", &self.inner.info).field("source", &self.inner.source).finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.inner.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_gives_kind_and_retry() {
        let rows = [
            (400, ErrorKind::InvalidRequest, false),
            (401, ErrorKind::Authentication, false),
            (403, ErrorKind::AccessDenied, false),
            (404, ErrorKind::NotFound, false),
            (408, ErrorKind::RequestTimeout, false),
            (413, ErrorKind::ContextLength, false),
            (422, ErrorKind::InvalidRequest, false),
            (429, ErrorKind::RateLimit, true),
            (500, ErrorKind::Server, true),
            (503, ErrorKind::Server, true),
            (529, ErrorKind::Server, true),
        ];
        for (status, kind, retryable) in rows {
            let error = Error::new(ErrorKind::from_status(status), "x");
            assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "status {status}");
        }
    }

    #[test]
    fn display_says_when_to_retry() {
        let cases = [
            (
                Retry::After(Some(Duration::from_secs(86_400))),
                "rate limit reached (HTTP 429): slow; retry after 24 h",
            ),
            (
                Retry::After(Some(Duration::from_millis(7_660))),
                "rate limit reached (HTTP 429): slow; retry after 7.6 s",
            ),
            (Retry::After(Some(Duration::ZERO)), "rate limit reached (HTTP 429): slow"),
            (Retry::After(None), "rate limit reached (HTTP 429): slow"),
            (Retry::Never, "rate limit reached (HTTP 429): slow"),
        ];
        for (retry, expected) in cases {
            let error = Error::new(ErrorKind::RateLimit, "slow").with_status(429).with_retry(retry);
            assert_eq!(error.to_string(), expected);
        }
    }

    #[test]
    fn display_tells_this_level_and_source_the_next() {
        let error = Error::new(ErrorKind::Network, "no connection")
            .with_provider("openai")
            .with_source(std::io::Error::other("refused"));
        assert_eq!(error.to_string(), "network failure (openai): no connection");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("refused"));
        assert_eq!(error.info().causes, ["refused"], "a record without the source still says it");
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }
}
