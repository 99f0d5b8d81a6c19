//! The decision that a task waits for, and the anchor and the result that it is about.

use pintle_evidence::anchor::Anchor;
use pintle_evidence::proof::Proof;
use serde::Serialize;

use super::{ReportBlock, ReportItem, TaskReport};
use crate::contract::DecisionGate;
use crate::task::{ReviewFacts, Task, TaskCandidate, TaskOutcome};

/// Maximum number of lines of an anchor in a report.
const MAX_ANCHOR_LINES: usize = 200;

/// Decision that a task waits for.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct PendingDecision {
    gate: DecisionGate,
    /// Candidate whose result waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate: Option<usize>,
}

impl PendingDecision {
    /// Returns the decision, if the task waits for one.
    pub(super) fn from_task(task: &Task) -> Option<Self> {
        let gate = task.pending().gate?;
        Some(Self { gate, candidate: task.best_candidate().filter(|_| gate == DecisionGate::Result) })
    }

    /// Returns whether it is about the result of a candidate.
    pub(super) fn is_about(self, candidate: usize) -> bool {
        self.candidate == Some(candidate)
    }

    /// Returns the reason why the task waits, as a sentence.
    pub(super) fn describe(self) -> String {
        match (self.gate, self.candidate) {
            (DecisionGate::Result, Some(candidate)) => {
                format!("The task waits for a decision about the result of candidate {candidate}.")
            }
            (DecisionGate::Result, None) => "The task waits for a decision about the result.".to_owned(),
            (DecisionGate::Anchor, _) => "The task waits for a decision about the anchor.".to_owned(),
        }
    }
}

/// Result that reached the goal, or that waits for a decision.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProvedResult<'a> {
    pub(super) proof: &'a Proof,
    pub(super) review: Option<&'a ReviewFacts>,
}

impl<'a> ProvedResult<'a> {
    pub(super) fn from_task(task: &'a Task, decision: Option<PendingDecision>) -> Option<Self> {
        if let Some(TaskOutcome::Done(done)) = task.outcome() {
            return Some(Self { proof: done.proof(), review: done.review() });
        }
        let candidate = task.candidates().get(decision?.candidate?)?;
        Some(Self { proof: candidate.proof()?, review: TaskCandidate::review(candidate) })
    }
}

impl TaskReport<'_> {
    /// Returns the pending decision with the commands that answer it.
    pub(super) fn decision_blocks(&self) -> Vec<ReportBlock> {
        let Some(decision) = self.decision else { return Vec::new() };
        let id = self.id.unwrap_or("ID");
        let mut lines = vec![format!("`pintle task decide {id} approve` continues the task.")];
        if decision.gate == DecisionGate::Result || self.contract.anchor.is_test() {
            lines.push(format!("`pintle task decide {id} refuse --words TEXT` requests changes."));
        }
        lines.push(format!("`pintle task decide {id} refuse` ends the task."));
        if let Some(candidate) = decision.candidate {
            lines
                .push(format!("`pintle task apply {id} --candidate {candidate} --patch` prints the change."));
        }
        let lines = lines.iter().map(|line| ReportItem::from_text(line)).collect();
        vec![
            ReportBlock::Heading(2, "Decision".to_owned()),
            ReportBlock::Text(decision.describe()),
            ReportBlock::List(lines),
        ]
    }

    /// Returns the anchor with its test, unless the task is done: its evidence names the anchor then.
    pub(super) fn anchor_blocks(&self) -> Vec<ReportBlock> {
        let is_done = matches!(self.outcome, Some(TaskOutcome::Done(_)));
        let Some(anchor) = self.anchor.filter(|_| !is_done) else { return Vec::new() };
        let mut blocks =
            vec![ReportBlock::Heading(2, "Anchor".to_owned()), ReportBlock::List(anchor_lines(anchor))];
        let Some(patch) = &self.anchor_patch else { return blocks };
        let shown: Vec<&str> = patch.lines().take(MAX_ANCHOR_LINES).collect();
        blocks.push(ReportBlock::Output(shown.join("\n")));
        let count = patch.lines().count();
        if count > shown.len() {
            let text = format!("The anchor has {count} lines, and {} of them are shown.", shown.len());
            blocks.push(ReportBlock::Text(text));
        }
        blocks
    }
}

