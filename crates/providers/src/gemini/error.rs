//! What an error body or an error inside a stream means.

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
    error: Complaint,
}

#[derive(Debug, Default, Deserialize)]
struct Complaint {
    /// The HTTP status, also inside a stream.
    #[serde(default)]
    code: Option<u16>,
    #[serde(default)]
    message: Option<String>,
    /// The gRPC status.
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    details: Vec<Value>,
}

/// The error of an answer with an error status.
pub(super) fn classify(status: u16, body: &[u8]) -> Error {
    explain(Some(status), body)
}

/// The error of a chunk that holds one, or of a whole answer that does under a good status.
pub(super) fn reported(body: &[u8]) -> Error {
    explain(None, body)
}

/// The error of an answer that is not this dialect. Shows the beginning of what was found.
pub(super) fn unreadable(
    expected: &str,
    found: &[u8],
    source: impl Into<Box<dyn StdError + Send + Sync>>,
) -> Error {
    malformed(NAME, expected, found).with_source(source)
}

fn explain(status: Option<u16>, body: &[u8]) -> Error {
    let complaint = complaint(body);
    let error = Failure {
        provider: NAME,
        status: status.or(complaint.code),
        code: complaint.word(),
        message: complaint.message.as_deref(),
        body,
    }
    .into_error();
    match complaint.retry_delay() {
        Some(delay) if error.is_retryable() => error.with_retry(Retry::After(Some(delay))),
        Some(_) | None => error,
    }
}

/// Without `alt=sse` errors come in a list; proxies do that too. A body that is no JSON still has a status.
fn complaint(body: &[u8]) -> Complaint {
    let list = serde_json::from_slice::<Vec<Body>>(body).ok().and_then(|list| list.into_iter().next());
    list.or_else(|| serde_json::from_slice(body).ok()).unwrap_or_default().error
}

impl Complaint {
    /// The most precise word for the error: a bad key comes as a 400, a spent day as a 429.
    fn word(&self) -> Option<&str> {
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

    /// `RetryInfo.retryDelay`, such as `34.07s`: the wait stands in the body, not in a header.
    fn retry_delay(&self) -> Option<Duration> {
        let delay = self.details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
        let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }
}
