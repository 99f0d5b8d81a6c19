//! `shell_read`: reads the output of a background command.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::background::BackgroundOutput;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Reads the output of a background command since the last read.
    ///
    /// It waits no longer than the longest time-out of a command
    /// ([`CommandTimeouts::max`](crate::CommandTimeouts::max)).
    pub struct ShellRead;
}

/// The arguments of `shell_read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellReadInput {
    /// The number of the background command.
    #[schemars(description = "")]
    pub id: u64,
    /// Milliseconds. Default: 0.
    pub wait_ms: Option<u64>,
}

impl Tool for ShellRead {
    type Input = ShellReadInput;

    tool_properties! {
        name: "shell_read",
        description: include_str!("../../../prompts/builtin/shell_read.md"),
        effect: Effect::Read,
        // Output can be read only once.
        repeatable: false,
        kind: "shell",
    }

    async fn call(&self, input: ShellReadInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let wait = Duration::from_millis(input.wait_ms.unwrap_or(0)).min(cx.timeouts.max);
        let output = follow(input.id, wait, cx).await?;
        Ok(ToolOutput::new(output.for_model()).with_exit_code(output.status.state.exit_code()))
    }
}

/// Waits for output and the end of a background command. Tools with other names share it.
pub(crate) async fn follow(id: u64, wait: Duration, cx: &ToolContext) -> Result<BackgroundOutput, ToolError> {
    let stopped = "the waiting was stopped; the command runs on, and its output can still be read";
    cx.until_cancelled(stopped, cx.background.follow(id, wait, cx.on_output.clone())).await
}
