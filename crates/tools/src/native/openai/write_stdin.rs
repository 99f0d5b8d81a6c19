//! `write_stdin`: writes to a running command and reads its output.

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;

use super::exec_command::{TRUNCATION, output_of, result_of, unless_cancelled};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::number::{count, milliseconds};
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// The default time to wait after writing.
const WRITE_WAIT: Duration = Duration::from_millis(250);

/// The default time to wait when only reading.
const POLL_WAIT: Duration = Duration::from_secs(5);

/// The character that a terminal sends for Ctrl-C.
const INTERRUPT: &str = "\u{3}";

stateless_tool! {
    /// Writes to a command that [`ExecCommand`](super::ExecCommand) started, and returns its new output.
    ///
    /// Commands have no terminal, so the tool itself handles Ctrl-C (U+0003): it terminates the command.
    pub struct WriteStdin;
}

/// The arguments of `write_stdin`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct WriteStdinInput {
    /// The session ID that `exec_command` gave.
    #[schemars(description = "")]
    pub session_id: f64,
    /// `\u0003` alone ends the command.
    pub chars: Option<String>,
    /// Milliseconds to wait for output. Default: 250 after typing, else 5000.
    pub yield_time_ms: Option<f64>,
    /// Default and maximum: 10000.
    pub max_output_tokens: Option<f64>,
}

impl Tool for WriteStdin {
    type Input = WriteStdinInput;

    tool_properties! {
        name: "write_stdin",
        description: include_str!("../../../prompts/openai/write_stdin.md"),
        effect: Effect::Execute,
        kind: ToolKind::Shell.as_str(),
        truncation: TRUNCATION,
    }

    async fn call(&self, input: WriteStdinInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let id = count(input.session_id) as u64;
        let chars = input.chars.unwrap_or_default();
        let output = if chars == INTERRUPT {
            cx.background.stop(id).await?
        } else {
            if !chars.is_empty() {
                unless_cancelled(id, cx, cx.background.write(id, chars.as_bytes(), false)).await?;
            }
            let usual = if chars.is_empty() { POLL_WAIT } else { WRITE_WAIT };
            output_of(id, input.yield_time_ms.map_or(usual, milliseconds), cx).await?
        };
        Ok(result_of(output, started.elapsed(), input.max_output_tokens, cx))
    }
}
