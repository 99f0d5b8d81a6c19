//! State of an update section while it is parsed.

use std::ops::Range;

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind};
use crate::limits::MAX_HINTS;
use crate::parse::StreamItem;
use crate::parse::builder::PatchBuilder;
use crate::parse::diagnostics::Diagnostics;
use crate::syntax::HunkLine;

/// An update section being parsed.
#[derive(Debug)]
pub(super) struct OpenUpdate {
    path: String,
    line: usize,
    moved: bool,
    /// At least one hunk was completed.
    has_hunks: bool,
    hunk: Option<OpenHunk>,
    /// The last hunk ended with `*** End of File`.
    at_end_of_file: bool,
}

#[derive(Debug)]
struct OpenHunk {
    line: usize,
    /// It started with a `@@` line.
    has_header: bool,
    hints: usize,
    content: HunkContent,
    /// Trailing empty lines, which are either empty context or just a gap in the text.
    empty_lines: Range<usize>,
}

/// Kinds of lines in a hunk so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HunkContent {
    Nothing,
    Additions,
    OldLines,
}

impl OpenUpdate {
    pub(super) fn new(path: String, line: usize) -> Self {
        Self { path, line, moved: false, has_hunks: false, hunk: None, at_end_of_file: false }
    }

    /// Reads a line of the update that is not a marker.
    pub(super) fn line(
        &mut self,
        number: usize,
        line: &str,
        builder: &mut PatchBuilder,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), ParseError> {
        if let Some(text) = line.strip_prefix("@@") {
            let hint = diagnostics.normalize_hint(text, number);
            self.open_with_header(number, hint, builder, diagnostics)?;
            return self.hint(number, line, hint, builder);
        }
        if self.at_end_of_file {
            return match line.trim().is_empty() {
                true => Ok(()),
                false => Err(ParseError::new(number, line, ParseErrorKind::LineAfterEndOfFile)),
            };
        }
        let parsed = match (line.strip_prefix(' '), line.strip_prefix('-'), line.strip_prefix('+')) {
            (Some(text), ..) => HunkLine::Context(text.to_owned()),
            (_, Some(text), _) => HunkLine::Remove(text.to_owned()),
            (.., Some(text)) => HunkLine::Add(text.to_owned()),
            _ if line.is_empty() => {
                let open = self.hunk.get_or_insert_with(|| OpenHunk::new(number, false));
                open.push_empty(number, builder, diagnostics);
                return Ok(());
            }
            _ => return Err(ParseError::new(number, line, ParseErrorKind::NotAHunkLine)),
        };
        let open = self.hunk.get_or_insert_with(|| OpenHunk::new(number, false));
        if open.is_gap() {
            diagnostics.report(DiagnosticKind::MissingHunkHeader, number);
            builder.push(StreamItem::Hunk { line: number });
            *open = OpenHunk::new(number, false);
        }
        open.flush_empty(builder, diagnostics);
        open.push(parsed, builder);
        Ok(())
    }

    /// Handles `*** Move to:`. Returns whether it is allowed here.
    pub(super) fn start_move(&mut self) -> bool {
        let is_first = self.hunk.as_ref().is_none_or(OpenHunk::is_gap);
        if !is_first || self.has_hunks || self.moved {
            return false;
        }
        self.moved = true;
        true
    }

    /// Handles `*** End of File`. Returns whether there is a hunk that it ends.
    pub(super) fn end_of_file(&mut self) -> Result<bool, ParseError> {
        self.at_end_of_file = true;
        self.close_hunk()
    }

    /// Ends the update before line `number`.
    pub(super) fn close(mut self, number: usize) -> Result<(), ParseError> {
        self.close_hunk()?;
        if self.has_hunks || self.moved {
            return Ok(());
        }
        let kind = ParseErrorKind::NoHunks { path: self.path, line: self.line };
        Err(ParseError::new(number, "", kind))
    }

