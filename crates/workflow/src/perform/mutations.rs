//! Runs mutants of the changed lines of a candidate.

use std::collections::BTreeMap;

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError};
use crate::anchor::Anchor;
use crate::command_run::CommandRun;
use crate::diff::Diff;
use crate::evidence::{MutantRun, RunCounter, is_failing, is_passing};
use crate::mutants::{Mutant, changed_lines, find_mutants};
use crate::source_tokens::SourceLanguage;

/// Number of mutants that count.
const MAX_MUTANTS: usize = 3;

/// Number of mutants that are tried. Some do not compile, or do not run.
const MAX_TRIES: usize = 6;

/// Largest source file that is mutated, in bytes.
const MAX_SOURCE: usize = 1 << 20;

/// Result of the tests with a mutant.
enum MutantResult {
    Noticed,
    Unnoticed,
    /// It does not compile, its line does not run, or no run of a check is left.
    NotApplicable,
}

impl RunningStep<'_> {
    /// Runs at most three mutants of changed lines that the anchor executes. Deleted and renamed files have none. `counters`
    /// has the runs of each check so far.
    pub(super) async fn run_mutants(
        &self,
        commit: &str,
        patch: &[u8],
        anchor: &Anchor,
        diff: &Diff,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<Vec<MutantRun>, StepError> {
        let mut found = self.collect_mutants(commit, patch, diff).await?;
        // Different files first, each with its best mutant.
        found.sort_by_key(|(position, ..)| *position);
        let mut runs = Vec::new();
        for (_, file, mutant) in found.into_iter().take(MAX_TRIES) {
            if runs.len() >= MAX_MUTANTS {
                break;
            }
            let is_noticed = match self.run_mutant(commit, &file, &mutant, anchor, counters).await? {
                MutantResult::NotApplicable => continue,
                MutantResult::Noticed => true,
                MutantResult::Unnoticed => false,
            };
            let Mutant { line, from, to, .. } = mutant;
            runs.push(MutantRun { file, line, from, to, is_noticed });
        }
        Ok(runs)
    }

    /// Returns the mutants of all changed sources, each with its file and its position among the mutants of the file.
    async fn collect_mutants(
        &self,
        commit: &str,
        patch: &[u8],
        diff: &Diff,
    ) -> Result<Vec<(usize, String, Mutant)>, StepError> {
        let mut found = Vec::new();
        for (path, lines) in changed_lines(patch) {
            let is_mutable = self.task.rules().is_source(&path) && !diff.is_renamed(&path);
            let Some(language) = SourceLanguage::from_path(&path).filter(|_| is_mutable) else { continue };
            let Some(source) = self.repository.read_text(commit, &path).await? else { continue };
            if source.len() > MAX_SOURCE {
                continue;
            }
            let mutants = find_mutants(language, &source, &lines, MAX_TRIES).into_iter().enumerate();
            found.extend(mutants.map(|(position, mutant)| (position, path.clone(), mutant)));
        }
        Ok(found)
    }

    async fn run_mutant(
        &self,
        commit: &str,
        file: &str,
        mutant: &Mutant,
        anchor: &Anchor,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<MutantResult, StepError> {
        let spec = CommandSpec::from(anchor);
        let Some(run) = CleanClone::run_with_file(self, commit, spec, file, &mutant.source).await? else {
            return Ok(MutantResult::NotApplicable);
        };
        if !is_passing(anchor, std::slice::from_ref(&run)) {
            let is_compiled = anchor.results().is_none() || has_any_test(anchor, &run);
            return Ok(if is_compiled { MutantResult::Noticed } else { MutantResult::NotApplicable });
        }
        match self.is_noticed_by_checks(commit, file, mutant, counters).await? {
            Some(true) => return Ok(MutantResult::Noticed),
            Some(false) => {}
            None => return Ok(MutantResult::NotApplicable),
        }
        // The line may not run at all. A failure in its place shows that.
        let Some(probe) = &mutant.probe else { return Ok(MutantResult::NotApplicable) };
        let run = CleanClone::run_with_file(self, commit, spec, file, probe).await?;
        let runs = run.is_some_and(|run| !is_passing(anchor, &[run]));
        Ok(if runs { MutantResult::Unnoticed } else { MutantResult::NotApplicable })
    }

    /// Returns whether a check fails with a mutant. `None` if no run of a check is left. Costly checks do not run with mutants.
    async fn is_noticed_by_checks(
        &self,
        commit: &str,
        file: &str,
        mutant: &Mutant,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<Option<bool>, StepError> {
        let Some(baseline) = self.task.baseline().filter(|baseline| !baseline.is_costly()) else {
            return Ok(Some(false));
        };
        for check in &self.contract().checks {
            if counters.get_mut(check.name.as_str()).is_none_or(|counter| counter.take(1) == 0) {
                return Ok(None);
            }
            let spec = self.check_spec(check);
            let run = CleanClone::run_with_file(self, commit, spec, file, &mutant.source).await?;
            let now: Vec<CommandRun> = run.into_iter().collect();
            if is_failing(check, baseline, &now) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }
}

/// Returns whether a run has a result of the anchor's tests.
fn has_any_test(anchor: &Anchor, run: &CommandRun) -> bool {
    run.tests.as_ref().is_some_and(|found| anchor.tests().iter().any(|test| found.tests.contains_key(test)))
}
