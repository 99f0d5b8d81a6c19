//! Evidence: the conditions under which a candidate counts as done. They are judged from facts that the performer collects
//! and the model cannot write.

mod checks;
mod controls;
mod cost;
mod output;

pub(crate) use self::checks::{explain_incomparable, find_regressions};
pub use self::controls::{ControlTest, MutantRun, RevertControl};
pub(crate) use self::cost::RunCounter;
pub use self::cost::{LONG_RUN, MAX_CHECK_RUNS};
pub use self::output::FailedOutput;
pub(crate) use self::output::{failed_outputs, render_failed_outputs};
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::anchor::Anchor;
use crate::command_run::{CommandEnd, CommandRun, RunComparison, TestStability};
use crate::contract::{Contract, PathRules, TaskCheck};
use crate::diff::Diff;
use crate::judging::{JudgingFacts, JudgingList};
use crate::names::list_names;
use crate::results::RecognizedResults;

/// Runs of the checks on the base, before any work on the goal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Runs by the names of the checks.
    pub checks: BTreeMap<String, Vec<CommandRun>>,
    /// Results of single tests that were recognized, by the names of the checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub recognized: BTreeMap<String, RecognizedResults>,
    /// Reasons why the results of known runners cannot be used, by the names of the checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without_results: BTreeMap<String, String>,
    /// Remarks about the repository, for the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// Files that judge each change.
    #[serde(default, skip_serializing_if = "JudgingList::is_empty")]
    pub judges: JudgingList,
    /// Tests that fail if the assertions of all tests are negated, by the names of the checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub controlled: BTreeMap<String, BTreeSet<String>>,
}

/// Facts about an attempt of a candidate, from clean clones with its diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CandidateFacts {
    /// Its diff.
    pub diff: Diff,
    /// Reason why the diff could not be judged in a clean clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_applied: Option<String>,
    /// Protected files that the judged commands have changed.
    #[serde(default)]
    pub protected: Vec<String>,
    /// Files of the diff that judge. `None` in records without them: manifests then judge as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judging: Option<JudgingFacts>,
    /// Files with a probable secret in an added line.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// Runs of the anchor.
    #[serde(default)]
    pub anchor: Vec<CommandRun>,
    /// Runs by the names of the checks.
    #[serde(default)]
    pub checks: BTreeMap<String, Vec<CommandRun>>,
    /// The unconditional control, if only this one can be added to the anchor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlTest>,
    /// Variants of the anchor's test that must fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub controls: Vec<ControlTest>,
    /// Run with the part of the diff that is not source, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<RevertControl>,
    /// Mutants of changed lines that run. Empty if none apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutants: Vec<MutantRun>,
    /// Runs of the hidden anchor, which no candidate sees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<CommandRun>,
    /// Runs with the negated assertions of all existing tests, by the names of the checks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub check_controls: BTreeMap<String, CommandRun>,
    /// Facts with the candidate's changes of files that judge, if the rest fails without these changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unrestored: Option<Box<CandidateFacts>>,
}

/// Step that a finding belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProofStep {
    /// The candidate has worked, and its work could be judged.
    Work,
    /// The diff: it is not empty, and can be applied.
    Diff,
    /// Only files in the scope changed.
    Scope,
    /// Protected files are unchanged.
    Protected,
    /// No probable secret was added.
    Secrets,
    /// The diff is not larger than agreed.
    Size,
    /// The anchor passes.
    Anchor,
    /// The check of this name passes.
    Check(String),
}

/// A problem that prevents an attempt from being done.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// Step that found it.
    pub step: ProofStep,
    /// Description, for users and for the candidate.
    pub what: String,
}

/// A passed check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PassedCheck {
    /// Its name.
    pub name: String,
    /// Its command.
    pub command: String,
    /// Whether it has results of single tests. Without them, only its exit code counts.
    pub has_tests: bool,
    /// Number of tests that passed in each run.
    pub passed: usize,
    /// Tests that were already flaky before, and prove nothing.
    pub flaky: Vec<String>,
    /// Tests that failed before and still fail.
    pub failing_before: Vec<String>,
}

