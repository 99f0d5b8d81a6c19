//! Transcript as text: streamed text, one line per tool call, diffs and a footer.

mod footer;
mod subagents;

use std::borrow::Cow;
use std::collections::HashMap;

use pintle_agent::{EventKind, SessionEvent};
use pintle_llm::Usage;
use pintle_tools::FileChange;

use super::call::{CompletedCall, MAX_LINE_CHARS};
use super::line::Face;
use super::live_region::TerminalSize;
use super::sanitize::diff_lines;
use super::style::Style;
use super::subagent_names::{SubagentNames, call_key_of};
use super::word_wrap::WordWrapper;
use super::{Footer, Header, note, plan, summary, width};

/// Maximum number of lines shown per diff.
const DIFF_LINES: usize = 120;

/// Maximum length of a diff line, in characters. Generated files may consist of a single line.
const MAX_DIFF_LINE_CHARS: usize = 500;

/// Prefix of reasoning text.
const REASONING: &str = "[reasoning] ";

/// Level of detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Final response only.
    Quiet,
    /// Transcript.
    Normal,
    /// Transcript with reasoning, requests and token counts.
    Verbose,
}

/// Formats events as a transcript.
#[derive(Debug)]
pub(crate) struct TextView {
    style: Style,
    detail: Detail,
    /// Subjects of the running calls by call key.
    calls: HashMap<String, String>,
    subagents: SubagentNames,
    /// Events of subagents received while the model streamed text, with the name of the subagent.
    deferred: Vec<(String, SessionEvent)>,
    last: Block,
    is_line_open: bool,
    /// Width at which text is wrapped, if any.
    columns: Option<usize>,
    wrapper: WordWrapper,
}

/// Last block of the transcript. Blocks are separated by a blank line, except between lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    /// The transcript is empty.
    Start,
    /// Incomplete text of the model.
    Text,
    /// Incomplete reasoning of the model.
    Reasoning,
    /// Complete text or reasoning.
    Ended,
    Lines,
}

impl TextView {
    /// Creates an empty transcript.
    pub(crate) fn new(style: Style, detail: Detail) -> Self {
        Self {
            style,
            detail,
            calls: HashMap::new(),
            subagents: SubagentNames::default(),
            deferred: Vec::new(),
            last: Block::Start,
            is_line_open: false,
            columns: None,
            wrapper: WordWrapper::default(),
        }
    }

    /// Wraps text at the width of a terminal of this size from now on.
    pub(super) fn resize(&mut self, size: TerminalSize) {
        // Terminals differ in how they treat the last column.
        self.columns = size.columns.checked_sub(1);
        self.wrapper.set_columns(self.columns);
    }

    /// Returns whether the last line is incomplete.
    pub(super) fn is_line_open(&self) -> bool {
        self.is_line_open
    }

    /// Returns the header in verbose mode.
    pub(super) fn header(&mut self, header: &Header<'_>) -> String {
        if self.detail != Detail::Verbose {
            return String::new();
        }
        let Header { session_id, provider, model, directory } = header;
        let line = format!("[session] {session_id}: {provider} {model} in {}", directory.display());
        self.line(&self.style.paint(&width::single_line(&line), Face::DIM))
    }

    /// Returns the output for an event.
    pub(super) fn event(&mut self, event: &SessionEvent) -> String {
        let subagent = self.subagents.name_of(event);
        if self.detail == Detail::Quiet {
            return String::new();
        }
        match subagent {
            Some(subagent) => self.subagent_event(subagent, event),
            None => self.session_event(event) + &self.flush_deferred(),
        }
    }

    /// Returns the output for an event of the session itself.
    fn session_event(&mut self, event: &SessionEvent) -> String {
        match &event.kind {
            EventKind::AssistantTextDelta { delta } => self.text(Block::Text, delta),
            EventKind::AssistantTextEnd { interrupted, .. } => self.end_of_text(*interrupted),
            EventKind::ToolCallStart { call_id, tool_name, arguments, .. } => {
                self.calls.insert(call_key_of(event, call_id), plan::subject(tool_name, arguments));
                String::new()
            }
            EventKind::ToolCallEnd { call_id, .. } => {
                let subject = self.calls.remove(&call_key_of(event, call_id)).unwrap_or_default();
                self.call_lines("", &subject, &event.kind)
            }
            EventKind::SubagentSpawned { .. } | EventKind::SubagentEnded { .. } => {
                self.subagent_lifecycle(None, &event.kind)
            }
            kind @ (EventKind::SessionStart { .. } | _) => match note(kind) {
                Some((label, text)) => self.note(label, &text),
                None => self.verbose(kind),
            },
        }
    }

