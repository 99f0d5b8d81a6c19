//! Runs of commands, and the comparison of several runs.

mod recognized;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use self::recognized::{explain_unusable, take_recognized};
use crate::results::{TestRun, TestStatus};

/// Reference to a large value in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlobReference {
    /// Hash of the content, in the form of the store.
    pub hash: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// End of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CommandEnd {
    /// It exited.
    Exited(i32),
    /// It was killed by this signal.
    Killed(i32),
    /// It was stopped at its time limit.
    TimedOut,
    /// It could not be run, for this reason.
    NotRun(String),
}

impl CommandEnd {
    /// Returns whether the command did not end normally, so that its output may be incomplete.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        matches!(self, Self::Killed(_) | Self::TimedOut | Self::NotRun(_))
    }
}

/// A run of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CommandRun {
    /// End.
    pub end: CommandEnd,
    /// Results of its tests, if it has a format of results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestRun>,
    /// Its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<BlobReference>,
    /// Last lines of its output, if it failed or one of its tests failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_lines: Vec<String>,
    /// Time that it took, in milliseconds.
    #[serde(default)]
    pub millis: u64,
}

impl CommandRun {
    /// Creates a run with this end.
    #[must_use]
    pub fn new(end: CommandEnd) -> Self {
        Self { end, tests: None, output: None, last_lines: Vec::new(), millis: 0 }
    }

    /// Sets the results of its tests.
    #[must_use]
    pub fn with_tests(mut self, tests: TestRun) -> Self {
        self.tests = Some(tests);
        self
    }

    /// Returns whether it exited with 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.end == CommandEnd::Exited(0)
    }

    /// Returns whether it exited with 0, and no test failed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        let fails = |status: &TestStatus| matches!(status, TestStatus::Failed | TestStatus::Broken);
        let tests = self.tests.iter().flat_map(|run| run.tests.values());
        self.is_success() && !tests.into_iter().any(fails)
    }
}

impl CommandEnd {
    /// Returns a description of the end.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Exited(code) => format!("exited with {code}"),
            Self::Killed(signal) => format!("was killed by signal {signal}"),
            Self::TimedOut => "did not end in its time".to_owned(),
            Self::NotRun(reason) => format!("could not be run: {reason}"),
        }
    }
}

/// Outcome of a test over several runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TestStability {
    /// It passed in each run.
    Passes,
    /// It failed in each run by an assertion.
    Fails,
    /// It failed in each run, but not always by an assertion.
    Breaks,
    /// It was skipped in each run.
    Skipped,
    /// The runs differ.
    Flaky,
}

/// Several runs of one command, compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunComparison {
    /// Ends of the runs, each once.
    pub ends: Vec<CommandEnd>,
    /// Tests of any of the runs.
    pub tests: BTreeMap<String, TestStability>,
    /// Inconsistencies of the results.
    pub problems: BTreeSet<String>,
    /// Whether there are results of tests.
    pub has_tests: bool,
}

impl RunComparison {
    /// Compares runs of one command.
    #[must_use]
    pub fn compare(runs: &[CommandRun]) -> Self {
        let mut found = Self { has_tests: runs.iter().any(|run| run.tests.is_some()), ..Self::default() };
        let mut statuses: BTreeMap<&str, Vec<TestStatus>> = BTreeMap::new();
        for run in runs {
            if !found.ends.contains(&run.end) {
                found.ends.push(run.end.clone());
            }
            if let Some(tests) = &run.tests {
                found.problems.extend(tests.problems.iter().cloned());
                for (name, status) in &tests.tests {
                    statuses.entry(name).or_default().push(*status);
                }
            }
        }
        let stable = |statuses: &[TestStatus]| {
            let all = |wanted: TestStatus| statuses.iter().all(|status| *status == wanted);
            let fails = |status: &TestStatus| matches!(status, TestStatus::Failed | TestStatus::Broken);
            match () {
                // It is missing in some runs.
                () if statuses.len() < runs.len() => TestStability::Flaky,
                () if all(TestStatus::Passed) => TestStability::Passes,
                () if all(TestStatus::Failed) => TestStability::Fails,
                () if all(TestStatus::Skipped) => TestStability::Skipped,
                () if statuses.iter().all(fails) => TestStability::Breaks,
                () => TestStability::Flaky,
            }
        };
        found.tests =
            statuses.into_iter().map(|(name, statuses)| (name.to_owned(), stable(&statuses))).collect();
        found
    }

    /// Returns the tests with this stability.
    pub fn tests_with(&self, stability: TestStability) -> impl Iterator<Item = &str> {
        self.tests.iter().filter(move |(_, found)| **found == stability).map(|(name, _)| name.as_str())
    }

    /// Returns whether each run exited with 0.
    #[must_use]
    pub fn is_always_successful(&self) -> bool {
        self.ends == [CommandEnd::Exited(0)]
    }
}
