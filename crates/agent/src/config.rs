//! Configuration of a session, with every limit in one value (loop specification, section 2.2; design, section 9).

use pintle_llm::{AdapterTimeout, ReasoningEffort, RetryPolicy};
use pintle_tools::{CommandTimeouts, TruncationLimits};

use crate::protocol::{Budget, SubagentLimits, TurnLimits};

/// Configuration of a session. A [`SessionHandle`](crate::SessionHandle) can change most of it between turns.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SessionConfig {
    /// Limits that the turn machine enforces.
    pub limits: TurnLimits,
    /// Reasoning effort; the model's default if `None`.
    pub reasoning_effort: Option<ReasoningEffort>,
    /// Time limits of commands. Default 10 s, at most 10 min.
    pub command_timeouts: CommandTimeouts,
    /// Limits on the part of a tool's output that the model gets, per tool.
    pub tool_output: TruncationLimits,
    /// Retry policy of model calls. Default: two retries, none after a time-out.
    pub retry: SessionRetry,
    /// Maximum number of commands in the background. Default 16.
    pub background_commands: BackgroundLimit,
    /// Limits on subagents. Default: one level, 8 at a time.
    pub subagents: SubagentLimits,
    /// Time limits of model calls. Default [`AdapterTimeout::patient`]: 60 s for the response headers, 300 s without a
    /// byte, 15 minutes without content.
    pub model_timeout: ModelTimeout,
    /// Maximum size of a model response. Default 64 MiB.
    pub response_limit: ResponseLimit,
    /// Last layer of the system prompt, with the highest priority.
    pub user_instructions: Option<String>,
}

impl SessionConfig {
    /// Sets the limits of the turn machine.
    #[must_use]
    pub fn with_limits(mut self, limits: TurnLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the limit on assistant turns over the session; 0 is unlimited.
    #[must_use]
    pub fn with_max_turns(mut self, max_turns: u64) -> Self {
        self.limits.max_turns = max_turns;
        self
    }

    /// Sets the limit on tool rounds per input; 0 is unlimited.
    #[must_use]
    pub fn with_max_tool_rounds(mut self, max_rounds: u64) -> Self {
        self.limits.max_tool_rounds_per_input = max_rounds;
        self
    }

    /// Sets the spending limits of the session and its subagents.
    #[must_use]
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.limits.budget = budget;
        self
    }

    /// Sets the reasoning effort.
    #[must_use]
    pub fn with_reasoning_effort(mut self, effort: Option<ReasoningEffort>) -> Self {
        self.reasoning_effort = effort;
        self
    }

    /// Sets the time limits of commands.
    #[must_use]
    pub fn with_command_timeouts(mut self, timeouts: CommandTimeouts) -> Self {
        self.command_timeouts = timeouts;
        self
    }

    /// Sets the limits on the part of a tool's output that the model gets.
    #[must_use]
    pub fn with_tool_output(mut self, limits: TruncationLimits) -> Self {
        self.tool_output = limits;
        self
    }

    /// Sets the retry policy of model calls.
    #[must_use]
    pub fn with_retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = SessionRetry(policy);
        self
    }

    /// Sets the time limits of model calls.
    #[must_use]
    pub fn with_model_timeout(mut self, timeout: AdapterTimeout) -> Self {
        self.model_timeout = ModelTimeout(timeout);
        self
    }

    /// Sets the maximum number of commands in the background.
    #[must_use]
    pub fn with_background_commands(mut self, max: usize) -> Self {
        self.background_commands = BackgroundLimit(max);
        self
    }

    /// Sets the maximum nesting depth of subagents. With 0 the model has no tools for subagents.
    #[must_use]
    pub fn with_max_subagent_depth(mut self, depth: u32) -> Self {
        self.subagents.max_depth = depth;
        self
    }

    /// Sets the maximum number of open subagents.
    #[must_use]
    pub fn with_max_subagents(mut self, max: usize) -> Self {
        self.subagents.max_open = max;
        self
    }

    /// Sets the maximum size of a model response, in bytes.
    #[must_use]
    pub fn with_response_limit(mut self, bytes: u64) -> Self {
        self.response_limit = ResponseLimit(bytes);
        self
    }

    /// Sets the instructions of the user, which end the system prompt.
    #[must_use]
    pub fn with_user_instructions(mut self, text: impl Into<String>) -> Self {
        self.user_instructions = Some(text.into());
        self
    }
}

/// Retry policy of a session: the client's defaults. A time-out after the request was sent is not retried, since the
/// user would wait for minutes several times over ([`RetryPolicy::with_retry_timeouts`]).
#[derive(Clone, Debug, Default)]
pub struct SessionRetry(pub RetryPolicy);

/// Maximum number of commands of a session in the background. The default is that of codex, where each command is one.
/// A remote environment may allow fewer; a command then waits for a free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundLimit(pub usize);

impl Default for BackgroundLimit {
    fn default() -> Self {
        Self(16)
    }
}

/// Maximum size of a model response in bytes: text, reasoning and arguments together. A streamed response is abandoned
/// as soon as it exceeds the limit, and the run fails. The transport applies the same limit to other responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseLimit(pub u64);

impl Default for ResponseLimit {
    fn default() -> Self {
        Self(64 << 20)
    }
}

/// Time limits of a session's model calls: long, since reasoning models can be silent for minutes.
#[derive(Clone, Copy, Debug)]
pub struct ModelTimeout(pub AdapterTimeout);

impl Default for ModelTimeout {
    fn default() -> Self {
        Self(AdapterTimeout::patient())
    }
}