    /// Formats a completed call after `prefix`: its result, and below it its output and changes.
    fn call_lines(&mut self, prefix: &str, subject: &str, end: &EventKind) -> String {
        let Some(call) = CompletedCall::of(end, subject) else { return String::new() };
        let head = call.head(self.style.moves).to_terminal(self.style.depth());
        let mut shown = self.line(&format!("{prefix}{head}"));
        let output = call.output_lines().into_iter();
        shown.extend(output.map(|line| indent(&self.style.paint(&line, Face::DIM))));
        shown.extend(call.changes.iter().map(|change| self.change_lines(change)));
        shown
    }

    /// Returns the output for events shown only in verbose mode.
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
            self.note("response", &format!("{model}: {}", tokens(usage)))
        } else {
            String::new()
        }
    }

    /// Appends streamed text, after a blank line unless it continues the same block.
    fn text(&mut self, block: Block, delta: &str) -> String {
        if delta.is_empty() {
            return String::new();
        }
        let mut shown = String::new();
        if self.last != block {
            shown.push_str(&self.gap_before(block));
            if block == Block::Reasoning {
                shown.push_str(REASONING);
                self.wrapper.indent(REASONING.len());
            }
            self.last = block;
            self.is_line_open = true;
        }
        let text = self.wrapper.push(delta);
        self.is_line_open = self.wrapper.is_line_open();
        shown + &text
    }

    fn end_of_text(&mut self, interrupted: bool) -> String {
        let mut shown = self.end_open_line();
        if matches!(self.last, Block::Text | Block::Reasoning) {
            self.last = Block::Ended;
        }
        if interrupted {
            shown.push_str(&self.note("interrupted", "response cut off"));
        }
        shown
    }

    /// Formats a labelled line such as `[warning] …`.
    fn note(&mut self, label: &str, text: &str) -> String {
        let line = format!("[{label}] {}", summary::one_line(text, 4 * MAX_LINE_CHARS));
        self.line(&self.style.paint(&line, Face::DIM))
    }

    fn line(&mut self, line: &str) -> String {
        let gap = self.gap_before(Block::Lines);
        self.last = Block::Lines;
        format!("{gap}{line}\n")
    }

    /// Ends an open line, and adds a blank line if the next block needs one.
    fn gap_before(&mut self, block: Block) -> String {
        let mut gap = self.end_open_line();
        if !matches!((self.last, block), (Block::Start, _) | (Block::Lines, Block::Lines)) {
            gap.push('\n');
        }
        gap
    }

    /// Flushes held-back text and ends its line.
    fn end_open_line(&mut self) -> String {
        let mut shown = self.wrapper.end();
        if std::mem::take(&mut self.is_line_open) {
            shown.push('\n');
        }
        shown
    }

    fn change_lines(&self, change: &FileChange) -> String {
        let count = diff_lines(&change.diff).count();
        let shown = diff_lines(&change.diff).take(DIFF_LINES).map(|line| {
            match line.char_indices().nth(MAX_DIFF_LINE_CHARS) {
                Some((end, _)) => Cow::Owned(format!("{}…", line.get(..end).unwrap_or_default())),
                None => Cow::Borrowed(line),
            }
        });
        let mut lines: String = shown.map(|line| indent(&self.style.diff_line(&line))).collect();
        if count > DIFF_LINES {
            let more = summary::plural((count - DIFF_LINES) as u64, "more line");
            lines.push_str(&format!("    … {more}\n"));
        }
        lines
    }
}

/// Indents a line below a call, unless it is blank.
fn indent(line: &str) -> String {
    if line.is_empty() { "\n".to_owned() } else { format!("    {line}\n") }
}

/// Formats token counts, with the cached part of the input.
fn tokens(usage: &Usage) -> String {
    let part = |tokens: Option<u64>, name: &str| {
        let tokens = tokens.filter(|tokens| *tokens > 0)?;
        Some(format!("{} {name}", summary::count(tokens)))
    };
    let parts = [part(usage.cache_read_tokens, "cached"), part(usage.cache_write_tokens, "written to cache")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let cached = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let input = summary::plural(usage.input_tokens, "token");
    format!("{input} in{cached}, {} out", summary::count(usage.output_tokens))
}

#[cfg(test)]
mod tests;
