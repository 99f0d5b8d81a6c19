//! Controls of checks: runs in which the assertions of all existing tests are negated. A test that fails there on the base, and
//! does not with a change, does not judge the change.

use std::collections::{BTreeMap, BTreeSet};

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError};
use crate::assertions::negate_assertions;
use crate::command_run::{CommandRun, RunComparison, TestStability};
use crate::evidence::{Baseline, CandidateFacts, RunCounter};
use crate::results::TestStatus;
use crate::source_tokens::SourceLanguage;

/// Maximum number of changed test files.
const MAX_FILES: usize = 200;

/// Largest test file that is changed, in bytes.
const MAX_FILE: usize = 1 << 20;

/// A test file with its original text and with negated assertions.
struct NegatedFile {
    path: String,
    original: String,
    negated: String,
}

impl RunningStep<'_> {
    /// Runs each check with results of single tests once on the base with negated assertions, and records the tests that fail
    /// there and pass otherwise. Costly checks have no such run.
    pub(super) async fn add_check_controls(
        &self,
        base: &str,
        baseline: &mut Baseline,
    ) -> Result<(), StepError> {
        if baseline.is_costly() || !baseline.checks.values().flatten().any(|run| run.tests.is_some()) {
            return Ok(());
        }
        let files = self.negate_tests(base, baseline).await?;
        if files.is_empty() {
            return Ok(());
        }
        for check in &self.contract().checks {
            let runs = baseline.checks.get(&check.name).map(Vec::as_slice).unwrap_or_default();
            let before = RunComparison::compare(runs);
            let passing: BTreeSet<&str> = before.tests_with(TestStability::Passes).collect();
            if passing.is_empty() {
                continue;
            }
            let spec = CommandSpec::from(check).with_recognized(baseline.recognized.get(&check.name));
            let run = self.run_negated(base, spec, &files).await?;
            let failing = failed_tests(run.as_ref());
            let controlled: BTreeSet<String> =
                failing.into_iter().filter(|test| passing.contains(test.as_str())).collect();
            if !controlled.is_empty() {
                baseline.controlled.insert(check.name.clone(), controlled);
            }
        }
        Ok(())
    }

    /// Runs each check once on the commit of a candidate with negated assertions. A candidate whose contract lets it change one
    /// of these files has no such run.
    pub(super) async fn run_check_controls(
        &self,
        commit: &str,
        facts: &mut CandidateFacts,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<(), StepError> {
        let Some(baseline) = self.task.baseline().filter(|baseline| !baseline.controlled.is_empty()) else {
            return Ok(());
        };
        let base = self.repository.base().to_owned();
        let files = self.negate_tests(&base, baseline).await?;
        for file in &files {
            if self.repository.read_text(commit, &file.path).await?.as_ref() != Some(&file.original) {
                return Ok(());
            }
        }
        for check in
            self.contract().checks.iter().filter(|check| baseline.controlled.contains_key(&check.name))
        {
            if counters.get_mut(check.name.as_str()).is_none_or(|counter| counter.take(1) == 0) {
                continue;
            }
            let run = self.run_negated(commit, self.check_spec(check), &files).await?;
            facts.check_controls.extend(run.map(|run| (check.name.clone(), run)));
        }
        Ok(())
    }

    /// Returns the test files of the base with known assertions, without those that a command runs as programs.
    async fn negate_tests(&self, base: &str, baseline: &Baseline) -> Result<Vec<NegatedFile>, StepError> {
        let mut files = Vec::new();
        for path in self.repository.list_files(base).await? {
            if files.len() >= MAX_FILES {
                break;
            }
            let is_program = baseline.judges.by_command.contains(&path);
            let language = SourceLanguage::from_path(&path).filter(|_| !is_program);
            let Some(language) = language.filter(|_| self.task.rules().is_test(&path)) else { continue };
            let Some(original) = self.repository.read_text(base, &path).await? else { continue };
            if original.len() > MAX_FILE {
                continue;
            }
            if let Some(negated) = negate_assertions(language, &original) {
                files.push(NegatedFile { path, original, negated });
            }
        }
        Ok(files)
    }

    async fn run_negated(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        files: &[NegatedFile],
    ) -> Result<Option<CommandRun>, StepError> {
        let files: Vec<(&str, &str)> =
            files.iter().map(|file| (file.path.as_str(), file.negated.as_str())).collect();
        CleanClone::run_with_files(self, commit, spec, &files).await
    }
}

/// Returns the tests that fail by an assertion in a run.
fn failed_tests(run: Option<&CommandRun>) -> Vec<String> {
    let tests = run.and_then(|run| run.tests.as_ref()).into_iter().flat_map(|run| &run.tests);
    tests.filter(|(_, status)| **status == TestStatus::Failed).map(|(test, _)| test.clone()).collect()
}
