//! Text in, a [`Patch`] out.

mod envelope;
mod marker;

use std::ops::Range;

use crate::error::{ParseError, ParseErrorKind};
use crate::syntax::{AddFile, DeleteFile, Hunk, HunkLine, Operation, Patch, UpdateFile};
use crate::{Diagnostic, DiagnosticKind};
use envelope::Envelope;
use marker::{Marker, MarkerLine};

/// The longest patch that is read, in bytes.
pub const MAX_PATCH_BYTES: usize = 64 * 1024 * 1024;

/// The deepest stack of `@@` lines before one hunk.
pub const MAX_HINTS: usize = 32;

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// Reads a patch in the v4a format (coding agent loop specification, appendix A).
///
/// What models write a little wrong and can mean in one way only is accepted and reported in
/// [`Patch::diagnostics`]: text around the patch, a missing end marker, markers that are indented
/// or end in `***`, git-style hunk headers, carriage returns.
///
/// # Errors
///
/// [`ParseError`] for everything else, with the line, what was found and what was expected.
pub fn parse(text: &str) -> Result<Patch, ParseError> {
    if text.len() > MAX_PATCH_BYTES {
        return Err(ParseError::new(1, "", ParseErrorKind::TooLong { bytes: text.len() }));
    }
    let mut tolerated = Tolerated::default();
    if text.starts_with(BYTE_ORDER_MARK) {
        tolerated.note(DiagnosticKind::ByteOrderMark, 1);
    }
    let envelope = Envelope::find(text, &mut tolerated)?;
    let mut parser = Parser { tolerated, operations: Vec::new(), section: Section::Between };
    let body = numbered_lines(text)
        .skip_while(|(number, _)| *number <= envelope.begin)
        .take_while(|(number, _)| *number < envelope.end);
    for (number, line) in body {
        parser.line(number, line)?;
    }
    parser.finish(envelope.end, text)
}

/// Reads operations line by line.
struct Parser {
    tolerated: Tolerated,
    operations: Vec<Operation>,
    section: Section,
}

/// The operation that is being read.
enum Section {
    Between,
    Add { file: AddFile, blanks: usize },
    Update(OpenUpdate),
}

struct OpenUpdate {
    file: UpdateFile,
    hunk: Option<OpenHunk>,
    /// The last hunk was closed by `*** End of File`.
    at_end_of_file: bool,
}

struct OpenHunk {
    hunk: Hunk,
    /// A `@@` line opened it.
    headed: bool,
    /// The truly empty lines of the patch that followed last: empty context, or only a gap in
    /// the text.
    bare: Range<usize>,
}

impl Parser {
    fn line(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let content = line.strip_suffix('\r').unwrap_or(line);
        if content.len() < line.len() {
            self.tolerated.note(DiagnosticKind::CarriageReturns, number);
        }
        match &mut self.section {
            Section::Between => self.between(number, content),
            Section::Add { file, blanks } => match content.strip_prefix('+') {
                Some(text) => {
                    self.tolerated.note_lines(DiagnosticKind::BlankLineInAdd, number - *blanks..number);
                    file.lines.extend(std::iter::repeat_n(String::new(), std::mem::take(blanks)));
                    file.lines.push(text.to_owned());
                    Ok(())
                }
                None if content.trim().is_empty() => {
                    *blanks += 1;
                    Ok(())
                }
                None => self.header(number, content, ParseErrorKind::NotAnAddedLine),
            },
            // Inside an update a marker starts in the first column: indented, it is context.
            Section::Update(_) if content.starts_with("***") => self.update_marker(number, content),
            Section::Update(update) => update.line(number, content, &mut self.tolerated),
        }
    }

    fn between(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let marker = MarkerLine::read(line).map(|read| read.marker);
        if marker == Some(Marker::EnvironmentId) && self.operations.is_empty() {
            self.tolerated.note(DiagnosticKind::EnvironmentId, number);
            return Ok(());
        }
        self.header(number, line, ParseErrorKind::NotAHeader)
    }

