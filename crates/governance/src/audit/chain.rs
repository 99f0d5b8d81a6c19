//! Verification of a record, as plain data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Result of verifying the chain of hashes of a record.
///
/// A chain reveals every change before its last barrier. Only a head that was stored elsewhere reveals a change of the
/// newest barrier, or lines that were cut off at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChainReport {
    /// Number of intact lines.
    pub lines: u64,
    /// Last intact line, as `EPOCH:LINE:HASH`.
    pub head: String,
    /// Number of large values that were verified.
    pub values: u64,
    /// Number of checkpoints that were verified.
    pub checkpoints: u64,
    /// Whether a head that was stored elsewhere is one of the lines; `None` without such a head.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches_head: Option<bool>,
    /// Size of an incomplete end, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished_bytes: Option<u64>,
    /// Damaged or missing parts.
    pub problems: Vec<ChainProblem>,
}

/// Damage of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ChainProblem {
    /// Number of the line; `None` for a damaged checkpoint, whose contents are not in the lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Description of the problem.
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
