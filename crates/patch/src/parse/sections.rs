//! The operations between the markers, line by line.

mod update;

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind};
use crate::parse::StreamItem;
use crate::parse::draft::Draft;
use crate::parse::marker::{Marker, MarkerLine};
use crate::parse::tolerated::Tolerated;
use crate::syntax::HunkLine;
use update::OpenUpdate;

/// Reads the body of a patch into a draft; what a later line can still change is held back.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub(super) draft: Draft,
    pub(super) tolerated: Tolerated,
    open: Section,
}

/// The operation that is being read.
#[derive(Debug, Default)]
enum Section {
    #[default]
    Between,
    Add {
        /// The blank lines that followed last: lines of the file if another one comes.
        blanks: usize,
    },
    Update(OpenUpdate),
}

impl Sections {
    /// Reads a line of the body.
    pub(super) fn line(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let content = line.trim_end_matches('\r');
        if content.len() < line.len() {
            self.tolerated.note(DiagnosticKind::CarriageReturns, number);
        }
        match &mut self.open {
            Section::Between => self.between(number, content),
            Section::Add { blanks } => match content.strip_prefix('+') {
                Some(text) => {
                    self.tolerated.note_lines(DiagnosticKind::BlankLineInAdd, number - *blanks..number);
                    for _ in 0..std::mem::take(blanks) {
                        self.draft.push(StreamItem::Line(HunkLine::Add(String::new())));
                    }
                    self.draft.push(StreamItem::Line(HunkLine::Add(text.to_owned())));
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
            Section::Update(update) => update.line(number, content, &mut self.draft, &mut self.tolerated),
        }
    }

    /// Ends the body before the line `number`, which is the end marker or, where that is missing,
    /// none.
    pub(super) fn end(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        self.close(number)?;
        match self.draft.operations.is_empty() {
            true => Err(ParseError::new(number, line, ParseErrorKind::NoOperations)),
            false => Ok(()),
        }
    }

    fn between(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        if line.trim().is_empty() {
            self.tolerated.note(DiagnosticKind::BlankLineBetween, number);
            return Ok(());
        }
        let marker = MarkerLine::read(line).map(|read| read.marker);
        if marker == Some(Marker::EnvironmentId) && self.draft.operations.is_empty() {
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
        self.close(number)?;
        match read.marker {
            Marker::AddFile(path) => {
                let path = self.tolerated.path(path, number, line)?;
                self.draft.push(StreamItem::AddFile { path, line: number });
                self.open = Section::Add { blanks: 0 };
            }
            Marker::DeleteFile(path) => {
                let path = self.tolerated.path(path, number, line)?;
                self.draft.push(StreamItem::DeleteFile { path, line: number });
                self.draft.push(StreamItem::FileEnded);
            }
            Marker::UpdateFile(path) => {
                let path = self.tolerated.path(path, number, line)?;
                self.open = Section::Update(OpenUpdate::new(path.clone(), number));
                self.draft.push(StreamItem::UpdateFile { path, line: number });
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
        let Section::Update(update) = &mut self.open else {
            return self.header(number, line, ParseErrorKind::NotAHeader);
        };
        let Some(read) = MarkerLine::read(line) else {
            return Err(ParseError::new(number, line, ParseErrorKind::UnknownMarker));
        };
        match read.marker {
            Marker::EndOfFile => {
                if !update.end_of_file()? {
                    return Err(ParseError::new(number, line, ParseErrorKind::EmptyHunk));
                }
                self.draft.push(StreamItem::EndOfFile);
            }
            Marker::MoveTo(path) => {
                if !update.start_move() {
                    return Err(ParseError::new(number, line, ParseErrorKind::MisplacedMove));
                }
                self.draft.push(StreamItem::MoveTo(self.tolerated.path(path, number, line)?));
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

    /// Ends the operation that is being read, if any, before the line `number`.
    fn close(&mut self, number: usize) -> Result<(), ParseError> {
        match std::mem::take(&mut self.open) {
            Section::Between => return Ok(()),
            Section::Add { blanks } => {
                self.tolerated.note_lines(DiagnosticKind::BlankLineAfterAdd, number - blanks..number);
            }
            Section::Update(update) => update.close(number)?,
        }
        self.draft.push(StreamItem::FileEnded);
        Ok(())
    }
}
