//! Totals of the current run and of its current input.

use std::time::Duration;

use pintle_llm::Usage;
use serde::{Deserialize, Serialize};

use super::response::FinalResponse;
use crate::protocol::{BudgetUsage, RunId, Timestamp};

/// Totals of the current run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Progress {
    pub(super) run: RunId,
    /// Time when it started.
    pub(super) since: Timestamp,
    /// Time limit for which a timer is set.
    pub(super) timed: Option<Duration>,
    /// Rounds of tool calls for the current input.
    pub(super) rounds: u64,
    pub(super) text: String,
    pub(super) usage: Usage,
    pub(super) model_calls: u64,
    pub(super) tool_calls: u64,
    /// Number of times that hooks made the model continue.
    #[serde(default)]
    pub(super) sent_on: u32,
    #[serde(default)]
    pub(super) response: FinalResponse,
    /// Spending of the session when the run started.
    #[serde(default)]
    pub(super) spent_before: BudgetUsage,
    /// The same without amounts that are only held.
    #[serde(default)]
    pub(super) spent_at_start: BudgetUsage,
    /// Totals when the current input started.
    #[serde(default)]
    pub(super) input: InputStart,
    /// Whether a refusal without a known reason was treated as a prompt that is too long.
    #[serde(default)]
    pub(super) assumed_overflow: bool,
    /// Message of the last refusal whose named media were removed.
    #[serde(default)]
    pub(super) repaired_for: Option<String>,
}

/// Totals of a run when one of its inputs started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct InputStart {
    pub(super) usage: Usage,
    pub(super) model_calls: u64,
    pub(super) tool_calls: u64,
    /// Spending of the session.
    pub(super) spent: BudgetUsage,
}

impl Progress {
    pub(super) fn new(
        run: RunId,
        since: Timestamp,
        spent_before: BudgetUsage,
        spent_at_start: BudgetUsage,
    ) -> Self {
        Self {
            run,
            since,
            timed: None,
            rounds: 0,
            text: String::new(),
            usage: Usage::default(),
            model_calls: 0,
            tool_calls: 0,
            sent_on: 0,
            response: FinalResponse::default(),
            spent_before,
            spent_at_start,
            input: InputStart { spent: spent_at_start, ..InputStart::default() },
            assumed_overflow: false,
            repaired_for: None,
        }
    }
}
