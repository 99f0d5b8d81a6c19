//! Errors in bodies and in streams.

use std::error::Error as StdError;

use pintle_llm::Error;
use serde::Deserialize;

use super::NAME;
use crate::failure::{Failure, malformed};

#[derive(Debug, Default, Deserialize)]
struct Body {
    #[serde(default)]
    error: ErrorObject,
    #[serde(default)]
    request_id: Option<String>,
}

/// The object `error` of error bodies and error events.
#[derive(Debug, Default, Deserialize)]
struct ErrorObject {
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    message: Option<String>,
}

/// Returns the error of a response with an error status.
pub(super) fn classify(status: u16, body: &[u8]) -> Error {
    explain(Some(status), body)
}

/// Returns the error of an event `error`, or of a body of that type with a success status.
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
    // If the body is not JSON, the status decides.
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
