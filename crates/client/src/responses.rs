//! Bodies of responses. Fields that later servers add are ignored.

use pintle_agent::{SessionId, SessionState, Timestamp};
use pintle_llm::Fingerprint;
use serde::Deserialize;
use serde_json::Value;

/// A session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Id.
    pub id: SessionId,
    /// Beginning of the first message.
    pub title: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the newest change.
    pub updated_at: Timestamp,
    /// Session whose subagent it is.
    pub parent: Option<SessionId>,
    /// State.
    pub state: SessionState,
    /// Whether this server has the session open.
    pub live: bool,
    /// Position among the tenant's sessions that wait for capacity, from 1; `None` unless it waits.
    pub queue_position: Option<u64>,
    /// Number of calls that wait for a decision; includes the calls of its subagents while it is live.
    pub pending_approvals: u64,
    /// Cost so far in US dollars, if it is known.
    pub cost_usd: Option<f64>,
    /// Number of tokens so far.
    pub tokens: Option<u64>,
    /// Working directory of the tools.
    pub directory: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Mode: what happens to calls that no rule names.
    pub mode: Option<String>,
    /// Reasoning effort.
    pub effort: Option<String>,
}

/// Page of a list of sessions, the newest change first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct SessionPage {
    /// Sessions.
    pub sessions: Vec<SessionInfo>,
    /// Cursor of the next page; `None` on the last one.
    pub next: Option<String>,
}

/// A call that waits for a decision.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Approval {
    /// The model's id of the call.
    pub call_id: String,
    /// Fingerprint of the call; a decision names it.
    pub fingerprint: Fingerprint,
    /// Session that makes the call. It may be a subagent.
    pub session: SessionId,
    /// Name of the tool.
    pub tool_name: String,
    /// Arguments.
    pub arguments: Value,
    /// Reason why a decision is needed.
    pub reason: String,
    /// Side of the sandbox on which the command would run.
    pub sandbox: Option<String>,
    /// Absolute paths of the files that it may change.
    pub writes: Vec<String>,
    /// Rules that together match exactly the calls like this one.
    pub suggested_rules: Vec<String>,
    /// Changes that the call would make now, as a unified diff.
    pub diff: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ApprovalList {
    pub(crate) approvals: Vec<Approval>,
}

/// Entry of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// Number of entries before it.
    pub index: usize,
    /// `user`, `assistant`, `tool_results`, `system` or `steering`.
    pub kind: String,
    /// Text.
    pub text: String,
    /// Sequence number of the event that added it.
    pub event: u64,
    /// Time.
    pub at: Timestamp,
    /// Whether the entry is the beginning of a response that was stopped.
    pub interrupted: bool,
}

/// The conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct History {
    /// Its entries.
    pub turns: Vec<HistoryEntry>,
    /// Damage of the record, as text; `None` if the record is complete. Entries after the damage are missing.
    #[serde(default)]
    pub damage: Option<String>,
}

/// Saved state of the files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct CheckpointInfo {
    /// Id.
    pub id: String,
    /// Number of history entries at that time.
    pub turns: usize,
    /// Sequence number of the checkpoint's event.
    pub event: u64,
    /// Time.
    pub at: Timestamp,
    /// `before_call`, `after_call`, `before_rewind` or `after_rewind`.
    pub reason: String,
    /// Number of files, directories and links.
    pub entries: u64,
    /// Description of the missing files; `None` if the checkpoint is complete.
    pub partial: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct CheckpointList {
    pub(crate) checkpoints: Vec<CheckpointInfo>,
}

/// Changes of files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct SessionDiff {
    /// Id of the checkpoint that the files are compared with; `None` if no call has changed a file since.
    pub checkpoint: Option<String>,
    /// Changed files.
    pub files: Vec<FileDiff>,
    /// Number of changed files that are not listed because there are too many.
    pub left_out: usize,
    /// Paths whose changes are unknown.
    pub unknown: Vec<String>,
}

/// Changes of one file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct FileDiff {
    /// Path.
    pub path: String,
    /// Kind of the change.
    pub change: ChangeKind,
    /// Changed lines with their context.
    pub hunks: Vec<Hunk>,
    /// Reason why lines are not shown.
    pub not_shown: Option<String>,
}

