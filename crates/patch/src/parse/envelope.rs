//! Finds the patch inside the text: its first and last marker, and what stands around them.

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind, Wrapper};
use crate::parse::marker::{Marker, MarkerLine};
use crate::parse::sections::Sections;
use crate::parse::tolerated::Tolerated;

/// Sorts lines into those before the patch, its body and those after it.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    place: Place,
    /// The delimiter of the here-document in which the patch stands, until it is closed.
    delimiter: Option<String>,
}

/// Where the next line stands.
#[derive(Debug)]
enum Place {
    /// Before the begin marker; the first and the last line so far that are not blank.
    Before(Option<(Line, Line)>),
    /// In the body; what may be its end.
    Body(Option<Indented>),
    /// After the end marker; whether text was seen there.
    After(bool),
}

#[derive(Debug, Clone)]
struct Line {
    number: usize,
    text: String,
}

/// An indented end marker and the blank lines below it. It is the end if nothing else follows,
/// and otherwise a line like any other.
#[derive(Debug)]
struct Indented {
    number: usize,
    /// All of its lines, each with its line feed.
    text: String,
}

/// The commands that take a patch from a here-document.
const COMMANDS: [&str; 2] = ["apply_patch", "applypatch"];

impl Envelope {
    /// Takes in a line; one of the body goes on to `sections`.
    pub(super) fn line(
        &mut self,
        number: usize,
        line: &str,
        sections: &mut Sections,
    ) -> Result<(), ParseError> {
        match &mut self.place {
            Place::Before(_) | Place::After(_) if line.trim().is_empty() => Ok(()),
            Place::Before(before) => {
                if let Some(marker) = begins(number, line, before)? {
                    self.delimiter = judge(before.take(), &mut sections.tolerated)?;
                    sections.tolerated.dress(marker, number);
                    self.place = Place::Body(None);
                }
                Ok(())
            }
            Place::Body(held) => {
                if ends(number, line, held, sections)? {
                    self.place = Place::After(false);
                }
                Ok(())
            }
            Place::After(seen) => {
                if MarkerLine::read(line).is_some_and(|read| read.marker == Marker::BeginPatch) {
                    return Err(ParseError::new(number, line, ParseErrorKind::SecondBegin));
                }
                refuse_operation(number, line)?;
                if self.delimiter.take_if(|delimiter| delimiter == line.trim()).is_some() || *seen {
                    return Ok(());
                }
                *seen = true;
                sections.tolerated.note(DiagnosticKind::TextAfterEnd, number);
                Ok(())
            }
        }
    }

    /// Ends the text, which has this many lines.
    pub(super) fn finish(self, lines: usize, sections: &mut Sections) -> Result<(), ParseError> {
        match self.place {
            Place::Before(None) => Err(ParseError::new(1, "", ParseErrorKind::Empty)),
            Place::Before(Some((first, _))) => {
                let kind = Wrapper::of(&first.text).map_or(ParseErrorKind::NoBegin, ParseErrorKind::Wrapped);
                Err(ParseError::new(first.number, &first.text, kind))
            }
            Place::Body(Some(Indented { number, text })) => {
                let (line, _) = text.split_once('\n').unwrap_or((&text, ""));
                if let Some(read) = MarkerLine::read(line) {
                    sections.tolerated.dress(read, number);
                }
                sections.end(number, line)
            }
            Place::Body(None) => {
                sections.tolerated.note(DiagnosticKind::MissingEnd, lines);
                sections.end(lines + 1, "")
            }
            Place::After(_) => Ok(()),
        }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::Before(None)
    }
}

impl Indented {
    /// Hands the lines on, which were not the end.
    fn release(self, sections: &mut Sections) -> Result<(), ParseError> {
        let mut lines = self.text.split_terminator('\n').enumerate();
        lines.try_for_each(|(below, line)| sections.line(self.number + below, line))
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }
}

