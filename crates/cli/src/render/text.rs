//! The transcript for people: streamed text, one line per tool call, diffs, a closing line.

mod below;
mod closing;

use std::borrow::Cow;
use std::collections::HashMap;
use std::time::Duration;

use pintle_agent::{EventKind, SessionEvent};
use pintle_env::Output;
use pintle_llm::Usage;
use pintle_tools::{FileChange, ToolErrorKind};

use super::agents::{SubagentNames, call_key_of};
use super::sanitize::diff_lines;
use super::prose::WordWrapper;
use super::screen::TerminalSize;
use super::style::{Highlight, Style};
use super::{Footer, Header, summary, width};

/// What the tools that run commands are called, in both toolsets.
const SHELLS: [&str; 5] = ["shell", "Bash", "run_shell_command", "exec_command", "write_stdin"];

/// Lines of a command's output that are shown, the last ones, without blank ones.
const COMMAND_LINES: usize = 6;

/// The same with the blank lines between them.
const COMMAND_LINES_WITH_BLANKS: usize = 18;

/// Lines of another tool's failure that are shown, the first ones.
const FAILURE_LINES: usize = 3;

/// Lines of one diff that are shown.
const DIFF_LINES: usize = 120;

/// The longest line of output that is shown, in characters.
const LINE: usize = 160;

/// The longest line of a diff that is shown, in characters: a generated file may have all of itself in one.
const DIFF_LINE: usize = 500;

/// Bytes at an end of a tool's output that are looked at.
const END_OF_OUTPUT: usize = 4 << 10;

/// Prefix of reasoning.
const REASONING: &str = "[reasoning] ";

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The final answer only.
    Quiet,
    /// The transcript.
    Normal,
    /// Reasoning, requests and token counts, too.
    Verbose,
}

/// Turns events into a transcript.
#[derive(Debug)]
pub(crate) struct TextView {
    style: Style,
    detail: Detail,
    /// What the calls that run are about, by the marks of the calls.
    calls: HashMap<String, String>,
    agents: SubagentNames,
    /// Events of subagents that came while the model wrote, with whose they are.
    later: Vec<(String, SessionEvent)>,
    last: Block,
    is_line_open: bool,
    /// Where lines are broken between words; `None` where they are not.
    columns: Option<usize>,
    prose: WordWrapper,
}

/// What stands at the end of the transcript so far. Only lines follow each other without a blank line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Nothing,
    /// The model's text, which goes on.
    Text,
    /// The model's reasoning, which goes on.
    Reasoning,
    /// A stretch of either that has ended.
    Ended,
    Lines,
}

impl TextView {
    /// An empty transcript.
    pub(crate) fn new(style: Style, detail: Detail) -> Self {
        Self {
            style,
            detail,
            calls: HashMap::new(),
            agents: SubagentNames::default(),
            later: Vec::new(),
            last: Block::Nothing,
            is_line_open: false,
            columns: None,
            prose: WordWrapper::default(),
        }
    }

    /// Breaks lines between words from now on, for a window of this size.
    pub(super) fn fit(&mut self, size: TerminalSize) {
        // The last column stays free, where terminals differ.
        self.columns = size.columns.checked_sub(1);
        self.prose.set_columns(self.columns);
    }

    /// Whether the last line goes on.
    pub(super) fn is_line_open(&self) -> bool {
        self.is_line_open
    }

    /// Where the work begins; for those who want to see more.
    pub(super) fn opening(&mut self, opening: &Header<'_>) -> String {
        if self.detail != Detail::Verbose {
            return String::new();
        }
        let Header { session_id, provider, model, directory } = opening;
        let line = format!("[session] {session_id}: {provider} {model} in {}", directory.display());
        self.line(&self.style.highlight(Highlight::Faint, &width::single_line(&line)))
    }

    /// What an event adds.
    pub(super) fn event(&mut self, event: &SessionEvent) -> String {
        let agent = self.agents.of(event);
        if self.detail == Detail::Quiet {
            return String::new();
        }
        match agent {
            Some(agent) => self.of_agent(agent, event),
            None => self.own(event) + &self.waited(),
        }
    }

