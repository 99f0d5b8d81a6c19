//! Several streams over one connection. Browsers open at most six HTTP/1.1 connections to an origin, shared by all tabs.

use std::collections::HashSet;
use std::str::FromStr;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use futures_util::StreamExt as _;
use futures_util::stream::{once, select_all, unfold};
use serde::Deserialize;
use tokio::time::Instant;

use super::events::{EventFrame, EventFrames, heartbeat, text_response};
use super::extractors::Query;
use super::openapi::{Operation, Parameter};
use super::{App, Caller, TokenScope};
use crate::feed::EventId;
use crate::problem::{INVALID, Problem};

/// Maximum number of streams of one connection.
const MAX_STREAMS: usize = 100;

/// Pattern of one stream.
macro_rules! stream_pattern {
    () => {
        "[A-Za-z0-9]+:(sessions|(session|task):[A-Za-z0-9-]+(@[0-9]{1,15}(-[0-9]{1,15})?)?)"
    };
}

/// Pattern of a stream and up to 99 others.
const STREAMS: &str = concat!("^", stream_pattern!(), "(,", stream_pattern!(), "){0,99}$");

const FOLLOW: &[Parameter] = &[Parameter::matching(
    "follow",
    STREAMS,
    "Streams, with commas between them: `NAME:sessions`, `NAME:session:ID` or `NAME:task:ID`, and `@EVENT` behind one with an id \
     to begin after this event. You make up the names, each for one stream; messages contain them. At most 100, each of which \
     counts as a request",
)
.required()];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            "get",
            "/v1/streams",
            "followStreams",
            TokenScope::Read,
            "Follow several sessions and tasks in one connection",
            get(follow),
        )
        .with_query(FOLLOW)
        .answers_as(200, &["text/event-stream"]),
    ]
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowQuery {
    follow: String,
}

/// A stream to follow.
#[derive(Debug, PartialEq, Eq)]
struct StreamRequest {
    /// Identifies the stream in its messages.
    name: String,
    source: StreamSource,
    /// Id of the last event that the client has.
    last: Option<EventId>,
}

#[derive(Debug, PartialEq, Eq)]
enum StreamSource {
    Sessions,
    Session(String),
    Task(String),
}

impl FromStr for StreamRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let invalid =
            || format!("expected `NAME:sessions`, `NAME:session:ID` or `NAME:task:ID`, got `{text}`");
        let (name, source) = text.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(invalid)?;
        let name = name.to_owned();
        if source == "sessions" {
            return Ok(Self { name, source: StreamSource::Sessions, last: None });
        }
        let (kind, target) = source.split_once(':').ok_or_else(invalid)?;
        let (id, last) = match target.rsplit_once('@') {
            Some((id, last)) => (id, Some(last.parse::<EventId>()?)),
            None => (target, None),
        };
        let source = match kind {
            "session" if !id.is_empty() => StreamSource::Session(id.to_owned()),
            "task" if !id.is_empty() => StreamSource::Task(id.to_owned()),
            _ => return Err(invalid()),
        };
        Ok(Self { name, source, last })
    }
}

/// Parses streams, which must have distinct names.
fn parse_requests(text: &str) -> Result<Vec<StreamRequest>, String> {
    let requests: Result<Vec<StreamRequest>, String> = text.split(',').map(str::parse).collect();
    let requests = requests?;
    if requests.len() > MAX_STREAMS {
        return Err(format!("expected at most {MAX_STREAMS} streams"));
    }
    let repeated = {
        let mut names = HashSet::new();
        requests.iter().find(|request| !names.insert(request.name.as_str()))
    };
    if let Some(StreamRequest { name, .. }) = repeated {
        return Err(format!("expected each name once, got `{name}` again"));
    }
    Ok(requests)
}

async fn follow(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Query(query): Query<FollowQuery>,
) -> Result<Response, Problem> {
    let requests =
        parse_requests(&query.follow).map_err(|detail| Problem::new(INVALID, format!("follow: {detail}")))?;
    // The request itself is already counted.
    let further = u32::try_from(requests.len().saturating_sub(1)).unwrap_or(u32::MAX);
    app.access.rates.charge(caller.rate_key(), further, Instant::now());
    let mut streams = Vec::with_capacity(requests.len() + 1);
    for StreamRequest { name, source, last } in requests {
        let frames = match app.frames_of(&caller, source, last).await {
            Ok(frames) => frames,
            // The other streams are still followed.
            Err(problem) => {
                let problem = serde_json::to_value(&problem).unwrap_or_default();
                once(std::future::ready(EventFrame::with_name("problem", &problem))).boxed()
            }
        };
        let frames = frames.filter(|frame| std::future::ready(!frame.is_heartbeat()));
        streams.push(frames.map(move |frame| frame.to_text_with_stream(&name)).boxed());
    }
    let drained = app.hub.drained().clone().cancelled_owned();
    let heartbeats = unfold((heartbeat(&app), app), |(mut interval, app)| async move {
        interval.tick().await;
        Some((EventFrame::heartbeat(&app).to_text(), (interval, app)))
    });
    streams.push(heartbeats.take_until(drained).boxed());
    Ok(text_response(select_all(streams)))
}

impl App {
    async fn frames_of(
        &self,
        caller: &Caller,
        source: StreamSource,
        last: Option<EventId>,
    ) -> Result<EventFrames, Problem> {
        match source {
            StreamSource::Sessions => Ok(self.follow_sessions(caller.clone())),
            StreamSource::Session(id) => self.follow_session(caller, &id, last).await,
            #[cfg(feature = "tasks")]
            StreamSource::Task(id) => self.follow_task(caller, &id, last).await,
            #[cfg(not(feature = "tasks"))]
            StreamSource::Task(id) => {
                Err(Problem::new(crate::problem::NOT_FOUND, format!("there is no task `{id}`")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_from_their_text() {
        let event = |seq, millis| Some(EventId { seq, millis });
        for (text, expected) in [
            ("1:sessions", Some(("1", StreamSource::Sessions, None))),
            ("a:session:s1", Some(("a", StreamSource::Session("s1".to_owned()), None))),
            (
                "a:session:s1@41-176",
                Some(("a", StreamSource::Session("s1".to_owned()), event(41, Some(176)))),
            ),
            ("2:task:t1@0", Some(("2", StreamSource::Task("t1".to_owned()), event(0, None)))),
            ("", None),
            ("sessions", None),
            (":sessions", None),
            ("1:session", None),
            ("1:session:", None),
            ("1:session:@4", None),
            ("1:session:s1@x", None),
            ("1:file:f1", None),
        ] {
            let read = text.parse::<StreamRequest>().ok();
            let read = read.map(|StreamRequest { name, source, last }| (name, source, last));
            assert_eq!(read, expected.map(|(name, source, last)| (name.to_owned(), source, last)), "{text}");
        }
    }
}
