//! Controls of checks: runs in which the assertions of all existing tests are negated. A test that fails there on the base, and
//! does not with a change, does not judge the change.

use std::collections::{BTreeMap, BTreeSet};

use pintle_evidence::assertions::negate_assertions;
use pintle_evidence::command_run::{CommandRun, RunComparison, TestStability};
use pintle_evidence::proof::{Baseline, CandidateFacts, RunCounter};
use pintle_evidence::repository_index::TreeFile;
use pintle_evidence::results::TestStatus;
use pintle_evidence::source_tokens::SourceLanguage;

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError};

/// Maximum number of changed test files.
const MAX_FILES: usize = 200;

/// Largest test file that is changed, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// Number of test files that are read at once.
const CHUNK: usize = 16;

/// A test file with negated assertions.
struct NegatedFile {
    path: String,
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
        let changed = self.repository.compare(&base, commit).await?;
        if files.iter().any(|file| changed.iter().any(|changed| changed.path == file.path)) {
            return Ok(());
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
        let language = |file: &TreeFile| {
            let is_program = baseline.judges.by_command.contains(&file.path);
            let language = SourceLanguage::from_path(&file.path).filter(|_| !is_program);
            language.filter(|_| file.bytes <= MAX_FILE && self.task.rules().is_test(&file.path))
        };
        let all = self.repository.list_tree(base).await?;
        let tests: Vec<(&TreeFile, SourceLanguage)> =
            all.iter().filter_map(|file| Some((file, language(file)?))).collect();
        let mut files = Vec::new();
        for chunk in tests.chunks(CHUNK) {
            let read: Vec<&TreeFile> = chunk.iter().map(|(file, _)| *file).collect();
            let texts = self.repository.read_files(&read).await?;
            for ((file, language), text) in chunk.iter().zip(texts) {
                let negated = text.and_then(|text| negate_assertions(*language, &text));
                files.extend(negated.map(|negated| NegatedFile { path: file.path.clone(), negated }));
            }
            if files.len() >= MAX_FILES {
                break;
            }
        }
        files.truncate(MAX_FILES);
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
