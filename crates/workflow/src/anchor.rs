//! Anchors: tests or commands that fail until the goal is reached. A model proposes an anchor, and the performer runs it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::command_run::{BlobReference, CommandEnd, CommandRun, RunComparison, TestStability};
use crate::contract::{AnchorPlan, PathRules};
use crate::control_plan::ControlKind;
use crate::diff::ChangedFile;
use crate::names::list_names;
use crate::results::ResultsFormat;

/// Number of times that an anchor has to fail in the same way.
pub const ANCHOR_RUNS: usize = 3;

/// Facts about a proposed anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorFacts {
    /// Command that runs it.
    pub command: String,
    /// Format of its results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<ResultsFormat>,
    /// File with the results, for formats that are files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// Session that proposed it. `None` for the command of a contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The patch that adds it to the base. `None` for the command of a contract.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<BlobReference>,
    /// File of it to which a [control](crate::evidence::ControlTest) can be added: a control on the base ran and failed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// Controls of this file that are variants of the test. If empty, its control is unconditional.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ControlKind>,
    /// Review by a session that knows no solution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<AnchorReview>,
    /// Existing tests that matter for the goal, as its session named them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regression: Vec<String>,
    /// Places that matter for the goal, as its session noted them for later ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// A second anchor by another session. Candidates never see it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<Box<AnchorFacts>>,
    /// Files that differ from the base.
    pub files: Vec<ChangedFile>,
    /// Runs on the base with these files.
    pub runs: Vec<CommandRun>,
    /// Tests of the command that failed on the base without these files.
    #[serde(default)]
    pub failing_before: BTreeSet<String>,
}

/// Review of a proposed anchor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorReview {
    /// Session that reviewed.
    pub session: String,
    /// Faults. Empty if the reviewer accepts.
    pub findings: Vec<String>,
}

/// An anchor that failed for the right reason. Only [`AnchorFacts::judge`] creates one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Anchor {
    command: String,
    results: Option<ResultsFormat>,
    report: Option<String>,
    patch: Option<BlobReference>,
    control: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    controls: Vec<ControlKind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    regression: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    tests: BTreeSet<String>,
    files: Vec<String>,
    /// Time of its slowest run, in milliseconds.
    millis: u64,
}

/// Reason why a proposal is not an anchor. The text contains the expectation, for the model that proposed it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnchorProblem {
    /// It changes files that contain no tests.
    #[error("it changes {}; expected changes of test files only", list_names(.0))]
    ChangesProduct(Vec<String>),
    /// It changes the configuration of tests, which affects all of them.
    #[error("it changes {}; expected tests, and no configuration of tests", list_names(.0))]
    ChangesConfiguration(Vec<String>),
    /// Its reviewer found a fault.
    #[error("its reviewer found: {0}")]
    Reviewed(String),
    /// It changes or deletes existing tests.
    #[error("it changes {}, which was there before; expected new test files, or additions to them", list_names(.0))]
    DeletesTests(Vec<String>),
    /// It has to be a new test, but changes nothing.
    #[error("it changes no file; expected a new test")]
    ChangesNothing,
    /// It was not run often enough.
    #[error("it was run {0} times; expected 3")]
    TooFewRuns(usize),
    /// It passes.
    #[error("it passes before anything was done; expected that it fails")]
    Passes,
    /// The runs differ.
    #[error("its runs differ: {0}; expected that it fails in the same way each time")]
    Unstable(String),
    /// It does not reach its assertions.
    #[error("it {0}; expected that it runs, and fails by what it asserts")]
    Broken(String),
    /// Its results are inconsistent.
    #[error("its results are wrong: {0}")]
    Results(String),
    /// The only failing tests failed without it as well.
    #[error("only tests fail that failed before: {}; expected one more", list_names(.0))]
    NothingNew(Vec<String>),
}

impl AnchorFacts {
    /// Creates facts about a command that was not run yet.
    #[must_use]
    pub fn from_command(
        command: impl Into<String>,
        results: Option<ResultsFormat>,
        report: Option<String>,
    ) -> Self {
        Self {
            command: command.into(),
            results,
            report,
            session: None,
            patch: None,
            control: None,
            controls: Vec::new(),
            review: None,
            regression: Vec::new(),
            notes: Vec::new(),
            hidden: None,
            files: Vec::new(),
            runs: Vec::new(),
            failing_before: BTreeSet::new(),
        }
    }

