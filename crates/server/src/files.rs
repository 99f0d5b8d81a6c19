//! Earlier states of a session's files, and their restoration.

use std::path::PathBuf;

use pintle_store::checkpoint::FileDiffs;
use schemars::JsonSchema;
use serde::Serialize;

/// Point with which the files of a session are compared, or to which they are restored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePoint {
    /// Before the first change after this many entries of the history.
    Entries(usize),
    /// The checkpoint with this id.
    Checkpoint(String),
}

/// Changes of the files of a session since a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileChanges {
    /// Id of the checkpoint for the comparison; `None` if no call has changed files since.
    pub checkpoint: Option<String>,
    /// The changes.
    pub diffs: FileDiffs,
    /// Paths whose state is unknown.
    pub unknown: Vec<PathBuf>,
}

/// Request to restore the files of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreRequest {
    /// Point to restore.
    pub point: FilePoint,
    /// Whether the conversation is also rewound, to the entries of [`FilePoint::Entries`].
    pub conversation: bool,
    /// Whether to restore files that another user or process may have changed.
    pub force: bool,
    /// Whether to report the effects without applying them.
    pub dry_run: bool,
}

/// Effects of a restore, done or planned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Whether nothing was done.
    pub dry_run: bool,
    /// Number of entries that the conversation has then, if it goes back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<usize>,
    /// Number of entries that the conversation had.
    pub turns_before: usize,
    /// Files that change.
    pub files: Vec<FileStep>,
    /// Files of this list that another user or process may have changed.
    pub changed_by_others: Vec<String>,
    /// Files that stay as they are, although they differ.
    pub left_alone: Vec<FileLeft>,
    /// Checkpoint of the files before; restoring it undoes the restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// Files that could not be restored, with the reasons.
    pub problems: Vec<String>,
}

/// A file that a restore changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FileStep {
    /// Path, relative to the directory of the session.
    pub path: String,
    /// `create`, `overwrite`, `remove`, `replace` or `set mode`.
    pub action: String,
}

impl FileStep {
    /// Creates a step.
    #[must_use]
    pub fn new(path: impl Into<String>, action: impl Into<String>) -> Self {
        Self { path: path.into(), action: action.into() }
    }
}

/// A file that a restore leaves as it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[non_exhaustive]
pub struct FileLeft {
    /// Path, relative to the directory of the session.
    pub path: String,
    /// Reason, for people.
    pub reason: String,
}

impl FileLeft {
    /// Creates an entry with its reason.
    #[must_use]
    pub fn new(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}
