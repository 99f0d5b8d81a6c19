//! Streams of events for clients that stay.

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use pintle_store::StoreError;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Interval;

use super::input::{LastEventId, Path, Query};
use super::openapi::{Operation, Parameter};
use super::{App, Caller, Scope};
use crate::counters::OpenStream;
use crate::feed::{EventId, Feed, Item};
use crate::hub::Change;
use crate::problem::{INVALID, Problem};

/// Reconnection time of clients, in milliseconds.
const RETRY: &str = "retry: 500\n\n";

pub(super) const AFTER: &[Parameter] =
    &[Parameter::text("after", "Id of the last event that you have; a header counts more")];

pub(super) const LAST: &[Parameter] =
    &[Parameter::text("last-event-id", "Id of the last event that you have")];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/sessions/{id}/events",
            "followSession",
            Scope::Read,
            "Follow the events of a session from any point",
            get(session),
        )
        .with_query(AFTER)
        .with_headers(LAST)
        .answers_as(200, &["text/event-stream"])
        .with_problems(&[404]),
        Operation::new(
            "get",
            "/v1/events",
            "followSessions",
            Scope::Read,
            "Follow the changes of all sessions",
            get(all),
        )
        .answers_as(200, &["text/event-stream"]),
    ]
}

/// Point from which on events are wanted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct After {
    after: Option<String>,
}

impl After {
    /// Returns the last event that the client has, of which a header counts more.
    pub(super) fn last(self, header: LastEventId) -> Result<Option<EventId>, Problem> {
        let after = header.0.or(self.after).filter(|after| !after.is_empty());
        after.map(|after| after.parse().map_err(|problem: String| Problem::new(INVALID, problem))).transpose()
    }
}

async fn session(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<After>,
    last: LastEventId,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    let feed = Feed::new(app.hub.clone(), found.summary.id, found.root, query.last(last)?);
    let open = OpenStream::new(&app.hub.counters);
    let stream = SessionStream { feed, heartbeat: heartbeat(&app), app, has_ended: false, _open: open };
    let frames = futures_util::stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(frame), stream))
    });
    Ok(response(frames))
}

pub(super) fn response(
    frames: impl futures_util::Stream<Item = Result<String, std::convert::Infallible>> + Send + 'static,
) -> Response {
    let first = futures_util::stream::iter([Ok(RETRY.to_owned())]);
    let body = Body::from_stream(futures_util::StreamExt::chain(first, frames));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that keep a response until it is complete would keep this one for ever.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) fn heartbeat(app: &App) -> Interval {
    let period = app.hub.limits.heartbeat.max(Duration::from_millis(10));
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

pub(super) fn named(name: &str, data: &serde_json::Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Sign of life, which page code sees, unlike a comment.
pub(super) fn sign_of_life(app: &App) -> String {
    named("heartbeat", &json!({"at": app.access.clock.now()}))
}

/// Stream of one session.
struct SessionStream {
    feed: Feed,
    heartbeat: Interval,
    app: App,
    has_ended: bool,
    _open: OpenStream,
}

impl SessionStream {
    async fn next(&mut self) -> Option<String> {
        if self.has_ended {
            return None;
        }
        let closing = self.app.hub.closing().clone();
        tokio::select! {
            biased;
            item = self.feed.next() => Some(self.frame(item)),
            _ = self.heartbeat.tick() => Some(sign_of_life(&self.app)),
            () = closing.cancelled() => None,
        }
    }

    fn frame(&mut self, item: Result<Item, StoreError>) -> String {
        match item {
            Ok(Item::Event(event)) => {
                let data = serde_json::to_string(&event).unwrap_or_default();
                match event.offset {
                    None => format!("id: {}\ndata: {data}\n\n", EventId::of(&event)),
                    Some(_) => format!("data: {data}\n\n"),
                }
            }
            Ok(Item::Reset(reason)) => named("reset", &json!({"reason": reason})),
            Ok(Item::Ready) => named("ready", &json!({})),
            Err(error) => {
                self.has_ended = true;
                let problem = Problem::from(error);
                named("problem", &serde_json::to_value(&problem).unwrap_or_default())
            }
        }
    }
}

async fn all(State(app): State<App>, Extension(caller): Extension<Caller>) -> Result<Response, Problem> {
    // Before they are listed, so that no change is missed.
    let changes = app.hub.changes();
    let open = app.hub.all_live().iter().map(|live| Change::Of(live.id.clone())).collect();
    let _open = OpenStream::new(&app.hub.counters);
    let heartbeat = heartbeat(&app);
    let stream = AllStream { heartbeat, app, caller, changes, waiting: open, is_ready: false, _open };
    let frames = futures_util::stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((Ok::<_, std::convert::Infallible>(frame), stream))
    });
    Ok(response(frames))
}

/// Stream of the changes of all sessions that a caller may see.
struct AllStream {
    app: App,
    caller: Caller,
    heartbeat: Interval,
    changes: broadcast::Receiver<Change>,
    /// Changes to tell about, each once.
    waiting: Vec<Change>,
    is_ready: bool,
    _open: OpenStream,
}

impl AllStream {
    async fn next(&mut self) -> Option<String> {
        let closing = self.app.hub.closing().clone();
        loop {
            if let Some(frame) = self.gather() {
                return Some(frame);
            }
            if let Some(change) = self.waiting.pop() {
                if let Some(frame) = self.tell(&change).await {
                    return Some(frame);
                }
                continue;
            }
            if !self.is_ready {
                self.is_ready = true;
                return Some(named("ready", &json!({})));
            }
            tokio::select! {
                biased;
                changed = self.changes.recv() => match changed {
                    Ok(change) => self.waiting.push(change),
                    Err(RecvError::Lagged(_)) => return Some(self.start_again()),
                    Err(RecvError::Closed) => return None,
                },
                _ = self.heartbeat.tick() => return Some(sign_of_life(&self.app)),
                () = closing.cancelled() => return None,
            }
        }
    }

    /// Takes the changes that are there, so that a session that changed often is told about once. Returns what to say if some
    /// were missed.
    fn gather(&mut self) -> Option<String> {
        loop {
            match self.changes.try_recv() {
                Ok(change) => {
                    if !self.waiting.contains(&change) {
                        self.waiting.push(change);
                    }
                }
                Err(TryRecvError::Lagged(_)) => return Some(self.start_again()),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// A client that reads slowly has to look at the list again.
    fn start_again(&mut self) -> String {
        self.waiting = self.app.hub.all_live().iter().map(|live| Change::Of(live.id.clone())).collect();
        named("reset", &json!({"reason": "changes were missed: read the list again"}))
    }

    async fn tell(&self, change: &Change) -> Option<String> {
        let id = match change {
            Change::Of(id) => id,
            Change::Deleted { id, tenant } => {
                return (*tenant == self.caller.tenant).then(|| named("deleted", &json!({"id": id})));
            }
        };
        match self.app.view_of(&self.caller, id).await {
            Ok(Some(view)) => Some(named("session", &serde_json::to_value(&view).ok()?)),
            // It is of another tenant, or deleted meanwhile.
            Ok(None) => None,
            Err(error) => Some(named("problem", &serde_json::to_value(Problem::from(error)).ok()?)),
        }
    }
}