    /// Opens the operation that `line` names; any other line is refused as `otherwise`.
    fn header(&mut self, number: usize, line: &str, otherwise: ParseErrorKind) -> Result<(), ParseError> {
        let Some(read) = MarkerLine::read(line) else {
            return Err(ParseError::new(number, line, otherwise));
        };
        self.close_section(number)?;
        match read.marker {
            Marker::AddFile(path) => {
                let path = self.tolerated.path(path, number, line)?;
                let file = AddFile { path, lines: Vec::new(), line: number };
                self.section = Section::Add { file, blanks: 0 };
            }
            Marker::DeleteFile(path) => {
                let path = self.tolerated.path(path, number, line)?;
                self.operations.push(Operation::Delete(DeleteFile { path, line: number }));
            }
            Marker::UpdateFile(path) => {
                let path = self.tolerated.path(path, number, line)?;
                let hunks = Vec::new();
                let file = UpdateFile { path, move_to: None, hunks, line: number };
                self.section = Section::Update(OpenUpdate { file, hunk: None, at_end_of_file: false });
            }
            Marker::MoveTo(_) => {
                return Err(ParseError::new(number, line, ParseErrorKind::MisplacedMove));
            }
            Marker::BeginPatch | Marker::EndPatch | Marker::EndOfFile | Marker::EnvironmentId => {
                return Err(ParseError::new(number, line, otherwise));
            }
        }
        self.tolerated.dress(read, number);
        Ok(())
    }

    fn update_marker(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let Section::Update(update) = &mut self.section else {
            return self.header(number, line, ParseErrorKind::NotAHeader);
        };
        let Some(read) = MarkerLine::read(line) else {
            return Err(ParseError::new(number, line, ParseErrorKind::UnknownMarker));
        };
        match read.marker {
            Marker::EndOfFile => {
                if !update.close_hunk(true, &mut self.tolerated)? {
                    return Err(ParseError::new(number, line, ParseErrorKind::EmptyHunk));
                }
                update.at_end_of_file = true;
            }
            Marker::MoveTo(path) => {
                let untouched = update.hunk.as_ref().is_none_or(OpenHunk::is_gap);
                if !untouched || !update.file.hunks.is_empty() || update.file.move_to.is_some() {
                    return Err(ParseError::new(number, line, ParseErrorKind::MisplacedMove));
                }
                update.hunk = None;
                update.file.move_to = Some(self.tolerated.path(path, number, line)?);
            }
            Marker::BeginPatch
            | Marker::EndPatch
            | Marker::EnvironmentId
            | Marker::AddFile(_)
            | Marker::DeleteFile(_)
            | Marker::UpdateFile(_) => {
                return self.header(number, line, ParseErrorKind::UnknownMarker);
            }
        }
        self.tolerated.dress(read, number);
        Ok(())
    }

    fn close_section(&mut self, number: usize) -> Result<(), ParseError> {
        match std::mem::replace(&mut self.section, Section::Between) {
            Section::Between => {}
            Section::Add { file, blanks } => {
                self.tolerated.note_lines(DiagnosticKind::BlankLineAfterAdd, number - blanks..number);
                self.operations.push(Operation::Add(file));
            }
            Section::Update(mut update) => {
                update.close_hunk(false, &mut self.tolerated)?;
                let file = update.file;
                if file.hunks.is_empty() && file.move_to.is_none() {
                    let kind = ParseErrorKind::NoHunks { path: file.path, line: file.line };
                    return Err(ParseError::new(number, "", kind));
                }
                self.operations.push(Operation::Update(file));
            }
        }
        Ok(())
    }

    fn finish(mut self, end: usize, text: &str) -> Result<Patch, ParseError> {
        self.close_section(end)?;
        if self.operations.is_empty() {
            let line = numbered_lines(text).nth(end - 1).map_or("", |(_, line)| line);
            return Err(ParseError::new(end, line, ParseErrorKind::NoOperations));
        }
        Ok(Patch { operations: self.operations, diagnostics: self.tolerated.diagnostics })
    }
}

