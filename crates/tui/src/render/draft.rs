//! Draft of a tool call that a model is streaming: its subject and its diff.

mod diff_tail;
mod string_fields;

use std::mem;

use pintle_patch::{HunkLine, PatchStream, StreamItem, diff_hunks};
use serde_json::Value;

use self::diff_tail::{DiffTail, LineKind};
use self::string_fields::StringFields;
use super::line::StyledLine;
use super::summary;

/// Tool whose argument is a patch, in every toolset.
const APPLY_PATCH: &str = "apply_patch";

/// Bytes of each argument kept for the subject.
const SUBJECT_BYTES: usize = 200;

/// Maximum size of the texts of an edit to diff, in bytes.
const MAX_DIFF_BYTES: usize = 64 << 10;

/// Maximum total lines of the texts of an edit to diff. A diff can take quadratic time, which would delay the stream.
const MAX_DIFF_LINES: usize = 2_000;

/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 1;

/// Draft of a call, fed with its arguments as they are streamed.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(super) call_id: String,
    /// Sequence number of the event that started the draft. Gaps in the arguments have the same number.
    pub(super) seq: u64,
    pub(super) tool_name: String,
    arguments: Arguments,
    patch: Option<PatchStream>,
    /// Key arguments in the order in which they were streamed.
    subject: Vec<(String, String)>,
    diff: DiffTail,
}

/// Syntax of the arguments.
#[derive(Debug)]
enum Arguments {
    Unknown,
    Json(StringFields),
    /// Free-form text of a custom tool.
    Text,
    /// A part was missed, so the rest cannot be parsed.
    Missed,
    Complete,
}

impl Draft {
    /// Creates a draft without arguments.
    pub(super) fn new(call_id: &str, tool_name: &str, seq: u64) -> Self {
        Self {
            call_id: call_id.to_owned(),
            seq,
            tool_name: tool_name.to_owned(),
            arguments: Arguments::Unknown,
            patch: Some(PatchStream::new()),
            subject: Vec::new(),
            diff: DiffTail::default(),
        }
    }

    /// Appends a delta of the arguments.
    pub(super) fn push(&mut self, delta: &str) {
        if matches!(self.arguments, Arguments::Unknown) {
            match delta.trim_start().chars().next() {
                None => return,
                Some('{') => self.arguments = Arguments::Json(StringFields::default()),
                Some(_) => self.arguments = Arguments::Text,
            }
        }
        match &mut self.arguments {
            Arguments::Json(fields) => {
                for (name, text) in fields.push(delta) {
                    self.field(&name, &text);
                }
            }
            Arguments::Text if self.tool_name == APPLY_PATCH => self.patch(delta),
            Arguments::Text | Arguments::Unknown | Arguments::Missed | Arguments::Complete => {}
        }
    }

    /// Removes the diff because a part of the arguments was missed. They count as incomplete until
    /// [`complete`](Self::complete) is called.
    pub(super) fn miss(&mut self) {
        self.arguments = Arguments::Missed;
        self.patch = None;
        self.diff = DiffTail::default();
    }

    /// Ends the arguments, if all of them were pushed, and diffs the texts of an edit.
    pub(super) fn finish(&mut self) {
        match mem::replace(&mut self.arguments, Arguments::Missed) {
            Arguments::Json(fields) => self.complete(fields.value().unwrap_or(&Value::Null)),
            Arguments::Text | Arguments::Complete => self.complete(&Value::Null),
            Arguments::Unknown | Arguments::Missed => {}
        }
    }

