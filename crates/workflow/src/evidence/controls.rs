//! Controls of a candidate: runs that must fail although the anchor passes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Baseline, Finding, ProofStep};
use crate::anchor::Anchor;
use crate::command_run::{CommandEnd, CommandRun};
use crate::control_plan::{ControlKind, is_test_named};
use crate::names::list_names;
use crate::results::TestStatus;

/// A test that must fail whatever a candidate does. If it does not fail, the code under test controls the test runner, and no
/// result counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlTest {
    /// Drawn name of the test, or the file that the anchor's command runs. The runner may report it as part of a longer name.
    pub test: String,
    /// Run of the anchor with it.
    pub run: CommandRun,
    /// Reason why it fails.
    #[serde(default, skip_serializing_if = "ControlKind::is_unconditional")]
    pub kind: ControlKind,
    /// Line at which it starts, from 1. 0 for the end of the file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u64,
}

/// Run of the anchor with only the part of a change that is not source. The anchor must fail there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertControl {
    /// Files of this part.
    pub files: Vec<String>,
    /// Runs of the anchor.
    pub runs: Vec<CommandRun>,
}

/// A changed line with one token replaced, and the result of the tests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MutantRun {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The token.
    pub from: String,
    /// Its replacement.
    pub to: String,
    /// Whether the anchor or a check fails with it.
    pub is_noticed: bool,
}

impl ControlTest {
    /// Returns whether the runner reports that it failed, and exits accordingly. A variant of the anchor's test has to fail by
    /// an assertion, with all its parameters. Without results of single tests, only the exit code counts.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let Some(run) = &self.run.tests else {
            // A failed assertion of C ends with the signal 6.
            return !self.kind.is_unconditional()
                && matches!(self.run.end, CommandEnd::Exited(1..=125 | 255) | CommandEnd::Killed(6));
        };
        if self.run.end == CommandEnd::Exited(0) {
            return false;
        }
        if self.kind.is_unconditional() {
            return run.tests.iter().any(|(name, status)| {
                name.contains(&self.test) && matches!(status, TestStatus::Failed | TestStatus::Broken)
            });
        }
        let mut statuses = self.statuses().peekable();
        statuses.peek().is_some() && statuses.all(|status| status == TestStatus::Failed)
    }

    /// Returns whether the runner reports it.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        self.statuses().next().is_some()
    }

    fn statuses(&self) -> impl Iterator<Item = TestStatus> {
        let tests = self.run.tests.iter().flat_map(|run| &run.tests);
        tests.filter(move |(name, _)| is_test_named(name, &self.test)).map(|(_, status)| *status)
    }
}

/// Returns the findings of the controls of an anchor that passes.
pub(super) fn find_control_problems(
    anchor: &Anchor,
    controls: &[ControlTest],
    unconditional: Option<&ControlTest>,
    revert: Option<&RevertControl>,
    is_passing: impl Fn(&[CommandRun]) -> bool,
) -> Vec<Finding> {
    let mut problems = Vec::new();
    if anchor.controls().is_empty() && anchor.control().is_some() {
        problems.extend(match unconditional {
            None => Some("the control was not run".to_owned()),
            Some(control) => (!control.has_failed()).then(|| {
                "the control, a test that must fail, does not fail: results of tests mean nothing here"
                    .to_owned()
            }),
        });
    }
    for kind in anchor.controls() {
        let with = kind.describe();
        problems.extend(match controls.iter().find(|control| control.kind == *kind) {
            None => Some(format!("its control with {with} was not run")),
            Some(control) => (!control.has_failed())
                .then(|| format!("its test with {with} does not fail: its assertions mean nothing here")),
        });
    }
    if let Some(revert) = revert.filter(|revert| is_passing(&revert.runs)) {
        let files = list_names(&revert.files);
        problems.push(format!(
            "it passes with only {files}, which is no source; expected that the sources are mended"
        ));
    }
    problems.into_iter().map(|what| Finding { step: ProofStep::Anchor, what }).collect()
}

/// Returns the findings of runs with negated assertions: tests that fail there on the base, and not with the change. A test that
/// a run does not report proves nothing, unless the run reports no test at all or ends as if all tests had passed. Code that
/// recognizes changed tests could end the run before their results.
pub(super) fn find_check_problems(
    baseline: &Baseline,
    controls: &BTreeMap<String, CommandRun>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (check, run) in controls {
        let Some(controlled) = baseline.controlled.get(check) else { continue };
        let status = |test: &String| run.tests.as_ref().and_then(|run| run.tests.get(test));
        let has_results = run.tests.as_ref().is_some_and(|run| !run.tests.is_empty());
        let is_fooled = |test: &&String| match status(test) {
            Some(TestStatus::Failed | TestStatus::Broken) => false,
            Some(TestStatus::Passed | TestStatus::Skipped) => true,
            None => run.is_success() || !has_results,
        };
        let fooled: Vec<String> = controlled.iter().filter(is_fooled).cloned().collect();
        if !fooled.is_empty() {
            let tests = list_names(&fooled);
            let what =
                format!("{tests} does not fail with negated assertions: its result means nothing here");
            findings.push(Finding { step: ProofStep::Check(check.clone()), what });
        }
    }
    findings
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
