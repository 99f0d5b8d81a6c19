//! `update_plan`: records the steps of a task, for users who follow along.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// Maximum number of steps in a plan.
const MAX_STEPS: usize = 50;

stateless_tool! {
    /// Accepts the model's plan. Each call contains the complete plan and replaces the previous one.
    ///
    /// The tool does not store the plan. An application that shows plans reads the arguments of the call from the
    /// events.
    pub struct UpdatePlan;
}

/// The arguments of `update_plan`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct UpdatePlanInput {
    /// Every step, in order, those that are done included.
    #[schemars(description = "")]
    pub plan: Vec<PlanStep>,
    /// Why the plan has changed.
    pub explanation: Option<String>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(description = "")]
#[non_exhaustive]
pub struct PlanStep {
    /// A few words.
    pub step: String,
    /// How far it is: `pending`, `in_progress` or `completed`.
    #[schemars(description = "")]
    pub status: PlanStatus,
}

/// The status of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline, description = "")]
#[expect(missing_docs, reason = "doc comments would turn the names in the schema into objects")]
pub enum PlanStatus {
    Pending,
    InProgress,
    Completed,
}

impl Tool for UpdatePlan {
    type Input = UpdatePlanInput;

    tool_properties! {
        name: "update_plan",
        description: include_str!("../../prompts/builtin/update_plan.md"),
        // A plan has no side effect.
        effect: Effect::Read,
    }

    async fn call(&self, input: UpdatePlanInput, _cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let invalid = |message: String| Err(ToolError::invalid_arguments(message));
        let steps = input.plan.len();
        if steps == 0 {
            return invalid(
                "plan has no steps; give every step of the task, those that are done included".into(),
            );
        }
        if steps > MAX_STEPS {
            return invalid(format!(
                "plan has {steps} steps; at most {MAX_STEPS} are taken: join small ones"
            ));
        }
        if let Some(at) = input.plan.iter().position(|step| step.step.trim().is_empty()) {
            return invalid(format!("step {} of the plan has no text", at + 1));
        }
        let count = |status| input.plan.iter().filter(|step| step.status == status).count();
        let done = count(PlanStatus::Completed);
        let mut report = format!("Plan updated: {done} of {steps} steps are completed.");
        let at_work = count(PlanStatus::InProgress);
        if at_work > 1 {
            report.push_str(&format!(" {at_work} steps are in progress; keep it to one."));
        }
        Ok(ToolOutput::new(report))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::tests::harness::Harness;

    #[test]
    fn a_status_is_one_of_three_names() {
        let definition = crate::tool::DynTool::definition(&UpdatePlan::new()).unwrap();
        let step = &definition.parameters["properties"]["plan"]["items"]["properties"];
        assert_eq!(step["status"]["enum"], json!(["pending", "in_progress", "completed"]), "{step}");
    }

    fn plan(steps: &[(&str, &str)]) -> String {
        let steps: Vec<Value> =
            steps.iter().map(|(step, status)| json!({"step": step, "status": status})).collect();
        json!({"plan": steps}).to_string()
    }

    #[tokio::test]
    async fn a_plan_is_accepted_and_counted() {
        let harness = Harness::new();
        let cases = [
            (
                plan(&[("a", "completed"), ("b", "in_progress"), ("c", "pending")]),
                "1 of 3 steps are completed.",
            ),
            (
                plan(&[("a", "in_progress"), ("b", "in_progress")]),
                "0 of 2 steps are completed. 2 steps are in progress; keep it to one.",
            ),
        ];
        for (arguments, expected) in cases {
            assert_eq!(
                harness.call(UpdatePlan::new(), &arguments).await,
                format!("ok: Plan updated: {expected}")
            );
        }
    }

    #[tokio::test]
    async fn an_empty_or_oversized_plan_is_refused() {
        let harness = Harness::new();
        let long = vec![("a", "pending"); MAX_STEPS + 1];
        let cases = [
            (plan(&[]), "plan has no steps; give every step of the task, those that are done included"),
            (plan(&[("a", "pending"), (" ", "pending")]), "step 2 of the plan has no text"),
            (plan(&long), "plan has 51 steps; at most 50 are taken: join small ones"),
        ];
        for (arguments, expected) in cases {
            let answer = harness.call(UpdatePlan::new(), &arguments).await;
            assert_eq!(answer, format!("error: Tool error (update_plan): {expected}"));
        }
    }
}
