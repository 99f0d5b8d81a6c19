//! What an error body or an error event means.

use std::error::Error as StdError;

use pintle_llm::Error;
use serde::Deserialize;

use super::NAME;
use crate::failure::{Failure, malformed};

#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: Complaint,
    #[serde(default)]
    request_id: Option<String>,
}

/// What stands under `error`, in bodies and in error events alike.
#[derive(Debug, Default, Deserialize)]
struct Complaint {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// The error of an answer with an error status.
pub(super) fn classify(status: u16, body: &[u8]) -> Error {
    explain(Some(status), body)
}

/// The error of an event `error`, or of a body of that type under a good status.
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
    // A body that is no JSON still has a status, and the table falls back to that.
    let parsed: Body = serde_json::from_slice(body).unwrap_or_default();
    let error = Failure {
        provider: NAME,
        status,
        code: parsed.error.kind.as_deref(),
        message: parsed.error.message.as_deref(),
        body,
    }
    .into_error();
    match parsed.request_id {
        Some(id) => error.with_request_id(id),
        None => error,
    }
}
