//! Outcomes of a task.

use pintle_evidence::proof::Proof;
use serde::Serialize;

use super::step::{ReviewFacts, StepId};
use crate::contract::{DecisionGate, TaskBudget};
use crate::work_cost::WorkCost;

/// Outcome of a task.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TaskOutcome {
    /// The goal was reached, with a proof.
    Done(Box<AcceptedCandidate>),
    /// It cannot continue automatically.
    Blocked(BlockReason),
    /// The budget is used up.
    Limit {
        /// The limit.
        limit: LimitKind,
        /// Best candidate that is proved but not reviewed.
        best: Option<usize>,
    },
    /// It was cancelled.
    Aborted {
        /// Reason.
        reason: String,
    },
    /// A step that the task depends on could not be carried out.
    Failed {
        /// The step.
        step: StepId,
        /// Reason.
        reason: String,
    },
}

/// A goal that was reached. It requires a [`Proof`], which only evidence provides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AcceptedCandidate {
    candidate: usize,
    proof: Proof,
    review: Option<ReviewFacts>,
}

/// Reason why a task cannot continue automatically.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockReason {
    /// No anchor was found. Contains the problems of each proposal.
    NoAnchor(Vec<Vec<String>>),
    /// No candidate reached the goal.
    NoCandidate,
    /// A user refused.
    Refused {
        /// Gate at which the user refused.
        gate: DecisionGate,
        /// Message of the user.
        words: Option<String>,
    },
    /// No next step was found. Contains the problems of each answer.
    NoPlan(Vec<Vec<String>>),
    /// The rounds of the plan are used up.
    Rounds {
        /// Number of rounds.
        rounds: u32,
        /// Goals of the remaining steps.
        backlog: Vec<String>,
    },
}

/// Limit at which a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LimitKind {
    /// US dollars.
    Usd,
    /// Tokens.
    Tokens,
    /// Minutes.
    Minutes,
    /// A budget of the sessions, such as the user's budget of a day. The contract has no budget.
    Session,
}

impl LimitKind {
    /// Returns whether these costs reach the limit of a budget. `None` for a limit that the budget does not have.
    pub(crate) fn is_reached(self, budget: &TaskBudget, spent: &WorkCost) -> Option<bool> {
        match self {
            Self::Usd => budget.cost.map(|cost| spent.cost >= cost),
            Self::Tokens => budget.tokens.map(|tokens| spent.tokens >= tokens),
            Self::Minutes => budget.minutes.map(|minutes| spent.millis / 60_000 >= minutes),
            Self::Session => None,
        }
    }
}

impl AcceptedCandidate {
    pub(super) fn new(candidate: usize, proof: Proof, review: Option<ReviewFacts>) -> Self {
        Self { candidate, proof, review }
    }

    /// Returns the number of the candidate.
    #[must_use]
    pub fn candidate(&self) -> usize {
        self.candidate
    }

    /// Returns the proof.
    #[must_use]
    pub fn proof(&self) -> &Proof {
        &self.proof
    }

    /// Returns the review, if the contract requires one.
    #[must_use]
    pub fn review(&self) -> Option<&ReviewFacts> {
        self.review.as_ref()
    }
}
