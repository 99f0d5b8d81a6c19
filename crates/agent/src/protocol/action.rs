//! Outputs of the turn machine.

use std::time::Duration;

use pintle_llm::{Request, ToolCall};
use pintle_tools::FileIntent;

use super::{BudgetUsage, CallKey, EventKind, Limits, LoadId, ModelCallId, Outcome, Principal, RunId, Timer};

/// Instruction to the driver. Actions are performed in order. Large fields are boxed, since lists of actions are moved
/// often.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Load the context and reply with `ContextLoaded` or `ContextFailed`. Supersedes an earlier load.
    LoadContext {
        /// Id of the load.
        load: LoadId,
    },
    /// Send the request. Reply with segments and retries, then with one `ModelReplied` or `ModelFailed`.
    CallModel {
        /// Id of the call.
        model_call: ModelCallId,
        /// Request.
        request: Box<Request>,
        /// Reservation for each attempt, under a limit on tokens or cost.
        reserved: Option<Box<BudgetUsage>>,
    },
    /// Cancel the current model call, which then replies with `ModelFailed`.
    CancelModel,
    /// Reply with `TimerFired` after a delay, unless the subject of the timer has ended. Replaces an earlier timer with
    /// the same subject.
    SetTimer {
        /// Subject.
        timer: Timer,
        /// Delay.
        after: Duration,
    },
    /// Look up, validate and gate a call. Reply with `CallPrepared`.
    PrepareCall {
        /// Key of the call.
        call: CallKey,
        /// The call.
        tool_call: Box<ToolCall>,
        /// Whether a decision set these arguments, so that no hook is asked about them.
        changed: bool,
    },
    /// Request a decision. Reply with `ApprovalDecided`.
    AskApproval {
        /// Key of the call.
        call: CallKey,
        /// The model's id of the call, which the embedding application sees.
        call_id: String,
    },
    /// Apply a decision that was made before the driving process died to the same call, prepared again. No reply.
    ConfirmApproval {
        /// Key of the call.
        call: CallKey,
        /// Principal that decided, if known.
        by: Option<Principal>,
    },
    /// Withdraw a request for a decision. No reply.
    WithdrawApproval {
        /// Key of the call.
        call: CallKey,
    },
    /// Record the start of a prepared call: reply with `ToolStarted`. Nothing runs yet.
    StartTool {
        /// Key of the call.
        call: CallKey,
    },
    /// Run a call whose start is recorded. Reply with `ToolFinished` or `ToolLost`.
    RunTool {
        /// Key of the call.
        call: CallKey,
    },
    /// Compare the files of an interrupted call with its declaration. Reply with `Reconciled`.
    Reconcile {
        /// Key of the call.
        call: CallKey,
        /// Intended change of each file.
        files: Vec<FileIntent>,
    },
    /// Stop a running call, which then replies with `ToolFinished` or `ToolLost`.
    CancelTool {
        /// Key of the call.
        call: CallKey,
    },
    /// Interrupt all subagents; they stay open. Does not wait for them.
    StopSubagents,
    /// Request more budget from the parent session or the application. Reply with `BudgetGranted`.
    AskBudget {
        /// Number of the request.
        ask: u64,
        /// Budget of this session so far.
        has: Box<Limits>,
        /// Additional budget that it needs.
        wants: Box<Limits>,
        /// Model to call although its price is unknown, so that a limit on cost cannot be enforced.
        unpriced: Option<String>,
    },
    /// Send a subagent its budget. No reply.
    GrantBudget {
        /// Name of the subagent.
        agent: String,
        /// Number of its request.
        ask: u64,
        /// Its budget from its first call on.
        slice: Box<Limits>,
    },
    /// Append an event to the log.
    Emit(Box<EventKind>),
    /// End all work that the session started. Reply with `CleanedUp`.
    CleanUp,
    /// End a run.
    Finish {
        /// The run.
        run: RunId,
        /// Its outcome.
        outcome: Box<Outcome>,
    },
    /// End an input of a run. Precedes the end of the run, or the next input of it.
    FinishInput {
        /// The run.
        run: RunId,
        /// Outcome of the input alone.
        outcome: Box<Outcome>,
        /// Whether the run ends with it. Otherwise the next follow-up starts.
        is_last: bool,
    },
}

impl Action {
    pub(crate) fn emit(kind: EventKind) -> Self {
        Self::Emit(Box::new(kind))
    }
}
