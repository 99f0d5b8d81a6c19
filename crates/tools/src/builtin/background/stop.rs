//! `shell_stop`: terminates a background command.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::tool::{Effect, Tool, ToolOutput};

/// Terminates a background command and its child processes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShellStop(());

/// The arguments of `shell_stop`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellStopInput {
    /// The number of the background command.
    pub id: u64,
}

impl ShellStop {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ShellStop {
    type Input = ShellStopInput;

    fn name(&self) -> &str {
        "shell_stop"
    }

    fn description(&self) -> &str {
        "Ends a background command with everything that it started: first with a request to terminate, two seconds \
         later by force. Returns the output that was not read yet."
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    /// Stopping an ended command does nothing.
    fn repeatable(&self) -> bool {
        true
    }

    fn kind(&self) -> &str {
        "shell"
    }

    async fn call(&self, input: ShellStopInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "the call was stopped before it could end the command";
                Err(ToolError::new(ToolErrorKind::Cancelled, message))
            }
            output = cx.background.stop(input.id) => Ok(ToolOutput::new(output?.for_model())),
        }
    }
}
