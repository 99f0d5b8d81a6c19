//! HTTP interface, version 1.

mod access;
mod approvals;
mod costs;
mod documents;
mod events;
mod extractors;
mod files;
mod idempotency;
mod list;
mod logins;
mod messages;
mod metrics;
mod openapi;
mod rate;
mod record;
mod sessions;
mod streams;
#[cfg(feature = "tasks")]
mod tasks;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;

pub(crate) use self::access::{Access, Caller};
pub(crate) use self::idempotency::IdempotentResponses;
pub(crate) use self::logins::BrowserLogins;
use self::openapi::Operation;
pub(crate) use self::rate::RateLimiter;
use crate::access_token::TokenScope;
use crate::hub::Hub;
use crate::problem::{METHOD, NOT_FOUND, Problem};

/// State shared by all handlers.
#[derive(Clone, Debug)]
pub(crate) struct App {
    pub(crate) hub: Arc<Hub>,
    pub(crate) access: Arc<Access>,
    pub(crate) answered: Arc<IdempotentResponses>,
}

/// Headers of every response. Pages load nothing from other origins and cannot be framed.
const HEADERS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Returns all operations, from which the router and the description are built.
fn operations() -> Vec<Operation> {
    [
        sessions::operations(),
        messages::operations(),
        approvals::operations(),
        record::operations(),
        files::operations(),
        costs::operations(),
        documents::operations(),
        metrics::operations(),
        events::operations(),
        streams::operations(),
        #[cfg(feature = "tasks")]
        tasks::operations(),
        access::operations(),
        probes(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the router of a server.
pub(crate) fn router(app: App) -> Router {
    let operations = operations();
    let description: Arc<str> = openapi::describe(&operations).to_string().into();
    let (mut guarded, mut open) = (Router::new(), Router::new());
    for operation in operations {
        let router = if operation.is_open() { &mut open } else { &mut guarded };
        *router = std::mem::take(router).route(operation.path, operation.route());
    }
    // The description lists the operations of clients, but not its own route.
    let guarded = guarded
        .route("/v1/openapi.json", get(move || std::future::ready(json_text(&description))))
        .route_layer(from_fn_with_state(app.clone(), idempotency::carry_out))
        .route_layer(from_fn_with_state(app.clone(), access::authorize));
    let open = open.route("/", get(crate::console::page)).route("/console/{name}", get(crate::console::file));
    guarded
        .merge(open)
        .fallback(|| async { Problem::new(NOT_FOUND, "there is no such path: /v1/openapi.json lists them") })
        .method_not_allowed_fallback(|| async { Problem::new(METHOD, "/v1/openapi.json lists the methods") })
        .layer(from_fn_with_state(app.clone(), access::check_origin))
        .layer(from_fn(with_headers))
        .with_state(app)
}

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Returns the health and readiness operations.
fn probes() -> Vec<Operation> {
    vec![
        Operation::open(
            "get",
            "/v1/health",
            "readHealth",
            "Return whether the server answers",
            get(|| async { json(&Health { status: "ok" }) }),
        )
        .answers::<Health>(200),
        Operation::open("get", "/v1/ready", "readReadiness", "Return whether it takes requests", get(ready))
            .answers::<Health>(200)
            .also_answers(503, "It is shutting down, or its store does not answer"),
    ]
}

/// State of the server.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// `ok`, `closing`, or `no store`.
    status: &'static str,
}

/// Returns 503 if the server is shutting down or its store does not answer.
async fn ready(State(app): State<App>) -> Response {
    let is_closing = app.hub.closing().is_cancelled();
    let page = pintle_store::Page::of(1);
    if is_closing || app.hub.store.list(&pintle_store::Filter::default(), &page).await.is_err() {
        let status = if is_closing { "closing" } else { "no store" };
        return (StatusCode::SERVICE_UNAVAILABLE, json(&Health { status })).into_response();
    }
    json(&Health { status: "ok" })
}

/// Returns a response with a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Response {
    json_text(&serde_json::to_string(value).unwrap_or_default())
}

fn json_text(text: &str) -> Response {
    let media_type = HeaderValue::from_static("application/json");
    ([(axum::http::header::CONTENT_TYPE, media_type)], text.to_owned()).into_response()
}

/// Returns the response to a request that was accepted and is carried out later.
fn accepted_response() -> Response {
    StatusCode::ACCEPTED.into_response()
}
