//! The runs of judged commands in the output of a step.

use std::fmt;

use crate::command_run::CommandRun;
use crate::task::StepOutput;

/// Purpose of a judged command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPurpose {
    /// It is the anchor.
    Anchor,
    /// It is the anchor with a test that has to fail.
    Control,
    /// It is the check of this name.
    Check(String),
}

impl fmt::Display for RunPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anchor => f.write_str("anchor"),
            Self::Control => f.write_str("control"),
            Self::Check(name) => write!(f, "check {name}"),
        }
    }
}

impl StepOutput {
    /// Returns the runs of judged commands, in order.
    #[must_use]
    pub fn command_runs(&self) -> Vec<(RunPurpose, &CommandRun)> {
        let (anchor, control, checks) = match self {
            Self::Baseline(baseline) => (None, None, Some(&baseline.checks)),
            Self::Anchor(facts) => (Some(&facts.runs), None, None),
            Self::Evidence(facts) => (Some(&facts.anchor), facts.control.as_ref(), Some(&facts.checks)),
            Self::Work(_) | Self::Review(_) | Self::AtLimit { .. } | Self::Failed { .. } => {
                (None, None, None)
            }
        };
        let anchor = anchor.into_iter().flatten().map(|run| (RunPurpose::Anchor, run));
        let control = control.map(|control| (RunPurpose::Control, &control.run));
        let checks = checks.into_iter().flatten();
        let checks = checks
            .flat_map(|(name, runs)| runs.iter().map(move |run| (RunPurpose::Check(name.clone()), run)));
        anchor.chain(control).chain(checks).collect()
    }
}
