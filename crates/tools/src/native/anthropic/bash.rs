//! `Bash`: runs a command, in the foreground or in the background.

use std::time::Duration;

use pintle_env::{Command, ExecRequest, Stdin};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::builtin::{BackgroundState, NOT_STARTED};
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::kind::ToolKind;
use crate::native::command::{notes, run};
use crate::native::number::milliseconds;
use crate::properties::{stateless_tool, tool_properties};
use crate::tool::{Effect, Tool, ToolOutput};

/// The default time-out.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// The longest time-out, if the session's maximum is not lower.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// The time to wait for the first output or an immediate failure of a background command.
const FIRST_WAIT: Duration = Duration::from_millis(250);

stateless_tool! {
    /// Runs a command in the system's shell.
    ///
    /// With `run_in_background` the call returns immediately, with an ID for [`TaskOutput`](super::TaskOutput) and
    /// [`TaskStop`](super::TaskStop). The command ends with the session at the latest.
    ///
    /// Otherwise the result is the output of both streams, in order of arrival, after `Exit code N` if that is not
    /// zero. A non-zero exit code is a result, not a failure of the call; a time-out is a failure.
    pub struct Bash;
}

/// The arguments of `Bash`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct BashInput {
    /// The command line.
    #[schemars(description = "")]
    pub command: String,
    /// Milliseconds; default 120000, at most 600000.
    pub timeout: Option<f64>,
    /// What the command does, in a few words, for people who follow along.
    #[schemars(description = "")]
    pub description: Option<String>,
    /// Whether the command shall go on while you do something else. `TaskOutput` then reads what it writes.
    #[schemars(description = "")]
    pub run_in_background: Option<bool>,
}

impl Tool for Bash {
    type Input = BashInput;

    tool_properties! {
        name: "Bash",
        description: include_str!("../../../prompts/anthropic/bash.md"),
        effect: Effect::Execute,
        kind: ToolKind::Shell.as_str(),
    }

    async fn call(&self, input: BashInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if input.run_in_background.unwrap_or(false) {
            return start(&input.command, cx).await;
        }
        let limit = input.timeout.map_or(DEFAULT_TIMEOUT, milliseconds);
        let limit = limit.min(MAX_TIMEOUT).min(cx.timeouts.max);
        let result = run(ExecRequest::new(input.command).with_timeout(limit), cx).await?;
        let mut preface = String::new();
        if !result.success() {
            preface.push_str(&format!("Exit code {}\n", result.exit_code));
        }
        for note in notes(&result, limit, " Set timeout to give it longer.", cx) {
            preface.push_str(&note);
            preface.push('\n');
        }
        let timed_out = result.timed_out.then_some(limit);
        let exit_code = (!result.timed_out).then_some(result.exit_code);
        let text = if preface.is_empty() && result.output.is_empty() {
            "(Bash completed with no output)".into()
        } else {
            result.output
        };
        Ok(ToolOutput::new(text)
            .with_preface(preface)
            .with_error(timed_out.is_some())
            .with_timed_out(timed_out)
            .with_exit_code(exit_code))
    }
}

/// Starts a command in the background. An immediate exit is part of the result.
async fn start(command: &str, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    // Programs such as `rg` would wait for input from a pipe.
    let line = Command::shell(command).with_stdin(Stdin::Null);
    let starting = cx.background.start_command(cx.env.as_ref(), command, line);
    let id = cx.until_cancelled(NOT_STARTED, starting).await?;
    let wait = if cx.cancel.is_cancelled() { Duration::ZERO } else { FIRST_WAIT };
    let output = cx.background.follow(id, wait, cx.on_output.clone()).await?;
    let failed = matches!(output.status.state, BackgroundState::Stopped | BackgroundState::Lost(_));
    let mut text = format!("Command running in background with ID: {id}. Read its output with TaskOutput.");
    if output.status.state != BackgroundState::Running {
        text = format!("Command started in background with ID: {id}. It {} at once.", output.status.state);
    }
    if !output.text.is_empty() {
        text.push_str("\nIts output so far:\n");
        text.push_str(&output.text);
    }
    Ok(ToolOutput::new(text).with_error(failed).with_exit_code(output.status.state.exit_code()))
}