/// Proof that an attempt reached the goal. Only [`judge`] creates a proof: there is no other constructor, and a proof
/// cannot be deserialised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    diff: Diff,
    anchor: Option<Anchor>,
    checks: Vec<PassedCheck>,
    #[serde(skip_serializing_if = "JudgingFacts::is_empty")]
    judging: JudgingFacts,
    /// Mutants of changed lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mutants: Vec<MutantRun>,
    /// Whether the hidden anchor passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<bool>,
    /// Changed files that judge, and without whose changes the rest fails.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    forced: Vec<String>,
}

impl Baseline {
    /// Returns the checks that fail, each with its first run that does not succeed.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &CommandRun)> {
        self.checks.iter().filter_map(|(name, runs)| {
            let failed = runs.iter().find(|run| !run.is_success())?;
            Some((name.as_str(), failed))
        })
    }
}

impl CandidateFacts {
    /// Creates facts about a diff that was never tested, for this reason.
    #[must_use]
    pub fn from_unapplied(diff: Diff, reason: impl Into<String>) -> Self {
        Self { not_applied: Some(reason.into()), ..Self::from_diff(diff) }
    }

    /// Creates facts about a diff that was not tested yet.
    #[must_use]
    pub fn from_diff(diff: Diff) -> Self {
        Self {
            diff,
            not_applied: None,
            protected: Vec::new(),
            judging: None,
            secrets: Vec::new(),
            anchor: Vec::new(),
            control: None,
            controls: Vec::new(),
            revert: None,
            mutants: Vec::new(),
            hidden: Vec::new(),
            check_controls: BTreeMap::new(),
            unrestored: None,
            checks: BTreeMap::new(),
        }
    }
}

impl Proof {
    /// Returns the proved diff.
    #[must_use]
    pub fn diff(&self) -> &Diff {
        &self.diff
    }

    /// Returns the anchor that failed before and passes now; `None` if the contract has no anchor.
    #[must_use]
    pub fn anchor(&self) -> Option<&Anchor> {
        self.anchor.as_ref()
    }

    /// Returns the changed files that judge, or that may judge.
    #[must_use]
    pub fn judging(&self) -> &JudgingFacts {
        &self.judging
    }

    /// Returns the passed checks.
    #[must_use]
    pub fn checks(&self) -> &[PassedCheck] {
        &self.checks
    }

    /// Returns the mutants of changed lines, noticed or not. Empty if none apply.
    #[must_use]
    pub fn mutants(&self) -> &[MutantRun] {
        &self.mutants
    }

    /// Returns whether the hidden anchor passes; `None` if the task has no hidden anchor, or if it could not be run.
    #[must_use]
    pub fn passes_hidden(&self) -> Option<bool> {
        self.hidden
    }

    /// Returns whether the tests miss a change of a changed line, so that they prove little about it.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        self.mutants.iter().any(|mutant| !mutant.is_noticed)
    }

    /// Returns the changed files that judge, and without whose changes the rest fails. A user decides about them.
    #[must_use]
    pub fn forced(&self) -> &[String] {
        &self.forced
    }

    /// Adds the result of the hidden anchor. It ranks proofs and refuses none.
    pub(crate) fn with_hidden(mut self, hidden: Option<&Anchor>, runs: &[CommandRun]) -> Self {
        self.hidden = hidden.filter(|_| !runs.is_empty()).map(|anchor| is_passing(anchor, runs));
        self
    }
}

impl fmt::Display for ProofStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Work => f.write_str("work"),
            Self::Diff => f.write_str("diff"),
            Self::Scope => f.write_str("scope"),
            Self::Protected => f.write_str("protected files"),
            Self::Secrets => f.write_str("secrets"),
            Self::Size => f.write_str("size"),
            Self::Anchor => f.write_str("anchor"),
            Self::Check(name) => write!(f, "check {name}"),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.what)
    }
}

