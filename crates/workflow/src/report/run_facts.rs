//! The run of a task: its id, start, dates and models.

use std::collections::BTreeSet;

use serde::Serialize;

use super::html::format_duration;
use super::{ReportItem, TaskReport};
use crate::local::RecordedInput;

/// Dates of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RunFacts {
    started_at: String,
    /// Time of the last input. The task has ended then if the report has an outcome.
    last_at: String,
    /// Time between both, with the time in which no process had the task open.
    wall_millis: u64,
}

impl RunFacts {
    /// Returns the facts of these inputs; `None` for a task that has not started.
    pub(super) fn from_inputs(inputs: &[RecordedInput]) -> Option<Self> {
        let (first, last) = (inputs.first()?, inputs.last()?);
        Some(Self {
            started_at: first.at.to_string(),
            last_at: last.at.to_string(),
            wall_millis: u64::try_from(last.at.since(first.at).as_millis()).unwrap_or(u64::MAX),
        })
    }
}

impl TaskReport<'_> {
    /// Returns the id, the start, the dates and the models, as far as they are known.
    pub(super) fn run_lines(&self) -> Vec<ReportItem> {
        let mut lines = Vec::new();
        if let Some(id) = self.id {
            lines.push(ReportItem::default().text("Id: ").code(id));
        }
        if let Some(base) = self.contract.base.as_ref().filter(|_| self.id.is_some()) {
            let line = ReportItem::default().text("Base: commit ").code(&base.commit).text(" of ");
            let line = line.code(&base.repository);
            let line = match &base.directory {
                Some(directory) => line.text(", in ").code(directory),
                None => line,
            };
            let note = if base.has_local_changes { ", with local changes that no branch has" } else { "" };
            lines.push(line.text(note));
        }
        if let Some(run) = &self.run {
            let word = if self.outcome.is_some() { "ended" } else { "last step" };
            let wall = format_duration(run.wall_millis);
            let text = format!("Started {}, {word} {}, {wall} of wall time.", run.started_at, run.last_at);
            lines.push(ReportItem::from_text(&text));
        }
        let plans = self.contract.session_plans();
        let models: BTreeSet<String> = plans.into_iter().filter_map(|plan| plan.model).collect();
        let models: Vec<String> = models.into_iter().collect();
        if self.id.is_some() && !models.is_empty() {
            lines.push(ReportItem::default().text("Models: ").names(&models));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use pintle_agent::{Money, SessionId, Timestamp};

    use crate::contract::{BaseCommit, CandidatePlan, Contract, TaskCheck};
    use crate::local::RecordedInput;
    use crate::report::TaskReport;
    use crate::task::{StepResult, Task, TaskInput, WorkCost};
    use crate::testing::successful_output;

    #[test]
    fn a_report_has_id_start_dates_models_and_the_cost_of_each_step() {
        let plan = CandidatePlan { model: Some("small".to_owned()), ..CandidatePlan::default() };
        let contract = Contract::new("Sums are right.")
            .with_base(BaseCommit::new("/repository", "1a".repeat(20)).with_local_changes(true))
            .with_check(TaskCheck::new("tests", "make test"))
            .with_candidates([plan]);
        let (mut task, mut inputs) = (Task::new(contract).unwrap(), Vec::new());
        while let Some(step) = task.pending().steps.into_iter().next() {
            let spent = WorkCost {
                cost: Money::from_dollars(0.25),
                tokens: 1_000,
                millis: 30_500,
                ..WorkCost::default()
            };
            let result = StepResult { output: successful_output(step.id.kind), step: step.id, spent };
            let input = TaskInput::StepFinished(Box::new(result));
            let seq = inputs.len() as u64 + 1;
            let at = Timestamp::from_millis(1_700_000_000_000 + 60_000 * i64::try_from(seq).unwrap());
            inputs.push(RecordedInput { seq, at, posted: None, by: None, input: input.clone() });
            assert!(task.apply(input));
        }
        let id = SessionId::new("t-1");
        let report = TaskReport::from_task(&task).with_id(&id).with_inputs(&inputs);
        let text = report.to_markdown();
        let wall = format!("{} min 0.0 s of wall time.", inputs.len() - 1);
        for expected in [
            "* Id: `t-1`\n",
            &format!(
                "* Base: commit `{}` of `/repository`, with local changes that no branch has\n",
                "1a".repeat(20)
            ),
            "* Started 2023-11-14T22:14:20.000Z, ended 2023-11-14T22:1",
            &wall,
            "* Models: `small`\n",
            "| work-0-1 | $0.25 | 1000 | 0 min 30.5 s |\n",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let page = report.to_html(&[], &inputs);
        assert!(page.contains("<li>Id: <code>t-1</code></li>") && page.contains("work-0-1"), "{page}");
        let json: serde_json::Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        let wall = 60_000 * (inputs.len() as u64 - 1);
        assert_eq!((&json["id"], &json["run"]["wall_millis"]), (&"t-1".into(), &wall.into()));
        assert_eq!(json["steps"].as_array().map(Vec::len), Some(inputs.len()));
        let bare = TaskReport::from_task(&task).to_markdown();
        assert!(!bare.contains("Models:") && !bare.contains("wall time"), "{bare}");
    }
}
