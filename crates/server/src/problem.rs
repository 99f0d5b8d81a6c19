//! Error responses: problem details (RFC 9457).

use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use pintle_agent::{SessionError, SessionId};
use pintle_llm::error_chain;
use pintle_store::StoreError;
use schemars::JsonSchema;
use serde::Serialize;

use crate::host::HostError;

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// Kind of the problem, the same for all of its kind.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Short, human-readable summary of the kind.
    pub(crate) title: &'static str,
    /// HTTP status.
    pub(crate) status: u16,
    /// Explanation for this request, with the expected value.
    pub(crate) detail: String,
}

/// Kind of a problem: its name and status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProblemKind {
    name: &'static str,
    status: StatusCode,
    title: &'static str,
}

const fn kind(name: &'static str, status: StatusCode, title: &'static str) -> ProblemKind {
    ProblemKind { name, status, title }
}

pub(crate) const INVALID: ProblemKind = kind("invalid", StatusCode::BAD_REQUEST, "The request is wrong");
pub(crate) const UNAUTHORIZED: ProblemKind =
    kind("unauthorized", StatusCode::UNAUTHORIZED, "A token is needed");
pub(crate) const FORBIDDEN: ProblemKind =
    kind("forbidden", StatusCode::FORBIDDEN, "The request is not allowed");
pub(crate) const UNPROCESSABLE: ProblemKind =
    kind("unprocessable", StatusCode::UNPROCESSABLE_ENTITY, "The request cannot be processed");
pub(crate) const NOT_FOUND: ProblemKind = kind("not_found", StatusCode::NOT_FOUND, "There is nothing here");
pub(crate) const METHOD: ProblemKind =
    kind("method", StatusCode::METHOD_NOT_ALLOWED, "The method is not supported here");
pub(crate) const CONFLICT: ProblemKind =
    kind("conflict", StatusCode::CONFLICT, "The request conflicts with the current state");
pub(crate) const HELD: ProblemKind = kind("held", StatusCode::CONFLICT, "Another process has the session");
pub(crate) const DAMAGED: ProblemKind = kind("damaged", StatusCode::CONFLICT, "The record is damaged");
pub(crate) const ENDED: ProblemKind = kind("ended", StatusCode::CONFLICT, "The session has ended");
#[cfg(feature = "tasks")]
pub(crate) const TASK_ENDED: ProblemKind = kind("ended", StatusCode::CONFLICT, "The task has ended");
#[cfg(feature = "tasks")]
pub(crate) const NO_CANDIDATE: ProblemKind =
    kind("no_candidate", StatusCode::UNPROCESSABLE_ENTITY, "The task has no such candidate");
pub(crate) const TOO_LARGE: ProblemKind =
    kind("too_large", StatusCode::PAYLOAD_TOO_LARGE, "The request is too large");
pub(crate) const MEDIA_TYPE: ProblemKind =
    kind("media_type", StatusCode::UNSUPPORTED_MEDIA_TYPE, "The media type is not supported");
pub(crate) const KEY: ProblemKind =
    kind("key", StatusCode::UNPROCESSABLE_ENTITY, "The key was used for another request");
pub(crate) const RANGE: ProblemKind =
    kind("range", StatusCode::RANGE_NOT_SATISFIABLE, "There is nothing in this range");
pub(crate) const FULL: ProblemKind =
    kind("full", StatusCode::TOO_MANY_REQUESTS, "A capacity limit is reached");
pub(crate) const RATE: ProblemKind = kind("rate", StatusCode::TOO_MANY_REQUESTS, "Requests come too often");
pub(crate) const FAILED: ProblemKind =
    kind("failed", StatusCode::INTERNAL_SERVER_ERROR, "The request failed");
pub(crate) const UNAVAILABLE: ProblemKind =
    kind("unavailable", StatusCode::SERVICE_UNAVAILABLE, "The server cannot do this now");

impl Problem {
    pub(crate) fn new(kind: ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/problems/{}", kind.name),
            title: kind.title,
            status: kind.status.as_u16(),
            detail: detail.into(),
        }
    }

    /// Returns the problem of a session that has ended and accepts no input.
    pub(crate) fn session_ended(id: &SessionId) -> Self {
        Self::new(ENDED, format!("session `{id}` has ended for good: fork it to continue"))
    }

    /// Returns whether the problem is of this kind.
    pub(crate) fn is(&self, kind: ProblemKind) -> bool {
        self.kind.strip_prefix("/problems/") == Some(kind.name)
    }

    /// Returns a problem and logs its cause for the operator.
    pub(crate) fn internal(kind: ProblemKind, detail: &str, error: &dyn std::error::Error) -> Self {
        tracing::warn!(error = %error_chain(error), "{detail}");
        Self::new(kind, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let media_type = HeaderValue::from_static("application/problem+json");
        let mut response = (status, [(CONTENT_TYPE, media_type)], body).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert("www-authenticate", HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<HostError> for Problem {
    fn from(error: HostError) -> Self {
        let detail = error.to_string();
        match error {
            HostError::NotFound(_) => Self::new(NOT_FOUND, detail),
            HostError::Exists(_) => Self::new(CONFLICT, detail),
            HostError::Held { .. } => Self::new(HELD, detail),
            HostError::Damaged { .. } => Self::new(DAMAGED, detail),
            HostError::Invalid(_) => Self::new(INVALID, detail),
            HostError::Forbidden(_) => Self::new(FORBIDDEN, detail),
            HostError::Unprocessable(_) => Self::new(UNPROCESSABLE, detail),
            HostError::Failed { .. } => Self::internal(FAILED, &detail, &error),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are the server's own problems")]
        match &error {
            // No session has an id that cannot be stored.
            StoreError::NotFound(id) | StoreError::InvalidId(id) => {
                Self::new(NOT_FOUND, format!("there is no session `{id}`"))
            }
            StoreError::MissingBlob(_) => Self::new(NOT_FOUND, error.to_string()),
            StoreError::InUse { .. } => Self::new(HELD, error.to_string()),
            StoreError::NoSuchLine { .. } => Self::new(RANGE, error.to_string()),
            StoreError::Exists(_) => Self::new(CONFLICT, error.to_string()),
            StoreError::Damaged { .. } | StoreError::DamagedBlob(_) => Self::new(DAMAGED, error.to_string()),
            // The text of the error contains a path of the server.
            StoreError::NotAJournal(_) => Self::internal(DAMAGED, "the record is damaged", &error),
            _ => Self::internal(UNAVAILABLE, "the store of the sessions failed", &error),
        }
    }
}

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are the server's own problems")]
        match &error {
            SessionError::NoSuchApproval(_) => Self::new(CONFLICT, error.to_string()),
            SessionError::Refused(_)
            | SessionError::NotRewound(_)
            | SessionError::NotSpawned(_)
            | SessionError::NoSuchEntry { .. } => Self::new(INVALID, error.to_string()),
            SessionError::Full(_) => Self::new(FULL, error.to_string()),
            SessionError::Closed => Self::new(ENDED, "the session has ended, or is being closed"),
            _ => Self::internal(FAILED, "the session failed", &error),
        }
    }
}
