//! Parses the operations between the markers, line by line.

mod update;

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind};
use crate::parse::StreamItem;
use crate::parse::builder::PatchBuilder;
use crate::parse::diagnostics::Diagnostics;
use crate::parse::marker::{Marker, MarkerLine};
use crate::syntax::HunkLine;
use update::OpenUpdate;

/// Parses the body of a patch into a builder. Holds back every part that a later line can still change.
#[derive(Debug, Default)]
pub(super) struct Sections {
    pub(super) builder: PatchBuilder,
    pub(super) diagnostics: Diagnostics,
    open: Section,
}

/// The operation being read.
#[derive(Debug, Default)]
enum Section {
    #[default]
    Between,
    Add {
        /// Number of trailing blank lines so far. They are lines of the file only if another line follows.
        blanks: usize,
    },
    Update(OpenUpdate),
}

impl Sections {
    /// Reads a line of the body.
    pub(super) fn line(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let content = line.trim_end_matches('\r');
        if content.len() < line.len() {
            self.diagnostics.report(DiagnosticKind::CarriageReturns, number);
        }
        match &mut self.open {
            Section::Between => self.between(number, content),
            Section::Add { blanks } => match content.strip_prefix('+') {
                Some(text) => {
                    self.diagnostics.report_lines(DiagnosticKind::BlankLineInAdd, number - *blanks..number);
                    for _ in 0..std::mem::take(blanks) {
                        self.builder.push(StreamItem::Line(HunkLine::Add(String::new())));
                    }
                    self.builder.push(StreamItem::Line(HunkLine::Add(text.to_owned())));
                    Ok(())
                }
                None if content.trim().is_empty() => {
                    *blanks += 1;
                    Ok(())
                }
                None => self.header(number, content, ParseErrorKind::NotAnAddedLine),
            },
            // Within an update, a marker must start in the first column. An indented marker is context.
            Section::Update(_) if content.starts_with("***") => self.update_marker(number, content),
            Section::Update(update) => update.line(number, content, &mut self.builder, &mut self.diagnostics),
        }
    }

    /// Ends the body before line `number`: the end marker, or one past the last line if the marker is missing.
    pub(super) fn end(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        self.close(number)?;
        match self.builder.operations.is_empty() {
            true => Err(ParseError::new(number, line, ParseErrorKind::NoOperations)),
            false => Ok(()),
        }
    }

    fn between(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        if line.trim().is_empty() {
            self.diagnostics.report(DiagnosticKind::BlankLineBetweenOperations, number);
            return Ok(());
        }
        let marker = MarkerLine::parse(line).map(|read| read.marker);
        if marker == Some(Marker::EnvironmentId) && self.builder.operations.is_empty() {
            self.diagnostics.report(DiagnosticKind::EnvironmentId, number);
            return Ok(());
        }
        self.header(number, line, ParseErrorKind::NotAHeader)
    }

    /// Starts the operation in the header `line`. Any other line is refused as `otherwise`.
    fn header(&mut self, number: usize, line: &str, otherwise: ParseErrorKind) -> Result<(), ParseError> {
        let Some(read) = MarkerLine::parse(line) else {
            return Err(ParseError::new(number, line, otherwise));
        };
        self.close(number)?;
        match read.marker {
            Marker::AddFile(path) => {
                let path = self.diagnostics.normalize_path(path, number, line)?;
                self.builder.push(StreamItem::AddFile { path, line: number });
                self.open = Section::Add { blanks: 0 };
            }
            Marker::DeleteFile(path) => {
                let path = self.diagnostics.normalize_path(path, number, line)?;
                self.builder.push(StreamItem::DeleteFile { path, line: number });
                self.builder.push(StreamItem::FileEnded);
            }
            Marker::UpdateFile(path) => {
                let path = self.diagnostics.normalize_path(path, number, line)?;
                self.open = Section::Update(OpenUpdate::new(path.clone(), number));
                self.builder.push(StreamItem::UpdateFile { path, line: number });
            }
            Marker::MoveTo(_) => {
                return Err(ParseError::new(number, line, ParseErrorKind::MisplacedMove));
            }
            Marker::BeginPatch | Marker::EndPatch | Marker::EndOfFile | Marker::EnvironmentId => {
                return Err(ParseError::new(number, line, otherwise));
            }
        }
        self.diagnostics.report_marker(read, number);
        Ok(())
    }

    fn update_marker(&mut self, number: usize, line: &str) -> Result<(), ParseError> {
        let Section::Update(update) = &mut self.open else {
            return self.header(number, line, ParseErrorKind::NotAHeader);
        };
        let Some(read) = MarkerLine::parse(line) else {
            return Err(ParseError::new(number, line, ParseErrorKind::UnknownMarker));
        };
        match read.marker {
            Marker::EndOfFile => {
                if !update.end_of_file()? {
                    return Err(ParseError::new(number, line, ParseErrorKind::EmptyHunk));
                }
                self.builder.push(StreamItem::EndOfFile);
            }
            Marker::MoveTo(path) => {
                if !update.start_move() {
                    return Err(ParseError::new(number, line, ParseErrorKind::MisplacedMove));
                }
                self.builder.push(StreamItem::MoveTo(self.diagnostics.normalize_path(path, number, line)?));
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
        self.diagnostics.report_marker(read, number);
        Ok(())
    }

    /// Ends the operation being read, if any, before line `number`.
    fn close(&mut self, number: usize) -> Result<(), ParseError> {
        match std::mem::take(&mut self.open) {
            Section::Between => return Ok(()),
            Section::Add { blanks } => {
                self.diagnostics.report_lines(DiagnosticKind::BlankLineAfterAdd, number - blanks..number);
            }
            Section::Update(update) => update.close(number)?,
        }
        self.builder.push(StreamItem::FileEnded);
        Ok(())
    }
}
