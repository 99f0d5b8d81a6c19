//! Limits of the turn machine and of subagents.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{CompactionPolicy, Limits};

/// Limits that the turn machine enforces: plain data that a record can hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TurnLimits {
    /// Assistant turns over the whole session; 0 is unlimited. Default 0.
    pub max_turns: u64,
    /// Rounds of tool calls per user input; 0 is unlimited. Default 0.
    pub max_tool_rounds_per_input: u64,
    /// Whether repeating patterns of calls are detected. Default true.
    pub enable_loop_detection: bool,
    /// Number of calls that must repeat, with their results, before the model is warned. Default 10.
    pub loop_detection_window: usize,
    /// Maximum number of concurrent tool calls, where the profile allows concurrency. Default 8.
    pub max_parallel_tools: usize,
    /// Time after which a pending approval counts as denied; `None` is unlimited. Default `None`.
    pub approval_timeout: Option<Duration>,
    /// Spending limits; the session pauses when one is reached. Default: none.
    pub budget: Limits,
    /// Capacity of the steering queue and of the follow-up queue. Messages beyond it are rejected. Default 1,000 each.
    pub max_queued: usize,
    /// Maximum number of times that hooks may continue a run that would end. Default 3.
    pub max_hook_continuations: u32,
    /// Compaction of long conversations. Default: on request only.
    pub compaction: CompactionPolicy,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            max_turns: 0,
            max_tool_rounds_per_input: 0,
            enable_loop_detection: true,
            loop_detection_window: 10,
            max_parallel_tools: 8,
            approval_timeout: None,
            budget: Limits::default(),
            max_queued: 1_000,
            max_hook_continuations: 3,
            compaction: CompactionPolicy::default(),
        }
    }
}

impl TurnLimits {
    /// Returns the number of calls that loop detection compares; 0 if it is off.
    pub(crate) fn loop_window(&self) -> usize {
        if self.enable_loop_detection { self.loop_detection_window } else { 0 }
    }
}

/// Limits on the subagents of a session (loop specification, sections 2.2 and 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentLimits {
    /// Maximum nesting depth below a session that the embedding application built. Default 1: a subagent cannot spawn
    /// subagents.
    pub max_depth: u32,
    /// Maximum number of open subagents of one session. A finished subagent is closed to make room. Default 8.
    pub max_open: usize,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        Self { max_depth: 1, max_open: 8 }
    }
}
