//! `shell_write`: writes to the input of a background command.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

stateless_tool! {
    /// Writes to the standard input of a background command.
    pub struct ShellWrite;
}

/// The arguments of `shell_write`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellWriteInput {
    /// The number of the background command.
    #[schemars(description = "")]
    pub id: u64,
    /// The text to write, as it is: end a line with a line feed.
    #[schemars(description = "")]
    pub text: String,
    /// Whether to close the standard input afterwards. Default: false.
    #[schemars(description = "")]
    pub close: Option<bool>,
}

impl Tool for ShellWrite {
    type Input = ShellWriteInput;

    tool_properties! {
        name: "shell_write",
        description: include_str!("../../../prompts/builtin/shell_write.md"),
        effect: Effect::Execute,
        kind: "shell",
    }

    async fn call(&self, input: ShellWriteInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let close = input.close.unwrap_or(false);
        if input.text.is_empty() && !close {
            let message = "text is empty and close is not set, so there is nothing to do";
            return Err(ToolError::invalid_arguments(message));
        }
        let stopped = "the writing was stopped; the command may have read a part";
        cx.until_cancelled(stopped, cx.background.write(input.id, input.text.as_bytes(), close)).await?;
        let closed = if close { " and closed its input" } else { "" };
        let (count, id) = (input.text.len(), input.id);
        let noun = if count == 1 { "byte" } else { "bytes" };
        Ok(ToolOutput::new(format!("Wrote {count} {noun} to background command {id}{closed}.")))
    }
}
