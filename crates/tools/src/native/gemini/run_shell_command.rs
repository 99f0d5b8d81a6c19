//! `run_shell_command`: runs a command.

use pintle_env::ExecRequest;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::command::{notes, run};
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};
use crate::truncate::{TruncationMarker, TruncationMode, TruncationRule};

stateless_tool! {
    /// Runs a command in the system's shell.
    ///
    /// The arguments have no time-out; the session's maximum applies
    /// ([`CommandTimeouts::max`](crate::CommandTimeouts::max)). A non-zero exit code is a result, not a failure of the
    /// call.
    pub struct RunShellCommand;
}

/// The arguments of `run_shell_command`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct RunShellCommandInput {
    /// The command line, for `bash -c`.
    #[schemars(description = "")]
    pub command: String,
    /// A summary of the command, for the user.
    pub description: Option<String>,
    /// Default: the working directory.
    pub dir_path: Option<String>,
}

impl Tool for RunShellCommand {
    type Input = RunShellCommandInput;

    tool_properties! {
        name: "run_shell_command",
        description: include_str!("../../../prompts/gemini/run_shell_command.md"),
        effect: Effect::Execute,
        kind: ToolKind::Shell.as_str(),
        truncation: TruncationRule::new(40_000, TruncationMode::LongTail).with_marker(TruncationMarker::Characters),
    }

    async fn call(&self, input: RunShellCommandInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let limit = cx.timeouts.max;
        let mut request = ExecRequest::new(input.command).with_timeout(limit);
        if let Some(directory) = input.dir_path {
            request = request.with_working_dir(directory);
        }
        let result = run(request, cx).await?;
        let mut preface = String::new();
        if !result.success() {
            preface.push_str(&format!("Exit Code: {}\n", result.exit_code));
        }
        for note in notes(&result, limit, "", cx) {
            preface.push_str(&format!("Error: {note}\n"));
        }
        preface.push_str("Output: ");
        let timed_out = result.timed_out.then_some(limit);
        let exit_code = (!result.timed_out).then_some(result.exit_code);
        let text = if result.output.is_empty() { "(empty)".into() } else { result.output };
        Ok(ToolOutput::new(text).with_preface(preface).with_timed_out(timed_out).with_exit_code(exit_code))
    }
}
