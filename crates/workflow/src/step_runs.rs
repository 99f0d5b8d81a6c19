//! The runs of judged commands in the output of a step.

use std::collections::BTreeMap;
use std::fmt;

use pintle_evidence::command_run::CommandRun;
use pintle_evidence::proof::CandidateFacts;

use crate::task::{StepFacts, StepOutput};

/// Purpose of a judged command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunPurpose {
    /// It is the anchor.
    Anchor,
    /// It is the anchor with a test that has to fail.
    Control,
    /// It is the anchor without the sources of the change.
    WithoutSources,
    /// It is the anchor that candidates never see.
    HiddenAnchor,
    /// It is the check of this name.
    Check(String),
    /// It is this check of a step of the plan, before the step.
    BeforeStep(String),
    /// It is this check of a step of the plan, after the step.
    StepCheck(String),
}

impl fmt::Display for RunPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor => f.write_str("anchor"),
            Self::Control => f.write_str("control"),
            Self::WithoutSources => f.write_str("anchor without the sources"),
            Self::HiddenAnchor => f.write_str("hidden anchor"),
            Self::Check(name) => write!(f, "check {name}"),
            Self::BeforeStep(command) => write!(f, "before the step, `{command}`"),
            Self::StepCheck(command) => write!(f, "after the step, `{command}`"),
        }
    }
}

impl StepOutput {
    /// Returns the runs of judged commands, in order.
    #[must_use]
    pub fn command_runs(&self) -> Vec<(RunPurpose, &CommandRun)> {
        match self {
            Self::Baseline(baseline) => check_runs(&baseline.checks).collect(),
            Self::Anchor(facts) => {
                let hidden = facts.hidden.iter().flat_map(|hidden| &hidden.runs);
                let hidden = hidden.map(|run| (RunPurpose::HiddenAnchor, run));
                facts.runs.iter().map(|run| (RunPurpose::Anchor, run)).chain(hidden).collect()
            }
            Self::Evidence(facts) => evidence_runs(facts),
            Self::StepEvidence(facts) => step_runs(facts),
            Self::Work(_) | Self::Review(_) | Self::Plan(_) | Self::AtLimit { .. } | Self::Failed { .. } => {
                Vec::new()
            }
        }
    }
}

fn evidence_runs(facts: &CandidateFacts) -> Vec<(RunPurpose, &CommandRun)> {
    let anchor = facts.anchor.iter().map(|run| (RunPurpose::Anchor, run));
    let controls = facts.control.iter().chain(&facts.controls).map(|control| &control.run);
    let mut controls: Vec<&CommandRun> = controls.collect();
    // The variants in one clone have the same run.
    controls.dedup();
    let controls = controls.into_iter().map(|run| (RunPurpose::Control, run));
    let reverted = facts.revert.iter().flat_map(|revert| &revert.runs);
    let reverted = reverted.map(|run| (RunPurpose::WithoutSources, run));
    let hidden = facts.hidden.iter().map(|run| (RunPurpose::HiddenAnchor, run));
    anchor.chain(controls).chain(check_runs(&facts.checks)).chain(reverted).chain(hidden).collect()
}

/// Returns the runs of a step of a plan: those of the whole change, and those of its own checks.
fn step_runs(facts: &StepFacts) -> Vec<(RunPurpose, &CommandRun)> {
    let mut runs = evidence_runs(&facts.change);
    for own in &facts.own {
        let command = &own.command;
        runs.extend(own.before.iter().map(|run| (RunPurpose::BeforeStep(command.clone()), run)));
        runs.extend(own.after.iter().map(|run| (RunPurpose::StepCheck(command.clone()), run)));
    }
    runs
}

fn check_runs(checks: &BTreeMap<String, Vec<CommandRun>>) -> impl Iterator<Item = (RunPurpose, &CommandRun)> {
    checks.iter().flat_map(|(name, runs)| runs.iter().map(move |run| (RunPurpose::Check(name.clone()), run)))
}

#[cfg(test)]
mod tests {
    use pintle_evidence::control_plan::ControlKind;
    use pintle_evidence::proof::{ControlTest, RevertControl};
    use pintle_evidence::testing::{diff, modified, plain};

    use super::*;

    #[test]
    fn runs_of_evidence_have_their_purposes() {
        let mut facts = CandidateFacts::from_diff(diff([modified("src/a.py", 1, 1)]));
        facts.anchor = vec![plain(0)];
        let control = |kind, line| ControlTest { test: "new".to_owned(), run: plain(1), kind, line };
        facts.controls = vec![control(ControlKind::ChangedValue, 2), control(ControlKind::Negated, 3)];
        facts.revert = Some(RevertControl { files: vec!["a.json".to_owned()], runs: vec![plain(2)] });
        facts.hidden = vec![plain(3)];
        facts.checks = [("tests".to_owned(), vec![plain(4)])].into();
        let output = StepOutput::Evidence(Box::new(facts));
        let shown: Vec<String> = output
            .command_runs()
            .iter()
            .map(|(purpose, run)| format!("{purpose} {}", run.end.describe()))
            .collect();
        assert_eq!(
            shown,
            [
                "anchor exited with 0",
                "control exited with 1",
                "check tests exited with 4",
                "anchor without the sources exited with 2",
                "hidden anchor exited with 3",
            ]
        );
    }
}