    /// What an event of the session itself adds.
    fn own(&mut self, event: &SessionEvent) -> String {
        match &event.kind {
            EventKind::AssistantTextDelta { delta } => self.text(Block::Text, delta),
            EventKind::AssistantTextEnd { interrupted, .. } => self.end_of_text(*interrupted),
            EventKind::ToolCallStart { call_id, arguments, .. } => {
                self.calls.insert(call_key_of(event, call_id), summary::arguments(arguments));
                String::new()
            }
            EventKind::ToolCallEnd { call_id, .. } => {
                let subject = self.calls.remove(&call_key_of(event, call_id)).unwrap_or_default();
                self.call_lines("", &subject, &event.kind)
            }
            EventKind::SubagentSpawned { .. } | EventKind::SubagentEnded { .. } => {
                self.about_agents(None, &event.kind)
            }
            EventKind::ApprovalRequested { tool_name, reason, .. } => {
                self.note("approval", &format!("{tool_name} waits for a decision: {reason}"))
            }
            EventKind::SteeringInjected { content } => self.note("steering", content),
            EventKind::LoopDetection { message } => self.note("loop", message),
            EventKind::HistoryRepaired { message } => self.note("repaired", message),
            EventKind::Warning { message } => self.note("warning", message),
            EventKind::BudgetReached { budget, limit, spent } => {
                self.note("limit", &summary::budget(*budget, *limit, *spent))
            }
            EventKind::ContextFull { least_tokens, context_window } => {
                let [least, window] = [least_tokens, context_window].map(|tokens| summary::count(*tokens));
                self.note(
                    "limit",
                    &format!("the next request has {least} tokens at least, the window {window}"),
                )
            }
            EventKind::Gap { skipped } => self.note("gap", &format!("{skipped} bytes are not shown")),
            // What is left is for those who want to see more, is shown elsewhere, or is new and unknown here.
            EventKind::SessionStart { .. }
            | EventKind::SessionEnd { .. }
            | EventKind::UserInput { .. }
            | EventKind::ProcessingEnd { .. }
            | EventKind::ProjectLoaded(_)
            | EventKind::RequestPrepared { .. }
            | EventKind::AssistantTextStart {}
            | EventKind::ReasoningStart {}
            | EventKind::ReasoningDelta { .. }
            | EventKind::ReasoningEnd { .. }
            | EventKind::ModelResponse { .. }
            | EventKind::ToolCallOutputDelta { .. }
            | EventKind::ApprovalDecided { .. }
            | EventKind::TurnLimit { .. }
            | EventKind::Error { .. }
            | _ => self.verbose(&event.kind),
        }
    }

    /// A call that is over, after `prefix`: how it went, and below it what it wrote and changed.
    fn call_lines(&mut self, prefix: &str, subject: &str, end: &EventKind) -> String {
        let EventKind::ToolCallEnd { tool_name, output, error, timeout_ms, duration_ms, changes, .. } = end
        else {
            return String::new();
        };
        let took = Duration::from_millis(*duration_ms);
        let failure = error.map(|kind| failure_words(kind, timeout_ms.map_or(took, Duration::from_millis)));
        let head = self.call_line(tool_name, subject, failure.as_deref(), took);
        let mut shown = self.line(&format!("{prefix}{head}"));
        shown.push_str(&self.output_lines(tool_name, output, error.is_some()));
        shown.extend(changes.iter().map(|change| self.change_lines(change)));
        shown
    }

    /// What only those see who want to see more.
    fn verbose(&mut self, kind: &EventKind) -> String {
        if self.detail != Detail::Verbose {
            String::new()
        } else if let EventKind::ReasoningDelta { delta } = kind {
            self.text(Block::Reasoning, delta)
        } else if let EventKind::ReasoningEnd { interrupted, .. } = kind {
            self.end_of_text(*interrupted)
        } else if let EventKind::RequestPrepared { messages, moved, .. } = kind {
            let moved = moved.as_ref().map(|segment| format!(", changed from {segment} on"));
            let messages = summary::plural(*messages as u64, "message");
            self.note("request", &format!("{messages}{}", moved.unwrap_or_default()))
        } else if let EventKind::ModelResponse { model, usage, .. } = kind {
            self.note("answer", &format!("{model}: {}", tokens(usage)))
        } else {
            String::new()
        }
    }

    /// Streamed text, after a blank line if something else stands before it.
    fn text(&mut self, block: Block, delta: &str) -> String {
        if delta.is_empty() {
            return String::new();
        }
        let mut shown = String::new();
        if self.last != block {
            shown.push_str(&self.gap_before(block));
            if block == Block::Reasoning {
                shown.push_str(REASONING);
                self.prose.indent(REASONING.len());
            }
            self.last = block;
            self.is_line_open = true;
        }
        let text = self.prose.push(delta);
        self.is_line_open = self.prose.is_line_open();
        shown + &text
    }

    fn end_of_text(&mut self, interrupted: bool) -> String {
        let mut shown = self.end_open_line();
        if matches!(self.last, Block::Text | Block::Reasoning) {
            self.last = Block::Ended;
        }
        if interrupted {
            shown.push_str(&self.note("interrupted", "the answer stops here"));
        }
        shown
    }

    /// One line that is not the model's, such as `[warning] …`.
    fn note(&mut self, label: &str, text: &str) -> String {
        let line = format!("[{label}] {}", summary::one_line(text, 4 * LINE));
        self.line(&self.style.highlight(Highlight::Faint, &line))
    }

    fn line(&mut self, line: &str) -> String {
        let gap = self.gap_before(Block::Lines);
        self.last = Block::Lines;
        format!("{gap}{line}\n")
    }

