//! An update while it is read.

use std::ops::Range;

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind};
use crate::parse::draft::Draft;
use crate::parse::tolerated::Tolerated;
use crate::parse::{MAX_HINTS, StreamItem};
use crate::syntax::HunkLine;

/// What the next line of an update depends on.
#[derive(Debug)]
pub(super) struct OpenUpdate {
    path: String,
    line: usize,
    moved: bool,
    /// A hunk was closed.
    changed: bool,
    hunk: Option<OpenHunk>,
    /// The last hunk was closed by `*** End of File`.
    at_end_of_file: bool,
}

#[derive(Debug)]
struct OpenHunk {
    line: usize,
    /// A `@@` line opened it.
    headed: bool,
    hints: usize,
    content: Content,
    /// The truly empty lines of the patch that followed last and may be empty context or only a
    /// gap in the text.
    bare: Range<usize>,
}

/// What the lines of a hunk are so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Additions,
    OldLines,
}

impl OpenUpdate {
    pub(super) fn new(path: String, line: usize) -> Self {
        Self { path, line, moved: false, changed: false, hunk: None, at_end_of_file: false }
    }

    /// A line of an update that is not a marker.
    pub(super) fn line(
        &mut self,
        number: usize,
        line: &str,
        draft: &mut Draft,
        tolerated: &mut Tolerated,
    ) -> Result<(), ParseError> {
        if let Some(text) = line.strip_prefix("@@") {
            let hint = tolerated.hint(text, number);
            self.open_headed(number, hint, draft, tolerated)?;
            return self.hint(number, line, hint, draft);
        }
        if self.at_end_of_file {
            return match line.trim().is_empty() {
                true => Ok(()),
                false => Err(ParseError::new(number, line, ParseErrorKind::AfterEndOfFile)),
            };
        }
        let parsed = match (line.strip_prefix(' '), line.strip_prefix('-'), line.strip_prefix('+')) {
            (Some(text), ..) => HunkLine::Context(text.to_owned()),
            (_, Some(text), _) => HunkLine::Remove(text.to_owned()),
            (.., Some(text)) => HunkLine::Add(text.to_owned()),
            _ if line.is_empty() => {
                let open = self.hunk.get_or_insert_with(|| OpenHunk::new(number, false));
                open.push_bare(number, draft, tolerated);
                return Ok(());
            }
            _ => return Err(ParseError::new(number, line, ParseErrorKind::NotAHunkLine)),
        };
        let open = self.hunk.get_or_insert_with(|| OpenHunk::new(number, false));
        if open.is_gap() {
            tolerated.note(DiagnosticKind::MissingHunkHeader, number);
            draft.push(StreamItem::Hunk { line: number });
            *open = OpenHunk::new(number, false);
        }
        open.flush_bare(draft, tolerated);
        open.push(parsed, draft);
        Ok(())
    }

    /// Takes in `*** Move to:`; says whether it may stand here.
    pub(super) fn start_move(&mut self) -> bool {
        let untouched = self.hunk.as_ref().is_none_or(OpenHunk::is_gap);
        if !untouched || self.changed || self.moved {
            return false;
        }
        self.moved = true;
        true
    }

    /// Takes in `*** End of File`; says whether there is a hunk that it can close.
    pub(super) fn end_of_file(&mut self) -> Result<bool, ParseError> {
        self.at_end_of_file = true;
        self.close_hunk()
    }

    /// Ends the update before the line `number`.
    pub(super) fn close(mut self, number: usize) -> Result<(), ParseError> {
        self.close_hunk()?;
        if self.changed || self.moved {
            return Ok(());
        }
        let kind = ParseErrorKind::NoHunks { path: self.path, line: self.line };
        Err(ParseError::new(number, "", kind))
    }

    /// Makes the hunk that is being read one to which a `@@` line with `hint` belongs.
    fn open_headed(
        &mut self,
        number: usize,
        hint: &str,
        draft: &mut Draft,
        tolerated: &mut Tolerated,
    ) -> Result<(), ParseError> {
        self.at_end_of_file = false;
        if let Some(open) = self.hunk.as_mut().filter(|open| open.is_stackable()) {
            open.bare = 0..0;
            // The bare one of the two is to blame, and without hints all so far were bare.
            if hint.trim().is_empty() {
                tolerated.note(DiagnosticKind::RepeatedHunkHeader, number);
            } else if open.hints == 0 {
                tolerated.note(DiagnosticKind::RepeatedHunkHeader, open.line);
            }
            return Ok(());
        }
        self.close_hunk()?;
        self.hunk = Some(OpenHunk::new(number, true));
        draft.push(StreamItem::Hunk { line: number });
        Ok(())
    }

    /// Takes in the hint of a `@@` line, unless it is blank.
    fn hint(&mut self, number: usize, line: &str, hint: &str, draft: &mut Draft) -> Result<(), ParseError> {
        let Some(open) = self.hunk.as_mut().filter(|_| !hint.trim().is_empty()) else { return Ok(()) };
        if open.hints == MAX_HINTS {
            return Err(ParseError::new(number, line, ParseErrorKind::TooManyHints));
        }
        open.hints += 1;
        draft.push(StreamItem::Hint(hint.to_owned()));
        Ok(())
    }

    /// Ends the hunk that is being read, if any; says whether there was one.
    fn close_hunk(&mut self) -> Result<bool, ParseError> {
        let open = match self.hunk.take() {
            Some(open) if !open.is_gap() => open,
            _ => return Ok(false),
        };
        if open.content == Content::Nothing {
            return Err(ParseError::new(open.line, "@@", ParseErrorKind::EmptyHunk));
        }
        self.changed = true;
        Ok(true)
    }
}

impl OpenHunk {
    fn new(line: usize, headed: bool) -> Self {
        Self { line, headed, hints: 0, content: Content::Nothing, bare: 0..0 }
    }

    /// Only blank lines so far, which separate and say nothing.
    fn is_gap(&self) -> bool {
        !self.headed && self.content == Content::Nothing
    }

    /// Only `@@` lines so far.
    fn is_stackable(&self) -> bool {
        self.headed && self.content == Content::Nothing
    }

    fn push(&mut self, line: HunkLine, draft: &mut Draft) {
        self.content = match (&line, self.content) {
            (HunkLine::Add(_), Content::Nothing | Content::Additions) => Content::Additions,
            (HunkLine::Add(_), Content::OldLines) | (HunkLine::Context(_) | HunkLine::Remove(_), _) => {
                Content::OldLines
            }
        };
        draft.push(StreamItem::Line(line));
    }

    /// Takes in an empty line. Behind old lines it is empty context. Behind additions alone it is
    /// so only if another line follows: at the end of the hunk it must not turn them into an
    /// insertion before a blank line.
    fn push_bare(&mut self, number: usize, draft: &mut Draft, tolerated: &mut Tolerated) {
        let first = if self.bare.is_empty() { number } else { self.bare.start };
        self.bare = first..number + 1;
        if self.content == Content::OldLines {
            self.flush_bare(draft, tolerated);
        }
    }

    fn flush_bare(&mut self, draft: &mut Draft, tolerated: &mut Tolerated) {
        let bare = std::mem::take(&mut self.bare);
        for _ in bare.clone() {
            self.push(HunkLine::Context(String::new()), draft);
        }
        tolerated.note_lines(DiagnosticKind::EmptyContext, bare);
    }
}
