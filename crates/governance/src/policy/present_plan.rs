//! `present_plan`: the plan of a session in mode plan, whose acceptance changes the mode.

use pintle_agent::Principal;
use pintle_tools::{Effect, Tool, ToolContext, ToolError, ToolOutput, tool_properties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Policy;
use crate::mode::Mode;

/// Maximum size of a plan, in bytes. A user reads all of it.
const MAX_PLAN: usize = 32 * 1024;

/// Presents the plan of a session in mode [`Plan`](Mode::Plan).
///
/// The session's [`PolicyGate`](crate::PolicyGate) asks about each call in that mode, regardless of rules and hooks.
/// Approving the call accepts the plan. The call then changes the mode of the policy, and the record names the approver.
/// A denial leaves the mode unchanged, and the model reads its reason.
///
/// Subagents share the policy. A plan that a subagent presents changes the mode of all.
#[derive(Clone, Debug)]
pub struct PresentPlan {
    policy: Policy,
}

/// The arguments of `present_plan`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct PresentPlanInput {
    /// The complete plan, in Markdown: what is changed in which files, in which order, and how it is verified. At most 32
    /// KiB.
    pub plan: String,
}

impl PresentPlan {
    /// Name of the tool.
    pub const NAME: &'static str = "present_plan";

    /// Instructions for a session that starts in mode plan with this tool.
    pub const INSTRUCTIONS: &'static str = include_str!("../../prompts/plan.md").trim_ascii_end();

    /// Instructions for a session in mode plan without a user who can accept the plan.
    pub const INSTRUCTIONS_WITHOUT_A_PERSON: &'static str =
        include_str!("../../prompts/plan_without_a_person.md").trim_ascii_end();

    /// Creates the tool. `after` is the mode that follows an accepted plan; [`Policy::set_after_plan`] changes it later.
    #[must_use]
    pub fn new(policy: Policy, after: Mode) -> Self {
        policy.set_after_plan(after);
        Self { policy }
    }
}

impl Tool for PresentPlan {
    type Input = PresentPlanInput;

    tool_properties! {
        name: Self::NAME,
        description: include_str!("../../prompts/present_plan.md"),
        // Only the mode changes, and a second call detects the change.
        effect: Effect::Read,
    }

    fn check(&self, input: &PresentPlanInput) -> Result<(), ToolError> {
        if input.plan.trim().is_empty() {
            return Err(ToolError::invalid_arguments("plan is empty; give the complete plan, in Markdown"));
        }
        if input.plan.len() > MAX_PLAN {
            let found = input.plan.len();
            return Err(ToolError::invalid_arguments(format!(
                "plan has {found} bytes; at most {MAX_PLAN} are taken: leave details out"
            )));
        }
        Ok(())
    }

    async fn call(&self, _input: PresentPlanInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mode = self.policy.mode();
        if mode != Mode::Plan {
            return Ok(ToolOutput::new(format!(
                "No plan has to be accepted: the session is in mode {mode}. {}",
                what_is_allowed(mode, cx)
            )));
        }
        let after = self.policy.after_plan();
        let by = cx.approved_by.as_deref().map(Principal::new);
        self.policy.set_mode_by(after, by).await.map_err(|error| {
            ToolError::failed(format!("the mode is still {mode}: {error}")).with_source(error)
        })?;
        let allowed = what_is_allowed(after, cx);
        Ok(ToolOutput::new(format!("The plan was accepted. The session is in mode {after} now. {allowed}")))
    }
}

/// Describes the permissions of a mode to a model whose prompt may describe another mode.
fn what_is_allowed(mode: Mode, cx: &ToolContext) -> String {
    let calls = match mode {
        Mode::Plan => "Files are not changed, and commands cannot change anything.",
        Mode::Ask => "The user is asked about each change of a file and each command.",
        Mode::Edit => "Files in the workspace may be changed; the user is asked about commands.",
        Mode::Auto => "Files may be changed, and commands run.",
    };
    match cx.env.command_limits() {
        Some(limits) => format!("{calls} About commands: {limits}"),
        None => calls.to_owned(),
    }
}

#[cfg(test)]
mod tests;
