//! Steps of a task, and their results.

use std::fmt;

use pintle_agent::Limits;
use pintle_evidence::anchor::AnchorFacts;
use pintle_evidence::diff::Diff;
use pintle_evidence::proof::{Baseline, CandidateFacts};
use pintle_evidence::step_proof::StepFacts;
use serde::{Deserialize, Serialize};

use super::plan::{PlanFacts, StepReport};
use crate::contract::DecisionGate;
use crate::work_cost::WorkCost;

/// Kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepKind {
    /// All checks run on the base.
    Baseline,
    /// A model proposes an anchor, or the contract contains one. The performer runs it.
    Anchor,
    /// A candidate works on the goal.
    Work,
    /// The diff of a candidate is applied to a clean clone, and the anchor and all checks run there.
    Evidence,
    /// A separate session reviews the diff and the evidence.
    Review,
    /// A session plans the next step.
    Plan,
}

/// Identity of a step within its task.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId {
    /// Kind.
    pub kind: StepKind,
    /// Number of the candidate, from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<usize>,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// Number of the round of the plan, from 1. 0 outside of rounds, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub round: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A step to carry out.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskStep {
    /// Identity.
    pub id: StepId,
    /// Work.
    pub order: StepOrder,
}

/// Work of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepOrder {
    /// Run all checks on the base.
    Baseline,
    /// Find an anchor.
    Anchor {
        /// Problems of the last proposal.
        feedback: Option<String>,
        /// Limits.
        limits: Limits,
    },
    /// Work on the goal.
    Work {
        /// Findings about the last attempt, and user messages.
        feedback: Option<String>,
        /// Limits.
        limits: Limits,
    },
    /// Collect the evidence.
    Evidence,
    /// Review.
    Review {
        /// Limits.
        limits: Limits,
    },
    /// Plan the next step.
    Plan {
        /// Problems of the last answer, missing evidence of the whole change, and input of users.
        feedback: Option<String>,
        /// Limits.
        limits: Limits,
    },
}

impl StepOrder {
    /// Returns the limits of its session, if it has one: its share of the remaining budget.
    #[must_use]
    pub fn limits(&self) -> Option<Limits> {
        match self {
            Self::Anchor { limits, .. }
            | Self::Work { limits, .. }
            | Self::Review { limits }
            | Self::Plan { limits, .. } => Some(*limits),
            Self::Baseline | Self::Evidence => None,
        }
    }
}

/// Result of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepResult {
    /// The step.
    pub step: StepId,
    /// Output.
    #[serde(rename = "found")]
    pub output: StepOutput,
    /// Costs.
    #[serde(default)]
    pub spent: WorkCost,
}

/// Output of a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StepOutput {
    /// Runs on the base.
    Baseline(Baseline),
    /// A proposed anchor, and its runs.
    Anchor(Box<AnchorFacts>),
    /// A candidate has worked.
    Work(WorkFacts),
    /// Evidence of a candidate.
    Evidence(Box<CandidateFacts>),
    /// A review.
    Review(ReviewFacts),
    /// The session for an anchor, a review or a plan stopped at a limit of its budget, without an answer.
    AtLimit {
        /// Session that stopped.
        session: String,
    },
    /// The step could not be carried out.
    Failed {
        /// Reason, as text for users.
        reason: String,
        /// Whether the cause is neither a proposal nor a candidate: a session, a call of its model, a sandbox or the store
        /// failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_external: bool,
    },
    /// The next step of a plan.
    Plan(PlanFacts),
    /// Evidence of a step of a plan.
    StepEvidence(Box<StepFacts>),
}

/// End of a candidate's work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFacts {
    /// Session that worked.
    pub session: String,
    /// End. The session's claim of success does not count.
    pub end: WorkEnd,
    /// Changes of the candidate since the anchor, when its work ended. Later changes do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Diff>,
    /// Reason why its changes cannot be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<String>,
    /// Report of the session about a step of a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<StepReport>,
}

/// End of a candidate's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WorkEnd {
    /// Without an error or a limit.
    Finished,
    /// At a limit of its budget. Earlier versions recorded the other limits as this one.
    Limit,
    /// At a limit on turns or rounds.
    TurnLimit,
    /// At the limit of the model's context window.
    ContextFull,
    /// At the output limit, which cut off the last response.
    OutputLimit,
    /// Interrupted, because it repeated the same calls after a warning.
    Loop,
    /// By an error.
    Failed,
}

