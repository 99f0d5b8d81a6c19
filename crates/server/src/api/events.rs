//! Streams of server-sent events.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use futures_util::stream::{BoxStream, Stream, StreamExt as _};
use pintle_store::StoreError;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::Interval;

use super::extractors::{LastEventId, Path, Query};
use super::openapi::{EVENT_ID, Operation, Parameter};
use super::{App, Caller, TokenScope};
use crate::counters::OpenStreamGuard;
use crate::feed::{EventId, FeedItem, SessionFeed};
use crate::hub::SessionChange;
use crate::problem::{INVALID, Problem};

/// Name of the messages that are sent while there are no others.
const HEARTBEAT: &str = "heartbeat";

/// Reconnection time of clients, in milliseconds.
const RETRY: &str = "retry: 500\n\n";

pub(super) const AFTER: &[Parameter] =
    &[Parameter::matching("after", EVENT_ID, "Id of the last event that you have; a header counts more")];

pub(super) const LAST: &[Parameter] =
    &[Parameter::matching("last-event-id", EVENT_ID, "Id of the last event that you have")];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/sessions/{id}/events",
            "followSession",
            TokenScope::Read,
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
            TokenScope::Read,
            "Follow the changes of all sessions",
            get(all),
        )
        .answers_as(200, &["text/event-stream"]),
    ]
}

/// Position after which events are requested.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AfterQuery {
    after: Option<String>,
}

impl AfterQuery {
    /// Returns the id of the last event that the client has. The header takes precedence.
    pub(super) fn last(self, header: LastEventId) -> Result<Option<EventId>, Problem> {
        let after = header.0.or(self.after).filter(|after| !after.is_empty());
        after.map(|after| after.parse().map_err(|problem: String| Problem::new(INVALID, problem))).transpose()
    }
}

async fn session(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<AfterQuery>,
    last: LastEventId,
) -> Result<Response, Problem> {
    Ok(response(app.follow_session(&caller, &id, query.last(last)?).await?))
}

async fn all(State(app): State<App>, Extension(caller): Extension<Caller>) -> Response {
    response(app.follow_sessions(caller))
}

impl App {
    /// Returns the events of a session after the last event that the client has.
    pub(super) async fn follow_session(
        &self,
        caller: &Caller,
        id: &str,
        last: Option<EventId>,
    ) -> Result<EventFrames, Problem> {
        let found = self.find(caller, id).await?;
        let feed = SessionFeed::new(Arc::clone(&self.hub), found.summary.id, found.root, last);
        let open = OpenStreamGuard::new(&self.hub.counters);
        let (heartbeat, app) = (heartbeat(self), self.clone());
        let stream = SessionStream { feed, heartbeat, app, has_ended: false, _open: open };
        Ok(frames(stream))
    }

    /// Returns the changes of all sessions of a caller.
    pub(super) fn follow_sessions(&self, caller: Caller) -> EventFrames {
        // Subscribes before the sessions are listed, so that no change is missed.
        let changes = self.hub.changes();
        let open = self.hub.all_live().iter().map(|live| SessionChange::Changed(live.id.clone())).collect();
        let _open = OpenStreamGuard::new(&self.hub.counters);
        let (heartbeat, app) = (heartbeat(self), self.clone());
        let stream =
            AllSessionsStream { heartbeat, app, caller, changes, waiting: open, is_ready: false, _open };
        frames(stream)
    }
}

/// Messages of a stream.
pub(super) type EventFrames = BoxStream<'static, EventFrame>;

/// Source of the messages of a stream.
pub(super) trait FrameSource: Send + 'static {
    /// Returns the next message; `None` at the end.
    fn next(&mut self) -> impl Future<Output = Option<EventFrame>> + Send;
}

/// Returns the messages of a source.
pub(super) fn frames(source: impl FrameSource) -> EventFrames {
    let frames = futures_util::stream::unfold(source, |mut source| async move {
        let frame = source.next().await?;
        Some((frame, source))
    });
    frames.boxed()
}

/// Message of a stream of server-sent events.
#[derive(Clone, Debug)]
pub(super) struct EventFrame {
    /// Name; `message` if the stream does not name the message.
    name: &'static str,
    id: Option<EventId>,
    /// JSON, in one line.
    data: String,
}

impl EventFrame {
    /// Creates a message without a name, from JSON in one line.
    pub(super) fn message(id: Option<EventId>, data: String) -> Self {
        Self { name: "message", id, data }
    }

    pub(super) fn with_name(name: &'static str, data: &serde_json::Value) -> Self {
        Self { name, id: None, data: data.to_string() }
    }

    /// Creates a heartbeat. Unlike a comment, it is visible to scripts of a page.
    pub(super) fn heartbeat(app: &App) -> Self {
        Self::with_name(HEARTBEAT, &json!({"at": app.access.clock.now()}))
    }

    pub(super) fn is_heartbeat(&self) -> bool {
        self.name == HEARTBEAT
    }

    /// Returns the text of the message in a stream.
    pub(super) fn to_text(&self) -> String {
        let id = self.id.map(|id| format!("id: {id}\n")).unwrap_or_default();
        let name = if self.name == "message" { String::new() } else { format!("event: {}\n", self.name) };
        format!("{id}{name}data: {}\n\n", self.data)
    }

