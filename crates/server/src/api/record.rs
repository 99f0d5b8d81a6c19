//! History, journal and large values of a session.

use std::collections::{HashMap, VecDeque};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ACCEPT_RANGES, CONTENT_RANGE, CONTENT_TYPE, ETAG, RANGE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use pintle_agent::{EventKind, Replay, SessionEvent, SessionId, Timestamp, Turn, TurnKind};
use pintle_store::{Hash, Reader, StoreError, read_intact};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::extractors::{Path, Query};
use super::openapi::{MAX_NUMBER, Operation, Parameter};
use super::{App, Caller, TokenScope, json};
use crate::host::HostError;
use crate::problem::{self, FAILED, INVALID, NOT_FOUND, Problem};

const JOURNAL: &[Parameter] = &[
    Parameter::number("from", 1, MAX_NUMBER, "Number of the first line"),
    Parameter::number("to", 1, MAX_NUMBER, "Number of the last line"),
];

const BYTES: &[Parameter] = &[Parameter::matching(
    "range",
    "^bytes=([0-9]{1,15}-[0-9]{0,15}|-[0-9]{1,15})$",
    "One range of bytes, such as `bytes=0-1023`",
)];

pub(super) fn operations() -> Vec<Operation> {
    let operation = |path, id, summary, handler| {
        Operation::new("get", path, id, TokenScope::Read, summary, handler).with_problems(&[404, 409])
    };
    vec![
        operation("/v1/sessions/{id}/history", "readHistory", "Read the conversation", get(history))
            .answers::<History>(200),
        operation(
            "/v1/sessions/{id}/journal",
            "readJournal",
            "Read the lines of the journal, as JSON lines",
            get(journal),
        )
        .with_query(JOURNAL)
        .answers_as(200, &["application/jsonl"]),
        operation(
            "/v1/sessions/{id}/blobs/{hash}",
            "readBlob",
            "Read a large value of the journal, or a range of its bytes",
            get(blob),
        )
        .with_headers(BYTES)
        .answers_as(200, &["application/octet-stream"])
        .also_answers(206, "The range of bytes that was asked for")
        .with_problems(&[404, 409, 416]),
    ]
}

/// The conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct History {
    turns: Vec<TurnView>,
    /// Damage of the record, as text; absent if the record is complete. The entries are those before the damage.
    #[serde(skip_serializing_if = "Option::is_none")]
    damage: Option<String>,
}

/// Entry of the conversation.
#[derive(Debug, Serialize, JsonSchema)]
struct TurnView {
    /// Number of entries before it.
    index: usize,
    /// `user`, `assistant`, `tool_results`, `system` or `steering`.
    kind: String,
    /// Its text.
    text: String,
    /// Sequence number of the event that added it.
    event: u64,
    /// Time, in RFC 3339.
    at: String,
    /// Whether it is the beginning of a response that was stopped.
    interrupted: bool,
    /// Author of an input or steering message: the name of its token.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<String>,
}

fn view(index: usize, turn: &Turn, event: u64) -> TurnView {
    let kind = match serde_json::to_value(turn.kind) {
        Ok(Value::String(kind)) => kind,
        Ok(_) | Err(_) => String::new(),
    };
    let text = if turn.kind == TurnKind::ToolResults { String::new() } else { turn.item.message().text() };
    let author = turn.author.as_ref().map(ToString::to_string);
    TurnView {
        index,
        kind,
        text,
        event,
        at: turn.timestamp.to_string(),
        interrupted: turn.interrupted,
        author,
    }
}

/// Finds the events that added the entries of a history. An entry and its event have the same time.
struct TurnEvents<'a>(HashMap<(TurnKind, Timestamp), VecDeque<u64>>, &'a [SessionEvent]);

impl<'a> TurnEvents<'a> {
    fn new(events: &'a [SessionEvent]) -> Self {
        let mut adding: HashMap<_, VecDeque<u64>> = HashMap::new();
        for event in events {
            #[expect(clippy::wildcard_enum_match_arm, reason = "the others add no entry")]
            let kind = match &event.kind {
                EventKind::UserInput { .. } => TurnKind::User,
                EventKind::SteeringInjected { .. } => TurnKind::Steering,
                EventKind::ModelResponse { .. } => TurnKind::Assistant,
                EventKind::ToolCallEnd { .. } => TurnKind::ToolResults,
                _ => continue,
            };
            let seqs = adding.entry((kind, event.timestamp)).or_default();
            if kind == TurnKind::ToolResults {
                // Several calls can end at once. The last one completes the entry.
                seqs.clear();
            }
            seqs.push_back(event.seq);
        }
        Self(adding, events)
    }

    fn event_of(&mut self, turn: &Turn) -> u64 {
        let adding = self.0.get_mut(&(turn.kind, turn.timestamp)).and_then(VecDeque::pop_front);
        // A summary or the text of an interrupted response: the last event of that time.
        adding.unwrap_or_else(|| {
            let after = self.1.partition_point(|event| event.timestamp <= turn.timestamp);
            after.checked_sub(1).and_then(|last| self.1.get(last)).map_or(0, |event| event.seq)
        })
    }
}

impl App {
    /// Reads the record of a session.
    ///
    /// # Errors
    ///
    /// A problem if the record is damaged or cannot be read.
    pub(super) async fn replay(&self, id: &SessionId) -> Result<Replay, Problem> {
        match self.intact_replay(id).await? {
            (replay, None) => Ok(replay),
            (replay, Some(damage)) => {
                let (damage, entries) = (damage.to_string(), replay.history.len());
                Err(HostError::Damaged { id: id.clone(), damage, entries }.into())
            }
        }
    }

