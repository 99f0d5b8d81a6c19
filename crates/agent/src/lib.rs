#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod approval;
mod config;
mod discovery;
mod driver;
mod error;
mod event;
mod event_log;
mod id;
mod profile;
mod project_docs;
mod prompt;
mod record;
mod run;
mod sanitize;
mod session;
mod skills;
mod subagent;
mod subagent_info;
mod timestamp;
pub mod turn;

pub use approval::{ApprovalRequest, Approver};
pub use config::{
    AnswerLimit, BackgroundLimit, ModelTimeout, SessionConfig, SessionRetry, SubagentLimits, TurnLimits,
};
pub use discovery::SkippedFile;
pub use error::SessionError;
pub use event::{EventKind, ForkedFrom, SessionEvent, event_schema};
pub use id::{CallKey, LoadId, ModelCallId, RunId, SegmentId, SessionId};
pub use profile::{
    ModelFamily, ProfileData, ProfileDataError, ProviderProfile, SearchBy, SubagentTools, Toolset,
    ToolsetOptions, UnknownFamily,
};
pub use project_docs::{LoadedDocument, LoadedProject, PROJECT_DOC_BUDGET, ProjectDoc, ProjectDocs};
pub use prompt::{EnvironmentContext, GitContext, LayerKind, PromptLayer};
pub use record::{Divergence, Record, RecordEntry, RecordError, RecordHeader, Replay, ReplayError};
pub use run::{Events, Run};
pub use session::{Decision, Session, SessionBuilder, SessionHandle};
pub use skills::Skill;
pub use subagent::{SubagentHandle, SubagentResult, TreeEvents};
pub use subagent_info::{SubagentOrigin, SubagentStatus};
pub use timestamp::{Clock, SystemClock, Timestamp};
pub use turn::{Budget, BudgetKind, Outcome, OutcomeStatus, SessionState, Spent, Start, Turn, TurnKind};