    /// Returns the text of the message in a connection with several streams. The first line of the data contains the
    /// stream, the name and the id of the message. The second line is the data of the message.
    pub(super) fn to_text_with_stream(&self, stream: &str) -> String {
        let id = self.id.map(|id| id.to_string());
        let head = json!({"stream": stream, "name": self.name, "id": id});
        format!("event: followed\ndata: {head}\ndata: {}\n\n", self.data)
    }
}

pub(super) fn response(frames: EventFrames) -> Response {
    text_response(frames.map(|frame| frame.to_text()))
}

/// Returns a response with these texts of messages.
pub(super) fn text_response(texts: impl Stream<Item = String> + Send + 'static) -> Response {
    let first = futures_util::stream::iter([RETRY.to_owned()]);
    let body = Body::from_stream(first.chain(texts).map(Ok::<_, Infallible>));
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // Proxies that buffer complete responses would buffer this response for ever.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) fn heartbeat(app: &App) -> Interval {
    let period = app.hub.limits.heartbeat.max(Duration::from_millis(10));
    let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + period, period);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    interval
}

/// Stream of one session.
struct SessionStream {
    feed: SessionFeed,
    heartbeat: Interval,
    app: App,
    has_ended: bool,
    _open: OpenStreamGuard,
}

impl FrameSource for SessionStream {
    async fn next(&mut self) -> Option<EventFrame> {
        if self.has_ended {
            return None;
        }
        let drained = self.app.hub.drained().clone();
        tokio::select! {
            biased;
            item = self.feed.next() => Some(self.frame(item)),
            _ = self.heartbeat.tick() => Some(EventFrame::heartbeat(&self.app)),
            () = drained.cancelled() => None,
        }
    }
}

impl SessionStream {
    fn frame(&mut self, item: Result<FeedItem, StoreError>) -> EventFrame {
        match item {
            Ok(FeedItem::Event(event)) => {
                let data = serde_json::to_string(&event).unwrap_or_default();
                EventFrame::message(event.offset.is_none().then(|| EventId::from_event(&event)), data)
            }
            Ok(FeedItem::Reset(reason)) => EventFrame::with_name("reset", &json!({"reason": reason})),
            Ok(FeedItem::Ready) => EventFrame::with_name("ready", &json!({})),
            Err(error) => {
                self.has_ended = true;
                let problem = Problem::from(error);
                EventFrame::with_name("problem", &serde_json::to_value(&problem).unwrap_or_default())
            }
        }
    }
}

/// Stream of the changes of all sessions that a caller may see.
struct AllSessionsStream {
    app: App,
    caller: Caller,
    heartbeat: Interval,
    changes: broadcast::Receiver<SessionChange>,
    /// Changes to report, each once.
    waiting: Vec<SessionChange>,
    is_ready: bool,
    _open: OpenStreamGuard,
}

impl FrameSource for AllSessionsStream {
    async fn next(&mut self) -> Option<EventFrame> {
        let drained = self.app.hub.drained().clone();
        loop {
            if let Some(frame) = self.collect_changes() {
                return Some(frame);
            }
            if let Some(change) = self.waiting.pop() {
                if let Some(frame) = self.change_frame(&change).await {
                    return Some(frame);
                }
                continue;
            }
            if !self.is_ready {
                self.is_ready = true;
                return Some(EventFrame::with_name("ready", &json!({})));
            }
            tokio::select! {
                biased;
                changed = self.changes.recv() => match changed {
                    Ok(change) => self.waiting.push(change),
                    Err(RecvError::Lagged(_)) => return Some(self.reset_frame()),
                    Err(RecvError::Closed) => return None,
                },
                _ = self.heartbeat.tick() => return Some(EventFrame::heartbeat(&self.app)),
                () = drained.cancelled() => return None,
            }
        }
    }
}

impl AllSessionsStream {
    /// Collects the available changes, so that a session that changed often is reported once. Returns a reset message if
    /// changes were missed.
    fn collect_changes(&mut self) -> Option<EventFrame> {
        loop {
            match self.changes.try_recv() {
                Ok(change) => {
                    if !self.waiting.contains(&change) {
                        self.waiting.push(change);
                    }
                }
                Err(TryRecvError::Lagged(_)) => return Some(self.reset_frame()),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return None,
            }
        }
    }

    /// Returns the message that makes a client read the list again, because it missed changes.
    fn reset_frame(&mut self) -> EventFrame {
        self.waiting =
            self.app.hub.all_live().iter().map(|live| SessionChange::Changed(live.id.clone())).collect();
        EventFrame::with_name("reset", &json!({"reason": "changes were missed: read the list again"}))
    }

    async fn change_frame(&self, change: &SessionChange) -> Option<EventFrame> {
        let id = match change {
            SessionChange::Changed(id) => id,
            SessionChange::Deleted { id, tenant } => {
                return (*tenant == self.caller.tenant)
                    .then(|| EventFrame::with_name("deleted", &json!({"id": id})));
            }
        };
        match self.app.view_of(&self.caller, id).await {
            Ok(Some(view)) => Some(EventFrame::with_name("session", &serde_json::to_value(&view).ok()?)),
            // The session belongs to another tenant or was deleted meanwhile.
            Ok(None) => None,
            Err(error) => {
                Some(EventFrame::with_name("problem", &serde_json::to_value(Problem::from(error)).ok()?))
            }
        }
    }
}