/// Reads `line` as the begin marker; if it is none, it belongs to the text before the patch.
fn begins<'t>(
    number: usize,
    line: &'t str,
    before: &mut Option<(Line, Line)>,
) -> Result<Option<MarkerLine<'t>>, ParseError> {
    if let Some(read) = MarkerLine::read(line).filter(|read| read.marker == Marker::BeginPatch) {
        return Ok(Some(read));
    }
    refuse_operation(number, line)?;
    let line = Line { number, text: line.to_owned() };
    match before {
        Some((_, last)) => *last = line,
        None => *before = Some((line.clone(), line)),
    }
    Ok(None)
}

/// Whether `line` is the end marker; if not, it goes on to `sections`, or is held back.
fn ends(
    number: usize,
    line: &str,
    held: &mut Option<Indented>,
    sections: &mut Sections,
) -> Result<bool, ParseError> {
    if let Some(held) = held.as_mut().filter(|_| line.trim().is_empty()) {
        held.push(line);
        return Ok(false);
    }
    if let Some(held) = held.take() {
        held.release(sections)?;
    }
    match MarkerLine::read(line) {
        Some(read) if read.marker == Marker::EndPatch && read.padded => {
            let indented = held.insert(Indented { number, text: String::new() });
            indented.push(line);
            Ok(false)
        }
        Some(read) if read.marker == Marker::EndPatch => {
            sections.tolerated.dress(read, number);
            sections.end(number, line).map(|()| true)
        }
        Some(read) if read.marker == Marker::BeginPatch && !read.padded => {
            Err(ParseError::new(number, line, ParseErrorKind::SecondBegin))
        }
        Some(_) | None => sections.line(number, line).map(|()| false),
    }
}

/// Refuses a file header outside the markers.
fn refuse_operation(number: usize, line: &str) -> Result<(), ParseError> {
    match MarkerLine::read(line) {
        Some(read) if read.marker.is_operation() => {
            Err(ParseError::new(number, line, ParseErrorKind::OperationOutside))
        }
        Some(_) | None => Ok(()),
    }
}

/// Judges the text before the patch by its first and last line; gives the delimiter of the
/// here-document that it opens.
fn judge(before: Option<(Line, Line)>, tolerated: &mut Tolerated) -> Result<Option<String>, ParseError> {
    let Some((first, last)) = before else { return Ok(None) };
    for line in [&first, &last] {
        if let Some(wrapper) = Wrapper::of(&line.text) {
            return Err(ParseError::new(line.number, &line.text, ParseErrorKind::Wrapped(wrapper)));
        }
    }
    if !opens_heredoc(&last.text) {
        tolerated.note(DiagnosticKind::TextBeforeBegin, first.number);
        return Ok(None);
    }
    // Anything else in that command, `cd` above all, would change what is meant.
    let Some(delimiter) = heredoc_delimiter(&last.text) else {
        let kind = ParseErrorKind::Wrapped(Wrapper::ShellCommand);
        return Err(ParseError::new(last.number, &last.text, kind));
    };
    if first.number != last.number {
        tolerated.note(DiagnosticKind::TextBeforeBegin, first.number);
    }
    tolerated.note(DiagnosticKind::Heredoc, last.number);
    Ok(Some(delimiter.to_owned()))
}

/// Whether a shell would read a here-document after `line`. `1 << n` in prose opens none: behind
/// the delimiter a command ends, or goes on with an operator. A line that names the tool is not
/// prose.
fn opens_heredoc(line: &str) -> bool {
    let Some((command, _)) = line.split_once("<<") else { return false };
    let names_tool = COMMANDS.iter().any(|name| command.contains(name));
    names_tool || line.split("<<").skip(1).any(starts_with_delimiter)
}

/// Whether `text`, which stands behind `<<`, is a delimiter that a command may end in.
fn starts_with_delimiter(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text).trim_start();
    let quoted = ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.split_once(quote));
    let (delimiter, behind) = match quoted {
        Some(parts) => parts,
        None => {
            let word = text.strip_prefix('\\').unwrap_or(text);
            word.split_at(word.find(|character| !is_word(character)).unwrap_or(word.len()))
        }
    };
    let behind = behind.trim_start();
    !delimiter.is_empty() && (behind.is_empty() || behind.starts_with(['|', '&', ';', '<', '>', ')']))
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// The delimiter of a here-document that feeds nothing but the patch.
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
