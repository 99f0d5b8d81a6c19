//! Runs commands on the base, and recognizes their results of single tests.

use std::path::Path;

use pintle_evidence::anchor::{ANCHOR_RUNS, AnchorFacts};
use pintle_evidence::command_run::{CommandRun, RunComparison, explain_unusable, take_recognized};
use pintle_evidence::results::{RecognizedResults, recognize};

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError};
use crate::contract::TaskCheck;

/// File with the scripts of a package.
const PACKAGE: &str = "package.json";

/// Runs on the base, and their results if they were recognized.
pub(super) struct RecognizedRuns {
    pub(super) runs: Vec<CommandRun>,
    pub(super) recognized: Option<RecognizedResults>,
    /// Reason why the results of a known runner cannot be used.
    pub(super) problem: Option<String>,
}

impl RunningStep<'_> {
    /// Runs a check on the base. A known runner whose results cannot be used is judged by its exit code, as without flags for
    /// its results.
    pub(super) async fn run_check_on_base(
        &self,
        check: &TaskCheck,
        base: &str,
    ) -> Result<RecognizedRuns, StepError> {
        let (spec, times) = (CommandSpec::from(check), check.runs as usize);
        let clean = CleanClone::create(self, base).await?;
        if check.exit_code_only || check.results.is_some() {
            let runs = clean.run_in_clean_clone(self, spec, times).await?;
            return Ok(RecognizedRuns { runs, recognized: None, problem: None });
        }
        let package = self.read_package(&clean.workspace.working_directory()).await;
        let Some(results) = recognize(&check.command, package.as_deref()) else {
            return self.run_unknown(clean, spec, times).await;
        };
        let runs = clean.run_in_clean_clone(self, spec.with_recognized(Some(&results)), times).await?;
        let Some(problem) = explain_unusable(&runs) else {
            return Ok(RecognizedRuns { runs, recognized: Some(results), problem: None });
        };
        let plain = self.run_unknown(CleanClone::create(self, base).await?, spec, times).await?;
        // It fails with and without the flags, for example because it cannot be compiled.
        if !runs.iter().all(CommandRun::is_success) && has_same_ends(&runs, &plain.runs) {
            return Ok(RecognizedRuns { runs, recognized: Some(results), problem: None });
        }
        let problem = plain.recognized.is_none().then_some(problem);
        Ok(RecognizedRuns { problem, ..plain })
    }

    /// Runs a command on the base, and recognizes results in its output.
    async fn run_unknown(
        &self,
        clean: CleanClone,
        spec: CommandSpec<'_>,
        times: usize,
    ) -> Result<RecognizedRuns, StepError> {
        let mut runs = clean.run_in_clean_clone(self, spec.with_unknown_results(), times).await?;
        let recognized = take_recognized(&mut runs);
        Ok(RecognizedRuns { runs, recognized, problem: None })
    }

    /// Runs a proposed anchor on the base, and recognizes its results if the proposal names no format. `commit` is the base with
    /// the files of the anchor.
    pub(super) async fn run_proposed_anchor(
        &self,
        facts: &mut AnchorFacts,
        commit: &str,
    ) -> Result<(), StepError> {
        let recognized = if facts.results.is_none() { recognize(&facts.command, None) } else { None };
        if let Some(results) = recognized {
            let spec = CommandSpec::new(&facts.command).with_recognized(Some(&results));
            let clean = CleanClone::create(self, commit).await?;
            let runs = clean.run_in_clean_clone(self, spec, ANCHOR_RUNS).await?;
            if explain_unusable(&runs).is_none() && runs.iter().any(|run| run.tests.is_some()) {
                facts.runs = runs;
                (facts.results, facts.report) = (Some(results.format), results.report);
                return Ok(());
            }
        }
        let spec = CommandSpec::new(&facts.command).with_results(facts.results, facts.report.as_deref());
        let clean = CleanClone::create(self, commit).await?;
        facts.runs = clean.run_in_clean_clone(self, spec, ANCHOR_RUNS).await?;
        Ok(())
    }

    /// Returns the `package.json` of a directory.
    async fn read_package(&self, directory: &Path) -> Option<String> {
        let bytes = self.performer.machine.read(&directory.join(PACKAGE), None).await.ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn has_same_ends(one: &[CommandRun], other: &[CommandRun]) -> bool {
    RunComparison::compare(one).ends == RunComparison::compare(other).ends
}
