//! Limits on the turns of a session and on the calls of its model.

use std::time::Duration;

use pintle_agent::{CompactionPolicy, SessionConfig, TurnLimits};
use pintle_llm::ReasoningEffort;

use crate::spec::{LimitSpec, SessionSpec};
use crate::timeout;

/// How long a call waits for a decision.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Limits on the turns of a session and on the calls of its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Maximum number of model responses; 0 for no limit.
    pub max_turns: u64,
    /// Maximum number of rounds of tool calls; 0 for no limit.
    pub max_tool_rounds: u64,
    /// Share of the context window, in percent, at which the conversation is summarized; 0 for never.
    pub compact_at: u8,
    /// Maximum time that a model call yields nothing; `None` for the default.
    pub model_timeout: Option<Duration>,
}

impl From<&SessionSpec> for SessionLimits {
    fn from(spec: &SessionSpec) -> Self {
        let LimitSpec { max_turns, max_tool_rounds, compact_at, .. } = spec.limits;
        Self {
            max_turns: max_turns.0,
            max_tool_rounds: max_tool_rounds.0,
            compact_at,
            model_timeout: spec.model.timeout,
        }
    }
}

impl SessionLimits {
    /// Returns the configuration of a session with these limits and a reasoning effort.
    #[must_use]
    pub fn config(&self, effort: Option<String>) -> SessionConfig {
        let compaction = match self.compact_at {
            0 => CompactionPolicy::default(),
            percent => CompactionPolicy::default().with_at_percent(percent),
        };
        let mut config = SessionConfig::default()
            .with_max_turns(self.max_turns)
            .with_max_tool_rounds(self.max_tool_rounds)
            .with_compaction(compaction)
            .with_model_timeout(timeout::adapter_timeout(self.model_timeout))
            .with_reasoning_effort(effort.map(ReasoningEffort::from));
        config.limits.approval_timeout = Some(APPROVAL_TIMEOUT);
        config
    }

    /// Returns the limits of turns without any setting.
    #[must_use]
    pub(crate) fn default_turns() -> TurnLimits {
        let mut limits = SessionConfig::default().with_compaction(CompactionPolicy::automatic()).limits;
        limits.approval_timeout = Some(APPROVAL_TIMEOUT);
        limits
    }
}
