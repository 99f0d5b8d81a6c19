//! What the turn machine wants done.

use std::time::Duration;

use pintle_llm::{ErrorInfo, Request, ToolCall, Usage};
use serde::{Deserialize, Serialize};

use crate::event::EventKind;
use crate::id::{CallKey, LoadId, ModelCallId, RunId};
use crate::turn::input::Timer;

/// One thing for the driver to do, in the order given.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Gather the prompt's facts; answer with `ContextLoaded` or `ContextFailed`. What an earlier one still gathers
    /// is not wanted any more.
    LoadContext {
        /// Names the gathering.
        load: LoadId,
    },
    /// Send the request; answer with segments, retries, and one `ModelReplied` or `ModelFailed`.
    CallModel {
        /// Names the call.
        model_call: ModelCallId,
        /// What to send.
        request: Box<Request>,
    },
    /// Stop the model call that runs; it answers with `ModelFailed`.
    CancelModel,
    /// Answer with `TimerFired` after this long, unless what it is for has ended; in the place of an earlier timer for
    /// the same.
    SetTimer {
        /// What it is for.
        timer: Timer,
        /// How long.
        after: Duration,
    },
    /// Look up, validate and gate; answer with `CallPrepared`.
    PrepareCall {
        /// Names the call.
        call: CallKey,
        /// The call.
        tool_call: Box<ToolCall>,
    },
    /// Have a person decide; answer with `ApprovalDecided`.
    AskApproval {
        /// The call.
        call: CallKey,
        /// The model's id of it, which the host sees.
        call_id: String,
    },
    /// A decision on this call is not wanted any more; no answer.
    WithdrawApproval {
        /// The call.
        call: CallKey,
    },
    /// Run a prepared call; answer with `ToolStarted`, then `ToolFinished` or `ToolLost`.
    RunTool {
        /// The call.
        call: CallKey,
    },
    /// Stop a running call; it answers with `ToolFinished` or `ToolLost`.
    CancelTool {
        /// The call.
        call: CallKey,
    },
    /// Stop what the subagents work on; they stay open. Nothing is waited for.
    StopSubagents,
    /// Tell subscribers.
    Emit(Box<EventKind>),
    /// End everything that the session started; answer with `CleanedUp`.
    CleanUp,
    /// The run is over.
    Finish {
        /// Which.
        run: RunId,
        /// How.
        outcome: Box<Outcome>,
    },
}

impl Action {
    pub(crate) fn emit(kind: EventKind) -> Self {
        Self::Emit(Box::new(kind))
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Outcome {
    /// In which way.
    pub status: OutcomeStatus,
    /// The text of the model's last answer, or the question that it asked with a tool; empty if there was none.
    pub text: String,
    /// Tokens of all calls of the run.
    pub usage: Usage,
    /// Calls of the model.
    pub model_calls: u64,
    /// Calls of tools.
    pub tool_calls: u64,
    /// What went wrong, if that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
}

impl Outcome {
    /// An outcome of this status with nothing done.
    #[must_use]
    pub fn new(status: OutcomeStatus) -> Self {
        Self {
            status,
            text: String::new(),
            usage: Usage::default(),
            model_calls: 0,
            tool_calls: 0,
            error: None,
        }
    }
}

/// The ways in which a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutcomeStatus {
    /// The model answered without calling tools.
    Completed,
    /// The model asked something; the next input answers it.
    AwaitingInput,
    /// The model, or a filter, refused.
    Refused,
    /// The limit of tool rounds for one input.
    RoundLimit,
    /// The limit of assistant turns for the session.
    TurnLimit,
    /// A limit of the [`Budget`](crate::Budget); the session is usable, and goes on once the limit is raised.
    Budget,
    /// Stopped by the host; the session is usable.
    Interrupted,
    /// Stopped by the host; the session is closed.
    Aborted,
    /// Something went wrong.
    Failed,
}
