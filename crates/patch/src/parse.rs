//! Text in, a [`Patch`] out.

mod envelope;
mod marker;

use crate::error::{ParseError, ParseErrorKind};
use crate::syntax::{AddFile, DeleteFile, Hunk, HunkLine, Operation, Patch, UpdateFile};
use crate::{Diagnostic, DiagnosticKind};
use envelope::Envelope;
use marker::{Marker, MarkerLine};

/// The longest patch that is read, in bytes.
pub const MAX_PATCH_BYTES: usize = 64 * 1024 * 1024;

/// The deepest stack of `@@` lines before one hunk.
pub const MAX_HINTS: usize = 32;

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
    /// How many of its last lines are truly empty: context, or only a gap in the text.
    bare_tail: usize,
    /// The first of those.
    bare_line: usize,
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
                    if *blanks > 0 {
                        self.tolerated.note(DiagnosticKind::BlankLineInAdd, number - *blanks);
                    }
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
    fn header(
        &mut self,
        number: usize,
        line: &str,
        otherwise: ParseErrorKind,
    ) -> Result<(), ParseError> {
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
                self.section =
                    Section::Update(OpenUpdate { file, hunk: None, at_end_of_file: false });
            }
            Marker::MoveTo(_) => {
                return Err(ParseError::new(number, line, ParseErrorKind::MisplacedMove));
            }
            Marker::BeginPatch
            | Marker::EndPatch
            | Marker::EndOfFile
            | Marker::EnvironmentId => return Err(ParseError::new(number, line, otherwise)),
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
                let open = update.hunk.is_some();
                update.close_hunk(true, &mut self.tolerated)?;
                if !open || update.file.hunks.is_empty() {
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
            Section::Add { file, .. } => self.operations.push(Operation::Add(file)),
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
    fn line(
        &mut self,
        number: usize,
        line: &str,
        tolerated: &mut Tolerated,
    ) -> Result<(), ParseError> {
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
                self.open(number).push_bare(number);
                return Ok(());
            }
            _ => return Err(ParseError::new(number, line, ParseErrorKind::NotAHunkLine)),
        };
        if self.file.hunks.is_empty() && self.hunk.as_ref().is_none_or(OpenHunk::is_gap) {
            tolerated.note(DiagnosticKind::MissingHunkHeader, number);
            self.hunk = None;
        }
        self.open(number).push(parsed, tolerated);
        Ok(())
    }

    fn open(&mut self, number: usize) -> &mut OpenHunk {
        self.hunk.get_or_insert_with(|| OpenHunk::new(number, false))
    }
}
