//! Ends of a task.

use serde::Serialize;

use super::step::{ReviewFacts, StepId};
use crate::contract::Gate;
use crate::evidence::Proof;

/// End of a task.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Outcome {
    /// The goal was reached, and this proves it.
    Done(Box<Done>),
    /// It cannot go on by itself.
    Blocked(BlockedBy),
    /// The budget is used up.
    Limit {
        /// Which part of it.
        limit: LimitKind,
        /// Best candidate that was proved and not reviewed.
        best: Option<usize>,
    },
    /// It was cancelled.
    Aborted {
        /// Reason.
        reason: String,
    },
    /// A step that everything depends on could not be carried out.
    Failed {
        /// The step.
        step: StepId,
        /// Reason.
        reason: String,
    },
}

/// A goal that was reached. It cannot be made without a [`Proof`], which only evidence gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Done {
    candidate: usize,
    proof: Proof,
    review: Option<ReviewFacts>,
}

/// Reason why a task cannot go on by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BlockedBy {
    /// No anchor was found. What was wrong with each proposal.
    NoAnchor(Vec<Vec<String>>),
    /// No candidate reached the goal.
    NoCandidate,
    /// A person refused.
    Refused {
        /// The refused result.
        gate: Gate,
        /// Words of the person.
        words: Option<String>,
    },
}

/// Part of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitKind {
    /// US dollars.
    Usd,
    /// Tokens.
    Tokens,
    /// Minutes.
    Minutes,
}

impl Done {
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

    /// Returns the review, if the contract wants one.
    #[must_use]
    pub fn review(&self) -> Option<&ReviewFacts> {
        self.review.as_ref()
    }
}
