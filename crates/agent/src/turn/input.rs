//! What the turn machine is told.

use std::path::PathBuf;
use std::time::Duration;

use pintle_env::Output;
use pintle_llm::{ErrorInfo, Fingerprint, ModelInfo, ReasoningEffort, Response, ToolList, ToolResult};
use pintle_tools::{ArgumentRepair, Effect, FileChange, ToolErrorKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::config::TurnLimits;
use crate::id::{CallKey, LoadId, ModelCallId, RunId, SegmentId, SessionId};
use crate::project_docs::LoadedProject;
use crate::subagent_info::SubagentStatus;
use crate::timestamp::Timestamp;
use crate::turn::budget::Spent;

/// One thing that happened, with the time at which the driver learnt of it.
///
/// Inputs are the whole truth about a session: the same inputs give the same state, actions and events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// When. Drawn by the driver.
    pub at: Timestamp,
    /// What.
    #[serde(flatten)]
    pub kind: InputKind,
}

impl Input {
    /// An input of this time.
    #[must_use]
    pub fn new(at: Timestamp, kind: InputKind) -> Self {
        Self { at, kind }
    }
}

/// What happened: at the host, then at the driver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputKind {
    /// The session exists. The first input.
    Opened {
        /// The provider that its requests go to.
        provider: String,
        /// The model.
        model: String,
        /// Where its tools run.
        working_directory: String,
    },
    /// The user wants something done.
    Submit {
        /// Names what follows from it.
        run: RunId,
        /// The text.
        text: String,
    },
    /// A message for between two rounds.
    Steer {
        /// The text.
        text: String,
    },
    /// A message for after this input.
    FollowUp {
        /// The text.
        text: String,
    },
    /// Stop this turn and keep the session.
    Interrupt,
    /// Stop everything and close the session.
    Abort,
    /// Close the session; what runs is stopped.
    Close,
    /// Something is different from the next request on.
    Configure {
        /// What.
        change: Change,
    },
    /// A person decided on a call.
    ApprovalDecided {
        /// The call.
        call: CallKey,
        /// Whether it may run.
        approved: bool,
        /// For the model, if it may not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },

    /// The prompt's facts are there.
    ContextLoaded {
        /// The gathering that they come from.
        load: LoadId,
        /// The facts.
        context: Box<TurnContext>,
    },
    /// The prompt's facts could not be had.
    ContextFailed {
        /// The gathering that failed.
        load: LoadId,
        /// Why.
        error: ErrorInfo,
    },
    /// A stretch of text or reasoning began.
    SegmentOpened {
        /// Names it.
        segment: SegmentId,
        /// Which of the two.
        kind: SegmentKind,
    },
    /// It ended.
    SegmentClosed {
        /// The stretch.
        segment: SegmentId,
        /// Which of the two.
        kind: SegmentKind,
        /// All of it.
        text: String,
        /// Whether it was cut off.
        interrupted: bool,
    },
    /// A model call failed in a way that may pass, and is made again.
    ModelRetrying {
        /// The call.
        model_call: ModelCallId,
        /// Which retry this is, from 1.
        attempt: u32,
        /// How long it waits first.
        delay: Duration,
        /// What failed.
        error: ErrorInfo,
    },
    /// The model answered.
    ModelReplied {
        /// The call.
        model_call: ModelCallId,
        /// The answer.
        response: Box<Response>,
    },
    /// The model call failed for good, or was cancelled.
    ModelFailed {
        /// The call.
        model_call: ModelCallId,
        /// What failed.
        error: ErrorInfo,
        /// The text that had come: that of the newest attempt that had any.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        partial: String,
    },
    /// A timer ran out.
    TimerFired {
        /// Which.
        timer: Timer,
    },
    /// A call was looked up, validated and gated.
    CallPrepared {
        /// The call.
        call: CallKey,
        /// What came of it.
        preparation: Preparation,
    },
    /// A call is about to run. Comes before its effect.
    ToolStarted {
        /// The call.
        call: CallKey,
    },
    /// A call ended.
    ToolFinished {
        /// The call.
        call: CallKey,
        /// What it gave.
        finished: Box<FinishedCall>,
    },
    /// A call was stopped, and nobody knows how far it came.
    ToolLost {
        /// The call.
        call: CallKey,
    },
    /// A subagent is about to begin. Comes before its first event.
    ChildSpawned {
        /// Its name among the subagents of this session.
        agent: String,
        /// Its session.
        session: SessionId,
        /// What it is to do.
        task: String,
    },
    /// A subagent, or one below it, spent something.
    ChildSpent {
        /// The subagent.
        agent: String,
        /// How much, since the last time.
        spent: Spent,
    },
    /// A subagent is closed.
    ChildEnded {
        /// The subagent.
        agent: String,
        /// How its last piece of work ended; one that was closed at work has failed.
        status: SubagentStatus,
        /// Its answers.
        turns_used: u64,
    },
    /// Every process that the session started is gone.
    CleanedUp,
    /// An input could not be written to the journal, so that the session must not go on.
    Unrecorded {
        /// Why.
        error: ErrorInfo,
    },
    /// The host that drove the session is gone, and with it all that ran. Another one goes on from the record.
    Resumed,
}

