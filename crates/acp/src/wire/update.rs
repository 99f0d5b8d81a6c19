//! Updates of a session.

use std::path::PathBuf;

use pintle_agent::Money;
use serde::Serialize;
use serde_json::Value;

use super::ContentBlock;

/// Notification about an event in a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum SessionUpdate {
    UserMessageChunk {
        content: ContentBlock,
        message_id: String,
    },
    AgentMessageChunk {
        content: ContentBlock,
        message_id: String,
    },
    AgentThoughtChunk {
        content: ContentBlock,
        message_id: String,
    },
    /// A new call.
    ToolCall(CallUpdate),
    /// Changed fields of a call. Lists are replaced.
    ToolCallUpdate(CallUpdate),
    Plan {
        entries: Vec<PlanEntry>,
    },
    AvailableCommandsUpdate {
        available_commands: Vec<AvailableCommand>,
    },
    CurrentModeUpdate {
        current_mode_id: String,
    },
    ConfigOptionUpdate {
        config_options: Vec<Value>,
    },
    UsageUpdate {
        used: u64,
        size: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        cost: Option<SessionCost>,
    },
    SessionInfoUpdate {
        title: String,
    },
    /// Only for clients that support notices.
    Notice {
        severity: &'static str,
        title: String,
    },
    /// Only for clients that support compactions.
    CompactionUpdate {
        compaction_id: String,
        status: &'static str,
    },
}

/// Cost of a session so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SessionCost {
    amount: f64,
    currency: &'static str,
}

impl SessionCost {
    pub(crate) fn from_money(cost: Money) -> Self {
        Self { amount: cost.dollars(), currency: "USD" }
    }
}

/// Fields of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallUpdate {
    pub(crate) tool_call_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<ToolKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<CallStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Vec<CallContent>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) locations: Option<Vec<FileLocation>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_input: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) raw_output: Option<Value>,
}

impl CallUpdate {
    /// Creates an update that changes nothing.
    pub(crate) fn new(id: impl Into<String>) -> Self {
        Self { tool_call_id: id.into(), ..Self::default() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolKind {
    Read,
    Edit,
    Search,
    Execute,
    Think,
    Fetch,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
}

/// Content that a call shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(crate) enum CallContent {
    Content {
        content: ContentBlock,
    },
    Diff {
        /// Absolute.
        path: PathBuf,
        /// `None` for a new file.
        #[serde(skip_serializing_if = "Option::is_none")]
        old_text: Option<String>,
        new_text: String,
    },
    Terminal {
        terminal_id: String,
    },
}

impl CallContent {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Content { content: ContentBlock::text(text) }
    }
}

/// File that a call concerns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct FileLocation {
    /// Absolute.
    pub(crate) path: PathBuf,
    /// Counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PlanEntry {
    pub(crate) content: String,
    /// Required by the protocol. Plans of tools have no priority.
    pub(crate) priority: &'static str,
    pub(crate) status: &'static str,
}

/// Slash command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AvailableCommand {
    pub(crate) name: String,
    pub(crate) description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Value>,
}
