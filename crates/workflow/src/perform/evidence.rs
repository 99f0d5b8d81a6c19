//! Runs judged commands: the checks on the base, and the anchor and the checks on the change of a candidate.

use std::collections::BTreeMap;

use pintle_evidence::anchor::{ANCHOR_RUNS, Anchor};
use pintle_evidence::command_run::{CommandEnd, CommandRun};
use pintle_evidence::diff::{ChangeKind, ChangedFile, Diff};
use pintle_evidence::judging::JudgingFacts;
use pintle_evidence::names::escape_name;
use pintle_evidence::proof::{
    Baseline, CandidateFacts, RunCounter, explain_incomparable, is_failing, is_passing, judge,
};
use pintle_evidence::secrets;

use super::clean_clone::{CleanClone, differ};
use super::command_runner::CommandSpec;
use super::recognition::RecognizedRuns;
use super::{RunningStep, StepError};
use crate::contract::TaskCheck;
use crate::repository::RepositoryError;
use crate::task::StepOutput;

/// Exit code of a shell that does not find a program.
const NOT_FOUND: i32 = 127;

impl RunningStep<'_> {
    /// Runs all checks on the base.
    pub(super) async fn baseline(&mut self) -> Result<StepOutput, StepError> {
        let base = self.repository.base().to_owned();
        let mut baseline = Baseline { remarks: self.repository.remarks().await?, ..Baseline::default() };
        for check in &self.contract().checks {
            let RecognizedRuns { runs, recognized, problem } = self.run_check_on_base(check, &base).await?;
            // With `prepare`, a change may install it.
            let missing =
                missing_program(&check.command, &runs).filter(|_| self.contract().prepare.is_none());
            if let Some(program) = missing {
                return Err(StepError::Other(format!(
                    "check `{}`: the program `{program}` is not found, so no change can pass; install it, or let `prepare` install it",
                    escape_name(&check.name)
                )));
            }
            if let Some(problem) = explain_incomparable(check, &runs) {
                return Err(StepError::Other(format!("check {} on the base: {problem}", check.name)));
            }
            baseline.without_results.extend(problem.map(|problem| (check.name.clone(), problem)));
            baseline.recognized.extend(recognized.map(|results| (check.name.clone(), results)));
            baseline.checks.insert(check.name.clone(), runs);
        }
        baseline.judges = self.list_judges(&base).await?;
        self.add_check_controls(&base, &mut baseline).await?;
        let failures = baseline.failures().map(|(name, run)| {
            format!("check `{}` failed before any change: it {}", escape_name(name), run.end.describe())
        });
        let failures: Vec<String> = failures.collect();
        baseline.remarks.extend(failures);
        let without_results = baseline.without_results.iter().map(|(name, problem)| {
            let name = escape_name(name);
            format!("check `{name}` is judged by its exit code only, because its results cannot be used: {problem}")
        });
        let without_results: Vec<String> = without_results.collect();
        baseline.remarks.extend(without_results);
        Ok(StepOutput::Baseline(baseline))
    }

    /// Applies the diff of a candidate to clean clones, and runs the anchor and all checks there.
    pub(super) async fn evidence(&mut self) -> Result<StepOutput, StepError> {
        let work = self.candidate().and_then(|candidate| candidate.attempts().last()?.work.clone());
        let work = work.ok_or_else(|| StepError::Other("nothing was worked on".to_owned()))?;
        let Some(diff) = work.diff else {
            let reason = work.unfit.unwrap_or_else(|| "there is no diff".to_owned());
            return Ok(StepOutput::Evidence(Box::new(CandidateFacts::from_unapplied(Diff::empty(), reason))));
        };
        let patch = self.read_blob(&diff.patch).await?;
        let start = self.commit_anchor().await?;
        let commit = match self.repository.commit_patch(&start, &patch).await {
            Ok(commit) => commit,
            Err(RepositoryError::Unfit(reason)) => {
                return Ok(StepOutput::Evidence(Box::new(CandidateFacts::from_unapplied(diff, reason))));
            }
            Err(error) => return Err(error.into()),
        };
        let judging = self.assess_change(&diff.files, &start, &commit).await?;
        let commit = self.repository.commit_without(&commit, &judging.apart).await?;
        let mut facts = CandidateFacts::from_diff(diff);
        facts.secrets = secrets::find_in_patch(&patch, &self.performer.secrets);
        let mut counters: BTreeMap<&str, RunCounter> = BTreeMap::new();
        let Some(original) = self.restore_judges(&start, &commit, &judging).await? else {
            facts.judging = Some(judging);
            self.collect_evidence(&start, &commit, &patch, &mut facts, &mut counters).await?;
            return Ok(StepOutput::Evidence(Box::new(facts)));
        };
        for check in &self.contract().checks {
            counters.insert(check.name.as_str(), RunCounter::for_first_judgement(check.runs as usize));
        }
        let mut unrestored = facts.clone();
        facts.judging = Some(judging.clone());
        self.collect_evidence(&start, &original, &patch, &mut facts, &mut counters).await?;
        if self.needs_changed_judges(&facts, &judging) {
            counters.values_mut().for_each(RunCounter::release);
            unrestored.judging = Some(judging.with_allowed());
            self.collect_evidence(&start, &commit, &patch, &mut unrestored, &mut counters).await?;
            facts.unrestored = Some(Box::new(unrestored));
        }
        Ok(StepOutput::Evidence(Box::new(facts)))
    }

    /// Returns whether the goal may force the changes of files that judge: without them a check fails although the anchor
    /// passes, or nothing can be built. Manifests count only in the second case.
    fn needs_changed_judges(&self, facts: &CandidateFacts, judging: &JudgingFacts) -> bool {
        let Some(baseline) = self.task.baseline().filter(|_| facts.not_applied.is_none()) else {
            return false;
        };
        let runs = || facts.anchor.iter().chain(facts.checks.values().flatten());
        let has_tests = |run: &CommandRun| run.tests.as_ref().is_some_and(|run| !run.tests.is_empty());
        let is_unbuilt = runs().next().is_some() && runs().all(|run| !run.is_success() && !has_tests(run));
        let fails = self.contract().checks.iter().any(|check| {
            let now = facts.checks.get(&check.name).map(Vec::as_slice).unwrap_or_default();
            is_failing(check, baseline, now, false)
        });
        let has_anchor = self.task.anchor().is_none_or(|anchor| is_passing(anchor, &facts.anchor));
        let has_manifest = judging.restorable.iter().any(|path| self.task.rules().is_manifest(path));
        is_unbuilt || fails && has_anchor && !has_manifest
    }

    /// Runs the anchor, its controls and all checks on a commit.
    async fn collect_evidence<'b>(
        &'b self,
        start: &str,
        commit: &str,
        patch: &[u8],
        facts: &mut CandidateFacts,
        counters: &mut BTreeMap<&'b str, RunCounter>,
    ) -> Result<(), StepError> {
        if let Some(anchor) = self.task.anchor() {
            facts.anchor = self.run_anchor_on_change(commit, CommandSpec::from(anchor), facts).await?;
            let is_passing = is_passing(anchor, &facts.anchor);
            if is_passing && anchor.controls().is_empty() {
                if let Some(file) = anchor.control() {
                    let spec = CommandSpec::from(anchor);
                    facts.control = CleanClone::run_control(self, commit, spec, file).await?;
                }
            } else if is_passing {
                facts.controls = self.run_controls(commit, anchor).await?;
            }
        }
        for check in &self.contract().checks {
            let counter = counters.entry(check.name.as_str()).or_default();
            let (spec, times) = (self.check_spec(check), check.runs as usize);
            let seen = self.run_check(commit, spec, times, counter, facts).await?;
            facts.checks.insert(check.name.clone(), seen);
        }
        if self.has_proof(facts) {
            self.examine_proof(start, commit, patch, facts, counters).await?;
        }
        Ok(())
    }

    /// Runs the anchor. The last run is at another path and without variables of the task.
    async fn run_anchor_on_change(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<CommandRun>, StepError> {
        let mut seen =
            self.run_check(commit, spec, ANCHOR_RUNS - 1, &mut RunCounter::default(), facts).await?;
        if facts.not_applied.is_none() {
            let clean = CleanClone::create_elsewhere(self, commit).await?;
            let last = self.run_check_at(&clean, commit, spec, 1, facts).await;
            seen.extend(clean.remove_after(self, last).await?);
        }
        Ok(seen)
    }

    /// Returns a check with its results, which may have been recognized on the base.
    pub(super) fn check_spec<'b>(&'b self, check: &'b TaskCheck) -> CommandSpec<'b> {
        let recognized = self.task.baseline().and_then(|baseline| baseline.recognized.get(&check.name));
        CommandSpec::from(check).with_recognized(recognized)
    }

    fn has_proof(&self, facts: &CandidateFacts) -> bool {
        let baseline = self.task.baseline().cloned().unwrap_or_default();
        judge(&self.contract().checks, self.task.rules(), self.task.anchor(), &baseline, facts).is_ok()
    }

    /// Collects the evidence that only a candidate with a proof needs: runs with negated tests and without its sources, mutants
    /// of its changed lines, and the hidden anchor.
    async fn examine_proof(
        &self,
        start: &str,
        commit: &str,
        patch: &[u8],
        facts: &mut CandidateFacts,
        counters: &mut BTreeMap<&str, RunCounter>,
    ) -> Result<(), StepError> {
        self.run_check_controls(commit, facts, counters).await?;
        let Some(anchor) = self.task.anchor().filter(|_| self.has_proof(facts)) else { return Ok(()) };
        facts.revert = self.run_revert_control(start, commit, anchor, facts).await?;
        if self.has_proof(facts) {
            facts.mutants = self.run_mutants(commit, patch, anchor, facts, counters).await?;
            facts.hidden = self.run_hidden_anchor(commit).await?;
        }
        Ok(())
    }

    /// Runs a command in a separate clean clone. In a shared clone, an earlier command could change files that are not
    /// compared, such as installed dependencies. Adds problems that prevent a verdict on the clone to the facts.
    async fn run_check(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        times: usize,
        counter: &mut RunCounter,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<CommandRun>, StepError> {
        let seen = self.run_check_once(commit, spec, counter.take(times), facts).await?;
        if !differ(&seen) {
            return Ok(seen);
        }
        let separate = counter.take_separate();
        if separate == 0 {
            return Ok(seen);
        }
        let mut apart = Vec::with_capacity(separate);
        for _ in 0..separate {
            apart.extend(self.run_check_once(commit, spec, 1, facts).await?);
        }
        Ok(apart)
    }

    pub(super) async fn run_check_once(
        &self,
        commit: &str,
        spec: CommandSpec<'_>,
        times: usize,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<CommandRun>, StepError> {
        if facts.not_applied.is_some() {
            return Ok(Vec::new());
        }
        let clean = CleanClone::create(self, commit).await?;
        let seen = self.run_check_at(&clean, commit, spec, times, facts).await;
        clean.remove_after(self, seen).await
    }

    async fn run_check_at(
        &self,
        clean: &CleanClone,
        commit: &str,
        spec: CommandSpec<'_>,
        times: usize,
        facts: &mut CandidateFacts,
    ) -> Result<Vec<CommandRun>, StepError> {
        facts.not_applied = clean.prepare(self).await?;
        if facts.not_applied.is_some() {
            return Ok(Vec::new());
        }
        let seen = clean.open_runner(self).await?.repeat_and_close(spec, times).await?;
        match self.changed_protected_files(clean, commit, facts.judging.as_ref()).await {
            Ok(changed) => {
                facts.protected.extend(changed);
                facts.protected.sort();
                facts.protected.dedup();
            }
            Err(StepError::Repository(RepositoryError::Unfit(reason))) => {
                facts.not_applied = Some(format!("after its commands, {reason}"));
            }
            Err(error) => return Err(error),
        }
        Ok(seen)
    }

    /// Returns the protected files that the commands have changed.
    async fn changed_protected_files(
        &self,
        clean: &CleanClone,
        commit: &str,
        judging: Option<&JudgingFacts>,
    ) -> Result<Vec<String>, StepError> {
        let changed = self.repository.changes(&clean.workspace.root, commit).await?;
        let anchored =
            |path: &String| self.task.anchor().is_some_and(|anchor: &Anchor| anchor.files().contains(path));
        let rules = self.task.rules();
        let judges = |path: &str| {
            rules.is_protected(path)
                || rules.is_manifest(path)
                || judging.is_some_and(|judging| judging.is_named(path))
        };
        // A command may complete a lock file after a manifest has changed.
        let is_allowed =
            |path: &str| judging.is_some_and(|judging| rules.is_lock_of(path, &judging.unaffected));
        // New files next to tests, such as snapshots, do not change the tests.
        let is_judging = |file: &ChangedFile| {
            file.kind != ChangeKind::Added
                && (judges(&file.path) && !is_allowed(&file.path) || anchored(&file.path))
        };
        Ok(changed.into_iter().filter(is_judging).map(|file| file.path).collect())
    }
}

/// Returns the program of a command if no run has found it. A script that is missing may be the goal of the task.
fn missing_program<'a>(command: &'a str, runs: &[CommandRun]) -> Option<&'a str> {
    let program = command.split_whitespace().next().filter(|word| !word.contains(['/', '=', '$']))?;
    let messages = [format!("{program}: not found"), format!("{program}: command not found")];
    let is_missing = |run: &CommandRun| {
        let has_message = |line: &String| messages.iter().any(|message| line.ends_with(message.as_str()));
        run.end == CommandEnd::Exited(NOT_FOUND) && run.last_lines.iter().any(has_message)
    };
    (!runs.is_empty() && runs.iter().all(is_missing)).then_some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_program_of_the_machine_is_missing() {
        let run = |code: i32, line: &str| {
            let mut run = CommandRun::new(CommandEnd::Exited(code));
            run.last_lines = vec![line.to_owned()];
            run
        };
        for (command, code, line, expected) in [
            ("pytset -q", 127, "sh: 1: pytset: not found", Some("pytset")),
            ("pytset", 127, "bash: line 1: pytset: command not found", Some("pytset")),
            ("pytset", 1, "sh: 1: pytset: not found", None),
            ("sh new.sh", 127, "sh: new.sh: No such file or directory", None),
            ("./new", 127, "sh: 1: ./new: not found", None),
            ("exec tool", 127, "sh: 1: exec: tool: not found", None),
            ("make test", 127, "make: tool: not found", None),
        ] {
            assert_eq!(missing_program(command, &[run(code, line)]), expected, "{command}");
        }
        assert_eq!(missing_program("pytset", &[]), None);
    }
}
