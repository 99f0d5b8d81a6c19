//! `shell_stop`: terminates a background command.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::background::BackgroundOutput;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Terminates a background command and its child processes.
    pub struct ShellStop;
}

/// The arguments of `shell_stop`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellStopInput {
    /// The number of the background command.
    #[schemars(description = "")]
    pub id: u64,
}

impl Tool for ShellStop {
    type Input = ShellStopInput;

    tool_properties! {
        name: "shell_stop",
        description: include_str!("../../../prompts/builtin/shell_stop.md"),
        effect: Effect::Execute,
        // Stopping an ended command has no effect.
        repeatable: true,
        kind: "shell",
    }

    async fn call(&self, input: ShellStopInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(stop(input.id, cx).await?.for_model()))
    }
}

/// Terminates a background command. Tools with other names share it.
pub(crate) async fn stop(id: u64, cx: &ToolContext) -> Result<BackgroundOutput, ToolError> {
    let stopped = "the call was stopped before it could end the command";
    cx.until_cancelled(stopped, cx.background.stop(id)).await
}
