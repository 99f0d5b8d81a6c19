//! Results of single tests, from the output or the files of test runners.
//!
//! A runner's exit code reports only a failure. Its results contain which test failed, whether it failed by an assertion,
//! and whether all earlier tests ran again. The code under test could print results as well, so each parser checks their
//! consistency: a complete plan, correct sums, no test named twice. An inconsistency is a [problem](TestRun::problems), and
//! results with problems prove nothing.

mod cargo;
mod junit;
mod pytest;
mod tap;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

/// Maximum number of tests of a run.
const MAX_TESTS: usize = 50_000;

/// Maximum number of recorded problems of a run.
const MAX_PROBLEMS: usize = 20;

/// Format of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ResultsFormat {
    /// Output of `cargo test`, in its default format.
    Cargo,
    /// Output of `pytest` with `-v` or `-rA`.
    Pytest,
    /// A file of JUnit XML, which most runners can write.
    Junit,
    /// Output in the Test Anything Protocol, version 12 to 14.
    Tap,
}

/// Outcome of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TestStatus {
    /// It passed.
    Passed,
    /// It ran, and an assertion failed.
    Failed,
    /// It did not reach its assertions, for example after an error in its setup.
    Broken,
    /// It did not run.
    Skipped,
}

/// Results of one run of a test runner.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    /// Tests by their names, which are unique in a run.
    pub tests: BTreeMap<String, TestStatus>,
    /// Inconsistencies of these results, as text for users. At most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl ResultsFormat {
    /// Parses results. Text without results gives a run without tests, and a problem.
    #[must_use]
    pub fn parse(self, text: &str) -> TestRun {
        let mut run = match self {
            Self::Cargo => cargo::parse(text),
            Self::Pytest => pytest::parse(text),
            Self::Junit => junit::parse(text),
            Self::Tap => tap::parse(text),
        };
        if run.tests.is_empty() && run.problems.is_empty() {
            run.problem("there are no results".to_owned());
        }
        run
    }

    /// Returns the command to run, so that its results can be parsed. Merges both streams, because a program may print
    /// headings to one and tests to the other.
    pub(crate) fn command(self, line: &str) -> String {
        if self.is_file() { line.to_owned() } else { format!("exec 2>&1\n{line}") }
    }

    /// Returns whether results are in a file, and not in the output.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::Junit)
    }
}

impl TestRun {
    /// Returns the number of tests of a status.
    #[must_use]
    pub fn count(&self, status: TestStatus) -> usize {
        self.tests.values().filter(|found| **found == status).count()
    }

    fn add(&mut self, name: String, status: TestStatus) {
        if self.tests.len() >= MAX_TESTS {
            self.problem(format!("there are more than {MAX_TESTS} tests"));
            return;
        }
        match self.tests.entry(name) {
            Entry::Vacant(entry) => drop(entry.insert(status)),
            Entry::Occupied(entry) => {
                let problem = format!("`{}` is reported twice", entry.key());
                self.problem(problem);
            }
        }
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}
