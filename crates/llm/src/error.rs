//! The error of this crate and of all adapters.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fingerprint::Fingerprint;
use crate::readable_duration::ReadableDuration;
use crate::usage::Usage;

/// Kind of failure, in the terms of the client specification (section 6.1).
///
/// The kind says what happened. Whether a retry may help is a separate fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is missing, wrong or expired (401).
    Authentication,
    /// The key is valid but lacks permission (403).
    AccessDenied,
    /// Unknown model or endpoint (404).
    NotFound,
    /// The provider rejected the request (400, 422).
    InvalidRequest,
    /// Too many requests or tokens (429).
    RateLimit,
    /// The provider failed (500 to 599).
    Server,
    /// A safety filter blocked the response.
    ContentFilter,
    /// Input and output together exceed the model's context window (413, or 400 with such a message).
    ContextLength,
    /// The account's quota or balance is exhausted.
    QuotaExceeded,
    /// The provider or the client timed out.
    RequestTimeout,
    /// The caller cancelled.
    Abort,
    /// No connection, or it broke before the response started.
    Network,
    /// The response started and did not end as the dialect requires.
    Stream,
    /// The arguments of a tool call do not match the tool's schema.
    InvalidToolCall,
    /// The provider does not support this tool choice mode.
    UnsupportedToolChoice,
    /// Structured output could not be parsed or does not match its schema.
    NoObjectGenerated,
    /// The client is misconfigured: no provider, an unknown provider, contradictory options.
    Configuration,
}

impl ErrorKind {
    /// Returns the kind for an HTTP status without further information (specification section 6.4).
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

    /// Returns the retry of an error of this kind, unless something more precise is known (section 6.3).
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

    fn description(self) -> &'static str {
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
            Self::Stream => "broken response stream",
            Self::InvalidToolCall => "invalid tool call",
            Self::UnsupportedToolChoice => "unsupported tool choice",
            Self::NoObjectGenerated => "no object generated",
            Self::Configuration => "configuration error",
        }
    }
}

/// Whether and when to retry. Exhaustive: callers handle both cases.
///
/// Serialised as `"never"` or as `{"after_ms": …}` in milliseconds, `null` without a delay. Records of earlier versions
/// (`{"after": {"secs": …, "nanos": …}}`) can still be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "RetryRecord", into = "RetryRecord")]
pub enum Retry {
    /// The same request will fail again.
    Never,
    /// A retry may succeed, after this delay if the provider named one, else after the policy's backoff.
    After(Option<Duration>),
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum RetryRecord {
    Never,
    AfterMs(Option<u64>),
    /// Earlier form; read only.
    #[serde(skip_serializing)]
    After(Option<Duration>),
}

impl From<Retry> for RetryRecord {
    fn from(retry: Retry) -> Self {
        match retry {
            Retry::Never => Self::Never,
            // Rounded up, so that a restored delay is never too short.
            Retry::After(delay) => Self::AfterMs(
                delay.map(|delay| u64::try_from(delay.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)),
            ),
        }
    }
}

impl From<RetryRecord> for Retry {
    fn from(record: RetryRecord) -> Self {
        match record {
            RetryRecord::Never => Self::Never,
            RetryRecord::AfterMs(delay) => Self::After(delay.map(Duration::from_millis)),
            RetryRecord::After(delay) => Self::After(delay),
        }
    }
}

/// The data of an error without its source, for journals and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ErrorInfo {
    /// Kind of failure.
    pub kind: ErrorKind,
    /// Message for people; contains no secret.
    pub message: String,
    /// Whether and when to retry.
    pub retry: Retry,
    /// Provider that responded, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// HTTP status, if there was an HTTP response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The provider's code for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The provider's id for the request, for support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The provider's id of the response, if a complete response was unusable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Tokens spent by the failed operation, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// The provider's error body, bounded in size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<Value>,
    /// Fingerprint of the image, audio or document that the provider named as the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub refused_media: Option<Box<Fingerprint>>,
    /// Whether the provider refused the reasoning of earlier responses that the request contained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused_reasoning: bool,
    /// Messages of the causes, nearest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,
}

/// Limit on [`ErrorInfo::causes`].
const MAX_CAUSES: usize = 8;

