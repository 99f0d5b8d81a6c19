//! Outputs of the turn machine.

use std::time::Duration;

use pintle_llm::{Request, ToolCall};

use super::{CallKey, EventKind, LoadId, ModelCallId, Outcome, RunId, Timer};

/// Instruction to the driver. Actions are performed in order.
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
    },
    /// Request a person's decision. Reply with `ApprovalDecided`.
    AskApproval {
        /// Key of the call.
        call: CallKey,
        /// The model's id of the call, which the embedding application sees.
        call_id: String,
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
    /// Run a call whose start is on record. Reply with `ToolFinished` or `ToolLost`.
    RunTool {
        /// Key of the call.
        call: CallKey,
    },
    /// Stop a running call, which then replies with `ToolFinished` or `ToolLost`.
    CancelTool {
        /// Key of the call.
        call: CallKey,
    },
    /// Interrupt all subagents; they stay open. Does not wait for them.
    StopSubagents,
    /// Append an event to the log.
    Emit(Box<EventKind>),
    /// End everything that the session started. Reply with `CleanedUp`.
    CleanUp,
    /// End a run.
    Finish {
        /// The run.
        run: RunId,
        /// Its outcome.
        outcome: Box<Outcome>,
    },
}

impl Action {
    pub(crate) fn emit(kind: EventKind) -> Self {
        Self::Emit(Box::new(kind))
    }
}
