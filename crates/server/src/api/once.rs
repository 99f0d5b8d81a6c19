//! Requests that change something: each is carried out to its end, and once for its key.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{Body, Bytes, HttpBody as _, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::sync::OnceCell;

use super::input::{IDEMPOTENCY_KEY, Key};
use super::{App, Caller};
use crate::problem::{FAILED, Problem};

/// Answers that are kept for repetitions, the newest ones.
const MAX_ANSWERS: usize = 4_096;

/// Largest answer that is kept, in bytes. Those to requests that change something are small.
const MAX_ANSWER: u64 = 16 << 10;

/// Answer that is given again.
#[derive(Clone, Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

type Cell = Arc<OnceCell<Option<Answer>>>;

/// Answers to requests with a key, so that their repetitions do nothing. What has to be done once beyond the life of the server
/// goes through the inbox of a session.
#[derive(Debug, Default)]
pub(crate) struct Answered(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    answers: HashMap<String, Cell>,
    order: VecDeque<String>,
}

impl Answered {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place for the answer to a request, in which its first sender puts it.
    fn cell(&self, request: String) -> Cell {
        let mut kept = self.lock();
        if let Some(cell) = kept.answers.get(&request) {
            return Arc::clone(cell);
        }
        if kept.order.len() >= MAX_ANSWERS
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.answers.remove(&oldest);
        }
        let cell = Cell::default();
        kept.order.push_back(request.clone());
        kept.answers.insert(request, Arc::clone(&cell));
        cell
    }

    /// A request that failed can be sent again.
    fn forget(&self, request: &str) {
        let mut kept = self.lock();
        kept.answers.remove(request);
        kept.order.retain(|known| known != request);
    }
}

/// Carries out a request that changes something also when its client goes: half of one would leave a session that nobody knows.
/// A repetition waits for the answer to the first one, and gets it.
pub(super) async fn carry_out(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let failed = || Problem::new(FAILED, "the request failed").into_response();
    if let Err(problem) = Key::check(request.headers()) {
        return problem.into_response();
    }
    let Some(name) = name_of(&request) else {
        return app.hub.carry_out(next.run(request)).await.unwrap_or_else(failed);
    };
    let answered = Arc::clone(&app.answered);
    let response = app.hub.carry_out(async move {
        let cell = answered.cell(name.clone());
        let mut own = None;
        let first = async {
            let (answer, response) = keep(next.run(request).await).await;
            own = Some(response);
            answer
        };
        let kept = cell.get_or_init(|| first).await;
        if kept.is_none() {
            answered.forget(&name);
        }
        // Without an answer, the first one failed while this one waited.
        own.or_else(|| kept.clone().map(Answer::into_response))
    });
    response.await.flatten().unwrap_or_else(failed)
}

impl Answer {
    fn into_response(self) -> Response {
        let mut response = (self.status, self.body).into_response();
        *response.headers_mut() = self.headers;
        response
    }
}

/// Returns what tells a request with a key from all others. Sessions are created once by their ids, also beyond the life of the
/// server, and may be deleted since.
fn name_of(request: &Request) -> Option<String> {
    let path = request.uri().path();
    if path == "/v1/sessions" || path.ends_with("/fork") {
        return None;
    }
    let key = request.headers().get(IDEMPOTENCY_KEY)?.to_str().ok()?;
    let caller = request.extensions().get::<Caller>()?.namespace();
    Some(format!("{} {path} {caller} {key}", request.method()))
}

/// Returns the answer to keep, if the request was carried out and its answer is not large, and the response.
async fn keep(response: Response) -> (Option<Answer>, Response) {
    let size = response.body().size_hint().upper();
    if !response.status().is_success() || size.is_none_or(|size| size > MAX_ANSWER) {
        return (None, response);
    }
    let (parts, body) = response.into_parts();
    match to_bytes(body, usize::MAX).await {
        Ok(body) => {
            let answer = Answer { status: parts.status, headers: parts.headers.clone(), body: body.clone() };
            (Some(answer), Response::from_parts(parts, Body::from(body)))
        }
        Err(_) => (None, Problem::new(FAILED, "the answer could not be made").into_response()),
    }
}