    /// Ends an open line, and leaves a blank one where one belongs.
    fn gap_before(&mut self, block: Block) -> String {
        let mut gap = self.end_open_line();
        if !matches!((self.last, block), (Block::Nothing, _) | (Block::Lines, Block::Lines)) {
            gap.push('\n');
        }
        gap
    }

    /// Returns what was held back of a text, and the end of its line.
    fn end_open_line(&mut self) -> String {
        let mut shown = self.prose.end();
        if std::mem::take(&mut self.is_line_open) {
            shown.push('\n');
        }
        shown
    }

    /// With brackets for those who search a file, with a mark in place of the spinner on a screen.
    fn call_line(&self, name: &str, subject: &str, failure: Option<&str>, took: Duration) -> String {
        let name = summary::one_line(name, LINE);
        let (ink, mark, status) = match failure {
            None => (Highlight::Good, "✓", "ok"),
            Some(failure) => (Highlight::Bad, "✗", failure),
        };
        let took = summary::duration(took);
        let space = if subject.is_empty() { "" } else { " " };
        if !self.style.moves {
            let name = self.style.highlight(Highlight::Strong, &format!("[{name}]"));
            return format!("{name}{space}{subject} ({}, {took})", self.style.ink(ink, status));
        }
        let (mark, name) = (self.style.ink(ink, mark), self.style.highlight(Highlight::Strong, &name));
        let failed = failure.map(|_| format!("{}, ", self.style.ink(ink, status))).unwrap_or_default();
        format!("{mark} {name}{space}{subject} {failed}{}", self.style.highlight(Highlight::Faint, &took))
    }

    /// The end of what a command wrote, or the beginning of another tool's failure.
    fn output_lines(&self, tool_name: &str, output: &Output, failed: bool) -> String {
        // An output that cannot be read back is not worth stopping the transcript for.
        let text = if SHELLS.contains(&tool_name) {
            output.tail_text_lossy(END_OF_OUTPUT).unwrap_or_default()
        } else if failed {
            output.head_text_lossy(END_OF_OUTPUT).unwrap_or_default()
        } else {
            return String::new();
        };
        let lines: Vec<&str> = text.lines().collect();
        let shown = if SHELLS.contains(&tool_name) {
            last_lines(&lines)
        } else {
            lines.get(..FAILURE_LINES).unwrap_or(&lines)
        };
        let lines = shown.iter().map(|line| summary::output_line(line, LINE));
        lines.map(|line| margined(&self.style.highlight(Highlight::Faint, &line))).collect()
    }

    fn change_lines(&self, change: &FileChange) -> String {
        let count = diff_lines(&change.diff).count();
        let shown =
            diff_lines(&change.diff).take(DIFF_LINES).map(|line| match line.char_indices().nth(DIFF_LINE) {
                Some((end, _)) => Cow::Owned(format!("{}…", line.get(..end).unwrap_or_default())),
                None => Cow::Borrowed(line),
            });
        let mut lines: String = shown.map(|line| margined(&self.style.diff_line(&line))).collect();
        if count > DIFF_LINES {
            lines.push_str(&format!("    … {} more lines\n", count - DIFF_LINES));
        }
        lines
    }
}

/// A line below a call. A blank one has no margin.
fn margined(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }
}

/// The last lines that are shown of a command's output: blank ones between them are part of its form and do not count,
/// up to a bound. Where lines are left out, what follows begins with something to see.
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

/// The tokens of one answer, or of all; behind the input, how much of it was read from a cache and written to one.
fn tokens(usage: &Usage) -> String {
    let part = |tokens: Option<u64>, name: &str| {
        let tokens = tokens.filter(|tokens| *tokens > 0)?;
        Some(format!("{} {name}", summary::count(tokens)))
    };
    let parts = [part(usage.cache_read_tokens, "cached"), part(usage.cache_write_tokens, "written to cache")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let cached = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let [input, output] = [usage.input_tokens, usage.output_tokens].map(summary::count);
    format!("{input} tokens in{cached}, {output} out")
}

/// Returns why a call failed; `limit` is the time that it had, as far as known.
fn failure_words(kind: ToolErrorKind, limit: Duration) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        ToolErrorKind::TimedOut => return format!("timed out after {}", summary::duration(limit)).into(),
        ToolErrorKind::UnknownTool => "no such tool",
        ToolErrorKind::InvalidArguments => "bad arguments",
        ToolErrorKind::Denied => "denied",
        ToolErrorKind::NotFound => "not found",
        ToolErrorKind::PermissionDenied => "no permission",
        ToolErrorKind::EditConflict => "does not apply",
        ToolErrorKind::Cancelled => "cancelled",
        ToolErrorKind::EnvironmentLost => "environment lost",
        // A kind that this version does not know is a failure all the same.
        ToolErrorKind::Failed | _ => "failed",
    })
}

#[cfg(test)]
mod tests;