/// What is different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Change {
    /// How much the model reasons.
    ReasoningEffort(Option<ReasoningEffort>),
    /// The limits.
    Limits(TurnLimits),
    /// Model, profile or tools: the prompt's facts are loaded anew before the next request.
    Context,
}

/// The facts that a request is made of, beside the history.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TurnContext {
    /// The provider to route to.
    pub provider: String,
    /// The model.
    pub model: String,
    /// The whole system prompt.
    pub system_prompt: String,
    /// Up to where it stays the same while the tree changes, in bytes: a point at which a provider's cache may end.
    /// `None` if there is no such point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stable_prompt: Option<usize>,
    /// What the prompt holds of the project.
    #[serde(default, skip_serializing_if = "LoadedProject::is_empty")]
    pub project: LoadedProject,
    /// The tools, in order.
    pub tools: ToolList,
    /// Parameters that only one provider has.
    pub provider_options: Map<String, Value>,
    /// The most tokens that an answer may have; the provider's default if `None`.
    pub max_tokens: Option<u64>,
    /// Whether calls of one round may run at the same time.
    pub parallel_tool_calls: bool,
    /// The model's window, in tokens.
    pub context_window: u64,
    /// What the model's calls cost; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Box<ModelInfo>>,
}

impl TurnContext {
    /// A context without tools, options or limits.
    #[must_use]
    pub fn new(
        provider: impl Into<String>,
        model: impl Into<String>,
        system_prompt: impl Into<String>,
        context_window: u64,
    ) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            system_prompt: system_prompt.into(),
            stable_prompt: None,
            project: LoadedProject::default(),
            tools: ToolList::default(),
            provider_options: Map::new(),
            max_tokens: None,
            parallel_tool_calls: true,
            context_window,
            pricing: None,
        }
    }
}

/// Text or reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// What the user reads.
    Text,
    /// What the model thinks.
    Reasoning,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timer {
    /// The approval of this call.
    Approval(CallKey),
    /// The time that this run may take.
    Run(RunId),
}

/// What came of a call's preparation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preparation {
    /// It may run.
    Ready(CallPlan),
    /// It may run if a person agrees.
    Ask {
        /// What running it means.
        plan: CallPlan,
        /// The arguments that it would run with.
        arguments: Value,
        /// Why a person is asked.
        reason: String,
        /// What tells this call from every other.
        fingerprint: Fingerprint,
    },
    /// It will not run.
    Refused {
        /// The kind of failure.
        error: ToolErrorKind,
        /// What the model reads.
        message: String,
    },
}

/// What running a call means for the calls beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPlan {
    /// What it does to the world.
    pub effect: Effect,
    /// Whether it may be made twice without harm.
    pub repeatable: bool,
    /// The files that it may change, absolute, with links followed: one file has one path here.
    pub writes: Vec<PathBuf>,
    /// What was mended in its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedCall {
    /// What the model gets.
    pub result: ToolResult,
    /// All of it.
    pub output: Output,
    /// The kind of failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorKind>,
    /// The limit of time that it ran over, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_out: Option<Duration>,
    /// The files that it changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// A question to the user: the run ends with this round, and the next input answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
}
