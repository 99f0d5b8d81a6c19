#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests build sessions without a host"))]

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
pub use error::{ClientError, ServerProblem};
pub use follow::Disconnected;
pub use journal::{Journal, JournalLine};
pub use options::{Backoff, ClientOptions};
pub use requests::{
    AuditFormat, ExportFormat, FilePoint, NewSession, RestoreRequest, SessionQuery, SettingsChange,
};
pub use responses::{
    Approval, ChangeKind, CheckpointInfo, CostReport, DayCost, DiffLine, FileDiff, FileLeft, FileStep,
    History, HistoryEntry, Hunk, LineKind, ModelInfo, RestoreReport, SessionDiff, SessionInfo, SessionPage,
    ToolInfo,
};
pub use session_events::{EventId, SessionEvents, SessionItem};
pub use task_events::{TaskEvents, TaskItem};
pub use tasks::{GateDecision, TaskDetail, TaskGate, TaskInfo, TaskPage};
