//! Results of single tests, from the output or the files of test runners.
//!
//! A runner's exit code reports only a failure. Its results contain which test failed, whether it failed by an assertion,
//! and whether all earlier tests ran again. The code under test could print results as well, so each parser checks their
//! consistency: a complete plan, correct sums, no test named twice. An inconsistency is a [problem](TestRun::problems), and
//! results with problems prove nothing.

mod cargo;
mod go;
mod jest;
mod junit;
mod pytest;
mod recognition;
mod rspec;
mod runner;
mod summarized;
mod tap;
#[cfg(test)]
mod tests;
mod unittest;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

pub use self::recognition::{RecognizedResults, recognize};

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
    /// Output of `go test`, with `-json` or as text.
    Go,
    /// Output of `python -m unittest -v`.
    Unittest,
    /// A file of jest's JSON.
    Jest,
    /// A file of vitest's JSON.
    Vitest,
    /// Output of `ctest`.
    Ctest,
    /// A file of `RSpec`'s JSON.
    Rspec,
    /// Output of `dotnet test` with the console logger at the verbosity `normal`.
    Dotnet,
    /// Output of `mix test --trace`.
    Mix,
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
    /// Format, if it was recognized in the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<ResultsFormat>,
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
            Self::Go => go::parse(text),
            Self::Unittest => unittest::parse(text),
            Self::Jest | Self::Vitest => jest::parse(text),
            Self::Ctest => summarized::parse_ctest(text),
            Self::Rspec => rspec::parse(text),
            Self::Dotnet => summarized::parse_dotnet(text),
            Self::Mix => summarized::parse_mix(text),
        };
        if run.tests.is_empty() && run.problems.is_empty() {
            run.problem("there are no results".to_owned());
        }
        run
    }

    /// Parses results whose format is not known. Returns `None` unless exactly one format fits.
    #[must_use]
    pub fn recognize_output(text: &str) -> Option<TestRun> {
        recognition::recognize_output(text)
    }

    /// Returns the command to run, so that its results can be parsed: with the flags that its runner needs to report single
    /// tests. Merges both streams, because a program may print headings to one and tests to the other.
    #[must_use]
    pub fn command(self, line: &str, report: Option<&str>) -> String {
        runner::adapt(self, line, report)
    }

    /// Returns the command to run, so that the format of its results can be recognized in its output.
    #[must_use]
    pub fn unknown_command(line: &str) -> String {
        runner::adapt_unknown(line)
    }

    /// Returns output of this format for users.
    #[must_use]
    pub fn readable(self, text: &str) -> Cow<'_, str> {
        if self == Self::Go { Cow::Owned(go::readable(text)) } else { Cow::Borrowed(text) }
    }

    /// Returns whether results are in a file, and not in the output.
    #[must_use]
    pub fn is_file(self) -> bool {
        matches!(self, Self::Junit | Self::Jest | Self::Vitest | Self::Rspec)
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

    /// Adds the results of another file, with a prefix for the names of its tests.
    pub fn merge(&mut self, other: Self, prefix: &str) {
        for (name, status) in other.tests {
            self.add(format!("{prefix}{name}"), status);
        }
        other.problems.into_iter().for_each(|problem| self.problem(problem));
    }

    fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}
