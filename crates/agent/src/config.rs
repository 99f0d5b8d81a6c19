//! Configuration of a session, with every limit in one value (loop specification, section 2.2; design, section 9).

use pintle_env::{Redactions, setters};
use pintle_llm::{AdapterTimeout, ReasoningEffort, RetryPolicy};
use pintle_tools::{CommandTimeouts, TruncationLimits};

use crate::protocol::{CompactionPolicy, Limits, SubagentLimits, TurnLimits};

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
    /// Limits on the tool output that is sent to the model, per tool.
    pub tool_output: TruncationLimits,
    /// Retry policy of model calls. Default: two retries, none after a time-out.
    pub retry: SessionRetry,
    /// Maximum number of commands in the background. Default 16.
    pub background_commands: BackgroundLimit,
    /// Limits on subagents. Default: one level, 8 open subagents.
    pub subagents: SubagentLimits,
    /// Time limits of model calls. Default [`AdapterTimeout::patient`]: 60 s for the response headers, 300 s without a
    /// byte, 15 minutes without content.
    pub model_timeout: ModelTimeout,
    /// Maximum size of a model response. Default 64 MiB.
    pub response_limit: ResponseLimit,
    /// Last layer of the system prompt, with the highest priority.
    pub user_instructions: Option<String>,
    /// Secrets of the application, such as its keys. They are replaced in user messages, tool results and the prompt
    /// before these reach a model, an event or a record. The live output of a running tool, and the names and arguments
    /// that a model writes, are not redacted. Default: none.
    pub redactions: Redactions,
}

impl SessionConfig {
    setters! {
        /// Sets the limits of the turn machine.
        pub fn with_limits(limits: TurnLimits) => limits = limits;
        /// Sets the limit on assistant turns over the session; 0 is unlimited.
        pub fn with_max_turns(max_turns: u64) => limits.max_turns = max_turns;
        /// Sets the limit on tool rounds per input; 0 is unlimited.
        pub fn with_max_tool_rounds(max_rounds: u64) => limits.max_tool_rounds_per_input = max_rounds;
        /// Sets the spending limits of the session and its subagents.
        pub fn with_budget(budget: Limits) => limits.budget = budget;
        /// Sets when the conversation is compacted, and by which model.
        pub fn with_compaction(policy: CompactionPolicy) => limits.compaction = policy;
        /// Sets the reasoning effort.
        pub fn with_reasoning_effort(effort: Option<ReasoningEffort>) => reasoning_effort = effort;
        /// Sets the time limits of commands.
        pub fn with_command_timeouts(timeouts: CommandTimeouts) => command_timeouts = timeouts;
        /// Sets the limits on the tool output that is sent to the model.
        pub fn with_tool_output(limits: TruncationLimits) => tool_output = limits;
        /// Sets the retry policy of model calls.
        pub fn with_retry(policy: RetryPolicy) => retry = SessionRetry(policy);
        /// Sets the time limits of model calls.
        pub fn with_model_timeout(timeout: AdapterTimeout) => model_timeout = ModelTimeout(timeout);
        /// Sets the maximum number of commands in the background.
        pub fn with_background_commands(max: usize) => background_commands = BackgroundLimit(max);
        /// Sets the maximum nesting depth of subagents. With 0 the model has no tools for subagents.
        pub fn with_max_subagent_depth(depth: u32) => subagents.max_depth = depth;
        /// Sets the maximum number of open subagents.
        pub fn with_max_subagents(max: usize) => subagents.max_open = max;
        /// Sets the maximum size of a model response, in bytes.
        pub fn with_response_limit(bytes: u64) => response_limit = ResponseLimit(bytes);
        /// Sets the secrets that are hidden from models and records.
        pub fn with_redactions(secrets: Redactions) => redactions = secrets;
        /// Sets the instructions of the user, which end the system prompt.
        pub fn with_user_instructions(text: impl Into<String>) => user_instructions = Some(text.into());
    }
}

/// Retry policy of a session: the client's defaults. A time-out after the request was sent is not retried, since the
/// user would wait for minutes several times over ([`RetryPolicy::with_retry_timeouts`]).
#[derive(Clone, Debug, Default)]
pub struct SessionRetry(pub RetryPolicy);

/// Maximum number of background commands of a session. The default is codex's limit, which counts every command.
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
