//! `shell_read`: reads the output of a background command.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::{ToolError, ToolErrorKind};
use crate::tool::{Effect, Tool, ToolOutput};

/// Reads the output of a background command since the last read.
///
/// It waits at most for the longest time-out of a command ([`CommandTimeouts::max`](crate::CommandTimeouts::max)).
#[derive(Clone, Copy, Debug, Default)]
pub struct ShellRead(());

/// The arguments of `shell_read`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellReadInput {
    /// The number of the background command.
    pub id: u64,
    /// How long to wait for the end of the command, in milliseconds. Default: 0.
    pub wait_ms: Option<u64>,
}

impl ShellRead {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ShellRead {
    type Input = ShellReadInput;

    fn name(&self) -> &str {
        "shell_read"
    }

    fn description(&self) -> &str {
        "Returns what a background command has written since it was last read, and whether it still runs. With \
         wait_ms it first waits until the command ends or the time has passed: wait once rather than ask often."
    }

    fn effect(&self) -> Effect {
        Effect::Read
    }

    /// Output can be read only once.
    fn repeatable(&self) -> bool {
        false
    }

    fn kind(&self) -> &str {
        "shell"
    }

    async fn call(&self, input: ShellReadInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let wait = Duration::from_millis(input.wait_ms.unwrap_or(0)).min(cx.timeouts.max);
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "the waiting was stopped; the command runs on, and its output can still be read";
                Err(ToolError::new(ToolErrorKind::Cancelled, message))
            }
            output = cx.background.follow(input.id, wait, cx.on_output.clone()) => {
                let output = output?;
                Ok(ToolOutput::new(output.for_model()).with_exit_code(output.status.state.exit_code()))
            }
        }
    }
}
