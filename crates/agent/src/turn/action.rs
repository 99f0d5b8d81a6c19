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

    /// This outcome with the usage and the calls of an earlier run added: for a host that answers a question with the
    /// next input and reports both runs as one. Status, text and error stay those of this run.
    #[must_use]
    pub fn continuing(mut self, earlier: &Self) -> Self {
        self.usage += &earlier.usage;
        self.model_calls = self.model_calls.saturating_add(earlier.model_calls);
        self.tool_calls = self.tool_calls.saturating_add(earlier.tool_calls);
        self
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
    /// The next request cannot fit the model's context window. The session is usable with a model that has a larger one,
    /// or from a fork at an earlier turn.
    ContextFull,
    /// Stopped by the host; the session is usable.
    Interrupted,
    /// Stopped by the host; the session is closed.
    Aborted,
    /// Something went wrong.
    Failed,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_continued_outcome_counts_both_runs_and_ends_as_the_later() {
        let run = |status, text: &str, calls: u64| Outcome {
            status,
            text: text.to_owned(),
            usage: Usage::new(10 * calls, calls),
            model_calls: calls,
            tool_calls: calls - 1,
            error: None,
        };
        let asked = run(OutcomeStatus::AwaitingInput, "Which port?", 3);
        let both = run(OutcomeStatus::Completed, "Done.", 1).continuing(&asked);
        let expected = Outcome { tool_calls: 2, ..run(OutcomeStatus::Completed, "Done.", 4) };
        assert_eq!(both, expected);
    }
}
