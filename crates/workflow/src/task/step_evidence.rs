//! Evidence of a step of a plan: nothing that passed before fails, and the step stays in its scope. The goal itself is judged
//! on the whole change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::plan::PlannedStep;
use crate::anchor::Anchor;
use crate::command_run::{CommandEnd, CommandRun, RunComparison, TestStability};
use crate::contract::{Contract, PathRules, TaskScope};
use crate::diff::ChangedFile;
use crate::evidence::{CandidateFacts, Finding, ProofStep, find_diff_problems, find_regressions, is_passing};
use crate::names::list_names;

/// Facts about the work of a candidate on a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepFacts {
    /// Facts about the whole change up to this step. The checks run without the anchor, which fails until the goal is reached.
    pub change: CandidateFacts,
    /// Files that this step has changed.
    #[serde(default)]
    pub files: Vec<ChangedFile>,
    /// Runs of the checks of the step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnCheck>,
}

/// Runs of a check of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnCheck {
    /// Command of the shell.
    pub command: String,
    /// Runs on the snapshot before the step.
    pub before: Vec<CommandRun>,
    /// Runs after the step.
    pub after: Vec<CommandRun>,
}

/// Evidence of a step that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepProof {
    /// Checks of the contract that the step leaves failing, as it declares.
    pub failing: Vec<String>,
    /// Checks of the step that failed before it and pass now.
    pub anchored: usize,
    /// Tests of the checks that pass.
    pub passed: usize,
    /// Whether the anchor of the whole goal passes; `None` without an anchor.
    pub reaches_goal: Option<bool>,
}

/// Contents of a task that a step is judged with.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepContext<'a> {
    pub(super) contract: &'a Contract,
    pub(super) rules: &'a PathRules,
    pub(super) anchor: Option<&'a Anchor>,
    /// Runs of the checks on the last snapshot that is not provisional, or on the base.
    pub(super) before: &'a BTreeMap<String, Vec<CommandRun>>,
}

impl OwnCheck {
    /// Returns whether it failed before the step and passes now, so that it proves something about the step.
    #[must_use]
    pub fn is_anchor(&self) -> bool {
        let has_failed = !self.before.is_empty() && !self.before.iter().any(CommandRun::is_success);
        has_failed && self.passes()
    }

    fn passes(&self) -> bool {
        !self.after.is_empty() && self.after.iter().all(CommandRun::is_success)
    }
}

/// Judges the work on a step.
///
/// # Errors
///
/// All findings, in the order of the steps of a proof.
pub(super) fn judge_step(
    context: StepContext<'_>,
    step: &PlannedStep,
    facts: &StepFacts,
) -> Result<StepProof, Vec<Finding>> {
    let StepContext { contract, rules, anchor, before } = context;
    let mut findings = find_diff_problems(contract, rules, anchor, &facts.change);
    let mut find = |step: ProofStep, what: String| findings.push(Finding { step, what });
    if let Some(reason) = &facts.change.not_applied {
        find(ProofStep::Diff, format!("it cannot be judged: {reason}"));
        return Err(findings);
    }
    if facts.files.is_empty() {
        find(ProofStep::Diff, "the step has changed nothing".to_owned());
    }
    let outside = files_outside(step, contract.directory(), facts);
    if !outside.is_empty() {
        let what = format!("{} changed, which is outside of the paths of the step", list_names(&outside));
        find(ProofStep::Scope, what);
    }
    let (mut failing, mut passed) = (Vec::new(), 0);
    for check in &contract.checks {
        let runs =
            |all: &BTreeMap<String, Vec<CommandRun>>| all.get(&check.name).cloned().unwrap_or_default();
        let now = runs(&facts.change.checks);
        passed += RunComparison::compare(&now).tests_with(TestStability::Passes).count();
        let problems = find_regressions(&runs(before), &now);
        if problems.is_empty() {
            continue;
        }
        if step.leaves_failing.contains(&check.name) {
            failing.push(check.name.clone());
        } else {
            problems.into_iter().for_each(|what| find(ProofStep::Check(check.name.clone()), what));
        }
    }
    for own in facts.own.iter().filter(|own| !own.passes()) {
        let ends: Vec<String> =
            RunComparison::compare(&own.after).ends.iter().map(CommandEnd::describe).collect();
        let what =
            if ends.is_empty() { "it was not run".to_owned() } else { format!("it {}", ends.join(", and ")) };
        find(ProofStep::Check(own.command.clone()), what);
    }
    if !findings.is_empty() {
        return Err(findings);
    }
    let anchored = facts.own.iter().filter(|own| own.is_anchor()).count();
    let reaches_goal = anchor.map(|anchor| is_passing(anchor, &facts.change.anchor));
    Ok(StepProof { failing, anchored, passed, reaches_goal })
}

/// Returns the changed files outside of the paths of a step, which are relative to the directory of the task. New tests are
/// not judged, and may be anywhere.
fn files_outside(step: &PlannedStep, directory: &str, facts: &StepFacts) -> Vec<String> {
    if step.paths.is_empty() {
        return Vec::new();
    }
    let scope = TaskScope { paths: step.paths.clone(), ..TaskScope::default() };
    // The patterns were compiled when the step was planned.
    let Ok(rules) = PathRules::in_directory(&scope, directory) else { return Vec::new() };
    let is_apart = |path: &str| facts.change.judging.as_ref().is_some_and(|judging| judging.is_apart(path));
    let changed = facts.files.iter().map(|file| &file.path);
    changed.filter(|path| !rules.is_in_scope(path) && !is_apart(path)).cloned().collect()
}