fn anchor_lines(anchor: &Anchor) -> Vec<ReportItem> {
    let line = ReportItem::default().code(anchor.command());
    let mut lines = vec![line.text(" fails before the goal is reached, and has to pass after it.")];
    let tests: Vec<String> = anchor.tests().iter().cloned().collect();
    for (title, names) in [("Tests: ", tests.as_slice()), ("Files: ", anchor.files())] {
        if !names.is_empty() {
            lines.push(ReportItem::default().text(title).names(names));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use pintle_agent::SessionId;

    use crate::contract::{AnchorPlan, Contract, DecisionGate, TaskCheck};
    use crate::report::TaskReport;
    use crate::task::{ReviewFacts, StepKind, StepOutput, StepResult, Task, TaskInput, WorkCost};
    use crate::testing::successful_output;

    /// Returns a task that waits at a gate.
    fn waiting(gate: DecisionGate, anchor: AnchorPlan) -> Task {
        let contract = Contract::new("Sums are right.").with_check(TaskCheck::new("tests", "make test"));
        let contract = Contract { gates: vec![gate], anchor, ..contract };
        let mut task = Task::new(contract).unwrap();
        while let Some(step) = task.pending().steps.into_iter().next() {
            let output = match step.id.kind == StepKind::Review {
                true => StepOutput::Review(ReviewFacts::new("r", Vec::new(), "It is small.")),
                false => successful_output(step.id.kind),
            };
            let spent = WorkCost::default();
            task.apply(TaskInput::StepFinished(Box::new(StepResult { step: step.id, output, spent })));
        }
        assert_eq!(task.pending().gate, Some(gate));
        task
    }

    #[test]
    fn a_report_has_what_a_decision_is_about() {
        let id = SessionId::new("t");
        let task = waiting(DecisionGate::Anchor, AnchorPlan::Test);
        let patch = "+++ b/tests/test_new.py\n".to_owned() + &"+line\n".repeat(200);
        let report = TaskReport::from_task(&task).with_id(&id).with_anchor_patch(Some(patch));
        let text = report.to_markdown();
        for part in [
            "## Decision\n\nThe task waits for a decision about the anchor.\n",
            "* `pintle task decide t approve` continues the task.\n",
            "* `pintle task decide t refuse --words TEXT` requests changes.\n",
            "## Anchor\n\n* `make anchor` fails before the goal is reached, and has to pass after it.\n",
            "* Tests: `new`\n* Files: `tests/test_new.py`\n",
            "    +++ b/tests/test_new.py\n    +line\n",
            "The anchor has 201 lines, and 200 of them are shown.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(!text.contains("## Evidence"), "{text}");
        let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(json["decision"], serde_json::json!({"gate": "anchor"}));

        let task = waiting(DecisionGate::Result, AnchorPlan::Test);
        let report = TaskReport::from_task(&task).with_id(&id);
        let text = report.to_markdown();
        for part in [
            "The task waits for a decision about the result of candidate 0.\n",
            "* `pintle task apply t --candidate 0 --patch` prints the change.\n",
            "## Evidence\n\n* Anchor: `make anchor` (`new`) failed three times before, and passes now.\n",
            "## Review\n\nThe reviewer found no fault.\n\n> It is small.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert_eq!(json["decision"], serde_json::json!({"gate": "result", "candidate": 0}));
    }

    #[test]
    fn an_anchor_of_the_contract_is_not_changed_by_a_decision() {
        let anchor = AnchorPlan::Command { command: "make anchor".to_owned(), results: None, report: None };
        let text = TaskReport::from_task(&waiting(DecisionGate::Anchor, anchor)).to_markdown();
        assert!(text.contains("* `pintle task decide ID refuse` ends the task."), "{text}");
        assert!(!text.contains("--words"), "{text}");
    }
}
