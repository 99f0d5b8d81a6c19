//! Events of a session (loop specification, section 2.9; design, section 4).

mod schema;

use pintle_env::Output;
use pintle_llm::{CallArguments, ErrorInfo, Fingerprint, FinishReason, Segment, Usage};
use pintle_tools::gate::{Judgement, Permission};
use pintle_tools::{ArgumentRepair, FileChange, SandboxSide, ToolErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::schema::event_schema;
use super::{
    ApprovalEnding, BudgetKind, BudgetScope, CallKind, ChangedArguments, Checkpoint, CheckpointReason,
    ImageSummary, LoadedProject, OutcomeStatus, PolicyChange, Principal, SessionId, SessionState,
    SubagentStatus, Timestamp,
};

/// Event of a session.
///
/// Serialised as the specification's record with `kind`, `timestamp`, `session_id` and `data`, plus `seq`.
///
/// ```
/// use pintle_agent::{EventKind, ProviderProfile, Session};
/// # use pintle_llm::{Client, Message, Role, ToolCall, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let call = ToolCall::from_raw("c1", "write_file", r#"{"file_path": "/project/notes.txt", "content": "milk"}"#);
/// # let call = Message::new(Role::Assistant, vec![call.into()]);
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic").message(call).answer("Saved.")).build()?;
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// # let session = Session::builder(client, ProviderProfile::anthropic("claude-opus-4-6"), env).build()?;
/// let mut events = session.events();
/// session.submit("Note: milk.").await?;
/// session.close().await;
///
/// let mut steps = Vec::new();
/// while let Some(event) = events.next().await {
///     match event.kind {
///         EventKind::ToolCallStart { tool_name, .. } => steps.push(tool_name),
///         EventKind::ToolCallEnd { changes, .. } => steps.push(format!("{} file", changes.len())),
///         EventKind::AssistantTextEnd { text, .. } => steps.push(text),
///         _ => {}
///     }
/// }
/// assert_eq!(steps, ["write_file", "1 file", "Saved."]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
// The schema leaves out the example.
#[schemars(
    description = "Event of a session.\n\nSerialised as the specification's record with `kind`, `timestamp`, `session_id` and `data`, plus `seq`."
)]
#[non_exhaustive]
pub struct SessionEvent {
    /// Sequence number, counting up from 0 without gaps within a session. A delta has the number of its start event.
    pub seq: u64,
    /// Offset of a delta in its segment, in bytes; `None` for all other events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// Time: RFC 3339 in UTC, to the millisecond.
    #[schemars(schema_with = "schema::timestamp")]
    pub timestamp: Timestamp,
    /// Id of the session.
    pub session_id: SessionId,
    /// Nesting depth: 0 for a session that the embedding application built, 1 for its subagents.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// Id of the session that spawned this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SessionId")]
    pub parent: Option<SessionId>,
    /// Kind and data.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Origin of the history of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ForkedFrom {
    /// Id of the forked session.
    pub session_id: SessionId,
    /// Number of history entries that the fork inherited.
    pub turns: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// Kind and data of an event. Starts and ends pair.
///
/// The deltas of text and of reasoning concatenate to the text of the end event. The output deltas of a tool call do so,
/// too, unless the call was stopped or failed midway, or its tool streams text other than its result, such as progress.
/// The deltas of a call's arguments concatenate to the arguments as the model wrote them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "data", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum EventKind {
    /// The session was created. The first event.
    SessionStart {
        /// Provider that requests are sent to.
        provider: String,
        /// Model.
        model: String,
        /// Working directory of the tools.
        working_directory: String,
        /// Origin of the history, if the session is a fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ForkedFrom>,
    },
    /// The process that drove the session is gone, and another process resumed it from its record. All earlier events
    /// are from the record.
    SessionResumed {
        /// Calls that had started and are not repeated, since their effect is unknown. Their end events follow.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupted: Vec<String>,
        /// Calls that had started and are safe to repeat. Each has one start event and one end event.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repeated: Vec<String>,
        /// Calls that had declared their changes of files. If the files show that a call is done or in conflict, its end
        /// event follows. Otherwise it runs again.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        reconciled: Vec<String>,
    },
    /// The session is closed. The last event.
    SessionEnd {
        /// Final state, always closed. Required by the specification.
        state: SessionState,
    },
    /// An input of the user, or a follow-up, is being handled.
    UserInput {
        /// Text.
        content: String,
        /// Images that the model gets with the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageSummary>,
        /// Author, if the application names one, such as the name of a token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<Principal>,
    },
    /// The input and all follow-ups have been handled.
    ProcessingEnd {
        /// State of the session.
        state: SessionState,
        /// How the run ended. Versions that do not report it leave it out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "OutcomeStatus")]
        outcome: Option<OutcomeStatus>,
    },
    /// Project documents and skills in the prompt, and files that could not be used. Emitted before the first request
    /// with them and whenever they change; never for a project that has none.
    ProjectLoaded(LoadedProject),
    /// A request is about to be sent.
    RequestPrepared {
        /// Hash of everything that a provider may cache.
        #[schemars(schema_with = "schema::fingerprint")]
        fingerprint: Fingerprint,
        /// Number of messages, including the system prompt.
        messages: usize,
        /// First segment that differs from the previous request, which explains a cache miss.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Segment")]
        moved: Option<Segment>,
    },
    /// The model started to write text.
    AssistantTextStart {},
    /// More text.
    AssistantTextDelta {
        /// Text.
        delta: String,
    },
    /// A segment of text ended.
    AssistantTextEnd {
        /// Complete text of the segment.
        text: String,
        /// Whether the stream failed or was stopped here.
        #[serde(default)]
        interrupted: bool,
    },
    /// The model started to reason.
    ReasoningStart {},
    /// More reasoning.
    ReasoningDelta {
        /// Text.
        delta: String,
    },
    /// A segment of reasoning ended.
    ReasoningEnd {
        /// Complete readable text of the segment.
        text: String,
        /// Whether the stream failed or was stopped here.
        #[serde(default)]
        interrupted: bool,
    },
    /// The model started to write the arguments of a tool call. Not emitted for arguments that arrive in one piece.
    ToolCallArgumentsStart {
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Kind of the call.
        #[serde(default)]
        call_kind: CallKind,
    },
    /// More of the arguments: a piece of JSON, or of free text for a tool with a grammar.
    ToolCallArgumentsDelta {
        /// The model's id of the call.
        call_id: String,
        /// Text, as the model wrote it.
        delta: String,
    },
    /// The model finished the arguments of a tool call, or stopped writing them. The complete arguments are in
    /// `TOOL_CALL_START`.
    ToolCallArgumentsEnd {
        /// The model's id of the call.
        call_id: String,
        /// Whether the stream failed or was stopped here.
        #[serde(default)]
        interrupted: bool,
    },
    /// A model response is complete and part of the history.
    ModelResponse {
        /// The provider's id of the response.
        response_id: String,
        /// Model that responded.
        model: String,
        /// Reason why the model stopped.
        finish_reason: FinishReason,
        /// Tokens of this call.
        usage: Usage,
    },
    /// Simple mistakes in the arguments of a call were repaired before it was judged. The other events of the call have
    /// the arguments as the model wrote them.
    ToolCallRepaired {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Repairs.
        repairs: Vec<ArgumentRepair>,
    },
    /// The gates judged a call. Emitted if there are gates, and again if one refuses the call right before its effect.
    CallJudged {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// The strictest verdict.
        permission: Permission,
        /// Verdict of each gate that was asked, with the rule that decided. The chain ends at the first denial.
        steps: Judgement,
        /// Arguments that the call would run with, if they were changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<ChangedArguments>,
    },
    /// A tool call started, or is answered without running.
    ToolCallStart {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Kind of the call.
        #[serde(default)]
        call_kind: CallKind,
        /// Arguments.
        #[schemars(with = "Value")]
        arguments: CallArguments,
    },
    /// More output of a running tool.
    ToolCallOutputDelta {
        /// Id of the call.
        call_id: String,
        /// Text; bytes that are not UTF-8 are replaced.
        delta: String,
    },
    /// A tool call ended.
    ToolCallEnd {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Complete output; the model may get less.
        #[schemars(schema_with = "schema::output")]
        output: Output,
        /// Kind of failure, if the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "ToolErrorKind")]
        error: Option<ToolErrorKind>,
        /// Time limit that a command exceeded, in milliseconds, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Exit code of a command that exited. A non-zero one is a result and not a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Duration in milliseconds.
        duration_ms: u64,
        /// Files that the call changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        changes: Vec<FileChange>,
        /// Images that the model gets with the output.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageSummary>,
    },
    /// A call needs the approval of a user.
    ApprovalRequested {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Kind of the call.
        #[serde(default)]
        call_kind: CallKind,
        /// Arguments that it would run with.
        arguments: Value,
        /// Why approval is needed.
        reason: String,
        /// Identifies this call with exactly these arguments. A decision applies to it alone, and once.
        #[schemars(schema_with = "schema::fingerprint")]
        fingerprint: Fingerprint,
        /// Side of the sandbox on which the command would run; missing without a sandbox and for other calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sandbox: Option<SandboxSide>,
    },
    /// A request for approval ended: a user decided, it timed out, or it is no longer needed.
    ApprovalDecided {
        /// Id of the call.
        call_id: String,
        /// Whether it may run.
        approved: bool,
        /// How the request ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ending: Option<ApprovalEnding>,
        /// Reason of a denial, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Principal that decided, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// The permissions of the session changed: its mode, rules, sandbox or grant.
    PolicyChanged(PolicyChange),
    /// A checkpoint of the workspace was taken.
    CheckpointTaken {
        /// Why.
        reason: CheckpointReason,
        /// The checkpoint.
        checkpoint: Checkpoint,
        /// Number of entries of the history at that time.
        turns: usize,
    },
    /// The session continues after the first entries of its history. Later entries are no longer part of it.
    Rewound {
        /// Number of entries that are left.
        turns: usize,
    },
    /// A decision came too late or does not match the call. It has no effect.
    ApprovalLate {
        /// Id of the call.
        call_id: String,
        /// Whether the decision approved the call.
        approved: bool,
        /// Why it does not apply.
        reason: String,
    },
    /// A steering message was added to the history.
    SteeringInjected {
        /// Text.
        content: String,
        /// Images that the model gets with the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<ImageSummary>,
        /// Author, if the application names one, such as the name of a token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        author: Option<Principal>,
    },
    /// A subagent is about to start. Its own events have the id of its session.
    SubagentSpawned {
        /// Name among the subagents of this session.
        agent_id: String,
        /// Id of its session.
        child: SessionId,
        /// Task.
        task: String,
    },
    /// A subagent was closed: on request, to make room for another one, or because this session ends. Its last event
    /// precedes this one.
    SubagentEnded {
        /// Name among the subagents of this session.
        agent_id: String,
        /// Id of its session.
        child: SessionId,
        /// Result of its last message; failed if it was closed while it worked.
        status: SubagentStatus,
        /// Number of its assistant turns.
        turns_used: u64,
    },
    /// A turn limit stopped the loop.
    TurnLimit {
        /// Tool rounds of this input, if that limit was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// Assistant turns of the session, if that limit was reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_turns: Option<u64>,
    },
    /// A spending limit stopped the loop. A raised limit applies from the next input on.
    BudgetReached {
        /// The limit; its name includes the unit.
        budget: BudgetKind,
        /// Its value.
        limit: u64,
        /// Amount spent by this session and its subagents, or reserved for them.
        spent: u64,
        /// Minimum that the next call needs, if less is left.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        needed: Option<u64>,
        /// Scope of the limit; the session if it is missing.
        #[serde(default, skip_serializing_if = "BudgetScope::is_session")]
        scope: BudgetScope,
    },
    /// The next request is larger than the model's context window and was not sent.
    ContextFull {
        /// Lower bound of its size, in tokens.
        least_tokens: u64,
        /// Context window, in tokens.
        context_window: u64,
    },
    /// Context window usage of the next request. Emitted when it has changed by a tenth of the window. The parts are
    /// estimates.
    ContextUsage {
        /// Context window, in tokens.
        window: u64,
        /// Tokens of the next request.
        used: u64,
        /// Of these, the system prompt.
        system: u64,
        /// Of these, the tools.
        tools: u64,
        /// Of these, the conversation.
        history: u64,
    },
    /// A summary of the older part of the conversation is being written.
    CompactionStart {
        /// Number of entries of the history that it will cover.
        through: u64,
    },
    /// Requests begin with the summary from now on. The history is unchanged.
    CompactionEnd {
        /// Number of entries of the history that it covers.
        through: u64,
        /// Number of entries that the previous summary covered. Later entries are newly summarized.
        #[serde(default)]
        from: u64,
        /// Estimated size of the next request without it, in tokens.
        tokens_before: u64,
        /// Estimated size with it.
        tokens_after: u64,
        /// Tokens of the call that wrote it.
        usage: Usage,
    },
    /// The most recent calls repeat, and so do their results.
    LoopDetection {
        /// Message to the model.
        message: String,
    },
    /// The history was changed so that a provider accepts the next request.
    HistoryRepaired {
        /// Change and its reason.
        message: String,
    },
    /// A problem that does not stop the turn: context usage, a retry, a truncated response.
    Warning {
        /// Message for the user.
        message: String,
    },
    /// A model call failed and is retried. Follows the `WARNING` for the user.
    ModelRetrying {
        /// Number of the retry, from 1.
        attempt: u32,
        /// Delay before it, in milliseconds.
        delay_ms: u64,
        /// Error of the failed attempt.
        error: ErrorInfo,
    },
    /// An error that stopped the turn.
    Error {
        /// The error.
        error: ErrorInfo,
    },
    /// Deltas were skipped, because the subscriber lagged or came late. The end event of the segment has the complete
    /// text. `TOOL_CALL_END` has it only if the call returned the text that it streamed. For arguments,
    /// `TOOL_CALL_START` has it.
    Gap {
        /// Number of skipped bytes.
        skipped: u64,
    },
}
