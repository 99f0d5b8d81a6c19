//! One call of a session, from the input that led to it to the result that the model read.

use pintle_agent::protocol::{ApprovalEnding, CallKind, ChangedArguments, Principal};
use pintle_agent::{SessionId, Timestamp};
use pintle_tools::gate::{Judgement, JudgementStep, Permission};
use pintle_tools::{ArgumentRepair, ChangeKind, Effect, ToolErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::session::{EventStamp, InputHistory};

/// Everything on record about one call: intent, proposal, judgements, approvals, execution and result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallHistory {
    /// Id of the call, unique in its session.
    pub call_id: String,
    /// Session that made the call.
    pub session_id: SessionId,
    /// Name of the subagent that made the call, if its session is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// How the call ended, or how far it got.
    pub outcome: CallOutcome,
    /// Input that the session was handling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub intent: Option<InputHistory>,
    /// Call that the model proposed.
    pub proposal: Proposal,
    /// Judgements of the gates, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub judgements: Vec<CallJudgement>,
    /// Requests for approval by a user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalHistory>,
    /// Decisions that changed nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_decisions: Vec<LateDecision>,
    /// Execution; `None` if the call did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<CallExecution>,
    /// Result for the model; `None` if the record ends earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<CallResult>,
    /// Decisions about the call when another process resumed the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<CallRecovery>,
    /// Sessions of the subagents that it spawned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spawned: Vec<SessionId>,
    /// Events of the call, in order.
    pub events: Vec<CallEvent>,
}

/// How a call ended, or how far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallOutcome {
    /// The model requested it, and it has not started.
    Proposed,
    /// It waits for a user's decision.
    AwaitingDecision,
    /// It started, and the record does not contain its end.
    Running,
    /// It ran. A non-zero exit code of a command is a result.
    Succeeded,
    /// It ran or was prepared, and failed.
    Failed,
    /// It was stopped at its time limit.
    TimedOut,
    /// The tool does not exist, or the arguments are invalid.
    Invalid,
    /// A gate denied it.
    Denied,
    /// A user, or the application on the user's behalf, denied it.
    Rejected,
    /// The request for approval timed out.
    Expired,
    /// It was answered without running: the turn was stopped, or a limit was reached.
    NotRun,
    /// It was stopped while it ran. It may have had part of its effect.
    Interrupted,
}

/// Call that the model proposed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Proposal {
    /// The response with the call; `None` if the record does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moment: Option<EventStamp>,
    /// Model that responded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    /// Name of the tool.
    pub tool: String,
    /// Kind of the call.
    pub kind: CallKind,
    /// Effect that the tool declares; `None` if the call was not prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub effect: Option<Effect>,
    /// Arguments, before repairs.
    pub arguments: Value,
    /// Text of the arguments, if it is not JSON with the same value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_written: Option<String>,
    /// The model's id of the call, if it was not unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed_from: Option<String>,
    /// Repairs of simple mistakes in the arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<ArgumentRepair>,
}

/// Judgement of a chain of gates about a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallJudgement {
    /// When the call was judged.
    pub moment: EventStamp,
    /// The strictest verdict.
    pub permission: Permission,
    /// Verdict of each gate that was asked.
    pub steps: Judgement,
    /// Arguments that were judged, if they had been changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedArguments>,
}

/// Request for approval by a user, and its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ApprovalHistory {
    /// When approval was first requested.
    pub requested: EventStamp,
    /// Why.
    pub reason: String,
    /// Identifies the call with exactly these arguments.
    pub ticket: String,
    /// Arguments that the call would run with.
    pub arguments: Value,
    /// The end; `None` while the request is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<ApprovalDecision>,
}

/// End of a request for approval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ApprovalDecision {
    /// When it ended.
    pub moment: EventStamp,
    /// Whether the call may run.
    pub approved: bool,
    /// How it ended; `None` in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<ApprovalEnding>,
    /// Principal that decided, if the record contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// Reason of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Decision that changed nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct LateDecision {
    /// When it arrived.
    pub moment: EventStamp,
    /// Whether the decision approved the call.
    pub approved: bool,
    /// Why it does not apply.
    pub reason: String,
}

/// Execution of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallExecution {
    /// Each start on record, before its effect. More than one if the call was repeated after a crash.
    #[schemars(with = "Vec<String>")]
    pub starts: Vec<Timestamp>,
    /// Time of the end; `None` if the record ends before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub ended_at: Option<Timestamp>,
    /// Duration in milliseconds, from the last start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Exit code of a command that exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Time limit that a command exceeded, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<OutputText>,
    /// Files that the call declared before it changed the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<String>,
    /// Files that the call changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileEdit>,
}

/// Output of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct OutputText {
    /// Size of the output in bytes.
    pub bytes: u64,
    /// The output, or its beginning.
    pub text: String,
    /// Whether `text` lacks part of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_shortened: bool,
}

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct FileEdit {
    /// The file, as the call named it.
    pub path: String,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Number of lines that the diff adds.
    pub added: u64,
    /// Number of lines that the diff removes.
    pub removed: u64,
    /// Size of the diff in bytes.
    pub diff_bytes: u64,
    /// The diff; left out of a redacted audit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub diff: String,
}

