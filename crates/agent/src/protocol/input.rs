//! Inputs of the turn machine.

use std::time::Duration;

use pintle_llm::{ErrorInfo, ReasoningEffort, Response};
use pintle_tools::gate::Judgement;
use pintle_tools::pipeline::Execution;
use pintle_tools::{FileIntent, Reconciliation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Account, BudgetUsage, CallKey, ChangedArguments, Checkpoint, CheckpointReason, HookAdditions, Limits,
    LoadId, ModelCallId, PolicyChange, Preparation, Principal, ReachedBudget, RunId, SegmentId, SessionId,
    SubagentSettings, SubagentStatus, Timestamp, TurnContext, TurnLimits, UserMessage,
};

/// Input of the turn machine, with the time at which the driver received it.
///
/// The inputs determine a session completely: the same inputs lead to the same state, actions and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// Time, set by the driver.
    pub at: Timestamp,
    /// Principal that submitted the input, if the application names one. Decisions and changes of the policy contain the
    /// name in `by`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Principal>,
    /// The input itself.
    #[serde(flatten)]
    pub kind: InputKind,
}

impl Input {
    /// Creates an input with this time.
    #[must_use]
    pub fn new(at: Timestamp, kind: InputKind) -> Self {
        Self { at, author: None, kind }
    }

    /// Sets the principal that submitted the input.
    #[must_use]
    pub fn with_author(mut self, principal: Option<Principal>) -> Self {
        self.author = principal;
        self
    }
}