    /// Judges a proposal.
    ///
    /// # Errors
    ///
    /// All problems of the proposal.
    pub fn judge(&self, plan: &AnchorPlan, rules: &PathRules) -> Result<Anchor, Vec<AnchorProblem>> {
        let mut problems = Vec::new();
        self.judge_files(plan, rules, &mut problems);
        let tests = match self.judge_runs() {
            Ok(tests) => tests,
            Err(problem) => {
                problems.push(problem);
                BTreeSet::new()
            }
        };
        let findings = self.review.iter().flat_map(|review| &review.findings);
        problems.extend(findings.cloned().map(AnchorProblem::Reviewed));
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Anchor {
            command: self.command.clone(),
            results: self.results,
            report: self.report.clone(),
            patch: self.patch.clone(),
            control: self.control.clone(),
            controls: self.controls.clone(),
            regression: self.regression.clone(),
            notes: self.notes.clone(),
            tests,
            files: self.files.iter().map(|file| file.path.clone()).collect(),
            millis: self.runs.iter().map(|run| run.millis).max().unwrap_or_default(),
        })
    }

    fn judge_files(&self, plan: &AnchorPlan, rules: &PathRules, problems: &mut Vec<AnchorProblem>) {
        let others = self.files.iter().map(|file| &file.path).filter(|path| !rules.is_test(path));
        let (configuration, product): (Vec<String>, Vec<String>) =
            others.cloned().partition(|path| rules.is_configuration(path));
        if !product.is_empty() {
            problems.push(AnchorProblem::ChangesProduct(product));
        }
        if !configuration.is_empty() {
            problems.push(AnchorProblem::ChangesConfiguration(configuration));
        }
        let deleted: Vec<String> =
            self.files.iter().filter(|file| file.removed > 0).map(|file| file.path.clone()).collect();
        if !deleted.is_empty() {
            problems.push(AnchorProblem::DeletesTests(deleted));
        }
        if *plan == AnchorPlan::Test && self.files.is_empty() {
            problems.push(AnchorProblem::ChangesNothing);
        }
    }

    /// Returns the new failing tests. Empty for a command without results.
    pub(crate) fn judge_runs(&self) -> Result<BTreeSet<String>, AnchorProblem> {
        let observed = RunComparison::compare(&self.runs);
        if self.runs.len() < ANCHOR_RUNS {
            return Err(AnchorProblem::TooFewRuns(self.runs.len()));
        }
        let ends = || observed.ends.iter().map(CommandEnd::describe).collect::<Vec<_>>().join(", and ");
        let [end] = observed.ends.as_slice() else {
            return Err(AnchorProblem::Unstable(format!("it {}", ends())));
        };
        match end {
            CommandEnd::Exited(0) => return Err(AnchorProblem::Passes),
            // 126 and 127 are exit codes of the shell: the command could not be run. Perl dies with 255.
            CommandEnd::Exited(1..=125 | 255) => {}
            // A failed assertion of C.
            CommandEnd::Killed(6) if !observed.has_tests => {}
            CommandEnd::Exited(_) | CommandEnd::Killed(_) | CommandEnd::TimedOut | CommandEnd::NotRun(_) => {
                return Err(AnchorProblem::Broken(end.describe()));
            }
        }
        if let Some(problem) = observed.problems.first() {
            return Err(AnchorProblem::Results(problem.clone()));
        }
        if !observed.has_tests {
            return Ok(BTreeSet::new());
        }
        let flaky: Vec<String> = observed.tests_with(TestStability::Flaky).map(str::to_owned).collect();
        if !flaky.is_empty() {
            return Err(AnchorProblem::Unstable(list_names(&flaky)));
        }
        let is_new = |name: &&str| !self.failing_before.contains(*name);
        let broken: Vec<String> =
            observed.tests_with(TestStability::Breaks).filter(is_new).map(str::to_owned).collect();
        if !broken.is_empty() {
            return Err(AnchorProblem::Broken(format!("breaks {}", list_names(&broken))));
        }
        let failing: BTreeSet<String> =
            observed.tests_with(TestStability::Fails).map(str::to_owned).collect();
        let new: BTreeSet<String> = failing.difference(&self.failing_before).cloned().collect();
        if new.is_empty() {
            return Err(AnchorProblem::NothingNew(failing.into_iter().collect()));
        }
        Ok(new)
    }
}

impl Anchor {
    /// Returns the command that runs it.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns the format of its results.
    #[must_use]
    pub fn results(&self) -> Option<ResultsFormat> {
        self.results
    }

    /// Returns the file with the results, for formats that are files.
    #[must_use]
    pub fn report(&self) -> Option<&str> {
        self.report.as_deref()
    }

    /// Returns the patch that adds it to the base, unless the base has it.
    #[must_use]
    pub fn patch(&self) -> Option<&BlobReference> {
        self.patch.as_ref()
    }

    /// Returns the file to which a control can be added, if any.
    #[must_use]
    pub fn control(&self) -> Option<&str> {
        self.control.as_deref()
    }

    /// Returns the controls of this file that are variants of the test. Without one, the control is unconditional.
    #[must_use]
    pub fn controls(&self) -> &[ControlKind] {
        &self.controls
    }

    /// Returns the existing tests that matter for the goal, as the session of the anchor named them.
    #[must_use]
    pub fn regression(&self) -> &[String] {
        &self.regression
    }

    /// Returns the places that matter for the goal, as the session of the anchor noted them.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the tests that have to pass. If empty, the command has to exit with 0.
    #[must_use]
    pub fn tests(&self) -> &BTreeSet<String> {
        &self.tests
    }

    /// Returns the time limit with a candidate, in seconds: thirty, plus ten times the time on the base.
    #[must_use]
    pub fn timeout_s(&self) -> u32 {
        u32::try_from(self.millis / 100).unwrap_or(u32::MAX).saturating_add(30)
    }

    /// Returns the files that belong to it.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }
}
