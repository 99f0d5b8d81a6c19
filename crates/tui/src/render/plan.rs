//! Plan that a model keeps with a tool: its steps and their progress.

use pintle_tools::builtin::{PlanStatus, UpdatePlanInput};
use pintle_tools::native::anthropic::{TodoStatus, TodoWriteInput};
use serde_json::Value;

use super::line::{Face, StyledLine};
use super::summary;

/// Maximum number of steps shown. The tools accept fewer.
const MAX_STEPS: usize = 100;

/// Prefix of a step in the live region.
const INDENT: &str = "  ";

/// Newest plan of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    /// Text on one line.
    text: String,
    status: PlanStatus,
}

impl Plan {
    /// Returns the plan in the arguments of a call, if its tool sets a plan and the plan has steps.
    pub(super) fn from_arguments(tool_name: &str, arguments: &Value) -> Option<Self> {
        let steps: Vec<(String, PlanStatus)> = match tool_name {
            "update_plan" => {
                let input: UpdatePlanInput = serde_json::from_value(arguments.clone()).ok()?;
                input.plan.into_iter().map(|step| (step.step, step.status)).collect()
            }
            "TodoWrite" => {
                let input: TodoWriteInput = serde_json::from_value(arguments.clone()).ok()?;
                input.todos.into_iter().map(|todo| (todo.content, status(todo.status))).collect()
            }
            _ => return None,
        };
        let one_line = |text: &str| summary::one_line(text, summary::MAX_CHARS);
        let steps = steps.iter().take(MAX_STEPS);
        let steps: Vec<Step> =
            steps.map(|(text, status)| Step { text: one_line(text), status: *status }).collect();
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// Returns whether all steps are done.
    pub(super) fn is_complete(&self) -> bool {
        self.steps.iter().all(|step| step.status == PlanStatus::Completed)
    }

    /// Returns the number of completed steps, and the step in progress.
    pub(super) fn summary(&self) -> String {
        let done = self.steps.iter().filter(|step| step.status == PlanStatus::Completed).count();
        let current = self.steps.iter().find(|step| step.status == PlanStatus::InProgress);
        let current = current.map(|step| format!(": {}", step.text)).unwrap_or_default();
        format!("{done} of {} done{current}", self.steps.len())
    }

    /// Returns a line for each step.
    pub(super) fn lines(&self) -> Vec<StyledLine> {
        self.steps.iter().map(Step::line).collect()
    }

    /// Returns at most this many lines, for the steps around the next step.
    pub(super) fn lines_around_next(&self, most: usize) -> Vec<StyledLine> {
        let line = |step: &Step| {
            let mut line = StyledLine::plain(INDENT);
            line.append(step.line());
            line
        };
        if self.steps.len() <= most {
            return self.steps.iter().map(line).collect();
        }
        let Some(shown) = most.checked_sub(1) else { return Vec::new() };
        let next = self.steps.iter().position(|step| step.status != PlanStatus::Completed);
        // The step before the next one shows the progress.
        let first = next.unwrap_or(self.steps.len()).saturating_sub(1).min(self.steps.len() - shown);
        let mut lines: Vec<StyledLine> = self.steps.iter().skip(first).take(shown).map(line).collect();
        let more = summary::plural((self.steps.len() - shown) as u64, "more step");
        lines.push(StyledLine::new(format!("{INDENT}… {more}"), Face::DIM));
        lines
    }
}

impl Step {
    fn line(&self) -> StyledLine {
        let (mark, mark_face, face) = match self.status {
            PlanStatus::Completed => ("✓", Face::SUCCESS, Face::DIM),
            PlanStatus::InProgress => ("▸", Face::LOCATION, Face::BOLD),
            PlanStatus::Pending => ("○", Face::DIM, Face::PLAIN),
        };
        StyledLine::new(mark, mark_face).and(" ", Face::PLAIN).and(self.text.as_str(), face)
    }
}

fn status(status: TodoStatus) -> PlanStatus {
    match status {
        TodoStatus::Pending => PlanStatus::Pending,
        TodoStatus::InProgress => PlanStatus::InProgress,
        TodoStatus::Completed => PlanStatus::Completed,
    }
}

/// Returns the subject of a call: the progress of its plan, or a summary of its arguments.
pub(super) fn subject(tool_name: &str, arguments: &Value) -> String {
    Plan::from_arguments(tool_name, arguments)
        .map_or_else(|| summary::arguments(arguments), |plan| plan.summary())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns a plan of so many steps with the first ones done and the next one in progress.
    fn plan(steps: usize, done: usize) -> Plan {
        let status = |index: usize| match index {
            _ if index < done => "completed",
            _ if index == done => "in_progress",
            _ => "pending",
        };
        let steps: Vec<Value> =
            (0..steps).map(|index| json!({"step": format!("s{index}"), "status": status(index)})).collect();
        Plan::from_arguments("update_plan", &json!({ "plan": steps })).unwrap()
    }

    fn texts(lines: &[StyledLine]) -> Vec<String> {
        lines.iter().map(StyledLine::text).collect()
    }

    #[test]
    fn plans_of_both_tools_are_understood() {
        let steps = json!({"plan": [{"step": "a\nb", "status": "completed"}, {"step": "c", "status": "in_progress"}]});
        let todos = json!({"todos": [
            {"content": "a\nb", "status": "completed", "activeForm": "doing a"},
            {"content": "c", "status": "in_progress", "activeForm": "doing c"},
        ]});
        let plans = [("update_plan", &steps), ("TodoWrite", &todos)];
        for (tool, arguments) in plans {
            let plan = Plan::from_arguments(tool, arguments).unwrap();
            assert_eq!((plan.summary().as_str(), plan.is_complete()), ("1 of 2 done: c", false));
            assert_eq!(texts(&plan.lines()), ["✓ a…", "▸ c"]);
            assert_eq!(subject(tool, arguments), "1 of 2 done: c");
        }
        assert!(
            Plan::from_arguments("shell", &steps).is_none()
                && Plan::from_arguments("TodoWrite", &steps).is_none()
        );
        assert!(Plan::from_arguments("update_plan", &json!({"plan": []})).is_none());
        assert_eq!(subject("shell", &json!({"command": "make"})), "make");
    }

    #[test]
    fn steps_around_the_next_one_are_kept() {
        let cases: [(usize, usize, usize, &[&str]); 6] = [
            (3, 1, 3, &["  ✓ s0", "  ▸ s1", "  ○ s2"]),
            (9, 0, 3, &["  ▸ s0", "  ○ s1", "  … 7 more steps"]),
            (9, 4, 4, &["  ✓ s3", "  ▸ s4", "  ○ s5", "  … 6 more steps"]),
            (9, 8, 3, &["  ✓ s7", "  ▸ s8", "  … 7 more steps"]),
            (9, 9, 2, &["  ✓ s8", "  … 8 more steps"]),
            (9, 4, 0, &[]),
        ];
        for (steps, done, most, expected) in cases {
            let shown = texts(&plan(steps, done).lines_around_next(most));
            assert_eq!(shown, expected, "{done} of {steps} in {most}");
        }
        assert!(plan(2, 2).is_complete());
    }
}
