//! `TaskStop`: terminates a background command.

use schemars::JsonSchema;
use serde::Deserialize;

use super::task_id::parse_task_id;
use crate::builtin::{BackgroundState, stop};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Terminates a command that [`Bash`](super::Bash) started in the background, and its child processes.
    pub struct TaskStop;
}

/// The arguments of `TaskStop`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TaskStopInput {
    /// The ID that `Bash` gave.
    #[schemars(description = "")]
    pub task_id: String,
}

impl Tool for TaskStop {
    type Input = TaskStopInput;

    tool_properties! {
        name: "TaskStop",
        description: include_str!("../../../prompts/anthropic/task_stop.md"),
        effect: Effect::Execute,
        // Stopping an ended command has no effect.
        repeatable: true,
        kind: ToolKind::Shell.as_str(),
    }

    fn aliases(&self) -> &[(&'static str, &'static str)] {
        // The former name of the argument.
        &[("shell_id", "task_id")]
    }

    async fn call(&self, input: TaskStopInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let id = parse_task_id(&input.task_id)?;
        let output = stop(id, cx).await?;
        let state = &output.status.state;
        let report = if *state == BackgroundState::Stopped {
            format!("Task {id} was stopped: {}\n", output.status.command)
        } else {
            format!("Task {id} had ended before: it {state}\n")
        };
        Ok(ToolOutput::new(output.text).with_preface(report))
    }
}