impl OpenUpdate {
    /// A line of an update that is not a marker.
    fn line(&mut self, number: usize, line: &str, tolerated: &mut Tolerated) -> Result<(), ParseError> {
        if let Some(text) = line.strip_prefix("@@") {
            return self.hunk_header(number, line, text, tolerated);
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
                self.hunk.get_or_insert_with(|| OpenHunk::new(number, false)).push_bare(number);
                return Ok(());
            }
            _ => return Err(ParseError::new(number, line, ParseErrorKind::NotAHunkLine)),
        };
        let open = self.hunk.get_or_insert_with(|| OpenHunk::new(number, false));
        if open.is_gap() {
            tolerated.note(DiagnosticKind::MissingHunkHeader, number);
            *open = OpenHunk::new(number, false);
        }
        open.flush_bare(tolerated);
        open.hunk.lines.push(parsed);
        Ok(())
    }

    fn hunk_header(
        &mut self,
        number: usize,
        line: &str,
        text: &str,
        tolerated: &mut Tolerated,
    ) -> Result<(), ParseError> {
        self.at_end_of_file = false;
        let hint = tolerated.hint(text, number);
        let mut open = match self.hunk.take() {
            Some(open) if open.is_stackable() => {
                // The bare one of the two is to blame, and without hints all so far were bare.
                if hint.trim().is_empty() {
                    tolerated.note(DiagnosticKind::RepeatedHunkHeader, number);
                } else if open.hunk.hints.is_empty() {
                    tolerated.note(DiagnosticKind::RepeatedHunkHeader, open.hunk.line);
                }
                open
            }
            closing => {
                self.hunk = closing;
                self.close_hunk(false, tolerated)?;
                OpenHunk::new(number, true)
            }
        };
        open.bare = 0..0;
        if !hint.trim().is_empty() {
            if open.hunk.hints.len() == MAX_HINTS {
                return Err(ParseError::new(number, line, ParseErrorKind::TooManyHints));
            }
            open.hunk.hints.push(hint.to_owned());
        }
        self.hunk = Some(open);
        Ok(())
    }

    /// Ends the hunk that is being read, if any; says whether there was one.
    fn close_hunk(&mut self, end_of_file: bool, tolerated: &mut Tolerated) -> Result<bool, ParseError> {
        let mut open = match self.hunk.take() {
            Some(open) if !open.is_gap() => open,
            _ => return Ok(false),
        };
        if open.hunk.lines.is_empty() {
            return Err(ParseError::new(open.hunk.line, "@@", ParseErrorKind::EmptyHunk));
        }
        if open.hunk.lines.iter().all(|line| matches!(line, HunkLine::Add(_))) {
            // A gap after additions must not turn them into an insertion before a blank line.
            open.bare = 0..0;
        }
        open.flush_bare(tolerated);
        open.hunk.end_of_file = end_of_file;
        self.file.hunks.push(open.hunk);
        Ok(true)
    }
}

impl OpenHunk {
    fn new(line: usize, headed: bool) -> Self {
        Self { hunk: Hunk { line, ..Hunk::new(Vec::new()) }, headed, bare: 0..0 }
    }

    /// Only blank lines so far, which separate and say nothing.
    fn is_gap(&self) -> bool {
        !self.headed && self.hunk.lines.is_empty()
    }

    /// Only `@@` lines so far.
    fn is_stackable(&self) -> bool {
        self.headed && self.hunk.lines.is_empty()
    }

    /// Takes in an empty line; those since the last other line follow on each other.
    fn push_bare(&mut self, number: usize) {
        let first = if self.bare.is_empty() { number } else { self.bare.start };
        self.bare = first..number + 1;
    }

    fn flush_bare(&mut self, tolerated: &mut Tolerated) {
        let bare = std::mem::take(&mut self.bare);
        let empty = HunkLine::Context(String::new());
        self.hunk.lines.extend(std::iter::repeat_n(empty, bare.len()));
        tolerated.note_lines(DiagnosticKind::EmptyContext, bare);
    }
}

/// What was tolerated so far: one diagnostic for each kind, so a bad patch makes few.
#[derive(Default)]
struct Tolerated {
    diagnostics: Vec<Diagnostic>,
}

