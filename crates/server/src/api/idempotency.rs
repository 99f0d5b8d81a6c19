//! Mutating requests. Each runs to completion, and only once per key.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use blake3::Hash;
use tokio::sync::OnceCell;

use super::extractors::{IDEMPOTENCY_KEY, IdempotencyKey, whole_body};
use super::{App, Caller};
use crate::problem::{FAILED, KEY, Problem};

/// Maximum number of remembered requests with a key. New requests evict the oldest.
const MAX_ANSWERS: usize = 4_096;

/// Maximum size of a stored response, in bytes. Responses to mutating requests are small.
const MAX_ANSWER: u64 = 16 << 10;

/// Stored response, sent again for a repeated request.
#[derive(Clone, Debug)]
struct StoredResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

type ResponseCell = Arc<OnceCell<Option<StoredResponse>>>;

/// A request with a key.
#[derive(Clone, Debug)]
struct KeyedRequest {
    /// Hash of the request body.
    body: Hash,
    /// Response, set by the first request with the key.
    cell: ResponseCell,
}

/// Requests with a key, so that repeated requests have no effect. Operations that must be unique across restarts go through
/// the inbox of a session.
#[derive(Debug, Default)]
pub(crate) struct IdempotentResponses(Mutex<KeyedRequests>);

#[derive(Debug, Default)]
struct KeyedRequests {
    requests: HashMap<String, KeyedRequest>,
    order: VecDeque<String>,
}

impl IdempotentResponses {
    fn lock(&self) -> MutexGuard<'_, KeyedRequests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cell for the response to a request, or `None` if its key was sent with another body.
    fn cell(&self, request: String, body: Hash) -> Option<ResponseCell> {
        let mut kept = self.lock();
        if let Some(known) = kept.requests.get(&request) {
            return (known.body == body).then(|| Arc::clone(&known.cell));
        }
        if kept.order.len() >= MAX_ANSWERS
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.requests.remove(&oldest);
        }
        let cell = ResponseCell::default();
        kept.order.push_back(request.clone());
        kept.requests.insert(request, KeyedRequest { body, cell: Arc::clone(&cell) });
        Some(cell)
    }

    /// Forgets a failed request, so that its key can be sent again, with any body.
    fn forget(&self, request: &str) {
        let mut kept = self.lock();
        kept.requests.remove(request);
        kept.order.retain(|known| known != request);
    }
}

/// Runs a mutating request to completion even if its client disconnects. A partial request could leave a session that no
/// client knows. A repeated request waits for the response to the first request and gets a copy. A key belongs to one
/// request.
pub(super) async fn carry_out(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let failed = || Problem::new(FAILED, "the request failed").into_response();
    if let Err(problem) = IdempotencyKey::check(request.headers()) {
        return problem.into_response();
    }
    let Some(named) = RequestName::from_request(&request) else {
        return app.hub.carry_out(next.run(request)).await.unwrap_or_else(failed);
    };
    let (parts, body) = request.into_parts();
    let limited = Request::from_parts(parts.clone(), body);
    let body = match whole_body(limited, &app, app.hub.limits.body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let Some(cell) = app.answered.cell(named.name.clone(), blake3::hash(&body)) else {
        let detail = "idempotency-key: expected one that was not sent with another body";
        return Problem::new(KEY, detail).into_response();
    };
    let request = Request::from_parts(parts, Body::from(body));
    let answered = Arc::clone(&app.answered);
    let response = app.hub.carry_out(async move {
        if !named.keeps_answer {
            let response = next.run(request).await;
            if !response.status().is_success() {
                answered.forget(&named.name);
            }
            return Some(response);
        }
        let mut own = None;
        let first = async {
            let (answer, response) = store_response(next.run(request).await).await;
            own = Some(response);
            answer
        };
        let kept = cell.get_or_init(|| first).await;
        if kept.is_none() {
            answered.forget(&named.name);
        }
        // Without a stored response, the first request failed while this request waited.
        own.or_else(|| kept.clone().map(StoredResponse::into_response))
    });
    response.await.flatten().unwrap_or_else(failed)
}

impl StoredResponse {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        *response.headers_mut() = self.headers;
        response
    }
}

/// Unique name of a request with a key.
#[derive(Debug)]
struct RequestName {
    name: String,
    /// Whether a repeated request gets the stored response. Requests that create sessions do not: the session's id makes
    /// them idempotent across restarts, and the session may have been deleted since.
    keeps_answer: bool,
}

impl RequestName {
    /// Returns the name of a request, if it has a key.
    fn from_request(request: &Request) -> Option<Self> {
        let path = request.uri().path();
        let key = request.headers().get(IDEMPOTENCY_KEY)?.to_str().ok()?;
        let caller = request.extensions().get::<Caller>()?.namespace();
        let keeps_answer = path != "/v1/sessions" && !path.ends_with("/fork");
        Some(Self { name: format!("{} {path} {caller} {key}", request.method()), keeps_answer })
    }
}

/// Returns a copy to store, if the request succeeded and the response is not large, and the response itself.
async fn store_response(response: Response) -> (Option<StoredResponse>, Response) {
    let size = response.body().size_hint().upper();
    if !response.status().is_success() || size.is_none_or(|size| size > MAX_ANSWER) {
        return (None, response);
    }
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(body) => {
            let answer =
                StoredResponse { status: parts.status, headers: parts.headers.clone(), body: body.clone() };
            (Some(answer), Response::from_parts(parts, Body::from(body)))
        }
        Err(_) => (None, Problem::new(FAILED, "the answer could not be made").into_response()),
    }
}
