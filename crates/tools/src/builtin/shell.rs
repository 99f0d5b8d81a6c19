//! `shell`: runs a command.

use std::time::Duration;

use pintle_env::{ExecRequest, ExecResult, Output, OutputCollector, OutputLimits};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::context::{CommandTimeouts, ToolContext};
use crate::error::ToolError;
use crate::outside_sandbox::OUTSIDE_SANDBOX;
use crate::properties::tool_properties;
use crate::tool::{Effect, Tool, ToolOutput};

/// Size of one read when a spooled output is copied, in bytes.
const BLOCK: usize = 1 << 20;

/// The part of the output that is searched for a message about a missing program, in bytes.
const MESSAGE_LEN: usize = 4_096;

/// Runs a command in the system's shell (loop specification, sections 3.3 and 5.4).
///
/// The result is the output of both streams in order of arrival, followed by notes, the exit code and the duration. A
/// non-zero exit code is a result, not a failure of the call; a time-out is a failure. Output is streamed to
/// [`ToolContext::on_output`]. When [`ToolContext::cancel`] fires, the command and its child processes are terminated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shell {
    default_timeout: Option<Duration>,
}

/// The arguments of `shell`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ShellInput {
    /// The command line to run.
    #[schemars(description = "")]
    pub command: String,
    /// Milliseconds.
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// A few words about the command.
    pub description: Option<String>,
}

impl Shell {
    /// Creates the tool with the session's default time-out ([`CommandTimeouts::default`]).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the tool with a separate default time-out, such as the 120 s of the Anthropic profile (section 3.5). The
    /// session's maximum still applies.
    #[must_use]
    pub fn with_default_timeout(timeout: Duration) -> Self {
        Self { default_timeout: Some(timeout) }
    }

    fn timeout(&self, requested: Option<u64>, timeouts: CommandTimeouts) -> Timeout {
        match requested.map(Duration::from_millis) {
            Some(requested) if requested > timeouts.max => {
                Timeout { granted: timeouts.max, excessive: Some(requested), is_argument: true }
            }
            Some(requested) => Timeout { granted: requested, excessive: None, is_argument: true },
            None => {
                let default = self.default_timeout.unwrap_or(timeouts.default);
                Timeout { granted: default.min(timeouts.max), excessive: None, is_argument: true }
            }
        }
    }
}

impl Tool for Shell {
    type Input = ShellInput;

    tool_properties! {
        name: "shell",
        description: include_str!("../../prompts/builtin/shell.md"),
        effect: Effect::Execute,
    }

    async fn call(&self, input: ShellInput, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let timeout = self.timeout(input.timeout_ms, cx.timeouts);
        run(ExecRequest::new(input.command).with_timeout(timeout.granted), &timeout, cx).await
    }
}

/// Runs a command like [`Shell`], for a tool whose time-out is no argument. The time-out of the request is at most the
/// session's maximum, and the output is streamed to [`ToolContext::on_output`].
///
/// When [`ToolContext::cancel`] fires or the future is dropped, the command and its child processes are terminated.
///
/// # Errors
///
/// The command cannot be started, or is cancelled.
pub async fn run_command(request: ExecRequest, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    let granted = request.timeout.min(cx.timeouts.max);
    let timeout = Timeout { granted, excessive: None, is_argument: false };
    run(request.with_timeout(granted), &timeout, cx).await
}

async fn run(mut request: ExecRequest, timeout: &Timeout, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    request.on_output = cx.on_output.clone();
    let stopped = "the command was stopped, with all that it had started";
    let result = cx.until_cancelled(stopped, cx.env.exec_command(request)).await?;
    let report = report(&result, timeout, cx);
    let text = append(result.output.clone(), report, cx.env.output_limits()).await?;
    let timed_out = result.timed_out.then_some(timeout.granted);
    let exit_code = (!result.timed_out).then_some(result.exit_code);
    Ok(ToolOutput::new(text).with_error(result.timed_out).with_timed_out(timed_out).with_exit_code(exit_code))
}

/// The time-out of a command.
struct Timeout {
    granted: Duration,
    /// The time-out that the call requested, if it is above the maximum.
    excessive: Option<Duration>,
    /// Whether a call can set the time-out.
    is_argument: bool,
}

