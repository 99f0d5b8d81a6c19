//! The plan of a task in its report.

use pintle_agent::Count;
use serde::Serialize;

use super::{ReportBlock, ReportItem, ReportTable, TaskReport};
use crate::task::{PlanRound, StepCandidate, StepSize, Task, TaskOutcome, WorkCost};

/// The plan of a task.
#[derive(Clone, Debug, Serialize)]
pub(super) struct PlanReport<'a> {
    /// Maximum number of its steps.
    rounds: u32,
    steps: Vec<StepReport<'a>>,
    /// Goals of the remaining steps.
    remaining: &'a [String],
    /// Costs of the planner.
    spent: &'a WorkCost,
}

#[derive(Clone, Debug, Serialize)]
struct StepReport<'a> {
    goal: &'a str,
    size: StepSize,
    /// State, from [`PlanRound::state`].
    state: String,
    candidates: usize,
    /// Findings against its last candidate.
    findings: Vec<String>,
    spent: &'a WorkCost,
}

impl<'a> PlanReport<'a> {
    /// Creates a report of the plan, if the task is carried out in steps.
    pub(super) fn from_task(task: &'a Task) -> Option<Self> {
        let plan = task.plan().filter(|plan| !plan.is_skipped())?;
        let steps = plan.rounds().iter().map(StepReport::from_round).collect();
        let (rounds, remaining) = (task.contract().plan_rounds(), plan.backlog());
        Some(Self { rounds, steps, remaining, spent: plan.spent() })
    }

    pub(super) fn blocks(&self) -> Vec<ReportBlock> {
        let rows = (1..).zip(&self.steps).map(|(number, step): (usize, _)| step.row(number));
        let rows = rows.chain([vec![
            "planner".to_owned(),
            "–".to_owned(),
            "–".to_owned(),
            "–".to_owned(),
            self.spent.dollars(),
        ]]);
        let head = &["step", "goal", "result", "candidates", "cost"];
        let table =
            ReportTable { name: "Plan", head, rows: rows.collect(), has_names: true, has_numbers: false };
        let mut blocks = vec![ReportBlock::Heading(2, "Plan".to_owned()), ReportBlock::Table(table)];
        for (number, step) in (1..).zip(&self.steps).filter(|(_, step)| !step.findings.is_empty()) {
            let number: usize = number;
            let findings = step.findings.iter().map(|finding| ReportItem::from_text(finding));
            let heading = ReportBlock::Heading(3, format!("Step {number}"));
            blocks.extend([heading, ReportBlock::List(findings.collect())]);
        }
        blocks.extend(self.remaining_blocks());
        blocks
    }

    /// Returns the steps with their states, and the remaining steps, without costs.
    pub(super) fn progress_blocks(&self) -> Vec<ReportBlock> {
        let steps = self.steps.iter().map(|step| format!("{} ({})", step.goal.trim(), step.state));
        let steps = steps.map(|step| ReportItem::from_text(&step)).collect();
        let mut blocks = vec![ReportBlock::Heading(2, "Steps".to_owned()), ReportBlock::Numbered(steps)];
        blocks.extend(self.remaining_blocks());
        blocks
    }

    fn remaining_blocks(&self) -> Vec<ReportBlock> {
        if self.remaining.is_empty() {
            return Vec::new();
        }
        let limit = Count(u64::from(self.rounds), "step");
        let text = format!("Remaining steps. The limit of the plan is {limit}.");
        let goals = self.remaining.iter().map(|goal| ReportItem::from_text(goal)).collect();
        vec![ReportBlock::Text(text), ReportBlock::List(goals)]
    }
}

impl TaskReport<'_> {
    /// Returns the command for the steps that hold, if the task has ended without its goal.
    pub(super) fn plan_hint(&self) -> Option<ReportBlock> {
        let is_open_or_done = matches!(self.outcome, None | Some(TaskOutcome::Done(_)));
        let has_change = self.candidates.first().is_some_and(|first| first.change.is_some());
        if is_open_or_done || !has_change || self.plan.is_none() {
            return None;
        }
        let id = self.id.unwrap_or("ID");
        let text =
            format!("`pintle task apply {id} --candidate 0 --branch NAME` commits the steps that hold.");
        Some(ReportBlock::Text(text))
    }
}

