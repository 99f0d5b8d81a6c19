//! Checks: commands of a contract that have to pass.

use serde::{Deserialize, Serialize};

use crate::results::ResultsFormat;

/// Default time limit of a check, in seconds.
pub const DEFAULT_TIMEOUT_S: u32 = 600;

/// A command, and the condition of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskCheck {
    /// Name in the report, unique in the contract.
    pub name: String,
    /// Command of the shell, run in the root of a clean worktree.
    pub command: String,
    /// Condition of a pass.
    #[serde(default)]
    pub pass: PassCondition,
    /// Format of the results of its tests. Without a format, the format is recognized in the command or in its output on the
    /// base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultsFormat>,
    /// File with the results, for formats that are files, below the root of the worktree. JUnit XML may be a directory of
    /// files, which a leading `**/` finds in each module.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Whether only the exit code counts, and no format of results is recognized. Default `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit_code_only: bool,
    /// Seconds after which it is stopped, 1 to 86,400. Default 600.
    #[serde(default = "default_timeout")]
    pub timeout_s: u32,
    /// Number of runs, 1 to 10. Tests whose results differ between runs are flaky. Default 2.
    #[serde(default = "default_runs")]
    pub runs: u32,
}

/// Condition under which a check passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassCondition {
    /// It exits with 0, and no test fails except flaky ones.
    #[default]
    Success,
    /// Each test that passed before still passes, and no new test fails. Requires results of tests.
    NoWorse,
}

impl TaskCheck {
    /// Creates a check that passes if the command exits with 0.
    #[must_use]
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            pass: PassCondition::default(),
            results: None,
            report: None,
            exit_code_only: false,
            timeout_s: DEFAULT_TIMEOUT_S,
            runs: default_runs(),
        }
    }

    /// Sets the format of the results of its tests.
    #[must_use]
    pub fn with_results(mut self, results: ResultsFormat) -> Self {
        self.results = Some(results);
        self
    }

    /// Sets the condition of a pass.
    #[must_use]
    pub fn with_pass(mut self, pass: PassCondition) -> Self {
        self.pass = pass;
        self
    }
}

fn default_timeout() -> u32 {
    DEFAULT_TIMEOUT_S
}

fn default_runs() -> u32 {
    2
}
