//! Changes of files in a session's workspace, and their restoration.

use std::borrow::Cow;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use pintle_agent::{CheckpointReason, EventKind};
use pintle_store::checkpoint::{ChangeKind, DiffLine, DiffOmission, FileDiff};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::extractors::{Json, Path, Query};
use super::openapi::{MAX_NUMBER, Operation, Parameter};
use super::{App, Caller, TokenScope, json};
use crate::files::{FilePoint, RestoreReport, RestoreRequest};
use crate::problem::{INVALID, Problem};

const SINCE: &[Parameter] = &[
    Parameter::number(
        "turns",
        0,
        MAX_NUMBER,
        "Number of entries of the history before the changes; default 0",
    ),
    Parameter::text("checkpoint", "Id of a checkpoint, instead"),
];

pub(super) fn operations() -> Vec<Operation> {
    let read = |path, id, summary, handler| {
        Operation::new("get", path, id, TokenScope::Read, summary, handler).with_problems(&[404, 409])
    };
    vec![
        read(
            "/v1/sessions/{id}/checkpoints",
            "listCheckpoints",
            "List the states of the files that can be restored",
            get(checkpoints),
        )
        .answers::<CheckpointList>(200),
        read("/v1/sessions/{id}/diff", "diff", "Compare the files with an earlier state", get(diff))
            .with_query(SINCE)
            .answers::<DiffView>(200),
        Operation::new(
            "post",
            "/v1/sessions/{id}/restore",
            "restore",
            TokenScope::Run,
            "Restore files to an earlier state, or report the effects without applying them",
            post(restore),
        )
        .with_body::<RestoreBody>()
        .answers::<RestoreReport>(200)
        .with_problems(&[404, 409]),
    ]
}

#[derive(Debug, Serialize, JsonSchema)]
struct CheckpointList {
    checkpoints: Vec<CheckpointView>,
}

/// State of the files when the checkpoint was taken.
#[derive(Debug, Serialize, JsonSchema)]
struct CheckpointView {
    id: String,
    /// Number of entries that the history had.
    turns: usize,
    /// Sequence number of the event that records the checkpoint.
    event: u64,
    /// Time, in RFC 3339.
    at: String,
    /// `before_call`, `after_call`, `before_rewind` or `after_rewind`.
    #[schemars(with = "String")]
    reason: CheckpointReason,
    /// Number of files, directories and links.
    entries: u64,
    /// Description of the missing parts; absent if the checkpoint is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    partial: Option<String>,
}

async fn checkpoints(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let id = app.find(&caller, &id).await?.summary.id;
    let replay = app.replay(&id).await?;
    let present = replay.checkpoints();
    let taken = replay.events.iter().filter_map(|event| {
        let EventKind::CheckpointTaken { reason, checkpoint, turns } = &event.kind else { return None };
        let is_present = present.iter().any(|known| known.0 == *turns && known.1 == *checkpoint);
        is_present.then(|| CheckpointView {
            id: checkpoint.id.clone(),
            turns: *turns,
            event: event.seq,
            at: event.timestamp.to_string(),
            reason: *reason,
            entries: checkpoint.entries,
            partial: checkpoint.partial.clone(),
        })
    });
    Ok(json(&CheckpointList { checkpoints: taken.collect() }))
}

/// Changes of files.
#[derive(Debug, Serialize, JsonSchema)]
struct DiffView {
    /// Id of the checkpoint that they are compared with; absent if no call has changed anything since.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<String>,
    files: Vec<FileView>,
    /// Number of changed files that are not listed because there are too many.
    left_out: usize,
    /// Paths about which nothing is known.
    unknown: Vec<String>,
}

/// Changes of one file.
#[derive(Debug, Serialize, JsonSchema)]
struct FileView {
    path: String,
    #[schemars(with = "ChangeName")]
    change: ChangeKind,
    /// Changed lines with those around them.
    hunks: Vec<HunkView>,
    /// Reason why lines are not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_shown: Option<&'static str>,
}

/// Schema of [`ChangeKind`].
struct ChangeName;

impl JsonSchema for ChangeName {
    fn schema_name() -> Cow<'static, str> {
        "ChangeName".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": ChangeKind::ALL})
    }
}