/// Judges an attempt.
///
/// `anchor` is `None` only if the contract has no anchor.
///
/// # Errors
///
/// All findings that prevent it from being done, in the order of the steps.
pub fn judge(
    contract: &Contract,
    rules: &PathRules,
    anchor: Option<&Anchor>,
    baseline: &Baseline,
    facts: &CandidateFacts,
) -> Result<Proof, Vec<Finding>> {
    let mut findings = Vec::new();
    let mut find = |step: ProofStep, what: String| findings.push(Finding { step, what });
    if let Some(problem) = find_nothing_judged(facts) {
        find(ProofStep::Diff, problem.to_owned());
    }
    judge_diff(contract, rules, anchor, facts, &mut find);
    if let Some(reason) = &facts.not_applied {
        find(ProofStep::Diff, format!("it cannot be judged: {reason}"));
        findings.extend(dropped_finding(&facts.diff));
        // No command was run.
        return Err(findings);
    }
    let anchor_findings = anchor.map(|anchor| judge_anchor(anchor, facts)).unwrap_or_default();
    anchor_findings.into_iter().for_each(|finding| find(finding.step, finding.what));
    let mut passed = Vec::new();
    for check in &contract.checks {
        let now = facts.checks.get(&check.name).map(Vec::as_slice).unwrap_or_default();
        match judge_check(check, baseline, now) {
            Ok(check) => passed.push(check),
            Err(problems) => {
                let step = || ProofStep::Check(check.name.clone());
                problems.into_iter().for_each(|problem| find(step(), problem));
            }
        }
    }
    controls::find_check_problems(baseline, &facts.check_controls)
        .into_iter()
        .for_each(|finding| find(finding.step, finding.what));
    if anchor.is_none() && passed.is_empty() && findings.is_empty() {
        findings.push(Finding { step: ProofStep::Anchor, what: "nothing was run that proves it".to_owned() });
    }
    if findings.is_empty() {
        Ok(Proof {
            diff: facts.diff.clone(),
            anchor: anchor.cloned(),
            checks: passed,
            judging: facts.judging.clone().unwrap_or_default(),
            mutants: facts.mutants.clone(),
            hidden: None,
            forced: Vec::new(),
        })
    } else {
        findings.extend(dropped_finding(&facts.diff));
        Err(findings)
    }
}

/// Judges an attempt with its changes of tests, fixtures, snapshots and manifests, if the rest fails without them. A user decides
/// about such a proof.
pub(crate) fn judge_unrestored(
    contract: &Contract,
    rules: &PathRules,
    anchor: Option<&Anchor>,
    baseline: &Baseline,
    facts: &CandidateFacts,
) -> Option<Proof> {
    let unrestored = facts.unrestored.as_deref()?;
    let forced = facts.judging.as_ref().map(|judging| judging.restorable.clone()).unwrap_or_default();
    let proof = judge(contract, rules, anchor, baseline, unrestored).ok()?;
    Some(Proof { forced, ..proof })
}

/// Returns the omissions of the diff as a finding. They may be the cause of other findings.
fn dropped_finding(diff: &Diff) -> Option<Finding> {
    let what = diff.describe_dropped()?;
    Some(Finding { step: ProofStep::Diff, what })
}

/// Returns a problem if a diff has no change that is judged.
fn find_nothing_judged(facts: &CandidateFacts) -> Option<&'static str> {
    let files = &facts.diff.files;
    if files.is_empty() {
        return facts.not_applied.is_none().then_some("nothing was changed");
    }
    let judging = facts.judging.as_ref()?;
    files.iter().all(|file| judging.is_apart(&file.path)).then_some(
        "nothing but new tests was added, which are not judged; a contract can list them as unprotected",
    )
}

/// Returns the findings about the files of a change, whatever its commands do.
pub(crate) fn find_diff_problems(
    contract: &Contract,
    rules: &PathRules,
    anchor: Option<&Anchor>,
    facts: &CandidateFacts,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |step: ProofStep, what: String| findings.push(Finding { step, what });
    judge_diff(contract, rules, anchor, facts, &mut find);
    findings
}