    /// Starts a hunk at a `@@` line with `hint`, unless the line belongs to the header of the current hunk.
    fn open_with_header(
        &mut self,
        number: usize,
        hint: &str,
        builder: &mut PatchBuilder,
        diagnostics: &mut Diagnostics,
    ) -> Result<(), ParseError> {
        self.at_end_of_file = false;
        if let Some(open) = self.hunk.as_mut().filter(|open| open.accepts_hints()) {
            open.empty_lines = 0..0;
            // Report the line without a hint. If there were no hints so far, that is the first line of the hunk.
            if hint.trim().is_empty() {
                diagnostics.report(DiagnosticKind::RepeatedHunkHeader, number);
            } else if open.hints == 0 {
                diagnostics.report(DiagnosticKind::RepeatedHunkHeader, open.line);
            }
            return Ok(());
        }
        self.close_hunk()?;
        self.hunk = Some(OpenHunk::new(number, true));
        builder.push(StreamItem::Hunk { line: number });
        Ok(())
    }

    /// Records the hint of a `@@` line, unless it is blank.
    fn hint(
        &mut self,
        number: usize,
        line: &str,
        hint: &str,
        builder: &mut PatchBuilder,
    ) -> Result<(), ParseError> {
        let Some(open) = self.hunk.as_mut().filter(|_| !hint.trim().is_empty()) else { return Ok(()) };
        if open.hints == MAX_HINTS {
            return Err(ParseError::new(number, line, ParseErrorKind::TooManyHints));
        }
        open.hints += 1;
        builder.push(StreamItem::Hint(hint.to_owned()));
        Ok(())
    }

    /// Ends the hunk being read, if any. Returns whether there was one.
    fn close_hunk(&mut self) -> Result<bool, ParseError> {
        let open = match self.hunk.take() {
            Some(open) if !open.is_gap() => open,
            _ => return Ok(false),
        };
        if open.content == HunkContent::Nothing {
            return Err(ParseError::new(open.line, "@@", ParseErrorKind::EmptyHunk));
        }
        self.has_hunks = true;
        Ok(true)
    }
}

impl OpenHunk {
    fn new(line: usize, has_header: bool) -> Self {
        Self { line, has_header, hints: 0, content: HunkContent::Nothing, empty_lines: 0..0 }
    }

    /// Returns whether all lines so far are blank and thus without meaning.
    fn is_gap(&self) -> bool {
        !self.has_header && self.content == HunkContent::Nothing
    }

    /// Returns whether all lines so far are `@@` lines.
    fn accepts_hints(&self) -> bool {
        self.has_header && self.content == HunkContent::Nothing
    }

    fn push(&mut self, line: HunkLine, builder: &mut PatchBuilder) {
        self.content = match (&line, self.content) {
            (HunkLine::Add(_), HunkContent::Nothing | HunkContent::Additions) => HunkContent::Additions,
            (HunkLine::Add(_), HunkContent::OldLines) | (HunkLine::Context(_) | HunkLine::Remove(_), _) => {
                HunkContent::OldLines
            }
        };
        builder.push(StreamItem::Line(line));
    }

    /// Reads an empty line. After old lines it is empty context. After additions alone it is context only if another
    /// line follows: at the end of the hunk, it must not turn the additions into an insertion before a blank line.
    fn push_empty(&mut self, number: usize, builder: &mut PatchBuilder, diagnostics: &mut Diagnostics) {
        let first = if self.empty_lines.is_empty() { number } else { self.empty_lines.start };
        self.empty_lines = first..number + 1;
        if self.content == HunkContent::OldLines {
            self.flush_empty(builder, diagnostics);
        }
    }

    fn flush_empty(&mut self, builder: &mut PatchBuilder, diagnostics: &mut Diagnostics) {
        let empty_lines = std::mem::take(&mut self.empty_lines);
        for _ in empty_lines.clone() {
            self.push(HunkLine::Context(String::new()), builder);
        }
        diagnostics.report_lines(DiagnosticKind::EmptyContext, empty_lines);
    }
}