/// Changed lines that are near to one another.
#[derive(Debug, Serialize, JsonSchema)]
struct HunkView {
    /// Number of the first old line, from 1; of the preceding line if the hunk has no old lines.
    old_start: usize,
    /// Number of the first new line, from 1; of the preceding line if the hunk has no new lines.
    new_start: usize,
    lines: Vec<LineView>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LineView {
    kind: LineKind,
    text: String,
}

#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum LineKind {
    Context,
    Add,
    Remove,
}

impl From<DiffLine> for LineView {
    fn from(line: DiffLine) -> Self {
        let (kind, text) = match line {
            DiffLine::Context(text) => (LineKind::Context, text),
            DiffLine::Added(text) => (LineKind::Add, text),
            DiffLine::Removed(text) => (LineKind::Remove, text),
        };
        Self { kind, text }
    }
}

impl From<FileDiff> for FileView {
    fn from(file: FileDiff) -> Self {
        let hunks = file.hunks.into_iter().map(|hunk| HunkView {
            old_start: hunk.old_start,
            new_start: hunk.new_start,
            lines: hunk.lines.into_iter().map(LineView::from).collect(),
        });
        let not_shown = file.not_shown.map(|reason| match reason {
            DiffOmission::Binary => "it is not text",
            DiffOmission::TooLarge => "it is too large",
            DiffOmission::NotAvailable | _ => "its content is not kept",
        });
        Self {
            path: file.path.to_string_lossy().into_owned(),
            change: file.kind,
            hunks: hunks.collect(),
            not_shown,
        }
    }
}

/// Starting point of a comparison.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DiffQuery {
    turns: Option<usize>,
    checkpoint: Option<String>,
}

fn file_point(turns: Option<usize>, checkpoint: Option<String>) -> Result<FilePoint, Problem> {
    match (turns, checkpoint) {
        (turns, None) => Ok(FilePoint::Entries(turns.unwrap_or(0))),
        (None, Some(checkpoint)) => Ok(FilePoint::Checkpoint(checkpoint)),
        (Some(_), Some(_)) => Err(Problem::new(INVALID, "expected `turns` or `checkpoint`, not both")),
    }
}

async fn diff(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Query(since): Query<DiffQuery>,
) -> Result<Response, Problem> {
    let found = app.find(&caller, &id).await?;
    let changes =
        app.hub.host.changes(&found.summary.id, &file_point(since.turns, since.checkpoint)?).await?;
    Ok(json(&DiffView {
        checkpoint: changes.checkpoint,
        files: changes.diffs.files.into_iter().map(FileView::from).collect(),
        left_out: changes.diffs.left_out,
        unknown: changes.unknown.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
    }))
}

/// Restore of files.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "if" = {"required": ["turns"], "properties": {"turns": {"type": "integer"}}},
    "then" = {"properties": {"checkpoint": {"type": "null"}}},
    "else" = {
        "required": ["checkpoint"],
        "properties": {"checkpoint": {"type": "string"}, "conversation": {"const": false}},
    },
))]
struct RestoreBody {
    /// Number of entries of the history before the changes that are undone.
    #[serde(default)]
    #[schemars(extend("maximum" = MAX_NUMBER))]
    turns: Option<usize>,
    /// Id of a checkpoint, instead.
    #[serde(default)]
    checkpoint: Option<String>,
    /// Whether the conversation goes back to `turns` as well.
    #[serde(default)]
    conversation: bool,
    /// Whether to restore files that another user or process may have changed.
    #[serde(default)]
    force: bool,
    /// Whether to report the effects without applying them.
    #[serde(default)]
    dry_run: bool,
}

async fn restore(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    Json(body): Json<RestoreBody>,
) -> Result<Response, Problem> {
    let found = app.find_going(&caller, &id).await?;
    if found.summary.parent.is_some() {
        return Err(Problem::new(INVALID, "a subagent shares the files of its session: restore them there"));
    }
    let RestoreBody { turns, checkpoint, conversation, force, dry_run } = body;
    if turns.is_none() && checkpoint.is_none() {
        return Err(Problem::new(INVALID, "expected `turns` or `checkpoint`"));
    }
    if conversation && turns.is_none() {
        return Err(Problem::new(INVALID, "`conversation` goes with `turns`"));
    }
    let request = RestoreRequest { point: file_point(turns, checkpoint)?, conversation, force, dry_run };
    Ok(json(&app.hub.restore(&found.summary.id, request).await?))
}
