//! Facts of an audited session other than its calls.

use std::fmt;

use pintle_agent::protocol::{
    BudgetKind, BudgetScope, Checkpoint, CheckpointReason, ForkedFrom, OutcomeStatus, PolicyChange,
    SubagentStatus,
};
use pintle_agent::{ImageSummary, Principal, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AuditReport;

/// Number of an event in its session, and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Moment")]
#[non_exhaustive]
pub struct EventStamp {
    /// Sequence number of the event.
    pub seq: u64,
    /// Its time.
    #[schemars(with = "String")]
    pub at: Timestamp,
}

/// Identity of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionHeader {
    /// Id of the session.
    pub id: SessionId,
    /// Its parent, if it is a subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spawned_by: Option<SpawnedBy>,
    /// Origin of its history, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// Working directory of its tools.
    pub working_directory: String,
    /// Time of its creation; `None` if the record has no event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub created_at: Option<Timestamp>,
    /// Version of the record's format.
    pub record_version: u32,
    /// Version of the program that wrote its beginning.
    pub made_by: String,
}

/// Origin of a subagent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SpawnedBy {
    /// Name among the subagents of its parent.
    pub agent_id: String,
    /// Session that spawned it.
    pub parent: SessionId,
    /// Nesting depth: 1 for a subagent of a session that the application built.
    pub depth: u32,
}

/// Model, and when the session started to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ModelChange {
    /// Start of its use.
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Provider that requests are sent to.
    pub provider: String,
    /// Model.
    pub model: String,
}

/// Input that the session handled, or a message that was injected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct InputHistory {
    /// When the session started to handle it.
    pub moment: EventStamp,
    /// How it reached the session.
    pub source: InputSource,
    /// Number of the run that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
    /// Principal that submitted it, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// Id that its sender chose, if it was posted from another process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted_as: Option<String>,
    /// Text.
    pub text: String,
    /// Images that the model got with the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageSummary>,
    /// How its run ended. Only for the input that started the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub run_ended: Option<OutcomeStatus>,
}

/// How an input reached the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputSource {
    /// It was submitted, and started a run.
    Submitted,
    /// It waited for the end of an earlier input of the same run.
    FollowUp,
    /// It was injected between two rounds.
    Steering,
    /// A hook gave the model more work before the run could end.
    Hook,
    /// The record does not contain the source.
    Unknown,
}

/// Change of the session's permissions. The first change is usually the initial policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PolicyHistory {
    /// When it was recorded.
    pub moment: EventStamp,
    /// The change.
    pub change: PolicyChange,
}

/// Subagent of the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SubagentHistory {
    /// Name among the subagents of this session.
    pub agent_id: String,
    /// Id of its session.
    pub session_id: SessionId,
    /// Task.
    pub task: String,
    /// Call that spawned it, if the record contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// When it was spawned.
    pub spawned: EventStamp,
    /// When it was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<EventStamp>,
    /// Result of its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<SubagentStatus>,
    /// Number of its assistant turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Audit of its session, if its record was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<AuditReport>>,
}

/// Limit that stopped the loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LimitHistory {
    /// When it was reached.
    pub moment: EventStamp,
    /// The limit.
    pub limit: ReachedLimit,
}

/// Limit that was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReachedLimit {
    /// A spending limit.
    Budget {
        /// The limit; its name includes the unit.
        budget: BudgetKind,
        /// Its value.
        limit: u64,
        /// Amount that was spent or reserved.
        spent: u64,
        /// Minimum that the next call needed, if less was left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed: Option<u64>,
        /// Scope of the limit.
        #[serde(default)]
        scope: BudgetScope,
    },
    /// Rounds of tool calls of one input.
    Rounds {
        /// Number of rounds.
        rounds: u64,
    },
    /// Assistant turns of the session.
    Turns {
        /// Number of turns.
        turns: u64,
    },
    /// The model's context window.
    ContextWindow {
        /// Lower bound of the size of the next request, in tokens.
        least_tokens: u64,
        /// Context window, in tokens.
        context_window: u64,
    },
}

/// Checkpoint of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CheckpointHistory {
    /// When it was taken.
    pub moment: EventStamp,
    /// Why.
    pub reason: CheckpointReason,
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Number of entries that the history had.
    pub turns: u64,
}

/// Rewind of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RewindHistory {
    /// When.
    pub moment: EventStamp,
    /// Number of entries of the history that were left.
    pub turns: u64,
}

/// Error, warning or other note about the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Notice {
    /// When.
    pub moment: EventStamp,
    /// Its kind.
    pub kind: NoticeKind,
    /// Message for the user.
    pub message: String,
}

/// Kind of a [`Notice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoticeKind {
    /// An error stopped the turn.
    Error,
    /// A problem did not stop the turn.
    Warning,
    /// Calls repeated.
    Loop,
    /// The history was changed so that the provider accepts it.
    Repair,
    /// Another process resumed the session.
    Resumed,
    /// A decision named no call that waited for it.
    LateDecision,
}

/// End of a record that was not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unread")]
#[non_exhaustive]
pub struct UnreadInputs {
    /// Index of the first input that was not read, from 0.
    pub input: u64,
    /// Number of inputs that were not read.
    pub inputs: u64,
    /// Why.
    pub reason: String,
}

impl InputSource {
    /// Returns the name, such as `follow-up`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::FollowUp => "follow-up",
            Self::Steering => "steering message",
            Self::Hook => "message of a hook",
            Self::Unknown => "input",
        }
    }
}

impl NoticeKind {
    /// Returns the name, such as `warning`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Loop => "loop",
            Self::Repair => "repair",
            Self::Resumed => "resumed",
            Self::LateDecision => "late",
        }
    }
}

impl fmt::Display for ReachedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget { budget, limit, spent, needed, scope } => {
                let name = serde_json::to_value(budget).unwrap_or_default();
                let name = name.as_str().unwrap_or("budget");
                write!(f, "{name} of the {scope} {limit}, {spent} spent")?;
                needed.map_or(Ok(()), |needed| write!(f, ", {needed} needed"))
            }
            Self::Rounds { rounds } => write!(f, "rounds of calls for one input: {rounds}"),
            Self::Turns { turns } => write!(f, "responses: {turns}"),
            Self::ContextWindow { least_tokens, context_window } => {
                write!(f, "context window {context_window}, at least {least_tokens} needed")
            }
        }
    }
}

impl EventStamp {
    pub(super) fn new(seq: u64, at: Timestamp) -> Self {
        Self { seq, at }
    }
}
