//! Completed tool calls: a line with the result, followed by output and changes.

use std::borrow::Cow;
use std::time::Duration;

use pintle_agent::{EventKind, ImageSummary};
use pintle_env::Output;
use pintle_tools::{FileChange, ToolErrorKind};

use super::image::image_labels;
use super::line::{Face, StyledLine};
use super::summary;

/// Tools whose output is shown below the call.
const COMMAND_TOOLS: [&str; 5] = ["shell", "Bash", "run_shell_command", "exec_command", "write_stdin"];

/// Maximum non-blank output lines of a command shown below the call.
const COMMAND_LINES: usize = 6;

/// Maximum output lines of a command including blank ones.
const COMMAND_LINES_WITH_BLANKS: usize = 18;

/// Maximum output lines of a failed call shown below it.
const FAILURE_LINES: usize = 3;

/// Maximum length of an output line, in characters.
pub(crate) const MAX_LINE_CHARS: usize = 160;

/// Bytes of an output that are read to show its lines.
const OUTPUT_BYTES: usize = 4 << 10;

/// Tool call that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedCall<'a> {
    tool_name: &'a str,
    /// Summary of its arguments.
    subject: &'a str,
    output: &'a Output,
    error: Option<ToolErrorKind>,
    timeout_ms: Option<u64>,
    exit_code: Option<i32>,
    duration_ms: u64,
    pub(crate) changes: &'a [FileChange],
    images: &'a [ImageSummary],
}

/// Result of a call.
#[derive(Debug)]
enum CallStatus {
    Succeeded,
    /// A command exited with a non-zero code, which is not necessarily a failure.
    Exited(i32),
    Failed(Cow<'static, str>),
}

impl<'a> CompletedCall<'a> {
    /// Returns the call that a `ToolCallEnd` event completes.
    pub(crate) fn from_end(end: &'a EventKind, subject: &'a str) -> Option<Self> {
        let EventKind::ToolCallEnd {
            tool_name,
            output,
            error,
            timeout_ms,
            exit_code,
            duration_ms,
            changes,
            images,
            ..
        } = end
        else {
            return None;
        };
        Some(Self {
            tool_name,
            subject,
            output,
            error: *error,
            timeout_ms: *timeout_ms,
            exit_code: *exit_code,
            duration_ms: *duration_ms,
            changes,
            images,
        })
    }

    /// Returns the line of the call, with a mark or with the greppable `[tool]`.
    pub(crate) fn head(&self, has_mark: bool) -> StyledLine {
        let took = Duration::from_millis(self.duration_ms);
        let (face, mark, label) = match self.status(took) {
            CallStatus::Succeeded => (Face::SUCCESS, "✓", Cow::Borrowed("ok")),
            CallStatus::Exited(code) => (Face::BOLD, "•", Cow::Owned(format!("exit {code}"))),
            CallStatus::Failed(label) => (Face::FAILURE, "✗", label),
        };
        let name = summary::one_line(self.tool_name, MAX_LINE_CHARS);
        let space = if self.subject.is_empty() { "" } else { " " };
        let subject = format!("{space}{}", self.subject);
        let took = summary::duration(took);
        if !has_mark {
            let line =
                StyledLine::new(format!("[{name}]"), Face::BOLD).and(format!("{subject} ("), Face::PLAIN);
            return line.and(label, face).and(format!(", {took})"), Face::PLAIN);
        }
        let mut line = StyledLine::new(mark, face).and(" ", Face::PLAIN).and(name, Face::BOLD);
        line.push(format!("{subject} "), Face::PLAIN);
        if mark != "✓" {
            line.push(label, face);
            line.push(", ", Face::PLAIN);
        }
        line.and(took, Face::DIM)
    }

    fn status(&self, took: Duration) -> CallStatus {
        match (self.error, self.exit_code) {
            (Some(kind), _) => {
                CallStatus::Failed(failure_label(kind, self.timeout_ms.map_or(took, Duration::from_millis)))
            }
            (None, Some(code)) if code != 0 => CallStatus::Exited(code),
            (None, _) => CallStatus::Succeeded,
        }
    }

    /// Returns the end of a command's output, or the start of another tool's error, and the names of images.
    pub(crate) fn output_lines(&self) -> Vec<String> {
        let mut lines = self.text_lines();
        lines.extend(image_labels(self.images));
        lines
    }

    fn text_lines(&self) -> Vec<String> {
        let is_command = COMMAND_TOOLS.contains(&self.tool_name);
        // Treat an output that cannot be read back as empty.
        let text = if is_command {
            self.output.tail_text_lossy(OUTPUT_BYTES).unwrap_or_default()
        } else if self.error.is_some() {
            self.output.head_text_lossy(OUTPUT_BYTES).unwrap_or_default()
        } else {
            return Vec::new();
        };
        let lines: Vec<&str> = text.lines().collect();
        let shown =
            if is_command { last_lines(&lines) } else { lines.get(..FAILURE_LINES).unwrap_or(&lines) };
        shown.iter().map(|line| summary::output_line(line, MAX_LINE_CHARS)).collect()
    }
}

/// Returns the last lines of a command's output to show. Blank lines do not count, up to a bound. If earlier lines are
/// omitted, the result does not start with a blank line.
fn last_lines<'a, 'b>(lines: &'a [&'b str]) -> &'a [&'b str] {
    let is_blank = |line: &&str| line.trim().is_empty();
    let mut seen = 0;
    let within = lines.iter().rev().take(COMMAND_LINES_WITH_BLANKS).take_while(|line| {
        seen += usize::from(!is_blank(line));
        seen <= COMMAND_LINES
    });
    let first = lines.len() - within.count();
    let shown = lines.get(first..).unwrap_or_default();
    let blank = if first == 0 { 0 } else { shown.iter().take_while(|line| is_blank(line)).count() };
    shown.get(blank..).unwrap_or_default()
}

/// Returns a label for the failure of a call; `limit` is its timeout.
fn failure_label(kind: ToolErrorKind, limit: Duration) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        ToolErrorKind::TimedOut => return format!("timed out after {}", summary::duration(limit)).into(),
        ToolErrorKind::UnknownTool => "unknown tool",
        ToolErrorKind::InvalidArguments => "invalid arguments",
        ToolErrorKind::Denied => "denied",
        ToolErrorKind::NotFound => "not found",
        ToolErrorKind::PermissionDenied => "permission denied",
        ToolErrorKind::EditConflict => "does not apply",
        ToolErrorKind::Cancelled => "cancelled",
        ToolErrorKind::EnvironmentLost => "environment lost",
        ToolErrorKind::Failed | _ => "failed",
    })
}
