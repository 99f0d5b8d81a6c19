//! Extractors for parts of requests. Their errors name the expected input.

use std::convert::Infallible;
use std::error::Error as _;

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use pintle_agent::SessionId;
use serde::de::DeserializeOwned;

use super::App;
use crate::problem::{INVALID, MEDIA_TYPE, Problem, TOO_LARGE, UNAVAILABLE};

/// Header with a key that the client chooses. A repeated request with the same key has no further effect.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Maximum length of such a key, in bytes.
const MAX_KEY: usize = 200;

/// Maximum body of a request without a token, in bytes.
const MAX_OPEN_BODY: usize = 4 << 10;

/// Body of a request: JSON that fits the type.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        read_json(request, app, app.hub.limits.body).await.map(Self)
    }
}

/// Body of a request that needs no token: JSON that fits the type and has at most [`MAX_OPEN_BODY`] bytes.
pub(crate) struct OpenJson<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<App> for OpenJson<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        read_json(request, app, app.hub.limits.body.min(MAX_OPEN_BODY)).await.map(Self)
    }
}

/// Reads a body of at most `limit` bytes as JSON.
///
/// # Errors
///
/// Errors of [`whole_body`], and a problem for another media type or for JSON that does not fit the type.
async fn read_json<T: DeserializeOwned>(request: Request, app: &App, limit: usize) -> Result<T, Problem> {
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = media_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    // A form of another site cannot send this type.
    if !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::new(MEDIA_TYPE, "expected a body with content-type: application/json"));
    }
    let bytes = whole_body(request, app, limit).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::new(INVALID, format!("the body is wrong: {error}")))
}

/// Reads a body of at most `limit` bytes to its end.
///
/// # Errors
///
/// A problem if the body is larger than the limit, does not arrive in time or breaks off, or if the server shuts down.
pub(crate) async fn whole_body(mut request: Request, app: &App, limit: usize) -> Result<Bytes, Problem> {
    DefaultBodyLimit::max(limit).apply(&mut request);
    let arriving = tokio::time::timeout(app.hub.limits.body_time, Bytes::from_request(request, app));
    let bytes = tokio::select! {
        biased;
        bytes = arriving => bytes,
        // A body that has arrived completely is still accepted.
        () = app.hub.closing().cancelled() => {
            return Err(Problem::new(UNAVAILABLE, "the server is shutting down"));
        }
    };
    bytes.map_err(|_| Problem::new(UNAVAILABLE, "the body did not arrive in time"))?.map_err(|rejection| {
        let kind = if rejection.status() == TOO_LARGE_STATUS { TOO_LARGE } else { INVALID };
        Problem::new(kind, format!("the body cannot be read; at most {limit} bytes are taken"))
    })
}

const TOO_LARGE_STATUS: axum::http::StatusCode = axum::http::StatusCode::PAYLOAD_TOO_LARGE;

/// Parameters of a query.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<App> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        axum::extract::Query::try_from_uri(&parts.uri)
            .map(|axum::extract::Query(value)| Self(value))
            .map_err(|rejection| Problem::new(INVALID, query_problem(&rejection)))
    }
}

/// Returns the reason why a query is rejected, without the prefix of the extractor.
fn query_problem(rejection: &QueryRejection) -> String {
    let reason = rejection.source().map_or_else(|| rejection.to_string(), |source| source.to_string());
    match reason.strip_prefix("missing field ") {
        Some(name) => format!("the parameter {name} is missing"),
        None => format!("the query is wrong: {reason}"),
    }
}

/// Parameters of the path.
pub(crate) struct Path<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<App> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        axum::extract::Path::from_request_parts(parts, app)
            .await
            .map(|axum::extract::Path(value)| Self(value))
            .map_err(|rejection| Problem::new(INVALID, format!("the path is wrong: {rejection}")))
    }
}

/// Key of a mutating request. Without the header, it is unique.
#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    key: String,
    /// Path of the request. The same key on another path is a different key.
    path: String,
}

impl IdempotencyKey {
    /// Returns the key of a request, if it has one.
    pub(crate) fn check(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
        let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
        match key.to_str() {
            Ok(key) if (1..=MAX_KEY).contains(&key.len()) => Ok(Some(key)),
            _ => Err(Problem::new(
                INVALID,
                format!("idempotency-key: expected 1 to {MAX_KEY} visible characters"),
            )),
        }
    }

    /// Returns the id of the input that the request posts. It differs for each operation of a session or a task.
    pub(crate) fn input_id(&self) -> String {
        // The path is `/v1/sessions/ID/OPERATION`, or `/v1/tasks/…`.
        let operation = self.path.splitn(5, '/').nth(4).unwrap_or("create");
        format!("http-{operation}-{}", self.key)
    }

    /// Returns the id of the session that the request creates in a namespace. The same key gives the same id.
    pub(crate) fn session_id(&self, of: &str) -> SessionId {
        let hash = blake3::hash(format!("{of}\n{}", self.key).as_bytes());
        let hex = hash.to_hex();
        let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
        // A UUID of version 8, whose bits the application chooses.
        SessionId::new(format!(
            "{}-{}-8{}-a{}-{}",
            part(0, 8),
            part(8, 12),
            part(12, 15),
            part(15, 18),
            part(18, 30)
        ))
    }
}

impl FromRequestParts<App> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Problem> {
        let key = Self::check(&parts.headers)?;
        let key = key.map_or_else(|| SessionId::generate().to_string(), str::to_owned);
        Ok(Self { key, path: parts.uri.path().to_owned() })
    }
}

/// Header `last-event-id` as text, if there is one.
pub(crate) struct LastEventId(pub(crate) Option<String>);

impl FromRequestParts<App> for LastEventId {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _app: &App) -> Result<Self, Infallible> {
        let value = parts.headers.get("last-event-id").and_then(|value| value.to_str().ok());
        Ok(Self(value.map(str::to_owned)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_key_creates_one_session_for_each_caller() {
        let key = IdempotencyKey { key: "k".to_owned(), path: "/v1/sessions".to_owned() };
        let id = key.session_id("ann");
        assert_eq!(id, key.session_id("ann"));
        assert_ne!(id, key.session_id("ben"));
        assert_eq!(id.as_str().len(), 36, "{id}");
    }

    #[test]
    fn a_key_is_another_one_for_each_operation() {
        let input_id = |path: &str| IdempotencyKey { key: "k".to_owned(), path: path.to_owned() }.input_id();
        assert_eq!(input_id("/v1/sessions"), "http-create-k");
        assert_eq!(input_id("/v1/sessions/s1/submit"), "http-submit-k");
        assert_eq!(input_id("/v1/sessions/s1/approvals/c1"), "http-approvals/c1-k");
        assert_eq!(input_id("/v1/tasks/t1/steer"), "http-steer-k");
    }
}