/// Returns the lines that follow the output.
fn report(result: &ExecResult, timeout: &Timeout, cx: &ToolContext) -> String {
    let mut lines = Vec::new();
    if result.output.is_empty() {
        lines.push("(no output)".to_owned());
    }
    if result.output.dropped() > 0 {
        lines.push(format!("[{} more bytes of output were not kept.]", result.output.dropped()));
    }
    if result.timed_out {
        let limit = timeout.granted.as_millis();
        let note = match timeout.is_argument {
            true => format!(include_str!("../../prompts/notes/timed_out.md"), timeout = limit),
            false => format!("[ERROR: Command timed out after {limit}ms. Partial output is shown above.]"),
        };
        lines.push(note.trim_ascii_end().to_owned());
    }
    if let Some(requested) = timeout.excessive {
        let (requested, max) = (requested.as_millis(), timeout.granted.as_millis());
        lines.push(format!("[timeout_ms {requested} is more than the maximum: {max} was used.]"));
    }
    if result.ended_jobs > 0 {
        lines.push(terminated_children(result.ended_jobs));
    }
    let start = result.output.read_at(0, MESSAGE_LEN).unwrap_or_default();
    let hint = missing_apply_patch(result.exit_code, &String::from_utf8_lossy(&start));
    lines.extend(hint.map(|hint| format!("[{hint}]")));
    if !result.success() {
        lines.extend(stopped_by_limits(&end_of(&result.output), cx).map(|note| format!("[{note}]")));
    }
    if let Some(process) = result.stuck {
        lines.push(format!("[Process {process} of this command cannot be ended and may still run.]"));
    }
    lines.push(format!("Exit code: {}", result.exit_code));
    lines.push(format!("Duration: {} ms", result.duration.as_millis()));
    lines.join("\n")
}

/// Returns a note if a command failed in a way that is typical of the limits of its environment. `output` is its last
/// part.
pub(crate) fn stopped_by_limits(output: &str, cx: &ToolContext) -> Option<String> {
    /// Messages of the kernel and of programs for operations that a sandbox refuses.
    const MESSAGES: [&str; 9] = [
        "device or resource busy",
        "permission denied",
        "operation not permitted",
        "read-only file system",
        "network is unreachable",
        "could not resolve",
        "name resolution",
        "address family not supported",
        "failed to connect",
    ];
    let limits = cx.env.command_limits()?;
    let output = output.to_lowercase();
    let advice = match cx.env.outside_sandbox() {
        None => include_str!("../../prompts/notes/tell_the_user.md").to_owned(),
        Some(_) => {
            format!(include_str!("../../prompts/notes/leave_sandbox.md"), argument = OUTSIDE_SANDBOX)
        }
    };
    let advice = advice.trim_ascii_end();
    MESSAGES
        .iter()
        .any(|message| output.contains(message))
        .then(|| format!("This may be due to what holds commands here: {limits} {advice}"))
}

/// Returns the last part of an output.
pub(crate) fn end_of(output: &Output) -> String {
    /// Length in bytes.
    const LAST: usize = 8 << 10;
    let from = output.len().saturating_sub(LAST as u64);
    let last = output.read_at(from, LAST).unwrap_or_default();
    String::from_utf8_lossy(&last).into_owned()
}

/// Returns the note about child processes that were terminated when the command returned.
fn terminated_children(count: usize) -> String {
    let (processes, were) = if count == 1 { ("process", "was") } else { ("processes", "were") };
    let note = format!(
        include_str!("../../prompts/notes/ended_jobs.md"),
        count = count,
        processes = processes,
        were = were
    );
    note.trim_ascii_end().to_owned()
}

/// Returns a hint for models that look for `apply_patch` in the shell, as some were trained to do.
pub(crate) fn missing_apply_patch(exit_code: i32, output: &str) -> Option<&'static str> {
    let is_missing = |line: &str| line.contains("apply_patch: ") && line.contains("not found");
    (exit_code == 127 && output.lines().any(is_missing))
        .then_some(include_str!("../../prompts/notes/missing_apply_patch.md").trim_ascii_end())
}

/// Appends the report to the output. A spooled output is copied on a blocking thread.
async fn append(output: Output, report: String, limits: OutputLimits) -> Result<Output, ToolError> {
    if !output.is_spooled() {
        let mut bytes = output.read_at(0, usize::MAX).map_err(unreadable)?;
        bytes.extend_from_slice(separator(bytes.last()).as_bytes());
        bytes.extend_from_slice(report.as_bytes());
        return Ok(Output::from(bytes));
    }
    let copy = tokio::task::spawn_blocking(move || copy_with(&output, &report, limits));
    copy.await.map_err(|error| {
        ToolError::failed("the command has run, but its output was lost").with_source(error)
    })?
}

fn copy_with(output: &Output, report: &str, limits: OutputLimits) -> Result<Output, ToolError> {
    // The output was kept already, and the report adds little.
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
            return Err(ToolError::failed(message));
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
    ToolError::failed(message).with_source(error)
}

#[cfg(test)]
mod tests;
