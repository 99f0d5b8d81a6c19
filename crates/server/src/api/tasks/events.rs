//! Stream of the inputs of a task.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use pintle_workflow::HostError;
use serde_json::json;
use tokio::time::Interval;

use super::feed::{Item, TaskFeed};
use super::problem_of;
use crate::api::events::{AFTER, After, LAST, heartbeat, named, response, sign_of_life};
use crate::api::input::{LastEventId, Path, Query};
use crate::api::openapi::Operation;
use crate::api::{App, Caller, Scope};
use crate::counters::OpenStream;
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
    let id = app.find_task(&caller, &id).await?.id;
    let feed = TaskFeed::new(Arc::clone(&app.hub.store), id, query.last(last)?);
    let open = OpenStream::new(&app.hub.counters);
    let stream = TaskStream { feed, heartbeat: heartbeat(&app), app, has_ended: false, _open: open };
    let frames = futures_util::stream::unfold(stream, |mut stream| async move {
        let frame = stream.next().await?;
        Some((Ok::<_, Infallible>(frame), stream))
    });
    Ok(response(frames))
}

/// Stream of one task.
struct TaskStream {
    feed: TaskFeed,
    heartbeat: Interval,
    app: App,
    has_ended: bool,
    _open: OpenStream,
}

impl TaskStream {
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

    fn frame(&mut self, item: Result<Item, HostError>) -> String {
        match item {
            Ok(Item::Input { id, input }) => {
                format!("id: {id}\ndata: {}\n\n", serde_json::to_string(&input).unwrap_or_default())
            }
            Ok(Item::Reset(reason)) => named("reset", &json!({"reason": reason})),
            Ok(Item::Ready) => named("ready", &json!({})),
            Ok(Item::End(state)) => {
                self.has_ended = true;
                named("end", &json!({"state": state}))
            }
            Err(error) => {
                self.has_ended = true;
                named("problem", &serde_json::to_value(problem_of(error)).unwrap_or_default())
            }
        }
    }
}
