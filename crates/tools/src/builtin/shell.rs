//! `shell`: a command line, run to its end.

use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult, Output, OutputCollector, OutputLimits};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{CommandTimeouts, ToolContext};
use crate::error::{ToolError, ToolErrorKind};
use crate::tool::{Effect, Tool, ToolOutput};

/// The bytes of one read while a spooled output is copied.
const BLOCK: usize = 1 << 20;

/// Within so many bytes a shell has said that a program is missing.
const COMPLAINT: usize = 4_096;

/// Runs a command in the system's shell (loop specification, sections 3.3 and 5.4).
///
/// The result is what the command wrote to both streams, in order of arrival, then notes, the exit code and the
/// duration. It counts as an error if the exit code is not 0 or the time-out fired. Output goes to
/// [`ToolContext::on_output`] as it comes. When [`ToolContext::cancel`] fires, the command and all that it started
/// are ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell {
    default_timeout: Option<Duration>,
}

/// The arguments of `shell`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellInput {
    /// The command line to run.
    pub command: String,
    /// How long the command may run, in milliseconds.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// What the command does, in a few words, for people who follow along.
    pub description: Option<String>,
}

impl Shell {
    /// The tool, with the session's default time-out ([`CommandTimeouts::default`]).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The tool with a default time-out of its own, such as the 120 s of the Anthropic profile (section 3.5). The
    /// session's maximum still holds.
    #[must_use]
    pub fn with_default_timeout(timeout: Duration) -> Self {
        Self { default_timeout: Some(timeout) }
    }

    fn timeout(&self, asked: Option<u64>, timeouts: CommandTimeouts) -> Timeout {
        match asked.map(Duration::from_millis) {
            Some(asked) if asked > timeouts.max => Timeout { granted: timeouts.max, asked: Some(asked) },
            Some(asked) => Timeout { granted: asked, asked: None },
            None => {
                let default = self.default_timeout.unwrap_or(timeouts.default);
                Timeout { granted: default.min(timeouts.max), asked: None }
            }
        }
    }
}

impl Tool for Shell {
    type Input = ShellInput;

    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> &str {
        include_str!("shell.md").trim_end()
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    async fn call(&self, input: ShellInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let timeout = self.timeout(input.timeout_ms, cx.timeouts);
        let mut request = ExecRequest::new(input.command).with_timeout(timeout.granted);
        request.on_output = cx.on_output.clone();
        let result = tokio::select! {
            biased;
            () = cx.cancel.cancelled() => {
                let message = "the command was stopped, with all that it had started";
                return Err(ToolError::new(ToolErrorKind::Cancelled, message));
            }
            result = cx.env.exec_command(request) => result?,
        };
        let report = report(&result, &timeout);
        let text = append(result.output.clone(), report, cx.env.output_limits()).await?;
        let timed_out = result.timed_out.then_some(timeout.granted);
        Ok(ToolOutput::new(text).with_error(!result.success()).with_timed_out(timed_out))
    }
}

/// How long a command may run.
struct Timeout {
    granted: Duration,
    /// What the call asked for, where that is more.
    asked: Option<Duration>,
}

/// What follows the output.
fn report(result: &ExecResult, timeout: &Timeout) -> String {
    let mut lines = Vec::new();
    if result.output.is_empty() {
        lines.push("(no output)".to_owned());
    }
    if result.output.dropped() > 0 {
        lines.push(format!("[{} more bytes of output were not kept.]", result.output.dropped()));
    }
    if result.timed_out {
        lines.push(format!(
            "[ERROR: Command timed out after {}ms. Partial output is shown above.\n\
             You can retry with a longer timeout by setting the timeout_ms parameter.]",
            timeout.granted.as_millis()
        ));
    }
    if let Some(asked) = timeout.asked {
        let (asked, max) = (asked.as_millis(), timeout.granted.as_millis());
        lines.push(format!("[timeout_ms {asked} is more than the maximum: {max} was used.]"));
    }
    if result.ended_jobs > 0 {
        let (jobs, were) = if result.ended_jobs == 1 { ("process", "was") } else { ("processes", "were") };
        lines.push(format!(
            "[{} {jobs} of this command still ran when it returned and {were} ended: \
             commands in the background are not kept. Run what you need within one call, or start what shall run on \
             with shell_start, if you have that tool.]",
            result.ended_jobs
        ));
    }
    let start = result.output.read_at(0, COMPLAINT).unwrap_or_default();
    lines.extend(
        sought_a_tool(result.exit_code, &String::from_utf8_lossy(&start)).map(|note| format!("[{note}]")),
    );
    if let Some(process) = result.stuck {
        lines.push(format!("[Process {process} of this command cannot be ended and may still run.]"));
    }
    lines.push(format!("Exit code: {}", result.exit_code));
    lines.push(format!("Duration: {} ms", result.duration.as_millis()));
    lines.join("\n")
}

/// What a model is told that looks in the shell for `apply_patch`, as some were trained to.
pub(crate) fn sought_a_tool(exit_code: i32, output: &str) -> Option<&'static str> {
    let is_missing = |line: &str| line.contains("apply_patch: ") && line.contains("not found");
    (exit_code == 127 && output.lines().any(is_missing)).then_some(
        "apply_patch is no program here. If you have a tool of that name, call it with the text from \
         `*** Begin Patch` to `*** End Patch`; else edit with the tools that you have.",
    )
}

/// The output with the report below it. A spooled one is copied on disk, off the runtime's own threads.
async fn append(output: Output, report: String, limits: OutputLimits) -> Result<Output, ToolError> {
    if !output.is_spooled() {
        let mut bytes = output.read_at(0, usize::MAX).map_err(unreadable)?;
        bytes.extend_from_slice(separator(bytes.last()).as_bytes());
        bytes.extend_from_slice(report.as_bytes());
        return Ok(Output::from(bytes));
    }
    let copy = tokio::task::spawn_blocking(move || copy_with(&output, &report, limits));
    copy.await.map_err(|error| {
        ToolError::new(ToolErrorKind::Failed, "the command has run, but its output was lost")
            .with_source(error)
    })?
}

fn copy_with(output: &Output, report: &str, limits: OutputLimits) -> Result<Output, ToolError> {
    // What was kept once is kept again; the report is little more.
    let mut copy = OutputCollector::new(limits.with_total(u64::MAX));
    let mut last = None;
    while copy.len() < output.len() {
        let block = output.read_at(copy.len(), BLOCK).map_err(unreadable)?;
        last = block.last().copied();
        let before = copy.len();
        copy.push(&block);
        if copy.len() == before {
            let message =
                format!("the command has run, but there is no room on the disk for its output\n{report}");
            return Err(ToolError::new(ToolErrorKind::Failed, message));
        }
    }
    copy.push(separator(last.as_ref()).as_bytes());
    copy.push(report.as_bytes());
    Ok(copy.finish())
}

fn separator(last: Option<&u8>) -> &'static str {
    match last {
        None | Some(b'\n') => "",
        Some(_) => "\n",
    }
}

fn unreadable(error: std::io::Error) -> ToolError {
    let message = format!("the command has run, but its output cannot be read back: {error}");
    ToolError::new(ToolErrorKind::Failed, message).with_source(error)
}

#[cfg(test)]
mod tests;
