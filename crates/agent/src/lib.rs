#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests build sessions without a host"))]

mod approval;
mod budget;
mod checkpoints;
mod clock;
mod config;
mod count;
mod discovery;
mod driver;
mod error;
mod event_log;
mod hooks;
mod ledger;
mod profile;
mod project_docs;
mod prompt;
pub mod protocol;
mod record;
mod run;
mod sanitize;
mod session;
mod skills;
mod spending;
mod subagent;
#[cfg(test)]
mod tests;
pub mod turn;

pub use approval::{
    ApprovalReceiver, ApprovalRequest, Approver, ApproverFn, ChannelApprover, PendingDecision,
    approver_channel, approver_fn,
};
pub use budget::{BudgetAnswer, BudgetRequest, BudgetSource};
pub use checkpoints::Checkpoints;
pub use clock::{Clock, SystemClock};
pub use config::{BackgroundLimit, ModelTimeout, ResponseLimit, SessionConfig, SessionRetry};
pub use count::{Count, GroupedNumber};
pub use error::{RunError, SessionError};
pub use hooks::{
    CallAnswer, EndAnswer, HookContext, HookEvent, HookSession, Hooks, InputAnswer, ResultAnswer,
    SessionSource,
};
pub use ledger::{Ledger, Ledgers};
// Parts of signatures and of lower layers, so that a crate above this one needs no second dependency for them.
pub use async_trait::async_trait;
pub use pintle_env::{ExecutionEnvironment, IntoEnvironment};
pub use pintle_llm::error_chain;
pub use pintle_llm::money::{self, InvalidMoney, Money};
pub use pintle_tools::gate::{Delegate, Gate, PreparedCall, Verdict};
pub use pintle_tools::{ChangeKind, ToolRegistry};
pub use profile::{
    ModelFamily, ProfileData, ProfileDataError, ProviderProfile, SearchBy, SubagentTools, Toolset,
    ToolsetOptions, UnknownFamily,
};
pub use project_docs::{PROJECT_DOC_BUDGET, ProjectDoc, ProjectDocs};
pub use prompt::{EnvironmentContext, GitContext, LayerKind, PromptLayer};
pub use protocol::{
    Account, ApprovalEnding, BudgetKind, BudgetScope, BudgetUsage, CallKey, CallKind, Checkpoint,
    CheckpointReason, CompactionPolicy, CompactionReport, CompactionTrigger, Decision, EventKind, ForkedFrom,
    ImageSummary, InvalidTimestamp, Limits, LoadId, LoadedDocument, LoadedProject, ModelCallId, Outcome,
    OutcomeStatus, PolicyChange, PolicyRule, PostedInput, PostedItem, Principal, QueuedMessages,
    ReachedBudget, RunId, SegmentId, SessionEndReason, SessionEvent, SessionId, SessionState, Skill,
    SkippedFile, Start, SubagentLimits, SubagentOrigin, SubagentRole, SubagentStatus, Timestamp, Turn,
    TurnKind, TurnLimits, UserMessage, event_schema,
};
pub use record::{
    Barrier, Divergence, Fence, Journal, JsonLines, PendingApproval, PostedInputs, Record, RecordEntry,
    RecordError, RecordHeader, Replay, ReplayError, RewindError, SessionStatus, SubagentJournals,
};
pub use run::{Events, Run};
pub use session::{QueuedInput, Session, SessionBuilder, SessionHandle, TypedOutcome};
pub use spending::SessionSpending;
pub use subagent::{SubagentHandle, SubagentResult, SubagentType, TreeEvents};