/// Result of a call, for the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallResult {
    /// When the call ended.
    pub moment: EventStamp,
    /// Kind of failure, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolErrorKind>,
    /// Text for the model, or its beginning.
    pub text: String,
}

/// Decision about a call when another process resumed the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallRecovery {
    /// When the session was resumed.
    pub moment: EventStamp,
    /// The decision.
    pub action: RecoveryAction,
}

/// Decision about a call that had started when its process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RecoveryAction {
    /// It was not repeated, since its effect is unknown.
    Interrupted,
    /// It ran again, since that is safe.
    Repeated,
    /// Its files were compared with the changes that it had declared.
    Reconciled,
}

/// Event of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct CallEvent {
    /// Number and time.
    pub moment: EventStamp,
    /// Kind, as in the event.
    pub kind: String,
}

impl CallHistory {
    /// Creates the history of a call from its proposal.
    pub(super) fn new(
        call_id: String,
        session_id: SessionId,
        agent: Option<String>,
        proposal: Proposal,
    ) -> Self {
        Self {
            call_id,
            session_id,
            agent,
            outcome: CallOutcome::Proposed,
            intent: None,
            proposal,
            judgements: Vec::new(),
            approvals: Vec::new(),
            late_decisions: Vec::new(),
            execution: None,
            result: None,
            recoveries: Vec::new(),
            spawned: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Returns the arguments with which the call ran or would run, including changes by users and hooks. Repairs are not
    /// applied; the proposal lists them.
    #[must_use]
    pub fn arguments(&self) -> &Value {
        let changed = self.judgements.iter().rev().find_map(|judgement| judgement.changed.as_ref());
        changed.map_or(&self.proposal.arguments, |changed| &changed.arguments)
    }

    /// Returns the decisive step of the last judgement.
    #[must_use]
    pub fn decisive_step(&self) -> Option<&JudgementStep> {
        self.judgements.last().and_then(CallJudgement::decisive_step)
    }

    /// Derives the outcome from the rest of the history.
    pub(super) fn outcome_so_far(&self) -> CallOutcome {
        let ran = self.execution.is_some();
        let decision = self.approvals.last().map(|approval| approval.decision.as_ref());
        let Some(result) = &self.result else {
            return match decision {
                _ if ran => CallOutcome::Running,
                Some(None) => CallOutcome::AwaitingDecision,
                Some(Some(_)) | None => CallOutcome::Proposed,
            };
        };
        match result.error {
            None => CallOutcome::Succeeded,
            Some(ToolErrorKind::Denied) => match decision.flatten() {
                Some(ApprovalDecision { ending: Some(ApprovalEnding::Expired), .. }) => CallOutcome::Expired,
                // An approved call can still be denied by a gate right before its effect.
                Some(ApprovalDecision { approved: false, .. }) => CallOutcome::Rejected,
                Some(_) | None => CallOutcome::Denied,
            },
            Some(ToolErrorKind::UnknownTool | ToolErrorKind::InvalidArguments) if !ran => {
                CallOutcome::Invalid
            }
            Some(ToolErrorKind::TimedOut) => CallOutcome::TimedOut,
            Some(ToolErrorKind::Cancelled) if ran => CallOutcome::Interrupted,
            Some(ToolErrorKind::Cancelled) => CallOutcome::NotRun,
            Some(ToolErrorKind::Failed | _) => CallOutcome::Failed,
        }
    }
}

impl CallJudgement {
    /// Returns the decisive step among the steps with this verdict. A step that names the call takes precedence over a
    /// default. If a hook answered the question of a mode, the hook's step is decisive.
    #[must_use]
    pub fn decisive_step(&self) -> Option<&JudgementStep> {
        let steps = || self.steps.steps().iter().filter(|step| step.permission == self.permission);
        let names = |step: &&JudgementStep| step.rule.is_some() && !step.by_default;
        match self.permission {
            Permission::Allow => {
                let answer = steps().find(|step| step.answers);
                answer.or_else(|| steps().rfind(names)).or_else(|| steps().rfind(|step| step.rule.is_some()))
            }
            Permission::Ask | Permission::Deny => steps().find(|step| !step.by_default),
        }
        .or_else(|| steps().next())
    }
}

impl CallOutcome {
    /// Returns the name, such as `timed out`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proposed => "proposed",
            Self::AwaitingDecision => "awaiting decision",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::Invalid => "invalid",
            Self::Denied => "denied",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::NotRun => "not run",
            Self::Interrupted => "interrupted",
        }
    }

    /// Returns whether the call was refused: by a gate, by an approver, or because no decision came in time.
    #[must_use]
    pub const fn is_refused(self) -> bool {
        matches!(self, Self::Denied | Self::Rejected | Self::Expired)
    }
}

impl FileEdit {
    /// Creates an edit from its unified diff.
    pub(super) fn new(path: String, kind: ChangeKind, diff: String) -> Self {
        let count = |sign: char, header: &str| {
            let lines = diff.lines().filter(|line| line.starts_with(sign) && !line.starts_with(header));
            lines.count() as u64
        };
        let (added, removed) = (count('+', "+++ "), count('-', "--- "));
        Self { path, kind, added, removed, diff_bytes: diff.len() as u64, diff }
    }
}