    /// Reads the record of a session up to the first damaged line. Returns the record with the damage.
    ///
    /// # Errors
    ///
    /// A problem if nothing of the record can be read.
    pub(super) async fn intact_replay(
        &self,
        id: &SessionId,
    ) -> Result<(Replay, Option<StoreError>), Problem> {
        match read_intact(self.hub.store.as_ref(), id).await {
            Ok(intact) => {
                let replay = intact.record.replay();
                let replay = replay
                    .map_err(|_| Problem::new(FAILED, "the record of the session cannot be replayed"))?;
                Ok((replay, intact.damage))
            }
            // Nothing was recorded yet.
            Err(StoreError::NotFound(_)) => Ok((Replay::default(), None)),
            Err(error) => Err(error.into()),
        }
    }
}

async fn history(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id = app.find(&caller, &id).await?.summary.id;
    let (replay, damage) = app.intact_replay(&id).await?;
    let mut events = TurnEvents::new(&replay.events);
    let turns = replay.history.iter().enumerate();
    let turns = turns.map(|(index, turn)| view(index, turn, events.event_of(turn))).collect();
    Ok(json(&History { turns, damage: damage.map(|damage| damage.to_string()) }))
}

/// Range of lines to return.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    from: Option<u64>,
    to: Option<u64>,
}

async fn journal(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(lines): Query<JournalQuery>,
) -> Result<Response, Problem> {
    let id = app.find(&caller, &id).await?.summary.id;
    let from = lines.from.unwrap_or(1);
    if from == 0 || lines.to == Some(0) {
        return Err(Problem::new(INVALID, "from and to: the first line is 1"));
    }
    let reader = app.hub.store.read(&id, from).await?;
    let to = lines.to.unwrap_or(u64::MAX);
    let lines = futures_util::stream::try_unfold(reader, move |reader| next_line(reader, to));
    let media_type = HeaderValue::from_static("application/jsonl");
    Ok(([(CONTENT_TYPE, media_type)], Body::from_stream(lines)).into_response())
}

async fn next_line(
    mut reader: Box<dyn Reader>,
    to: u64,
) -> Result<Option<(String, Box<dyn Reader>)>, StoreError> {
    match reader.next().await? {
        Some(line) if line.seq <= to => Ok(Some((format!("{}\n", line.object), reader))),
        _ => Ok(None),
    }
}

async fn blob(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path((id, hash)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = app.find(&caller, &id).await?.summary.id;
    let wanted: Hash = hash
        .parse()
        .map_err(|_| Problem::new(INVALID, format!("`{hash}` is no hash: expected one of the journal")))?;
    let bytes = app.hub.store.blobs(&id).get(&wanted).await?;
    let bytes = bytes.ok_or_else(|| Problem::new(NOT_FOUND, "this session has no such value"))?;
    let size = bytes.len();
    let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
    let mut response = match range.and_then(|range| parse_range(range, size)) {
        None => bytes.into_response(),
        Some(None) => {
            let problem = Problem::new(problem::RANGE, format!("the value has {size} bytes"));
            let mut response = problem.into_response();
            set(&mut response, CONTENT_RANGE, &format!("bytes */{size}"));
            return Ok(response);
        }
        Some(Some((first, last))) => {
            let part = bytes.get(first..=last).unwrap_or_default().to_vec();
            let mut response = (StatusCode::PARTIAL_CONTENT, part).into_response();
            set(&mut response, CONTENT_RANGE, &format!("bytes {first}-{last}/{size}"));
            response
        }
    };
    set(&mut response, CONTENT_TYPE, "application/octet-stream");
    set(&mut response, ACCEPT_RANGES, "bytes");
    set(&mut response, ETAG, &format!("\"{hash}\""));
    Ok(response)
}

fn set(response: &mut Response, name: axum::http::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Parses a range of bytes: `None` for an unsupported header, which requests the complete value; `Some(None)` for a range
/// without a byte.
fn parse_range(range: &str, size: usize) -> Option<Option<(usize, usize)>> {
    let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
    let end = size.checked_sub(1);
    let range = match (first, last) {
        ("", count) => {
            let count: usize = count.parse().ok()?;
            end.filter(|_| count > 0).map(|end| (size.saturating_sub(count), end))
        }
        (first, last) => {
            let first: usize = first.parse().ok()?;
            let last: usize = if last.is_empty() { usize::MAX } else { last.parse().ok()? };
            if last < first {
                return None;
            }
            end.filter(|end| first <= *end).map(|end| (first, last.min(end)))
        }
    };
    Some(range)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_http() {
        for (range, expected) in [
            ("bytes=0-3", Some(Some((0, 3)))),
            ("bytes=8-", Some(Some((8, 9)))),
            ("bytes=8-100", Some(Some((8, 9)))),
            ("bytes=-3", Some(Some((7, 9)))),
            ("bytes=-100", Some(Some((0, 9)))),
            ("bytes=10-", Some(None)),
            ("bytes=-0", Some(None)),
            ("bytes=3-2", None),
            ("bytes=0-1,4-5", None),
            ("lines=0-3", None),
            ("bytes=x", None),
        ] {
            assert_eq!(parse_range(range, 10), expected, "{range}");
        }
        assert_eq!(parse_range("bytes=0-", 0), Some(None));
    }
}
