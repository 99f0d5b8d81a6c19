//! Stream of the inputs of a task.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pintle_workflow::TaskHostError;
use serde_json::json;
use tokio::time::Interval;

use super::feed::{Item, TaskFeed};
use super::problem_of;
use crate::api::events::{AFTER, After, Frame, FrameSource, Frames, LAST, frames, heartbeat, response};
use crate::api::input::{LastEventId, Path, Query};
use crate::api::openapi::Operation;
use crate::api::{App, Caller, Scope};
use crate::counters::OpenStream;
use crate::feed::EventId;
use crate::problem::Problem;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/tasks/{id}/events",
            "followTask",
            Scope::Read,
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
    Query(query): Query<After>,
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
    ) -> Result<Frames, Problem> {
        let id = self.find_task(caller, id).await?.id;
        let feed = TaskFeed::new(Arc::clone(&self.hub.store), id, last);
        let open = OpenStream::new(&self.hub.counters);
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
    _open: OpenStream,
}

impl FrameSource for TaskStream {
    async fn next(&mut self) -> Option<Frame> {
        if self.has_ended {
            return None;
        }
        let drained = self.app.hub.drained().clone();
        tokio::select! {
            biased;
            item = self.feed.next() => Some(self.frame(item)),
            _ = self.heartbeat.tick() => Some(Frame::heartbeat(&self.app)),
            () = drained.cancelled() => None,
        }
    }
}

impl TaskStream {
    fn frame(&mut self, item: Result<Item, TaskHostError>) -> Frame {
        match item {
            Ok(Item::Input { id, input }) => {
                Frame::message(Some(id), serde_json::to_string(&input).unwrap_or_default())
            }
            Ok(Item::Reset(reason)) => Frame::named("reset", &json!({"reason": reason})),
            Ok(Item::Ready) => Frame::named("ready", &json!({})),
            Ok(Item::End(state)) => {
                self.has_ended = true;
                Frame::named("end", &json!({"state": state}))
            }
            Err(error) => {
                self.has_ended = true;
                Frame::named("problem", &serde_json::to_value(problem_of(error)).unwrap_or_default())
            }
        }
    }
}