/// Kind of an [`Input`]: inputs of the embedding application first, then inputs of the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputKind {
    /// The session was created. The first input.
    Opened {
        /// Provider that requests are sent to.
        provider: String,
        /// Model.
        model: String,
        /// Working directory of its tools.
        working_directory: String,
    },
    /// The user submitted an input.
    Submit {
        /// Id of the run.
        run: RunId,
        /// The input.
        #[serde(flatten)]
        message: UserMessage,
    },
    /// A message to inject between two rounds.
    Steer {
        /// The message.
        #[serde(flatten)]
        message: UserMessage,
    },
    /// A message to handle after the current input.
    FollowUp {
        /// The message.
        #[serde(flatten)]
        message: UserMessage,
    },
    /// A hook refused an input of the user.
    InputRefused {
        /// Run that it would have started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run: Option<RunId>,
        /// Reason.
        reason: String,
    },
    /// A hook has more work for the model before the run may end. Precedes the reply that would end the run.
    SentOn {
        /// Id of the model call.
        model_call: ModelCallId,
        /// Text.
        text: String,
    },
    /// A gate rejects the end of the run, which then fails. Precedes the reply that would end the run.
    EndStopped {
        /// Id of the model call.
        model_call: ModelCallId,
        /// Reason.
        reason: String,
    },
    /// Stop the current turn and keep the session.
    Interrupt,
    /// Stop all work and close the session.
    Abort,
    /// Close the session and stop running work.
    Close,
    /// Summarise the older part of the conversation.
    Compact,
    /// Continue after the first entries of the history, as if nothing had followed them. Spent amounts stay spent. Until
    /// another input follows, another rewind can restore the entries that this one cut off.
    Rewind {
        /// Number of entries.
        turns: usize,
    },
    /// A checkpoint of the workspace was taken.
    CheckpointTaken {
        /// Reason.
        reason: CheckpointReason,
        /// The checkpoint.
        checkpoint: Checkpoint,
    },
    /// Change the configuration, from the next request on.
    Configure {
        /// The change.
        change: Change,
    },
    /// A call was approved or denied.
    ApprovalDecided {
        /// Key of the call.
        call: CallKey,
        /// Whether it may run.
        approved: bool,
        /// Reason of a denial, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Principal that decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// A call was approved with other arguments.
    CallChanged {
        /// Key of the call.
        call: CallKey,
        /// The arguments, an object.
        arguments: Value,
        /// Principal that decided.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Principal>,
    },
    /// The permissions of the session have changed.
    PolicyChanged {
        /// The change.
        change: PolicyChange,
    },

    /// A decision arrived for which no call waits.
    DecisionRefused {
        /// The model's id of the call.
        call_id: String,
        /// The decision.
        approved: bool,
        /// Reason why it does not apply.
        reason: String,
    },

    /// The context was loaded.
    ContextLoaded {
        /// Id of the load.
        load: LoadId,
        /// The context.
        context: Box<TurnContext>,
    },
    /// The context could not be loaded.
    ContextFailed {
        /// Id of the load.
        load: LoadId,
        /// Error.
        error: ErrorInfo,
    },
    /// A segment of text or reasoning started.
    SegmentOpened {
        /// Id of the segment.
        segment: SegmentId,
        /// Text or reasoning.
        kind: SegmentKind,
    },
    /// A segment of text or reasoning ended.
    SegmentClosed {
        /// Id of the segment.
        segment: SegmentId,
        /// Text or reasoning.
        kind: SegmentKind,
        /// Complete text of the segment.
        text: String,
        /// Whether it was cut off.
        interrupted: bool,
    },
    /// The model started to write the arguments of a call.
    ArgumentsOpened {
        /// Id of the segment.
        segment: SegmentId,
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool_name: String,
    },
    /// The model finished the arguments of a call, or stopped writing them.
    ArgumentsClosed {
        /// Id of the segment.
        segment: SegmentId,
        /// The model's id of the call.
        call_id: String,
        /// Whether they were cut off.
        interrupted: bool,
    },
    /// A model call failed and is retried.
    ModelRetrying {
        /// Id of the model call.
        model_call: ModelCallId,
        /// Number of the retry, from 1.
        attempt: u32,
        /// Delay before it.
        delay: Duration,
        /// Error of the failed attempt.
        error: ErrorInfo,
    },
    /// The model replied.
    ModelReplied {
        /// Id of the model call.
        model_call: ModelCallId,
        /// Complete response.
        response: Box<Response>,
    },
    /// The model call failed permanently, or was cancelled.
    ModelFailed {
        /// Id of the model call.
        model_call: ModelCallId,
        /// Error.
        error: ErrorInfo,
        /// Text received so far, from the newest attempt that received any.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
    },
    /// A timer fired.
    TimerFired {
        /// Subject of the timer.
        timer: Timer,
    },
    /// A call was looked up, validated and gated.
    CallPrepared {
        /// Key of the call.
        call: CallKey,
        /// Result of the preparation.
        preparation: Preparation,
        /// Verdicts of the gates and hooks.
        #[serde(default, skip_serializing_if = "Judgement::is_empty")]
        judgement: Judgement,
        /// Arguments that a hook changed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changed: Option<ChangedArguments>,
        /// Context and stop reason of the hooks.
        #[serde(default, skip_serializing_if = "HookAdditions::is_empty")]
        additions: HookAdditions,
    },
    /// A gate refused a call right before its effect, since the situation had changed after its preparation. Its result
    /// follows.
    CallJudged {
        /// Key of the call.
        call: CallKey,
        /// Verdicts of the gates.
        judgement: Judgement,
    },
    /// A call is about to run. Precedes its effect.
    ToolStarted {
        /// Key of the call.
        call: CallKey,
    },
    /// A running call is about to change these files. Precedes the first change.
    ChangesDeclared {
        /// Key of the call.
        call: CallKey,
        /// Intended change of each file.
        files: Vec<FileIntent>,
    },
    /// The files of an interrupted call were compared with its declaration.
    Reconciled {
        /// Key of the call.
        call: CallKey,
        /// Result.
        result: Reconciliation,
    },
    /// A call ended.
    ToolFinished {
        /// Key of the call.
        call: CallKey,
        /// Result.
        finished: Box<Execution>,
    },
    /// A running call was stopped, and its effect is unknown.
    ToolLost {
        /// Key of the call.
        call: CallKey,
    },
    /// A subagent is about to start. Precedes its first event.
    ChildSpawned {
        /// Name among the subagents of this session.
        agent: String,
        /// Id of its session.
        session: SessionId,
        /// Task.
        task: String,
        /// The model's id of the call that spawned it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// Differences from this session.
        #[serde(default, skip_serializing_if = "SubagentSettings::is_default")]
        settings: SubagentSettings,
    },
    /// A subagent, or a subagent below it, spent part of the budget. Only in records up to version 3.
    ChildSpent {
        /// Name of the subagent.
        agent: String,
        /// Amount since the last report.
        spent: BudgetUsage,
    },
    /// The account of a subagent has changed.
    ChildAccount {
        /// Name of the subagent.
        agent: String,
        /// Its account.
        account: Account,
    },
    /// A subagent needs more budget.
    ChildAsked {
        /// Name of the subagent.
        agent: String,
        /// Number of its request.
        ask: u64,
        /// Its budget so far.
        has: Limits,
        /// Additional budget that it needs.
        wants: Limits,
        /// Model to call although its price is unknown, so that a limit on cost cannot be enforced.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unpriced: Option<String>,
    },
    /// The parent session, or the application, answered a request for more budget.
    BudgetGranted {
        /// Number of the request.
        ask: u64,
        /// Budget of this session from its first call on.
        slice: Limits,
        /// Limit of a wider scope, if it reduced the grant below the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        short: Option<Box<ReachedBudget>>,
        /// Reason why the rest of a wider budget is unknown. The run fails.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A subagent is closed.
    ChildEnded {
        /// Name of the subagent.
        agent: String,
        /// Result of its last message; failed if it was closed while it worked.
        status: SubagentStatus,
        /// Number of its assistant turns.
        turns_used: u64,
        /// Its last text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        output: String,
        /// Reason of a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Reason why its result may be incomplete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        warning: Option<String>,
    },
    /// All processes that the session started have ended.
    CleanedUp,
    /// An input could not be written to the journal, so the session must not continue.
    Unrecorded {
        /// Error.
        error: ErrorInfo,
    },
    /// The process that drove the session has ended, with all work that ran in it. Another process resumes from the record.
    Resumed {
        /// Open subagents that are resumed with the session, from their own journals. Other open subagents are lost.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attached: Vec<String>,
        /// Limits of the budget that the session requests from the application from now on. A subagent requests its budget from
        /// its parent.
        #[serde(default, with = "super::budget::on_demand", skip_serializing_if = "Option::is_none")]
        asks: Option<Limits>,
    },
    /// A version of this program continues a record that another version wrote. Earlier inputs are folded
    /// ([`Record::VERSION`](crate::Record::VERSION)).
    TakenUp {
        /// Version of the format from here on.
        version: u32,
    },
}

/// Change of the configuration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// Reasoning effort.
    ReasoningEffort(Option<ReasoningEffort>),
    /// Limits.
    Limits(TurnLimits),
    /// Model, profile or tools: the context is reloaded before the next request.
    Context,
}

/// Kind of a streamed segment of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SegmentKind {
    /// Text for the user.
    Text,
    /// Reasoning.
    Reasoning,
}

/// Subject of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Timer {
    /// Time limit for the approval of a call.
    Approval(CallKey),
    /// Time limit of a run.
    Run(RunId),
}
