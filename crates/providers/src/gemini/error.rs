//! Errors in bodies and in streams.

use std::error::Error as StdError;
use std::time::Duration;

use pintle_llm::{Error, Retry};
use serde::Deserialize;
use serde_json::Value;

use super::NAME;
use crate::failure::{Failure, malformed};

#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: ErrorObject,
}

#[derive(Debug, Default, Deserialize)]
struct ErrorObject {
    /// HTTP status, which errors in a stream have as well.
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    message: Option<String>,
    /// gRPC status.
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    details: Vec<Value>,
}

/// Returns the error of a response with an error status.
pub(super) fn classify(status: u16, body: &[u8]) -> Error {
    explain(Some(status), body)
}

/// Returns the error in a stream chunk, or in a complete response with a success status.
pub(super) fn reported(body: &[u8]) -> Error {
    explain(None, body)
}

/// Returns the error for data that is not of this dialect. Its message quotes the beginning of the data.
pub(super) fn unreadable(
    expected: &str,
    found: &[u8],
    source: impl Into<Box<dyn StdError + Send + Sync>>,
) -> Error {
    malformed(NAME, expected, found).with_source(source)
}

fn explain(status: Option<u16>, body: &[u8]) -> Error {
    let found = error_object(body);
    let error = Failure {
        provider: NAME,
        status: status.or(found.code),
        code: found.code_name(),
        message: found.message.as_deref(),
        body,
    }
    .into_error();
    match found.retry_delay() {
        Some(delay) if error.is_retryable() => error.with_retry(Retry::After(Some(delay))),
        Some(_) | None => error,
    }
}

/// Parses an error body. Without `alt=sse`, and from some proxies, errors are in a list. A body that is not JSON yields an
/// empty object.
fn error_object(body: &[u8]) -> ErrorObject {
    let list = serde_json::from_slice::<Vec<Body>>(body).ok().and_then(|list| list.into_iter().next());
    list.or_else(|| serde_json::from_slice(body).ok()).unwrap_or_default().error
}

impl ErrorObject {
    /// Returns the most precise error code: an invalid key has status 400, and a used-up daily quota has status 429.
    fn code_name(&self) -> Option<&str> {
        let reason = self.details.iter().find_map(|detail| detail.get("reason")?.as_str());
        let bad_key = reason.filter(|reason| reason.starts_with("API_KEY_"));
        if bad_key.is_some() {
            return Some("API_KEY_INVALID");
        }
        if self.is_daily_quota() { Some("quota_exceeded") } else { self.status.as_deref() }
    }

    fn is_daily_quota(&self) -> bool {
        let violations =
            self.details.iter().filter_map(|detail| detail.get("violations")?.as_array()).flatten();
        let mut quotas = violations.filter_map(|violation| violation.get("quotaId")?.as_str());
        quotas.any(|quota| quota.contains("PerDay"))
    }

    /// Returns `RetryInfo.retryDelay`, such as `34.07s`. The API has no header for it.
    fn retry_delay(&self) -> Option<Duration> {
        let delay = self.details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
        let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}
