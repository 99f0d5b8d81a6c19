//! `shell_start`: starts a command in the background.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// The time to wait for the first output or an immediate failure.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The error of a call that was cancelled before its command started.
pub(crate) const NOT_STARTED: &str = "the command was not started: the call was stopped before";

stateless_tool! {
    /// Starts a command in the background, in the [`BackgroundCommands`](crate::builtin::BackgroundCommands) of the
    /// call.
    ///
    /// The result contains its id, and its output and state after a quarter of a second.
    pub struct ShellStart;
}

/// The arguments of `shell_start`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellStartInput {
    /// The command line to run.
    #[schemars(description = "")]
    pub command: String,
    /// What the command does, in a few words, for people who follow along.
    #[schemars(description = "")]
    pub description: Option<String>,
}

impl Tool for ShellStart {
    type Input = ShellStartInput;

    tool_properties! {
        name: "shell_start",
        description: include_str!("../../../prompts/builtin/shell_start.md"),
        effect: Effect::Execute,
        kind: "shell",
    }

    async fn call(&self, input: ShellStartInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if input.command.trim().is_empty() {
            return Err(ToolError::invalid_arguments("command is empty, so there is nothing to start"));
        }
        let starting = cx.background.start(cx.env.as_ref(), &input.command);
        let id = cx.until_cancelled(NOT_STARTED, starting).await?;
        let output = tokio::select! {
            biased;
            // The command was started, and the model must know its id.
            () = cx.cancel.cancelled() => cx.background.read(id, Duration::ZERO).await?,
            output = cx.background.read(id, FIRST_WAIT) => output?,
        };
        let text = format!("Started background command {id}.\n{}", output.for_model());
        Ok(ToolOutput::new(text).with_exit_code(output.status.state.exit_code()))
    }
}
