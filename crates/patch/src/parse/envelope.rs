//! Finds the patch inside the text: its first and last marker, and what stands around them.

use crate::DiagnosticKind;
use crate::error::{ParseError, ParseErrorKind, Wrapper};
use crate::parse::marker::{Marker, MarkerLine};
use crate::parse::{Tolerated, numbered_lines};

/// Where the body of the patch lies.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Envelope {
    /// The line of the begin marker, from 1.
    pub(super) begin: usize,
    /// The line of the end marker, or the line after the last one where it is missing.
    pub(super) end: usize,
}

/// The commands that take a patch from a here-document.
const COMMANDS: [&str; 2] = ["apply_patch", "applypatch"];

/// A line and its number.
type Numbered<'t> = (usize, &'t str);

/// What the scan has seen so far.
#[derive(Default)]
struct Scan<'t> {
    /// The first and the last line before the patch that are not blank.
    before: Option<(Numbered<'t>, Numbered<'t>)>,
    begin: Option<usize>,
    /// The last line of the body that is not blank.
    last: Option<Numbered<'t>>,
    end: Option<usize>,
    /// The first two lines after it that are not blank.
    after: Vec<Numbered<'t>>,
    lines: usize,
}

impl Envelope {
    pub(super) fn find(text: &str, tolerated: &mut Tolerated) -> Result<Self, ParseError> {
        let mut scan = Scan::default();
        for (number, line) in numbered_lines(text) {
            scan.lines = number;
            if !line.trim().is_empty() {
                scan.line(number, line, tolerated)?;
            }
        }
        scan.finish(tolerated)
    }
}

impl<'t> Scan<'t> {
    fn line(&mut self, number: usize, line: &'t str, tolerated: &mut Tolerated) -> Result<(), ParseError> {
        let read = MarkerLine::read(line);
        let refuse = |kind| Err(ParseError::new(number, line, kind));
        match (self.begin, self.end, read) {
            (None, _, Some(marker)) if marker.marker == Marker::BeginPatch => {
                tolerated.dress(marker, number);
                self.begin = Some(number);
            }
            (None, _, Some(marker)) if marker.marker.is_operation() => {
                return refuse(ParseErrorKind::OperationOutside);
            }
            (None, ..) => {
                let (_, last) = self.before.get_or_insert(((number, line), (number, line)));
                *last = (number, line);
            }
            (Some(_), None, Some(marker)) if !marker.padded && marker.marker == Marker::EndPatch => {
                tolerated.dress(marker, number);
                self.end = Some(number);
            }
            (Some(_), None, Some(marker)) if !marker.padded && marker.marker == Marker::BeginPatch => {
                return refuse(ParseErrorKind::SecondBegin);
            }
            (Some(_), None, _) => self.last = Some((number, line)),
            (Some(_), Some(_), Some(marker)) if marker.marker == Marker::BeginPatch => {
                return refuse(ParseErrorKind::SecondBegin);
            }
            (Some(_), Some(_), Some(marker)) if marker.marker.is_operation() => {
                return refuse(ParseErrorKind::OperationOutside);
            }
            (Some(_), Some(_), _) if self.after.len() < 2 => self.after.push((number, line)),
            (Some(_), Some(_), _) => {}
        }
        Ok(())
    }

    fn finish(self, tolerated: &mut Tolerated) -> Result<Envelope, ParseError> {
        let first = self.before.map(|(first, _)| first);
        let Some(begin) = self.begin else {
            let Some((number, line)) = first else {
                return Err(ParseError::new(1, "", ParseErrorKind::Empty));
            };
            let kind = Wrapper::of(line).map_or(ParseErrorKind::NoBegin, ParseErrorKind::Wrapped);
            return Err(ParseError::new(number, line, kind));
        };
        self.surroundings(tolerated)?;
        let end = match (self.end, self.last) {
            (Some(end), _) => end,
            (None, Some((number, line))) if is_end(line) => {
                tolerated.note(DiagnosticKind::PaddedMarker, number);
                number
            }
            (None, _) => {
                tolerated.note(DiagnosticKind::MissingEnd, self.lines);
                self.lines + 1
            }
        };
        Ok(Envelope { begin, end })
    }

    /// Judges the text before and after the patch.
    fn surroundings(&self, tolerated: &mut Tolerated) -> Result<(), ParseError> {
        let delimiter = match self.before {
            Some((first, last)) => before(first, last, tolerated)?,
            None => None,
        };
        let mut after = self.after.iter().skip_while(|(_, line)| Some(line.trim()) == delimiter);
        if let Some(&(number, _)) = after.next() {
            tolerated.note(DiagnosticKind::TextAfterEnd, number);
        }
        Ok(())
    }
}

/// Judges the text before the patch; gives the delimiter of the here-document that it opens.
fn before<'t>(
    first: Numbered<'t>,
    last: Numbered<'t>,
    tolerated: &mut Tolerated,
) -> Result<Option<&'t str>, ParseError> {
    for (number, line) in [first, last] {
        if let Some(wrapper) = Wrapper::of(line) {
            return Err(ParseError::new(number, line, ParseErrorKind::Wrapped(wrapper)));
        }
    }
    let (number, line) = last;
    if !opens_heredoc(line) {
        tolerated.note(DiagnosticKind::TextBeforeBegin, first.0);
        return Ok(None);
    }
    // Anything else in that command, `cd` above all, would change what is meant.
    let Some(delimiter) = heredoc_delimiter(line) else {
        return Err(ParseError::new(number, line, ParseErrorKind::Wrapped(Wrapper::ShellCommand)));
    };
    if first != last {
        tolerated.note(DiagnosticKind::TextBeforeBegin, first.0);
    }
    tolerated.note(DiagnosticKind::Heredoc, number);
    Ok(Some(delimiter))
}

fn is_end(line: &str) -> bool {
    MarkerLine::read(line).is_some_and(|marker| marker.marker == Marker::EndPatch)
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