/// The error of this crate and of all adapters; the size of a pointer.
///
/// `Display` describes this level only, including the delay that the provider asked for (`retry after 24 h`);
/// [`source`](StdError::source) returns the cause.
pub struct Error {
    inner: Box<Inner>,
}

struct Inner {
    info: ErrorInfo,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error of this kind, with the kind's default retry.
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
            response_id: None,
            usage: None,
            raw: None,
            refused_media: None,
            refused_reasoning: false,
            causes: Vec::new(),
        }
        .into()
    }

    /// Kind of failure.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.info.kind
    }

    /// Whether and when to retry.
    #[must_use]
    pub fn retry(&self) -> Retry {
        self.inner.info.retry
    }

    /// Returns `true` if a retry may succeed (specification section 6.2).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retry() != Retry::Never
    }

    /// Delay that the provider asked for.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self.retry() {
            Retry::Never => None,
            Retry::After(delay) => delay,
        }
    }

    /// Returns `true` if the provider may have processed the request, and charged for it, before the failure: after a
    /// time-out, a broken stream or a cancellation, unless the HTTP status is an error.
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

    /// Provider that responded, if any.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        self.inner.info.provider.as_deref()
    }

    /// HTTP status, if there was an HTTP response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.inner.info.status
    }

    /// The provider's code for the error, or the code of the layer that refused the call.
    #[must_use]
    pub fn error_code(&self) -> Option<&str> {
        self.inner.info.error_code.as_deref()
    }

    /// The provider's id for the request.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.inner.info.request_id.as_deref()
    }

    /// The provider's id of the response, if a complete response was unusable: of a failed `generate_object`, for
    /// instance.
    #[must_use]
    pub fn response_id(&self) -> Option<&str> {
        self.inner.info.response_id.as_deref()
    }

    /// Tokens spent by the failed operation, if known: for instance the tokens of all steps of a `generate_object`.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.inner.info.usage.as_deref()
    }

    /// The provider's error body, bounded in size.
    #[must_use]
    pub fn raw(&self) -> Option<&Value> {
        self.inner.info.raw.as_ref()
    }

    /// The image, audio or document of the request that the provider named as the reason, by
    /// `MediaSource::fingerprint`.
    #[must_use]
    pub fn refused_media(&self) -> Option<Fingerprint> {
        self.inner.info.refused_media.as_deref().copied()
    }

    /// Returns `true` if the provider refused the reasoning of earlier responses that the request contained. The same request
    /// without that reasoning may succeed.
    #[must_use]
    pub fn is_reasoning_refused(&self) -> bool {
        self.inner.info.refused_reasoning
    }

    /// All data.
    #[must_use]
    pub fn info(&self) -> &ErrorInfo {
        &self.inner.info
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let source = source.into();
        let first: &(dyn StdError + 'static) = source.as_ref();
        let chain = std::iter::successors(Some(first), |error: &&(dyn StdError + 'static)| (*error).source());
        self.inner.info.causes = chain.take(MAX_CAUSES).map(ToString::to_string).collect();
        self.inner.source = Some(source);
        self
    }

    /// Sets the retry. A delay is rounded up to milliseconds, as in records.
    #[must_use]
    pub fn with_retry(mut self, retry: Retry) -> Self {
        self.inner.info.retry = RetryRecord::from(retry).into();
        self
    }

    /// Sets the provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<String>) -> Self {
        self.inner.info.provider = Some(provider.into());
        self
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.inner.info.status = Some(status);
        self
    }

    /// Sets the error code.
    #[must_use]
    pub fn with_error_code(mut self, code: impl Into<String>) -> Self {
        self.inner.info.error_code = Some(code.into());
        self
    }

    /// Sets the provider's request id.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.inner.info.request_id = Some(id.into());
        self
    }

    /// Sets the id of the unusable response.
    #[must_use]
    pub fn with_response_id(mut self, id: impl Into<String>) -> Self {
        self.inner.info.response_id = Some(id.into());
        self
    }

    /// Sets the tokens spent by the failed operation.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.inner.info.usage = Some(Box::new(usage));
        self
    }

    /// Sets the provider's error body.
    #[must_use]
    pub fn with_raw(mut self, raw: Value) -> Self {
        self.inner.info.raw = Some(raw);
        self
    }

    /// Sets the media that the provider named as the reason.
    #[must_use]
    pub fn with_refused_media(mut self, media: Fingerprint) -> Self {
        self.inner.info.refused_media = Some(Box::new(media));
        self
    }

    /// Marks the reasoning of earlier responses as the reason.
    #[must_use]
    pub fn with_refused_reasoning(mut self) -> Self {
        self.inner.info.refused_reasoning = true;
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
        f.write_str(self.kind.description())?;
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
    fn status_determines_kind_and_retry() {
        let cases = [
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
        for (status, kind, retryable) in cases {
            let error = Error::new(ErrorKind::from_status(status), "x");
            assert_eq!((error.kind(), error.is_retryable()), (kind, retryable), "status {status}");
        }
    }

    #[test]
    fn only_transient_kinds_are_retryable() {
        use ErrorKind as K;
        let (transient, permanent) = (
            [K::RateLimit, K::Server, K::Network, K::Stream],
            [
                K::Authentication,
                K::AccessDenied,
                K::NotFound,
                K::InvalidRequest,
                K::ContentFilter,
                K::ContextLength,
                K::QuotaExceeded,
                K::RequestTimeout,
                K::Abort,
                K::InvalidToolCall,
                K::UnsupportedToolChoice,
                K::NoObjectGenerated,
                K::Configuration,
            ],
        );
        assert!(transient.iter().all(|kind| Error::new(*kind, "x").is_retryable()));
        assert!(permanent.iter().all(|kind| !Error::new(*kind, "x").is_retryable()));
        for status in 500..=599 {
            let error = Error::new(K::from_status(status), "x");
            assert_eq!((error.kind(), error.is_retryable()), (K::Server, true), "status {status}");
        }
    }

    #[test]
    fn display_includes_the_retry_delay() {
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
    fn display_and_source_each_describe_one_level() {
        let error = Error::new(ErrorKind::Network, "no connection")
            .with_provider("openai")
            .with_source(std::io::Error::other("refused"));
        assert_eq!(error.to_string(), "network failure (openai): no connection");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("refused"));
        assert_eq!(error.info().causes, ["refused"], "kept in records");
        assert_eq!(size_of::<Error>(), size_of::<usize>());
    }

    #[test]
    fn retry_is_serialised_in_milliseconds() {
        let second = Duration::from_secs(1);
        let cases = [
            (Retry::Never, r#""never""#),
            (Retry::After(None), r#"{"after_ms":null}"#),
            (Retry::After(Some(second * 20)), r#"{"after_ms":20000}"#),
            (Retry::After(Some(Duration::MAX)), r#"{"after_ms":18446744073709551615}"#),
        ];
        for (retry, expected) in cases {
            let text = serde_json::to_string(&retry).unwrap();
            assert_eq!(text, expected);
            let read: Retry = serde_json::from_str(&text).unwrap();
            assert!(read == retry || retry == Retry::After(Some(Duration::MAX)), "{text}");
        }
        let rounded = serde_json::to_string(&Retry::After(Some(Duration::from_micros(1_001)))).unwrap();
        assert_eq!(rounded, r#"{"after_ms":2}"#, "rounded up");
    }

    #[test]
    fn refused_reasoning_is_recorded() {
        let error = Error::new(ErrorKind::InvalidRequest, "x");
        let text = serde_json::to_string(error.info()).unwrap();
        assert!(!text.contains("refused_reasoning"), "{text}");
        assert!(!Error::from(serde_json::from_str::<ErrorInfo>(&text).unwrap()).is_reasoning_refused());
        let text = serde_json::to_string(error.with_refused_reasoning().info()).unwrap();
        assert!(Error::from(serde_json::from_str::<ErrorInfo>(&text).unwrap()).is_reasoning_refused());
    }

    #[test]
    fn retries_in_earlier_records_are_read() {
        let read = |text: &str| serde_json::from_str::<Retry>(text).unwrap();
        assert_eq!(
            read(r#"{"after":{"secs":20,"nanos":5000000}}"#),
            Retry::After(Some(Duration::from_millis(20_005)))
        );
        assert_eq!(read(r#"{"after":null}"#), Retry::After(None));
    }
}
