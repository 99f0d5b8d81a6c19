//! The text of a pull request with the change of a candidate.

use super::plan::PlanReport;
use super::{Finding, ReportBlock, ReportItem, TaskReport};
use crate::task::TaskOutcome;

impl TaskReport<'_> {
    /// Returns whether the goal was reached with the change of this candidate.
    #[must_use]
    pub fn is_chosen(&self, candidate: usize) -> bool {
        matches!(self.outcome, Some(TaskOutcome::Done(done)) if done.candidate() == candidate)
    }

    /// Returns the goal with the evidence and the review of a candidate's change, as the text of a pull request in Markdown. If
    /// the goal was not reached with this change, returns the missing evidence. The text has no costs and no paths of this machine.
    #[must_use]
    pub fn to_pull_request(&self, candidate: usize) -> String {
        let mut blocks = self.goal_blocks();
        blocks.extend(match self.is_chosen(candidate) {
            true => self.evidence_blocks(),
            false => self.unfinished_blocks(candidate),
        });
        blocks.iter().map(ReportBlock::to_markdown).collect::<Vec<_>>().join("\n")
    }

    fn unfinished_blocks(&self, candidate: usize) -> Vec<ReportBlock> {
        let heading = |title: &str| ReportBlock::Heading(2, title.to_owned());
        let state = match self.outcome {
            Some(TaskOutcome::Done(_)) => format!(
                "{} This is the change of candidate {candidate}, which was not chosen.",
                self.describe_outcome()
            ),
            // The reason may have paths of this machine.
            Some(TaskOutcome::Failed { step, .. }) => {
                format!("The goal is not reached: the step {step} failed.")
            }
            Some(_) | None => format!("The goal is not reached. {}", self.describe_outcome()),
        };
        let mut blocks = vec![heading("State"), ReportBlock::Text(state)];
        if self.decision.is_some_and(|decision| decision.is_about(candidate)) {
            blocks.extend(self.evidence_blocks());
            return blocks;
        }
        blocks.extend(self.plan.iter().filter(|_| candidate == 0).flat_map(PlanReport::progress_blocks));
        let newest = self.candidates.get(candidate).and_then(|candidate| candidate.attempts.last());
        let findings =
            newest.map(|newest| newest.findings).unwrap_or_default().iter().map(Finding::to_string);
        let sent_back = newest.map(|newest| newest.sent_back).unwrap_or_default().iter().cloned();
        let missing: Vec<ReportItem> =
            findings.chain(sent_back).map(|line| ReportItem::from_text(&line)).collect();
        if !missing.is_empty() {
            blocks.extend([heading("Missing evidence"), ReportBlock::List(missing)]);
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use crate::contract::{CandidatePlan, Contract, DecisionGate, PlanSettings, TaskCheck};
    use crate::report::TaskReport;
    use crate::task::{
        PlanFacts, PlannedStep, StepKind, StepOutput, StepResult, Task, TaskInput, TaskStep, WorkCost,
    };
    use crate::testing::{failing_output, successful_output};

    fn contract() -> Contract {
        Contract::new("Sums are right.").with_check(TaskCheck::new("tests", "make test"))
    }

    fn played(contract: Contract, output: impl Fn(&TaskStep) -> StepOutput) -> Task {
        let mut task = Task::new(contract).unwrap();
        for _ in 0..30 {
            let Some(step) = task.pending().steps.into_iter().next() else { break };
            let (output, spent) = (output(&step), WorkCost::default());
            task.apply(TaskInput::StepFinished(Box::new(StepResult { step: step.id, output, spent })));
        }
        task
    }

    #[test]
    fn a_pull_request_has_what_proves_its_change_or_what_is_missing() {
        let two = contract().with_candidates(vec![CandidatePlan::default(); 2]);
        let done = played(two, |step| match (step.id.kind, step.id.candidate) {
            (StepKind::Evidence, Some(0)) => failing_output(),
            (kind, _) => successful_output(kind),
        });
        let asked = Contract { gates: vec![DecisionGate::Result], ..contract() };
        let asked = played(asked, |step| successful_output(step.id.kind));
        let failed = played(contract(), |step| match step.id.kind == StepKind::Baseline {
            true => StepOutput::failed("/srv/x is missing"),
            false => successful_output(step.id.kind),
        });
        let plan = contract().with_plan(PlanSettings::at_most(1));
        let planned = played(plan, |step| match step.id.kind {
            StepKind::Plan => StepOutput::Plan(PlanFacts {
                next: Some(PlannedStep::new("Rename it.")),
                remaining: vec!["Rename its callers.".to_owned()],
                ..PlanFacts::finished("p")
            }),
            StepKind::Work => StepOutput::failed("the disk is full"),
            StepKind::Baseline | StepKind::Anchor | StepKind::Evidence | StepKind::Review => {
                successful_output(step.id.kind)
            }
        });
        for (task, candidate, is_chosen, parts) in [
            (&done, 1, true, &["## Evidence\n", "## Review\n"][..]),
            (
                &done,
                0,
                false,
                &["which was not chosen.\n", "## Missing evidence\n\n* check tests: it exited with 1\n"],
            ),
            (
                &asked,
                0,
                false,
                &["## State\n\nThe goal is not reached. The task waits for a", "## Evidence\n"],
            ),
            (&failed, 0, false, &["The goal is not reached: the step baseline-1 failed.\n"]),
            (
                &planned,
                0,
                false,
                &[
                    "The goal is not reached. The plan has",
                    "1. Rename it. (failed)\n",
                    "* Rename its callers.\n",
                ],
            ),
        ] {
            let report = TaskReport::from_task(task);
            let text = report.to_pull_request(candidate);
            assert_eq!(report.is_chosen(candidate), is_chosen);
            for part in [&["## Goal\n\n> Sums are right.\n"][..], parts].concat() {
                assert!(text.contains(part), "{part}: {text}");
            }
            assert_eq!(text.contains("## State"), !is_chosen, "{text}");
            assert!(!text.contains("/srv/") && !text.contains('$'), "{text}");
        }
    }
}
