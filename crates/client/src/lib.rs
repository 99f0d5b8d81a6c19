#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod address;
mod backoff;
mod changes;
mod client;
mod error;
mod follow;
mod journal;
mod lines;
mod messages;
mod operation;
mod options;
mod requests;
mod responses;
mod segments;
mod session_events;
mod task_events;
mod tasks;
#[cfg(test)]
mod tests;
mod transport;

pub use changes::{Change, Changes};
pub use client::{ByteRange, Client};
pub use error::{ClientError, Problem};
pub use follow::Disconnected;
pub use journal::{Journal, JournalLine};
pub use options::{Backoff, ClientOptions};
pub use requests::{AuditFormat, ExportFormat, ListSessions, NewSession, Restore, SettingsChange, Since};
pub use responses::{
    Approval, ChangeKind, Checkpoint, CostReport, DayCost, Diff, DiffLine, FileDiff, FileLeft, FileStep,
    History, HistoryEntry, Hunk, LineKind, ModelInfo, RestoreReport, SessionInfo, SessionPage, ToolInfo,
};
pub use session_events::{EventId, SessionEvents, SessionItem};
pub use task_events::{TaskEvents, TaskItem};
pub use tasks::{GateDecision, TaskDetail, TaskGate, TaskInfo, TaskPage};
