//! Initial state of a machine.

use pintle_llm::ReasoningEffort;
use serde::{Deserialize, Serialize};

use super::{Compaction, ForkedFrom, Limits, Turn, TurnContext, TurnLimits};

/// State of a machine before its first input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Start {
    /// Limits.
    pub limits: TurnLimits,
    /// Reasoning effort; the model's default if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Conversation so far. Each call in it has its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Turn>,
    /// Context of the next request; loaded before it if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<Box<TurnContext>>,
    /// Origin of the history, if it comes from another session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// Summaries that replace the beginning of the history, the newest last.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<Compaction>,
    /// Highest number in a name of a subagent that the history may mention; 0 if there was none.
    #[serde(skip_serializing_if = "is_zero")]
    pub subagents_named: u64,
    /// Limits of a budget that the session requests in parts, starting with none: every amount that is not `None`, in addition to
    /// the session's own limits. If `None`, its limits are its whole budget.
    #[serde(with = "super::budget::on_demand", skip_serializing_if = "Option::is_none")]
    pub asks: Option<Limits>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Start {
    /// Creates a start without a history.
    #[must_use]
    pub fn new(limits: TurnLimits, reasoning_effort: Option<ReasoningEffort>) -> Self {
        Self { limits, reasoning_effort, ..Self::default() }
    }
}