impl Tolerated {
    fn note(&mut self, kind: DiagnosticKind, line: usize) {
        self.note_lines(kind, line..line + 1);
    }

    /// Notes the same matter in each of `lines`, which may be none.
    fn note_lines(&mut self, kind: DiagnosticKind, lines: Range<usize>) {
        if lines.is_empty() {
            return;
        }
        let count = lines.len();
        match self.diagnostics.iter_mut().find(|seen| seen.kind == kind) {
            Some(seen) => {
                seen.count += count;
                seen.line = seen.line.min(lines.start);
            }
            None => self.diagnostics.push(Diagnostic { count, ..Diagnostic::new(kind, lines.start) }),
        }
    }

    fn dress(&mut self, read: MarkerLine<'_>, line: usize) {
        if read.padded {
            self.note(DiagnosticKind::PaddedMarker, line);
        }
        if read.starred {
            self.note(DiagnosticKind::StarredMarker, line);
        }
        if read.tight {
            self.note(DiagnosticKind::TightPath, line);
        }
    }

    /// The path of a header, without `.` segments.
    fn path(&mut self, path: &str, number: usize, line: &str) -> Result<String, ParseError> {
        if path.chars().any(char::is_control) {
            return Err(ParseError::new(number, line, ParseErrorKind::ControlInPath));
        }
        let root = if path.starts_with('/') { "/" } else { "" };
        let segments = path.split('/').filter(|segment| !matches!(*segment, "" | "."));
        let clean = format!("{root}{}", segments.collect::<Vec<_>>().join("/"));
        if clean == root {
            return Err(ParseError::new(number, line, ParseErrorKind::EmptyPath));
        }
        if clean != path {
            self.note(DiagnosticKind::DotSegments, number);
        }
        Ok(clean)
    }

    /// The hint of a `@@` line, empty where it has none. Its indentation stays: it tells twins
    /// apart.
    fn hint<'a>(&mut self, text: &'a str, number: usize) -> &'a str {
        let mut tight = !text.starts_with(' ');
        let mut hint = text.strip_prefix(' ').unwrap_or(text).trim_end();
        loop {
            if let Some(heading) = without_ranges(hint.trim_start()) {
                self.note(DiagnosticKind::GitHunkHeader, number);
                tight = false;
                hint = heading.strip_prefix(' ').unwrap_or(heading);
            } else if without_closing(hint).is_some() {
                self.note(DiagnosticKind::ClosedHint, number);
                // All at once: each look at the start of the line costs its leading blanks.
                while let Some(opened) = without_closing(hint) {
                    hint = opened.trim_end();
                }
                hint = hint.strip_prefix(' ').unwrap_or(hint);
            } else {
                if tight && !hint.is_empty() {
                    self.note(DiagnosticKind::TightHint, number);
                }
                return hint;
            }
        }
    }
}

/// The heading after the ranges of a git-style header: `-1,2 +1,3 @@ heading`.
fn without_ranges(hint: &str) -> Option<&str> {
    let rest = range(hint.strip_prefix('-')?)?.trim_start();
    let rest = range(rest.strip_prefix('+')?)?.trim_start();
    match rest.strip_prefix("@@") {
        Some(heading) => Some(heading),
        None => rest.is_empty().then_some(rest),
    }
}

/// What follows `12` or `12,3`.
fn range(text: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits(text)..).filter(|rest| rest.len() < text.len())?;
    match rest.strip_prefix(',') {
        Some(count) => count.get(digits(count)..).filter(|rest| rest.len() < count.len()),
        None => Some(rest),
    }
}

/// The hint without a closing `@@` that stands alone.
fn without_closing(hint: &str) -> Option<&str> {
    let rest = hint.strip_suffix("@@")?;
    (rest.is_empty() || rest.ends_with(char::is_whitespace)).then_some(rest)
}

/// The lines of `text` with their numbers, from 1, without a byte-order mark.
fn numbered_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split_terminator('\n').enumerate().map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests;
