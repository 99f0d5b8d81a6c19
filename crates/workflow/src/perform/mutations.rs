//! Runs mutants of the changed lines of a candidate.

use std::collections::BTreeMap;

use pintle_evidence::anchor::Anchor;
use pintle_evidence::command_run::CommandRun;
use pintle_evidence::diff::Diff;
use pintle_evidence::mutants::{Mutant, changed_lines, find_mutants};
use pintle_evidence::proof::{
    CandidateFacts, MutantRun, RunCounter, is_failing, is_passing, may_remove_tests,
};
use pintle_evidence::source_tokens::SourceLanguage;

use super::clean_clone::CleanClone;
use super::command_runner::CommandSpec;
use super::{RunningStep, StepError};

/// Number of mutants that count.
const MAX_MUTANTS: usize = 3;

/// Number of mutants that are tried. Some do not compile, or do not run.
const MAX_TRIES: usize = 6;

/// Largest source file that is mutated, in bytes.
const MAX_SOURCE: usize = 1 << 20;

/// Messages of compilers and parsers that name the file elsewhere, or not at all.
const BUILD_FAILURES: [&str; 8] = [
    "SyntaxError",
    "IndentationError",
    "could not compile",
    "aborting due to",
    "[build failed]",
    "COMPILATION ERROR",
    "Compilation failed",
    "ld returned 1 exit status",
];

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
        facts: &CandidateFacts,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<Vec<MutantRun>, StepError> {
        let mut found = self.collect_mutants(commit, patch, &facts.diff).await?;
        // Different files first, each with its best mutant.
        found.sort_by_key(|(position, ..)| *position);
        let mut runs = Vec::new();
        for (_, file, mutant) in found.into_iter().take(MAX_TRIES) {
            if runs.len() >= MAX_MUTANTS {
                break;
            }
            let is_noticed = match self.run_mutant(commit, (&file, &mutant), anchor, facts, counters).await? {
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
        (file, mutant): (&str, &Mutant),
        anchor: &Anchor,
        facts: &CandidateFacts,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<MutantResult, StepError> {
        let spec = CommandSpec::from(anchor);
        let Some(run) = CleanClone::run_with_file(self, commit, spec, file, &mutant.source).await? else {
            return Ok(MutantResult::NotApplicable);
        };
        if !is_passing(anchor, std::slice::from_ref(&run)) {
            let is_compiled = match anchor.results() {
                Some(_) => has_any_test(anchor, &run),
                None => !self.has_build_failure(&run, file).await?,
            };
            return Ok(if is_compiled { MutantResult::Noticed } else { MutantResult::NotApplicable });
        }
        match self.is_noticed_by_checks(commit, (file, mutant), facts, counters).await? {
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
        (file, mutant): (&str, &Mutant),
        facts: &CandidateFacts,
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
            if is_failing(check, baseline, &now, may_remove_tests(self.task.rules(), facts)) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// Returns whether the output of a run has an error of a compiler or a parser about a file.
    async fn has_build_failure(&self, run: &CommandRun, file: &str) -> Result<bool, StepError> {
        let Some(output) = &run.output else { return Ok(false) };
        let output = self.read_blob(output).await?;
        Ok(is_build_failure(&String::from_utf8_lossy(&output), file))
    }
}

/// Returns whether output has an error of a compiler or a parser about a file. A run without results of single tests shows in no
/// other way that its program was not built.
fn is_build_failure(output: &str, file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    output
        .lines()
        .any(|line| BUILD_FAILURES.iter().any(|part| line.contains(part)) || is_diagnostic(line, name))
}

/// Returns whether a line is an error of a compiler at a position in a file.
fn is_diagnostic(line: &str, name: &str) -> bool {
    let mut positions = line.match_indices(name).filter_map(|(start, _)| line.get(start + name.len()..));
    positions.any(|rest| {
        let Some(position) = rest.strip_prefix([':', '(']) else { return false };
        if !position.starts_with(|next: char| next.is_ascii_digit()) {
            return false;
        }
        // `./sums.go:4:9: undefined: x`
        let mut parts = position.split(':').skip(1);
        let has_column = parts.next().is_some_and(|column| column.parse::<u32>().is_ok());
        let is_error = ["error:", "error TS"].iter().any(|word| rest.contains(word));
        is_error && !rest.contains("runtime error:") || has_column && name.ends_with(".go")
    })
}

/// Returns whether a run has a result of the anchor's tests.
fn has_any_test(anchor: &Anchor, run: &CommandRun) -> bool {
    run.tests.as_ref().is_some_and(|found| anchor.tests().iter().any(|test| found.tests.contains_key(test)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_was_not_built_is_no_failed_test() {
        for (output, file, expected) in [
            ("src/sums.c:3:5: error: expected ';'\nmake: *** [Makefile:2: t] Error 1", "src/sums.c", true),
            ("sums.c:3: fatal error: a.h: No such file", "src/sums.c", true),
            ("sums.c:3:5: warning: unused\nt: t.c:9: main: Assertion `a == b' failed.", "src/sums.c", false),
            ("t.c:3:5: error: expected ';'", "src/sums.c", false),
            ("sums.c:3:5: runtime error: signed integer overflow", "src/sums.c", false),
            ("# sums\n./sums.go:4:9: undefined: x", "sums.go", true),
            ("panic: x\n\t/app/sums.go:4 +0x1d", "sums.go", false),
            (
                "error[E0308]: mismatched types\n --> src/lib.rs:4:5\nerror: could not compile `a`",
                "src/lib.rs",
                true,
            ),
            ("thread 'main' panicked at src/lib.rs:4:5:\nerror: x", "src/lib.rs", false),
            ("Sums.java:3: error: ';' expected", "Sums.java", true),
            ("src/sums.ts(3,5): error TS2322: Type", "src/sums.ts", true),
            ("  File \"sums.py\", line 3\nSyntaxError: invalid syntax", "sums.py", true),
            ("Traceback\n  File \"sums.py\", line 3\nAssertionError", "sums.py", false),
            ("", "sums.py", false),
        ] {
            assert_eq!(is_build_failure(output, file), expected, "{output}");
        }
    }
}
