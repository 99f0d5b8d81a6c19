//! Verification of a record, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of verifying the chain of hashes of a record.
///
/// A chain shows every change before its last barrier. A change of the newest barrier, and lines that were cut off at the
/// end, show only against a head that was kept elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChainReport {
    /// Number of lines that are right.
    pub lines: u64,
    /// Last line that is right, as `EPOCH:LINE:HASH`.
    pub head: String,
    /// Number of large values that were verified.
    pub values: u64,
    /// Number of checkpoints that were verified.
    pub checkpoints: u64,
    /// Whether a head that was kept elsewhere is one of the lines; `None` without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches_head: Option<bool>,
    /// Size of the end that was never completed, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_bytes: Option<u64>,
    /// What is damaged or missing.
    pub problems: Vec<ChainProblem>,
}

/// Damage of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChainProblem {
    /// Number of the line; `None` if a checkpoint is damaged, whose contents are no part of the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The problem, in words.
    pub message: String,
}

impl ChainReport {
    /// Creates the result for a record that is intact up to this line.
    #[must_use]
    pub fn new(lines: u64, head: impl Into<String>) -> Self {
        Self { lines, head: head.into(), ..Self::default() }
    }

    /// Adds a problem with a line.
    #[must_use]
    pub fn with_problem(mut self, line: Option<u64>, message: impl Into<String>) -> Self {
        self.problems.push(ChainProblem { line, message: message.into() });
        self
    }

    /// Returns whether nothing is damaged or missing.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        self.problems.is_empty() && self.matches_head != Some(false)
    }

    /// Returns the number of the first damaged line.
    #[must_use]
    pub fn first_damaged_line(&self) -> Option<u64> {
        self.problems.iter().filter_map(|problem| problem.line).min()
    }
}