impl WorkEnd {
    /// Returns why a candidate without a proof makes no further attempt after this end; `None` if it makes one.
    pub(super) fn final_reason(self) -> Option<&'static str> {
        match self {
            Self::Finished | Self::Failed => None,
            Self::Limit => Some("its share of the budget covers no further call"),
            Self::TurnLimit => Some("its limit on turns is reached"),
            Self::ContextFull => Some("its conversation does not fit the model's context window"),
            Self::OutputLimit => Some("its response was cut off by the output limit"),
            Self::Loop => Some("it repeated the same calls, and was stopped"),
        }
    }
}

/// A review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReviewFacts {
    /// Session that reviewed.
    pub session: String,
    /// Faults that have to be fixed. Empty if the reviewer accepts.
    pub findings: Vec<String>,
    /// Remarks of the reviewer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remarks: String,
    /// Place among the compared candidates, from 0 for the best one. `None` if nothing was compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The other candidates of a comparison.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<ComparedCandidate>,
}

/// Another candidate of a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedCandidate {
    /// Its number, from 0.
    pub candidate: usize,
    /// Faults that have to be fixed.
    pub findings: Vec<String>,
    /// Its place, from 0 for the best one.
    pub rank: u32,
}

/// Signal of a user to a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskSignal {
    /// Message to one candidate, or to all candidates.
    Steer {
        /// Number of the candidate, from 0.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        candidate: Option<usize>,
        /// Text of the message.
        text: String,
    },
    /// A decision.
    Decide(GateAnswer),
    /// Cancel the task.
    Cancel {
        /// Reason, for the report.
        reason: String,
    },
    /// Replace the remaining steps of the plan.
    Plan {
        /// Goals of the remaining steps, in order.
        backlog: Vec<String>,
    },
}

/// A decision of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateAnswer {
    /// Gate of the decision.
    pub gate: DecisionGate,
    /// Whether the user approves.
    pub is_approved: bool,
    /// Required changes. A refusal without them ends the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
}

impl ReviewFacts {
    /// Creates a review of one candidate.
    #[must_use]
    pub fn new(session: impl Into<String>, findings: Vec<String>, remarks: impl Into<String>) -> Self {
        let (session, remarks) = (session.into(), remarks.into());
        Self { session, findings, remarks, rank: None, others: Vec::new() }
    }
}

impl TaskStep {
    pub(super) fn new(kind: StepKind, candidate: Option<usize>, attempt: u32, order: StepOrder) -> Self {
        Self { id: StepId { kind, candidate, attempt, round: 0 }, order }
    }
}

impl StepOutput {
    /// Creates the result of a step that could not be carried out because of its proposal or candidate.
    #[must_use]
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), is_external: false }
    }

    /// Returns whether it can be the result of this step.
    pub(super) fn is_output_of(&self, step: &StepId) -> bool {
        let StepId { kind, round, .. } = *step;
        match self {
            Self::Baseline(_) => kind == StepKind::Baseline,
            Self::Anchor(_) => kind == StepKind::Anchor,
            Self::Work(_) => kind == StepKind::Work,
            Self::Evidence(_) => kind == StepKind::Evidence && round == 0,
            Self::Review(_) => kind == StepKind::Review,
            Self::AtLimit { .. } => matches!(kind, StepKind::Anchor | StepKind::Review | StepKind::Plan),
            Self::Plan(_) => kind == StepKind::Plan,
            Self::StepEvidence(_) => kind == StepKind::Evidence && round > 0,
            Self::Failed { .. } => true,
        }
    }
}

impl fmt::Display for StepKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline => "baseline",
            Self::Anchor => "anchor",
            Self::Work => "work",
            Self::Evidence => "evidence",
            Self::Review => "review",
            Self::Plan => "plan",
        })
    }
}

impl StepId {
    /// Returns the candidate that pays for the step, if one does. The steps of a plan are the work of candidate 0.
    #[must_use]
    pub fn payer(&self) -> Option<usize> {
        if self.round > 0 { Some(0) } else { self.candidate }
    }

    /// Returns the kind as text for users, with the number of the attempt unless it is the first.
    #[must_use]
    pub fn label(&self) -> String {
        let kind = match self.round {
            0 => self.kind.to_string(),
            round => format!("step {round}: {}", self.kind),
        };
        match self.attempt {
            1 => kind,
            attempt => format!("{kind}, attempt {attempt}"),
        }
    }
}

/// `work-0-2`: kind, candidate, attempt. In a round of a plan, its number comes first: `r3-work-0-1`.
impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.round > 0 {
            write!(f, "r{}-", self.round)?;
        }
        match self.candidate {
            Some(candidate) => write!(f, "{}-{candidate}-{}", self.kind, self.attempt),
            None => write!(f, "{}-{}", self.kind, self.attempt),
        }
    }
}
