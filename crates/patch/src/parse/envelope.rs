//! Locates the patch within the text: its begin and end markers, and the text around them.

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind, Wrapper};
use crate::parse::diagnostics::Diagnostics;
use crate::parse::marker::{Marker, MarkerLine};
use crate::parse::sections::Sections;

/// Separates the body of the patch from the text before and after it.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    position: Position,
    /// Delimiter of the here-document around the patch, until it is closed.
    delimiter: Option<String>,
}

/// Position of the next line.
#[derive(Debug)]
enum Position {
    /// Before the begin marker, with the first and the last line so far that are not blank.
    Before(Option<(NumberedLine, NumberedLine)>),
    /// In the body, with the lines that may be its end.
    Body(Option<IndentedEnd>),
    /// After the end marker; true if text was seen there.
    After(bool),
}

#[derive(Debug, Clone)]
struct NumberedLine {
    number: usize,
    text: String,
}

/// An indented end marker and the blank lines below it. It ends the patch if no other line follows; otherwise it is an
/// ordinary line.
#[derive(Debug)]
struct IndentedEnd {
    number: usize,
    /// Its lines, each with its line feed.
    text: String,
}

/// Commands that read a patch from a here-document.
const COMMANDS: [&str; 2] = ["apply_patch", "applypatch"];

impl Envelope {
    /// Reads a line and passes it to `sections` if it belongs to the body.
    pub(super) fn line(
        &mut self,
        number: usize,
        line: &str,
        sections: &mut Sections,
    ) -> Result<(), ParseError> {
        match &mut self.position {
            Position::Before(_) | Position::After(_) if line.trim().is_empty() => Ok(()),
            Position::Before(before) => {
                if let Some(marker) = read_begin(number, line, before)? {
                    self.delimiter = check_preamble(before.take(), &mut sections.diagnostics)?;
                    sections.diagnostics.report_marker(marker, number);
                    self.position = Position::Body(None);
                }
                Ok(())
            }
            Position::Body(held) => {
                if read_end(number, line, held, sections)? {
                    self.position = Position::After(false);
                }
                Ok(())
            }
            Position::After(seen) => {
                if MarkerLine::parse(line).is_some_and(|read| read.marker == Marker::BeginPatch) {
                    return Err(ParseError::new(number, line, ParseErrorKind::SecondBegin));
                }
                refuse_operation(number, line)?;
                if self.delimiter.take_if(|delimiter| delimiter == line.trim()).is_some() || *seen {
                    return Ok(());
                }
                *seen = true;
                sections.diagnostics.report(DiagnosticKind::TextAfterEnd, number);
                Ok(())
            }
        }
    }

    /// Ends the text after `lines` lines.
    pub(super) fn finish(self, lines: usize, sections: &mut Sections) -> Result<(), ParseError> {
        match self.position {
            Position::Before(None) => Err(ParseError::new(1, "", ParseErrorKind::Empty)),
            Position::Before(Some((first, _))) => {
                let kind = Wrapper::detect(&first.text)
                    .map_or(ParseErrorKind::MissingBegin, ParseErrorKind::Wrapped);
                Err(ParseError::new(first.number, &first.text, kind))
            }
            Position::Body(Some(IndentedEnd { number, text })) => {
                let (line, _) = text.split_once('\n').unwrap_or((&text, ""));
                if let Some(read) = MarkerLine::parse(line) {
                    sections.diagnostics.report_marker(read, number);
                }
                sections.end(number, line)
            }
            Position::Body(None) => {
                sections.diagnostics.report(DiagnosticKind::MissingEnd, lines);
                sections.end(lines + 1, "")
            }
            Position::After(_) => Ok(()),
        }
    }
}

impl Default for Position {
    fn default() -> Self {
        Self::Before(None)
    }
}

impl IndentedEnd {
    /// Passes on the lines, since they were not the end.
    fn release(self, sections: &mut Sections) -> Result<(), ParseError> {
        let mut lines = self.text.split_terminator('\n').enumerate();
        lines.try_for_each(|(below, line)| sections.line(self.number + below, line))
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Reads `line` as the begin marker. If it is not one, adds it to the text before the patch.
fn read_begin<'t>(
    number: usize,
    line: &'t str,
    before: &mut Option<(NumberedLine, NumberedLine)>,
) -> Result<Option<MarkerLine<'t>>, ParseError> {
    if let Some(read) = MarkerLine::parse(line).filter(|read| read.marker == Marker::BeginPatch) {
        return Ok(Some(read));
    }
    refuse_operation(number, line)?;
    let line = NumberedLine { number, text: line.to_owned() };
    match before {
        Some((_, last)) => *last = line,
        None => *before = Some((line.clone(), line)),
    }
    Ok(None)
}