impl<'a> StepReport<'a> {
    fn from_round(round: &'a PlanRound) -> Self {
        let verdict = round.candidates().last().and_then(StepCandidate::verdict);
        let findings = verdict.and_then(|verdict| verdict.as_ref().err());
        Self {
            goal: &round.step().goal,
            size: round.step().size,
            state: round.state(),
            candidates: round.candidates().len(),
            findings: findings.into_iter().flatten().map(ToString::to_string).collect(),
            spent: round.spent(),
        }
    }

    fn row(&self, number: usize) -> Vec<String> {
        let (goal, candidates) = (self.goal.trim().to_owned(), self.candidates.to_string());
        vec![number.to_string(), goal, self.state.clone(), candidates, self.spent.dollars()]
    }
}

#[cfg(test)]
mod tests {
    use pintle_agent::{Money, Timestamp};

    use crate::contract::{Contract, PlanSettings, TaskCheck};
    use crate::local::RecordedInput;
    use crate::report::TaskReport;
    use crate::task::{PlanFacts, PlannedStep, StepKind, StepOutput, StepResult, Task, TaskInput, WorkCost};
    use crate::testing::successful_output;

    /// Returns a report of a task whose only step fails, and whose planner names further steps, in all formats.
    fn report(rounds: u32) -> (String, serde_json::Value, String) {
        let contract = Contract::new("Rename it.").with_check(TaskCheck::new("tests", "make test"));
        let mut task = Task::new(contract.with_plan(PlanSettings::at_most(rounds))).unwrap();
        let mut inputs = Vec::new();
        for _ in 0..20 {
            let Some(step) = task.pending().steps.into_iter().next() else { break };
            let output = match (step.id.kind, step.id.round) {
                (StepKind::Plan, _) => StepOutput::Plan(PlanFacts {
                    next: Some(PlannedStep::new("Rename | the <function>.")),
                    remaining: vec!["Rename its callers.".to_owned()],
                    ..PlanFacts::finished("p")
                }),
                (StepKind::Work, _) => StepOutput::failed("the disk is full"),
                (kind, _) => successful_output(kind),
            };
            let spent = WorkCost { cost: Money::from_dollars(0.25), ..WorkCost::default() };
            let result = StepResult { step: step.id, output, spent };
            let input = TaskInput::StepFinished(Box::new(result));
            let (seq, at) = (inputs.len() as u64 + 1, Timestamp::from_millis(0));
            inputs.push(RecordedInput { seq, at, posted: None, by: None, input: input.clone() });
            task.apply(input);
        }
        let report = TaskReport::from_task(&task);
        let json = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        (report.to_markdown(), json, report.to_html(&[], &inputs))
    }

    #[test]
    fn the_report_has_the_steps_and_what_remains() {
        let (text, json, page) = report(1);
        for part in [
            "# Blocked\n\nThe plan has reached its limit of 1 step. Still planned: 1 step.",
            "## Plan\n",
            "| 1 | Rename \\| the &lt;function>. | failed | 2 | $0.50 |\n| planner | – | – | – | $0.25 |",
            "### Step 1\n\n* work: work failed: the disk is full\n",
            "Remaining steps. The limit of the plan is 1 step.\n\n* Rename its callers.\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(json["plan"]["steps"][0]["state"], "failed");
        assert_eq!(json["plan"]["remaining"][0], "Rename its callers.");
        // Both tries of the step are the work of candidate 0, like the plan.
        assert!(text.contains("| $0.75 |\n"), "{text}");
        assert!(page.contains("candidate 0, which was not chosen</th><td>$0.75</td>"), "{page}");
        assert!(!page.contains("candidate 1, which"), "{page}");
        assert!(page.contains("<td>step 1, candidate 1</td>"), "{page}");
        let (text, json, _) = report(0);
        assert!(!text.contains("Plan") && json.get("plan").is_none(), "{text}");
    }
}
