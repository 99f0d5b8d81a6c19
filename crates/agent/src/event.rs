//! What a host sees (loop specification, section 2.9; design, section 4).

mod schema;

use pintle_env::Output;
use pintle_llm::{CallArguments, ErrorInfo, Fingerprint, FinishReason, Segment, Usage};
use pintle_tools::{ArgumentRepair, FileChange, ToolErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::SessionId;
use crate::project_docs::LoadedProject;
use crate::subagent_info::SubagentStatus;
use crate::timestamp::Timestamp;
use crate::turn::{BudgetKind, SessionState};

pub use schema::event_schema;

/// One event of a session.
///
/// Serialised as the specification's record: `kind`, `timestamp`, `session_id` and `data`, with `seq` beside them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SessionEvent {
    /// Counts up from 0 without gaps within a session. A delta carries the number of its start.
    pub seq: u64,
    /// Where a delta begins, in bytes of its segment; `None` for every other event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// When: RFC 3339 in UTC, to the millisecond.
    #[schemars(schema_with = "schema::timestamp")]
    pub timestamp: Timestamp,
    /// In which session.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// How deep the session stands below the first: 0 for a session that a host made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// The session that spawned this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub parent: Option<SessionId>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Where the history of a fork comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForkedFrom {
    /// The session that was forked.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// How many entries of its history the fork has.
    pub turns: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(depth: &u32) -> bool {
    *depth == 0
}

/// What happened. Starts and ends pair.
///
/// The deltas of a text and of a reasoning concatenate to what the end carries. So do those of a tool call, unless
/// the call was stopped or failed half way, or its tool streams something else than it returns, such as progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "data", rename_all = "SCREAMING_SNAKE_CASE")]
#[non_exhaustive]
pub enum EventKind {
    /// The session was created. The first event.
    SessionStart {
        /// The provider that its requests go to.
        provider: String,
        /// The model.
        model: String,
        /// Where its tools run.
        working_directory: String,
        /// The session that its history comes from, if it is a fork.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ForkedFrom>,
    },
    /// The host that drove the session is gone, and another one goes on from its record. The events before this one
    /// are those that the record gives.
    SessionResumed {
        /// Calls that had begun and are not made again, since nobody knows how far they came. Their ends follow.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        interrupted: Vec<String>,
        /// Calls that had begun and are made again, since that is safe. They have one start and one end.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repeated: Vec<String>,
    },
    /// The session is closed. The last event.
    SessionEnd {
        /// Always closed; here because the specification says that the final state is part of it.
        state: SessionState,
    },
    /// The user submitted input, or a follow-up's turn has come.
    UserInput {
        /// The text.
        content: String,
    },
    /// The input is handled and every follow-up with it.
    ProcessingEnd {
        /// The state that the session is in now.
        state: SessionState,
    },
    /// What the prompt holds of the project: its documents, its skills, and the files that could not be taken. Emitted
    /// before the first request that has them and when they changed; not at all for a project without any.
    ProjectLoaded(LoadedProject),
    /// A request is about to be sent.
    RequestPrepared {
        /// The hash over everything that a provider may cache.
        #[schemars(schema_with = "schema::fingerprint")]
        fingerprint: Fingerprint,
        /// The number of messages, the system prompt included.
        messages: usize,
        /// The first segment that is not as in the request before, so that a cache miss can be explained.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::segment")]
        moved: Option<Segment>,
    },
    /// The model began to write text.
    AssistantTextStart {},
    /// More text.
    AssistantTextDelta {
        /// The text.
        delta: String,
    },
    /// The model finished a stretch of text.
    AssistantTextEnd {
        /// All of it.
        text: String,
        /// Whether the stream died or was stopped here.
        #[serde(default)]
        interrupted: bool,
    },
    /// The model began to reason.
    ReasoningStart {},
    /// More reasoning.
    ReasoningDelta {
        /// The text.
        delta: String,
    },
    /// The model finished a stretch of reasoning.
    ReasoningEnd {
        /// All of it that is readable.
        text: String,
        /// Whether the stream died or was stopped here.
        #[serde(default)]
        interrupted: bool,
    },
    /// An answer of the model is complete and part of the history.
    ModelResponse {
        /// The provider's id for it.
        response_id: String,
        /// The model that answered.
        model: String,
        /// Why it stopped.
        #[schemars(schema_with = "schema::finish_reason")]
        finish_reason: FinishReason,
        /// Tokens of this call.
        #[schemars(schema_with = "schema::usage")]
        usage: Usage,
    },
    /// Plain mistakes in a call's arguments were mended before it was judged. The other events of the call show its
    /// arguments as the model wrote them.
    ToolCallRepaired {
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// What was mended.
        #[schemars(schema_with = "schema::repairs")]
        repairs: Vec<ArgumentRepair>,
    },
    /// A tool call began to run.
    ToolCallStart {
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// Its arguments.
        #[schemars(with = "Value")]
        arguments: CallArguments,
    },
    /// More output of a running tool.
    ToolCallOutputDelta {
        /// The call.
        call_id: String,
        /// The text; bytes that are not UTF-8 are replaced.
        delta: String,
    },
    /// A tool call ended.
    ToolCallEnd {
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// The whole output, not what the model gets of it.
        #[schemars(schema_with = "schema::output")]
        output: Output,
        /// The kind of failure, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::tool_error_kind")]
        error: Option<ToolErrorKind>,
        /// The limit of time that a command ran over, in milliseconds, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// How long it ran, in milliseconds.
        duration_ms: u64,
        /// The files that it changed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        #[schemars(schema_with = "schema::changes")]
        changes: Vec<FileChange>,
    },
    /// A gate wants a person to decide on a call.
    ApprovalRequested {
        /// The call.
        call_id: String,
        /// The tool.
        tool_name: String,
        /// The arguments that it would run with.
        arguments: Value,
        /// Why.
        reason: String,
        /// What tells this call from every other. A decision is bound to it and holds once.
        #[schemars(schema_with = "schema::fingerprint")]
        fingerprint: Fingerprint,
    },
    /// A person decided, or the time for it ran out.
    ApprovalDecided {
        /// The call.
        call_id: String,
        /// Whether it may run.
        approved: bool,
    },
    /// A steering message entered the history.
    SteeringInjected {
        /// The text.
        content: String,
    },
    /// A subagent is about to begin. Its own events have its session's id.
    SubagentSpawned {
        /// Its name among the subagents of this session.
        agent_id: String,
        /// Its session.
        #[schemars(with = "String")]
        child: SessionId,
        /// What it is to do.
        task: String,
    },
    /// A subagent is closed: it was told to be, another one took its place, or this session ends. Its last event was
    /// before this one.
    SubagentEnded {
        /// Its name among the subagents of this session.
        agent_id: String,
        /// Its session.
        #[schemars(with = "String")]
        child: SessionId,
        /// How its last piece of work ended; one that was closed at work has failed.
        status: SubagentStatus,
        /// Its answers.
        turns_used: u64,
    },
    /// A limit stopped the loop.
    TurnLimit {
        /// Tool rounds of this input, if that limit was met.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        round: Option<u64>,
        /// Assistant turns of the session, if that limit was met.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total_turns: Option<u64>,
    },
    /// A limit on what may be spent stopped the loop. A raised limit holds from the next input on.
    BudgetReached {
        /// Which; its name says the unit.
        budget: BudgetKind,
        /// How much may be spent.
        limit: u64,
        /// How much is spent, in this session and below it.
        spent: u64,
    },
    /// The next request is larger than the model's context window, and was not sent.
    ContextFull {
        /// The fewest tokens that it can have.
        least_tokens: u64,
        /// The window, in tokens.
        context_window: u64,
    },
    /// The newest calls repeat.
    LoopDetection {
        /// What the model is told.
        message: String,
    },
    /// The history was changed so that the next request is one that a provider accepts.
    HistoryRepaired {
        /// What was changed and why.
        message: String,
    },
    /// Something that does not stop the turn: context usage, a retry, a cut answer.
    Warning {
        /// For a person.
        message: String,
    },
    /// Something that stopped the turn.
    Error {
        /// What.
        #[schemars(schema_with = "schema::error_info")]
        error: ErrorInfo,
    },
    /// A subscriber lagged, or came late, and deltas were skipped. The segment's end carries what they said; that of a
    /// tool call only where it carries what was streamed.
    Gap {
        /// How much, in bytes.
        skipped: u64,
    },
}