/// Returns whether `line` is the end marker. If not, passes it to `sections` or holds it back.
fn read_end(
    number: usize,
    line: &str,
    held: &mut Option<IndentedEnd>,
    sections: &mut Sections,
) -> Result<bool, ParseError> {
    if let Some(held) = held.as_mut().filter(|_| line.trim().is_empty()) {
        held.push(line);
        return Ok(false);
    }
    if let Some(held) = held.take() {
        held.release(sections)?;
    }
    match MarkerLine::parse(line) {
        Some(read) if read.marker == Marker::EndPatch && read.indented => {
            let indented = held.insert(IndentedEnd { number, text: String::new() });
            indented.push(line);
            Ok(false)
        }
        Some(read) if read.marker == Marker::EndPatch => {
            sections.diagnostics.report_marker(read, number);
            sections.end(number, line).map(|()| true)
        }
        Some(read) if read.marker == Marker::BeginPatch && !read.indented => {
            Err(ParseError::new(number, line, ParseErrorKind::SecondBegin))
        }
        Some(_) | None => sections.line(number, line).map(|()| false),
    }
}

/// Refuses a file header outside the markers.
fn refuse_operation(number: usize, line: &str) -> Result<(), ParseError> {
    match MarkerLine::parse(line) {
        Some(read) if read.marker.is_operation() => {
            Err(ParseError::new(number, line, ParseErrorKind::OperationOutside))
        }
        Some(_) | None => Ok(()),
    }
}

/// Checks the text before the patch by its first and last line. Returns the delimiter of the
/// here-document that it opens.
fn check_preamble(
    before: Option<(NumberedLine, NumberedLine)>,
    diagnostics: &mut Diagnostics,
) -> Result<Option<String>, ParseError> {
    let Some((first, last)) = before else { return Ok(None) };
    for line in [&first, &last] {
        if let Some(wrapper) = Wrapper::detect(&line.text) {
            return Err(ParseError::new(line.number, &line.text, ParseErrorKind::Wrapped(wrapper)));
        }
    }
    if !opens_heredoc(&last.text) {
        diagnostics.report(DiagnosticKind::TextBeforeBegin, first.number);
        return Ok(None);
    }
    // Any other part of that command, `cd` in particular, would change its meaning.
    let Some(delimiter) = heredoc_delimiter(&last.text) else {
        let kind = ParseErrorKind::Wrapped(Wrapper::ShellCommand);
        return Err(ParseError::new(last.number, &last.text, kind));
    };
    if first.number != last.number {
        diagnostics.report(DiagnosticKind::TextBeforeBegin, first.number);
    }
    diagnostics.report(DiagnosticKind::Heredoc, last.number);
    Ok(Some(delimiter.to_owned()))
}

/// Returns whether a shell would read a here-document after `line`. `1 << n` in prose does not count: the end of the
/// line or an operator must follow the delimiter, unless the line names the tool.
fn opens_heredoc(line: &str) -> bool {
    let Some((command, _)) = line.split_once("<<") else { return false };
    let names_tool = COMMANDS.iter().any(|name| command.contains(name));
    names_tool || line.split("<<").skip(1).any(starts_with_delimiter)
}

/// Returns whether `text`, which follows `<<`, starts with a delimiter at which a command may end.
fn starts_with_delimiter(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text).trim_start();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.split_once(quote));
    let (delimiter, rest) = match quoted {
        Some(parts) => parts,
        None => {
            let word = text.strip_prefix('\\').unwrap_or(text);
            word.split_at(word.find(|character| !is_word(character)).unwrap_or(word.len()))
        }
    };
    let rest = rest.trim_start();
    !delimiter.is_empty() && (rest.is_empty() || rest.starts_with(['|', '&', ';', '<', '>', ')']))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the delimiter of a here-document whose command only applies the patch.
fn heredoc_delimiter(line: &str) -> Option<&str> {
    let (command, word) = line.split_once("<<")?;
    let command = command.trim();
    if !command.is_empty() && !COMMANDS.contains(&command) {
        return None;
    }
    let word = word.trim();
    let unquoted = ['\'', '"']
        .into_iter()
        .find_map(|quote| word.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(word);
    (!unquoted.is_empty() && unquoted.chars().all(is_word)).then_some(unquoted)
}
