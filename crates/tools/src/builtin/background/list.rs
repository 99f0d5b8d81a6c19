//! `shell_list`: lists the background commands.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::background::BackgroundStatus;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// Maximum number of characters listed of a command line.
const MAX_COMMAND: usize = 120;

stateless_tool! {
    /// Lists the background commands of the session.
    pub struct ShellList;
}

/// The arguments of `shell_list`, which has none.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellListInput {}

impl Tool for ShellList {
    type Input = ShellListInput;

    tool_properties! {
        name: "shell_list",
        description: include_str!("../../../prompts/builtin/shell_list.md"),
        effect: Effect::Read,
    }

    async fn call(&self, _input: ShellListInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let commands = cx.background.list();
        if commands.is_empty() {
            return Ok(ToolOutput::new("(no background command was started)"));
        }
        let lines: Vec<String> = commands.iter().map(line).collect();
        Ok(ToolOutput::new(lines.join("\n")))
    }
}

fn line(status: &BackgroundStatus) -> String {
    let BackgroundStatus { id, command, state, age, unread } = status;
    let first = command.lines().next().unwrap_or_default();
    let cut = first.chars().count() > MAX_COMMAND || first.len() < command.trim_end().len();
    let shown: String = first.chars().take(MAX_COMMAND).collect();
    let more = if cut { "…" } else { "" };
    format!("{id}: {state}, {} s, {unread} bytes unread: {shown}{more}", age.as_secs())
}