fn judge_diff(
    contract: &Contract,
    rules: &PathRules,
    anchor: Option<&Anchor>,
    facts: &CandidateFacts,
    find: &mut impl FnMut(ProofStep, String),
) {
    let diff = &facts.diff;
    let paths = |is_wrong: &dyn Fn(&str) -> bool| {
        let wrong = diff.files.iter().map(|file| &file.path).filter(|path| is_wrong(path));
        wrong.cloned().collect::<Vec<_>>()
    };
    let judging = facts.judging.as_ref();
    // A finding about judging parts contains these files already, and new tests are not judged.
    let is_named =
        |path: &str| judging.is_some_and(|judging| judging.is_apart(path) || judging.has_part(path));
    let is_protected = |path: &str| {
        let is_judge = match judging {
            None => rules.is_protected(path) || rules.is_manifest(path),
            Some(judging) => {
                !judging.is_allowed(path) && (rules.is_protected(path) || judging.is_named(path))
            }
        };
        is_judge || anchor.is_some_and(|anchor| anchor.files().iter().any(|file| file == path))
    };
    let outside = paths(&|path| !rules.is_in_scope(path) && !is_protected(path) && !is_named(path));
    if !outside.is_empty() {
        find(ProofStep::Scope, format!("{} changed, which is outside of the scope", list_names(&outside)));
    }
    let mut protected = paths(&is_protected);
    protected
        .extend(facts.protected.iter().filter(|path| !protected.contains(path)).cloned().collect::<Vec<_>>());
    if !protected.is_empty() {
        find(ProofStep::Protected, format!("{} changed, which is protected", list_names(&protected)));
    }
    for problem in judging.into_iter().flat_map(JudgingFacts::describe_parts) {
        find(ProofStep::Protected, problem);
    }
    if facts.unrestored.is_some() {
        let what = "the checks fail with the original files; if the goal forces the changes, keep them, and a user decides at the end";
        find(ProofStep::Protected, what.to_owned());
    }
    if !facts.secrets.is_empty() {
        find(ProofStep::Secrets, format!("{} has something like a secret", list_names(&facts.secrets)));
    }
    let (lines, most) = (diff.lines(), contract.scope.max_lines);
    if lines > most {
        find(ProofStep::Size, format!("{lines} lines changed; at most {most} were agreed"));
    }
}

/// Returns the findings about the anchor, or about its controls if it passes.
fn judge_anchor(anchor: &Anchor, facts: &CandidateFacts) -> Vec<Finding> {
    let problems = anchor_problems(anchor, &facts.anchor);
    if !problems.is_empty() {
        return problems.into_iter().map(|what| Finding { step: ProofStep::Anchor, what }).collect();
    }
    let CandidateFacts { controls, control, revert, .. } = facts;
    let passes = |runs: &[CommandRun]| is_passing(anchor, runs);
    controls::find_control_problems(anchor, controls, control.as_ref(), revert.as_ref(), passes)
}

fn judge_check(
    check: &TaskCheck,
    baseline: &Baseline,
    now: &[CommandRun],
) -> Result<PassedCheck, Vec<String>> {
    let before = baseline.checks.get(&check.name).map(Vec::as_slice).unwrap_or_default();
    checks::judge(check, baseline.recognized.contains_key(&check.name), before, now)
}

/// Returns whether a check of a candidate fails in this run, compared with its runs on the base.
pub(crate) fn is_failing(check: &TaskCheck, baseline: &Baseline, now: &[CommandRun]) -> bool {
    judge_check(check, baseline, now).is_err()
}

/// Returns whether an anchor passes in these runs.
pub(crate) fn is_passing(anchor: &Anchor, runs: &[CommandRun]) -> bool {
    anchor_problems(anchor, runs).is_empty()
}

fn anchor_problems(anchor: &Anchor, runs: &[CommandRun]) -> Vec<String> {
    let observed = RunComparison::compare(runs);
    if runs.is_empty() {
        return vec!["it was not run".to_owned()];
    }
    let mut problems = Vec::new();
    let mut find = |problem: String| problems.push(problem);
    for problem in &observed.problems {
        find(format!("its results are wrong: {problem}"));
    }
    for end in observed.ends.iter().filter(|end| end.is_cut_short()) {
        find(format!("it {}", end.describe()));
    }
    if anchor.tests().is_empty() {
        for end in observed.ends.iter().filter(|end| **end != CommandEnd::Exited(0) && !end.is_cut_short()) {
            find(format!("it {}", end.describe()));
        }
        return problems;
    }
    for (meaning, is_it) in [
        ("does not run", None),
        ("fails still", Some(TestStability::Fails)),
        ("breaks", Some(TestStability::Breaks)),
        ("passes only sometimes", Some(TestStability::Flaky)),
        ("is skipped", Some(TestStability::Skipped)),
    ] {
        let tests = anchor.tests().iter().filter(|test| observed.tests.get(*test).copied() == is_it);
        let tests: Vec<String> = tests.cloned().collect();
        if !tests.is_empty() {
            find(format!("{} {meaning}", list_names(&tests)));
        }
    }
    problems
}

/// Returns the feedback for a candidate whose attempt has findings.
#[must_use]
pub fn feedback(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("- {finding}\n")).collect()
}
