//! `TaskOutput`: reads the output of a background command.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::task_id::parse_task_id;
use crate::builtin::{BackgroundOutput, BackgroundState, follow};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::number::milliseconds;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// The longest wait, if the session's maximum is not lower.
const MAX_WAIT: Duration = Duration::from_secs(600);

stateless_tool! {
    /// Returns the new output and the state of a command that [`Bash`](super::Bash) started in the background.
    pub struct TaskOutput;
}

/// The arguments of `TaskOutput`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TaskOutputInput {
    /// The ID that `Bash` gave.
    #[schemars(description = "")]
    pub task_id: String,
    /// Whether to wait until the command has ended.
    #[schemars(description = "")]
    #[serde(default = "yes")]
    pub block: bool,
    /// Milliseconds, at most 600000.
    #[serde(default = "half_a_minute")]
    pub timeout: f64,
}

impl Tool for TaskOutput {
    type Input = TaskOutputInput;

    tool_properties! {
        name: "TaskOutput",
        description: include_str!("../../../prompts/anthropic/task_output.md"),
        effect: Effect::Read,
        // Output can be read only once.
        repeatable: false,
        kind: ToolKind::Shell.as_str(),
    }

    async fn call(&self, input: TaskOutputInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let id = parse_task_id(&input.task_id)?;
        let wait = if input.block { milliseconds(input.timeout).min(MAX_WAIT) } else { Duration::ZERO };
        let output = follow(id, wait.min(cx.timeouts.max), cx).await?;
        Ok(result_of(output, input.block))
    }
}

/// Formats the output and state of a command like Claude Code.
fn result_of(output: BackgroundOutput, waited: bool) -> ToolOutput {
    let (retrieval, status) = match &output.status.state {
        BackgroundState::Running if waited => ("timeout", "running"),
        BackgroundState::Running => ("not_ready", "running"),
        BackgroundState::Exited(0) => ("success", "completed"),
        BackgroundState::Exited(_) => ("success", "failed"),
        BackgroundState::Stopped => ("success", "killed"),
        BackgroundState::Lost(_) => ("success", "lost"),
    };
    let mut preface = format!(
        "<retrieval_status>{retrieval}</retrieval_status>\n<task_id>{}</task_id>\n<task_type>local_bash</task_type>\n\
         <status>{status}</status>\n",
        output.status.id
    );
    match &output.status.state {
        BackgroundState::Exited(code) => preface.push_str(&format!("<exit_code>{code}</exit_code>\n")),
        BackgroundState::Lost(reason) => preface.push_str(&format!("<error>{reason}</error>\n")),
        BackgroundState::Running | BackgroundState::Stopped => {}
    }
    if output.dropped > 0 {
        preface.push_str(&format!("[{} bytes of older output were dropped.]\n", output.dropped));
    }
    let exit_code = output.status.state.exit_code();
    if output.text.is_empty() {
        return ToolOutput::new("(no new output)").with_preface(preface).with_exit_code(exit_code);
    }
    ToolOutput::new(output.text).with_preface(preface + "<output>\n").with_exit_code(exit_code)
}

fn yes() -> bool {
    true
}

fn half_a_minute() -> f64 {
    30_000.0
}
