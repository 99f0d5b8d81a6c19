//! Every limit of a session in one value (loop specification, section 2.2; design, section 9).

use std::time::Duration;

use pintle_llm::{AdapterTimeout, ReasoningEffort, RetryPolicy};
use pintle_tools::{CommandTimeouts, TruncationLimits};
use serde::{Deserialize, Serialize};

use crate::turn::Budget;

/// The limits that the turn machine keeps: plain data that a record can hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct TurnLimits {
    /// Assistant turns over the whole session; 0 is unlimited. Default 0.
    pub max_turns: u64,
    /// Rounds of tool calls per user input; 0 is unlimited. Default 0.
    pub max_tool_rounds_per_input: u64,
    /// Whether repeating patterns of calls are looked for. Default true.
    pub enable_loop_detection: bool,
    /// How many calls must repeat before the model is told. Default 10.
    pub loop_detection_window: usize,
    /// Tool calls that run at the same time, where the profile allows any. Default 8.
    pub max_parallel_tools: usize,
    /// How long an approval may take before it counts as a denial; `None` waits without end. Default `None`.
    pub approval_timeout: Option<Duration>,
    /// What may be spent before the session pauses. Default: no limit.
    pub budget: Budget,
    /// Steering messages, and follow-ups, that may wait. Default 1,000 each; more are refused.
    pub max_queued: usize,
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
            budget: Budget::default(),
            max_queued: 1_000,
        }
    }
}

/// How a session behaves.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SessionConfig {
    /// What the turn machine keeps.
    pub limits: TurnLimits,
    /// How much the model reasons; its default if `None`.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// How long commands may run. Default 10 s, 10 min at most.
    pub command_timeouts: CommandTimeouts,
    /// How much of a tool's output the model gets, per tool.
    pub tool_output: TruncationLimits,
    /// When a failed model call is made again. Default: twice, but not after a time-out.
    pub retry: SessionRetry,
    /// How many commands may run on between calls, at once. Default 16.
    pub background_commands: BackgroundLimit,
    /// How deep and how many subagents may be. Default: one level, 8 at a time.
    pub subagents: SubagentLimits,
    /// How long a model call is waited for. Default [`AdapterTimeout::patient`]: 60 s for the headers of the response,
    /// 300 s without a byte, 15 minutes without content.
    pub model_timeout: ModelTimeout,
    /// How large an answer of the model may grow. Default 64 MiB.
    pub answer_limit: AnswerLimit,
    /// Appended to the system prompt last, with the highest priority.
    pub user_instructions: Option<String>,
}

impl SessionConfig {
    /// With other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: TurnLimits) -> Self {
        self.limits = limits;
        self
    }

    /// With a limit on assistant turns over the session; 0 is unlimited.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: u64) -> Self {
        self.limits.max_turns = max_turns;
        self
    }

    /// With a limit on tool rounds per input; 0 is unlimited.
    #[must_use]
    pub fn with_max_tool_rounds(mut self, max_rounds: u64) -> Self {
        self.limits.max_tool_rounds_per_input = max_rounds;
        self
    }

    /// With limits on what the session and its subagents may spend.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.limits.budget = budget;
        self
    }

    /// With a reasoning effort.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: Option<ReasoningEffort>) -> Self {
        self.reasoning_effort = effort;
        self
    }

    /// With other time-outs of commands.
    #[must_use]
    pub fn with_command_timeouts(mut self, timeouts: CommandTimeouts) -> Self {
        self.command_timeouts = timeouts;
        self
    }

    /// With other limits on what the model gets of a tool's output.
    #[must_use]
    pub fn with_tool_output(mut self, limits: TruncationLimits) -> Self {
        self.tool_output = limits;
        self
    }

    /// With another retry policy around each model call.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = SessionRetry(policy);
        self
    }

    /// With other time limits of each model call.
    #[must_use]
    pub fn with_model_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.model_timeout = ModelTimeout(timeout);
        self
    }

    /// With another limit on commands that run on between calls.
    #[must_use]
    pub fn with_background_commands(mut self, max: usize) -> Self {
        self.background_commands = BackgroundLimit(max);
        self
    }

    /// With subagents down to this depth; 0 is none, and then the model has no tools for them.
    #[must_use]
    pub fn with_max_subagent_depth(mut self, depth: u32) -> Self {
        self.subagents.max_depth = depth;
        self
    }

    /// With another limit on subagents at a time.
    #[must_use]
    pub fn with_max_subagents(mut self, max: usize) -> Self {
        self.subagents.max_open = max;
        self
    }

    /// With another limit on the size of an answer, in bytes.
    #[must_use]
    pub fn with_answer_limit(mut self, bytes: u64) -> Self {
        self.answer_limit = AnswerLimit(bytes);
        self
    }

    /// With instructions of the user, appended last.
    #[must_use]
    pub fn with_user_instructions(mut self, text: impl Into<String>) -> Self {
        self.user_instructions = Some(text.into());
        self
    }
}

/// The retry policy of a session: the client's defaults. A time-out after the request was sent is not retried: whoever
/// waited for a server for minutes would wait several times as long ([`RetryPolicy::with_retry_timeouts`]).
#[derive(Clone, Debug, Default)]
pub struct SessionRetry(pub RetryPolicy);

/// How many commands of a session run on between calls: as many as the sessions of codex have, each of whose commands
/// is one. A remote environment may have fewer places; a command then waits for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundLimit(pub usize);

impl Default for BackgroundLimit {
    fn default() -> Self {
        Self(16)
    }
}

/// The limits on the subagents of a session (loop specification, sections 2.2 and 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubagentLimits {
    /// How deep they may be nested below a session of a host. Default 1: a subagent has none of its own.
    pub max_depth: u32,
    /// Those of one session that are open at a time; one that has finished gives way to another. Default 8.
    pub max_open: usize,
}

impl Default for SubagentLimits {
    fn default() -> Self {
        Self { max_depth: 1, max_open: 8 }
    }
}

/// How many bytes of text, reasoning and arguments an answer may have. A larger one is not waited for, and the run fails;
/// an answer that comes whole has the same limit in the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimit(pub u64);

impl Default for AnswerLimit {
    fn default() -> Self {
        Self(64 << 20)
    }
}

/// The time limits of a session's model calls: patient, since reasoning models are silent for minutes.
#[derive(Clone, Copy, Debug)]
pub struct ModelTimeout(pub AdapterTimeout);

impl Default for ModelTimeout {
    fn default() -> Self {
        Self(AdapterTimeout::patient())
    }
}