/// Kind of the change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ChangeKind {
    /// The file is new.
    Added,
    /// The file is gone.
    Removed,
    /// The content differs.
    Modified,
    /// The mode differs.
    ModeChanged,
    /// A file became a directory or a link, or the reverse.
    TypeChanged,
    /// The link has another target.
    Retargeted,
    /// Kind that only a later server knows.
    #[serde(other)]
    Other,
}

/// Changed lines that are near to one another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Hunk {
    /// Number of the first old line, from 1; the number of the preceding line if the hunk has no old line.
    pub old_start: usize,
    /// Number of the first new line, from 1; the number of the preceding line if the hunk has no new line.
    pub new_start: usize,
    /// Lines.
    pub lines: Vec<DiffLine>,
}

/// Line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct DiffLine {
    /// Kind.
    pub kind: LineKind,
    /// Text, without its line end.
    pub text: String,
}

/// Kind of a line of a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LineKind {
    /// The line is in both files.
    Context,
    /// The line is new.
    Add,
    /// The line is gone.
    Remove,
}

/// Effects of a restore, done or planned.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct RestoreReport {
    /// Whether the restore was only planned.
    pub dry_run: bool,
    /// Number of entries of the conversation before the restore.
    pub turns_before: usize,
    /// Number of entries of the conversation after the restore, if it is rewound.
    pub turns: Option<usize>,
    /// Files that change.
    pub files: Vec<FileStep>,
    /// Files of this list that another process may have changed.
    pub changed_by_others: Vec<String>,
    /// Files that are not restored, although they differ.
    pub left_alone: Vec<FileLeft>,
    /// Files that could not be restored, with the reasons.
    pub problems: Vec<String>,
    /// Checkpoint of the files before the restore; restoring it undoes the restore.
    pub undo: Option<String>,
}

/// A file that a restore changes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct FileStep {
    /// Path, relative to the directory of the session.
    pub path: String,
    /// `create`, `overwrite`, `remove`, `replace` or `set mode`.
    pub action: String,
}

/// A file that a restore does not change.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct FileLeft {
    /// Path, relative to the directory of the session.
    pub path: String,
    /// Human-readable reason.
    pub reason: String,
}

/// Cost by day and model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct CostReport {
    /// First day, in UTC, such as `2026-01-31`.
    pub since: String,
    /// Cost of each day and model with responses, the newest day first.
    pub days: Vec<DayCost>,
    /// Number of sessions with these days, including subagents and deleted sessions.
    pub sessions: u64,
    /// Whether all sessions of these days were read.
    pub is_complete: bool,
}

/// Cost of one model on one day.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct DayCost {
    /// Day, in UTC.
    pub day: String,
    /// Model that responded.
    pub model: String,
    /// Number of responses.
    pub responses: u64,
    /// Input tokens, including cached tokens.
    pub input_tokens: u64,
    /// Input tokens that were read from a cache.
    pub cache_read_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Cost in US dollars; `None` if a price is unknown.
    pub cost_usd: Option<f64>,
}

/// Tool that is offered to the model of a session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ToolInfo {
    /// Name.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: Value,
}

#[derive(Deserialize)]
pub(crate) struct ToolInfoList {
    pub(crate) tools: Vec<ToolInfo>,
}

/// Model that sessions can use.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// Id.
    pub id: String,
    /// Context window in tokens.
    pub context_window: u64,
}

#[derive(Deserialize)]
pub(crate) struct ModelList {
    pub(crate) models: Vec<ModelInfo>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ChangeKind;

    #[test]
    fn every_kind_of_change_of_the_server_is_known() {
        let names = pintle_store::checkpoint::ChangeKind::ALL.map(|kind| json!(kind));
        let read = names.map(|name| serde_json::from_value::<ChangeKind>(name).unwrap());
        assert_eq!(
            read,
            [
                ChangeKind::Added,
                ChangeKind::Removed,
                ChangeKind::Modified,
                ChangeKind::ModeChanged,
                ChangeKind::TypeChanged,
                ChangeKind::Retargeted,
            ]
        );
        assert_eq!(serde_json::from_value::<ChangeKind>(json!("later")).unwrap(), ChangeKind::Other);
    }
}