    /// Sets the complete arguments and diffs the texts of an edit. A second call has no effect.
    pub(super) fn complete(&mut self, arguments: &Value) {
        if matches!(self.arguments, Arguments::Complete) {
            return;
        }
        // Drop both parsers, which retain their input.
        self.patch = None;
        self.arguments = Arguments::Complete;
        let text = |name| arguments.get(name).and_then(Value::as_str);
        let (Some(old), Some(new)) = (text("old_string"), text("new_string")) else { return };
        let is_long = old.len().max(new.len()) > MAX_DIFF_BYTES;
        if is_long || old.lines().chain(new.lines()).nth(MAX_DIFF_LINES).is_some() {
            return;
        }
        self.diff = DiffTail::default();
        for line in diff_hunks(old, new, CONTEXT_LINES).lines() {
            match line.split_at_checked(1) {
                Some(("+", rest)) => self.diff.line(LineKind::Added, rest),
                Some(("-", rest)) => self.diff.line(LineKind::Removed, rest),
                Some((" ", rest)) => self.diff.line(LineKind::Context, rest),
                // Hunk headers refer to the texts, not to the file; a missing final newline does not matter here.
                Some(_) | None => {}
            }
        }
    }

    /// Returns the subject of the call as far as it was streamed.
    pub(super) fn subject(&self) -> String {
        let parts: Vec<&str> = self.subject.iter().map(|(_, text)| text.as_str()).collect();
        summary::one_line(&parts.join(" "), summary::MAX_CHARS)
    }

    /// Returns the numbers of added and removed lines.
    pub(super) fn counts(&self) -> (u64, u64) {
        self.diff.counts()
    }

    /// Returns at most `lines` lines from the end of the diff.
    pub(super) fn last_lines(&self, lines: usize) -> impl Iterator<Item = StyledLine> {
        self.diff.last_lines(lines)
    }

    fn field(&mut self, name: &str, text: &str) {
        match name {
            "old_string" => self.diff.text(LineKind::Removed, text),
            "new_string" | "content" => self.diff.text(LineKind::Added, text),
            "patch" | "input" if self.tool_name == APPLY_PATCH => self.patch(text),
            name if summary::KEY_ARGUMENTS.contains(&name) => self.extend_subject(name, text),
            _ => {}
        }
    }

    /// Adds the unambiguous part of a patch to the diff. Stops at the first syntax error.
    fn patch(&mut self, text: &str) {
        let Some(stream) = &mut self.patch else { return };
        let mut items = Vec::new();
        let parsed = stream.push(text, &mut items);
        if parsed.is_err() {
            self.patch = None;
        }
        for item in items {
            self.item(&item);
        }
    }

    fn item(&mut self, item: &StreamItem) {
        match item {
            StreamItem::AddFile { path, .. } => self.file("A", path),
            StreamItem::DeleteFile { path, .. } => self.file("D", path),
            StreamItem::UpdateFile { path, .. } => self.file("M", path),
            StreamItem::MoveTo(path) => self.diff.line(LineKind::File, &format!("-> {path}")),
            StreamItem::Hunk { .. } => self.diff.line(LineKind::Hunk, ""),
            StreamItem::Hint(hint) => self.diff.line(LineKind::Hunk, hint),
            StreamItem::Line(HunkLine::Context(line)) => self.diff.line(LineKind::Context, line),
            StreamItem::Line(HunkLine::Remove(line)) => self.diff.line(LineKind::Removed, line),
            StreamItem::Line(HunkLine::Add(line)) => self.diff.line(LineKind::Added, line),
            StreamItem::EndOfFile | StreamItem::FileEnded => {}
        }
    }

    fn file(&mut self, change: &str, path: &str) {
        self.diff.line(LineKind::File, &format!("{change} {path}"));
        if self.subject.iter().map(|(_, text)| text.len()).sum::<usize>() < SUBJECT_BYTES {
            let path: String = path.chars().take(SUBJECT_BYTES).collect();
            self.subject.push((path.clone(), path));
        }
    }

    fn extend_subject(&mut self, name: &str, text: &str) {
        if !self.subject.iter().any(|(known, _)| known == name) {
            self.subject.push((name.to_owned(), String::new()));
        }
        for (_, subject) in self.subject.iter_mut().filter(|(known, _)| known == name) {
            let room = SUBJECT_BYTES.saturating_sub(subject.len());
            subject.extend(text.chars().take(room));
        }
    }
}

#[cfg(test)]
mod tests;
