//! Execution of commands in the foreground.

use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult};

use crate::builtin::{end_of, stopped_by_limits};
use crate::context::ToolContext;
use crate::error::ToolError;

/// Runs a command and streams its output. The command is terminated when the call is cancelled.
pub(super) async fn run(mut request: ExecRequest, cx: &ToolContext) -> Result<ExecResult, ToolError> {
    request.timeout = request.timeout.min(cx.timeouts.max);
    request.on_output = cx.on_output.clone();
    let stopped = "the command was stopped, with all that it had started";
    cx.until_cancelled(stopped, cx.env.exec_command(request)).await
}

/// Returns notes for the model besides output and exit code.
pub(super) fn notes(result: &ExecResult, limit: Duration, advice: &str, cx: &ToolContext) -> Vec<String> {
    let mut notes = Vec::new();
    if result.timed_out {
        notes.push(format!("Command timed out after {}s.{advice}", limit.as_secs_f64()));
    }
    if result.output.dropped() > 0 {
        notes.push(format!("The last {} bytes of the output were not kept.", result.output.dropped()));
    }
    if result.ended_jobs > 0 {
        notes.push(format!(
            "What the command had left running in the background ({}) was ended when it returned.",
            result.ended_jobs
        ));
    }
    if !result.success() {
        notes.extend(stopped_by_limits(&end_of(&result.output), cx));
    }
    notes
}
