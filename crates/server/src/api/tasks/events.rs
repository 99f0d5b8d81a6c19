//! Stream of the inputs of a task.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pintle_workflow::TaskHostError;
use serde_json::json;
use tokio::time::Interval;

use super::feed::{TaskFeed, TaskFeedItem};
use super::problem_of;
use crate::api::events::{
    AFTER, AfterQuery, EventFrame, EventFrames, FrameSource, LAST, frames, heartbeat, response,
};
use crate::api::extractors::{LastEventId, Path, Query};
use crate::api::openapi::Operation;
use crate::api::{App, Caller, TokenScope};
use crate::counters::OpenStreamGuard;
use crate::feed::EventId;
use crate::problem::Problem;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/tasks/{id}/events",
            "followTask",
            TokenScope::Read,
            "Follow the inputs of a task from any point, until it has ended",
            get(follow),
        )
        .with_query(AFTER)
        .with_headers(LAST)
        .answers_as(200, &["text/event-stream"])
        .with_problems(&[404]),
    ]
}

async fn follow(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(query): Query<AfterQuery>,
    last: LastEventId,
) -> Result<Response, Problem> {
    Ok(response(app.follow_task(&caller, &id, query.last(last)?).await?))
}

impl App {
    /// Returns the inputs of a task after the last input that the client has.
    pub(in crate::api) async fn follow_task(
        &self,
        caller: &Caller,
        id: &str,
        last: Option<EventId>,
    ) -> Result<EventFrames, Problem> {
        let id = self.find_task(caller, id).await?.id;
        let feed = TaskFeed::new(Arc::clone(&self.hub.store), id, last);
        let open = OpenStreamGuard::new(&self.hub.counters);
        let (heartbeat, app) = (heartbeat(self), self.clone());
        let stream = TaskStream { feed, heartbeat, app, has_ended: false, _open: open };
        Ok(frames(stream))
    }
}

/// Stream of one task.
struct TaskStream {
    feed: TaskFeed,
    heartbeat: Interval,
    app: App,
    has_ended: bool,
    _open: OpenStreamGuard,
}

impl FrameSource for TaskStream {
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

impl TaskStream {
    fn frame(&mut self, item: Result<TaskFeedItem, TaskHostError>) -> EventFrame {
        match item {
            Ok(TaskFeedItem::Input { id, input }) => {
                EventFrame::message(Some(id), serde_json::to_string(&input).unwrap_or_default())
            }
            Ok(TaskFeedItem::Reset(reason)) => EventFrame::with_name("reset", &json!({"reason": reason})),
            Ok(TaskFeedItem::Ready) => EventFrame::with_name("ready", &json!({})),
            Ok(TaskFeedItem::End(state)) => {
                self.has_ended = true;
                EventFrame::with_name("end", &json!({"state": state}))
            }
            Err(error) => {
                self.has_ended = true;
                EventFrame::with_name("problem", &serde_json::to_value(problem_of(error)).unwrap_or_default())
            }
        }
    }
}
