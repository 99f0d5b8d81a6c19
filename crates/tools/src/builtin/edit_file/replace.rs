//! Replacement of text in the bytes of a file.

use std::collections::BTreeMap;

use pintle_patch::{
    ApplyError, ApplyErrorKind, ApplyOptions, Candidate, DiagnosticKind, Hunk, HunkLine, Operation, Patch,
    UpdateFile, WhitespaceDifference, plan,
};

use super::Edit;
use super::whitespace::LooseOccurrences;
use crate::error::{ToolError, ToolErrorKind};

/// Maximum number of line numbers that a message lists.
const MAX_LISTED: usize = 10;

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Minimum length of new text that counts as a sign of an earlier edit, in bytes.
const MIN_SIGN: usize = 8;

/// A file after an edit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EditedContent {
    pub(super) content: Vec<u8>,
    /// The first line of each replaced text, from 1.
    pub(super) lines: Vec<usize>,
    /// Notes for the model about a loose match.
    pub(super) notes: Vec<String>,
}

/// Replaces exact occurrences, or the only loose one.
pub(super) fn replace(path: &str, file: &[u8], edit: &Edit<'_>) -> Result<EditedContent, ToolError> {
    let text = Text::new(file);
    let old = fold(edit.old);
    let offsets = occurrences(&text.folded, &old);
    match offsets.as_slice() {
        [] if file.is_empty() => {
            Err(conflict(format!("old_string does not occur in {path}: the file is empty")))
        }
        [] => replace_loosely(path, file, edit),
        [_] if edit.expected.is_none_or(|expected| expected == 1) => {
            Ok(text.replaced(&offsets, &old, edit.new))
        }
        _ if edit.all && edit.expected.is_none() => Ok(text.replaced(&offsets, &old, edit.new)),
        _ if edit.expected == Some(offsets.len()) => Ok(text.replaced(&offsets, &old, edit.new)),
        _ => Err(wrong_count(path, &text.lines_at(&offsets), edit)),
    }
}

/// Returns a whole new content with the byte-order mark and the line ends of the file that it replaces. Line ends stay
/// unchanged if the file has both kinds or none.
pub(crate) fn keep_line_ends(file: &[u8], content: &str) -> Vec<u8> {
    let text = Text::new(file);
    let feeds = text.line_feeds().count();
    let mut new = match text.crlf.len() {
        _ if feeds == 0 => content.to_owned(),
        0 => fold(content),
        crlf if crlf == feeds => fold(content).replace('\n', "\r\n"),
        _ => content.to_owned(),
    };
    if file.starts_with(BYTE_ORDER_MARK.as_bytes()) && !new.starts_with(BYTE_ORDER_MARK) {
        new.insert_str(0, BYTE_ORDER_MARK);
    }
    new.into_bytes()
}

/// Lists ascending line numbers for a message, each once, and counts the omitted ones.
pub(super) fn list_lines(lines: &[usize]) -> String {
    let mut lines = lines.to_vec();
    lines.dedup();
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let mut listed: Vec<String> = lines.iter().take(MAX_LISTED).map(usize::to_string).collect();
    if let Some(more) = lines.len().checked_sub(MAX_LISTED).filter(|more| *more > 0) {
        listed.push(format!("and {more} more"));
    }
    format!("{noun} {}", listed.join(", "))
}

/// A file with every CRLF folded to an LF, and a mapping back to the original.
struct Text<'a> {
    file: &'a [u8],
    folded: Vec<u8>,
    /// The offsets in `folded` of the line feeds of CRLFs, in order.
    crlf: Vec<usize>,
}

impl<'a> Text<'a> {
    fn new(file: &'a [u8]) -> Self {
        let mut folded = Vec::with_capacity(file.len());
        let mut crlf = Vec::new();
        let mut bytes = file.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte == b'\r' && bytes.peek() == Some(&b'\n') {
                crlf.push(folded.len());
            } else {
                folded.push(byte);
            }
        }
        Self { file, folded, crlf }
    }

    /// Maps an offset in `folded` to one in the file.
    fn original_offset(&self, folded: usize) -> usize {
        folded + self.crlf.partition_point(|at| *at < folded)
    }

    /// Replaces `old` by `new` at ascending offsets, with the line ends of the file at these offsets.
    fn replaced(&self, offsets: &[usize], old: &str, new: &str) -> EditedContent {
        let lf = fold(new);
        let crlf = lf.replace('\n', "\r\n");
        let mut feeds = self.line_feeds().peekable();
        let mut last_is_crlf = false;
        let mut content = Vec::with_capacity(self.file.len());
        let mut done = 0;
        for offset in offsets {
            while let Some(feed) = feeds.next_if(|feed| feed < offset) {
                last_is_crlf = self.is_crlf(feed);
            }
            // The last line may have no line end; then the previous one decides.
            let ends_in_crlf = feeds.peek().map_or(last_is_crlf, |feed| self.is_crlf(*feed));
            let start = self.original_offset(*offset);
            let end = self.original_offset(offset + old.len());
            content.extend_from_slice(self.file.get(done..start).unwrap_or_default());
            content.extend_from_slice(if ends_in_crlf { crlf.as_bytes() } else { lf.as_bytes() });
            done = end;
        }
        content.extend_from_slice(self.file.get(done..).unwrap_or_default());
        EditedContent { content, lines: self.lines_at(offsets), notes: Vec::new() }
    }

    /// Returns the line of the new text if the edit seems to be applied already: the text occurs once, starts or ends
    /// within a line, and has a minimum length.
    ///
    /// For whole lines, the patch engine detects an applied edit.
    fn line_of_new(&self, edit: &Edit<'_>) -> Option<usize> {
        let (old, new) = (fold(edit.old), fold(edit.new));
        // Lines of the old text may have been in the file already.
        let is_kept = new.lines().all(|line| old.contains(line.trim()));
        if new.trim().len() < MIN_SIGN || is_kept {
            return None;
        }
        let offsets = occurrences(&self.folded, &new);
        match offsets.as_slice() {
            [offset] if !self.is_whole_lines(*offset, &new) => self.lines_at(&offsets).first().copied(),
            _ => None,
        }
    }

    /// Returns whether `text`, which is at `offset`, starts and ends at line boundaries.
    fn is_whole_lines(&self, offset: usize, text: &str) -> bool {
        let is_feed = |at: usize| self.folded.get(at) == Some(&b'\n');
        let end = offset + text.len();
        (offset == 0 || is_feed(offset - 1))
            && (text.ends_with('\n') || end == self.folded.len() || is_feed(end))
    }

    /// Returns the offsets of line feeds in `folded`.
    fn line_feeds(&self) -> impl Iterator<Item = usize> {
        self.folded.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at)
    }

    fn is_crlf(&self, feed: usize) -> bool {
        self.crlf.binary_search(&feed).is_ok()
    }

    /// Returns the line numbers of ascending offsets.
    fn lines_at(&self, offsets: &[usize]) -> Vec<usize> {
        let (mut line, mut counted) = (1, 0);
        let mut lines = Vec::with_capacity(offsets.len());
        for offset in offsets {
            let between = self.folded.get(counted..*offset).unwrap_or_default();
            line += between.iter().filter(|byte| **byte == b'\n').count();
            counted = *offset;
            lines.push(line);
        }
        lines
    }
}

/// Folds every CRLF of an argument to an LF, since its line ends may differ from the file's.
pub(super) fn fold(argument: &str) -> String {
    argument.replace("\r\n", "\n")
}

/// Returns the offsets of `needle`, in order and without overlap. Invalid UTF-8 is skipped.
fn occurrences(haystack: &[u8], needle: &str) -> Vec<usize> {
    let mut offsets = Vec::new();
    let mut start = 0;
    for chunk in haystack.utf8_chunks() {
        offsets.extend(chunk.valid().match_indices(needle).map(|(at, _)| start + at));
        start += chunk.valid().len() + chunk.invalid().len();
    }
    offsets
}

/// Replaces whole lines by the rules of `apply_patch`: the loose match must be the only one.
fn replace_loosely(path: &str, file: &[u8], edit: &Edit<'_>) -> Result<EditedContent, ToolError> {
    let update = UpdateFile::new(path, vec![Hunk::new(hunk_lines(edit))]);
    let patch = Patch::new(vec![Operation::Update(update)]);
    let files = BTreeMap::from([(path.to_owned(), file.to_vec())]);
    let plan =
        plan(&patch, &files, &ApplyOptions::default()).map_err(|error| not_found(path, file, edit, error))?;
    if edit.expected.is_some_and(|expected| expected != 1) {
        return Err(conflict(format!("old_string does not occur in {path} exactly, and loosely only once")));
    }
    let Some(mut content) = plan.changes.into_iter().find_map(|change| change.new) else {
        return Err(conflict(format!(
            "{path} already has new_string where old_string fits but for blanks or typography"
        )));
    };
    // The patch engine ends a last line that it changes. Here the arguments determine the line end.
    if !file.ends_with(b"\n") && !edit.new.is_empty() && !edit.new.ends_with('\n') {
        let kept = content.strip_suffix(b"\n").map(|kept| kept.strip_suffix(b"\r").unwrap_or(kept).len());
        content.truncate(kept.unwrap_or(content.len()));
    }
    let mut lines = vec![first_difference(file, &content)];
    let mut notes = Vec::new();
    for diagnostic in &plan.diagnostics {
        if let DiagnosticKind::LooseMatch { level, file_line, whitespace: blanks } = &diagnostic.kind {
            lines = vec![*file_line];
            let how = blanks.as_deref().map(described).unwrap_or_default();
            notes.push(format!(
                "old_string matched only {level}{how}; check that the result is as you want it"
            ));
        } else {
            notes.push(diagnostic.kind.to_string());
        }
    }
    Ok(EditedContent { content, lines, notes })
}

/// Describes a difference in whitespace.
fn described(blanks: &WhitespaceDifference) -> String {
    let WhitespaceDifference { file_line, column, expected, found, .. } = blanks;
    format!(" (line {file_line}, column {column}: old_string has {expected}, the file {found})")
}

/// Returns the hunk for an edit. Shared lines at both ends are context, so that the file's own lines stay.
fn hunk_lines(edit: &Edit<'_>) -> Vec<HunkLine> {
    let (old, new) = (fold(edit.old), fold(edit.new));
    let (old, new) = (lines_of(&old), lines_of(&new));
    let shared = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (head, old) = old.split_at(shared);
    let new = new.get(shared..).unwrap_or_default();
    let shared = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, tail) = old.split_at(old.len() - shared);
    let new = new.get(..new.len() - shared).unwrap_or_default();
    let context = |line: &&str| HunkLine::Context((*line).to_owned());
    head.iter()
        .map(context)
        .chain(old.iter().map(|line| HunkLine::Remove((*line).to_owned())))
        .chain(new.iter().map(|line| HunkLine::Add((*line).to_owned())))
        .chain(tail.iter().map(context))
        .collect()
}

/// Splits an argument into lines. A final line feed ends the last line, and an empty text has no lines.
fn lines_of(text: &str) -> Vec<&str> {
    match text.strip_suffix('\n').unwrap_or(text) {
        "" if text.is_empty() => Vec::new(),
        body => body.split('\n').collect(),
    }
}

/// Returns the number of the first line in which two texts differ.
fn first_difference(old: &[u8], new: &[u8]) -> usize {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new);
    same.filter(|(byte, _)| **byte == b'\n').count() + 1
}

fn wrong_count(path: &str, lines: &[usize], edit: &Edit<'_>) -> ToolError {
    let times = match lines.len() {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    };
    let found = format!("old_string occurs {times} in {path}, at {}", list_lines(lines));
    let add = "Add neighbouring lines";
    conflict(match (edit.expected, lines.len()) {
        (Some(1), count) => format!(
            "{found}, and one occurrence was expected. {add} to make it unique, or set expected_replacements to \
             {count} to replace every one"
        ),
        (Some(expected), 1) => format!("{found}; expected_replacements is {expected}"),
        (Some(expected), count) => format!(
            "{found}; expected_replacements is {expected}. {add} to name fewer places, or set it to {count} to \
             replace every one"
        ),
        (None, _) => format!("{found}. {add} to make it unique, or set replace_all to replace every one"),
    })
}

/// Converts an error of the patch engine to a message with this tool's terms.
fn not_found(path: &str, file: &[u8], edit: &Edit<'_>, error: ApplyError) -> ToolError {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the engine's own words are good enough for the others"
    )]
    let message = match error.kind.as_ref() {
        ApplyErrorKind::ContextNotFound { difference, nearest, .. } => {
            let text = Text::new(file);
            match LooseOccurrences::find(&text.folded, &fold(edit.old)) {
                Some(loose) => loose.describe(path),
                None => {
                    let difference = difference.as_ref().map(ToString::to_string);
                    text_not_found(path, text.line_of_new(edit), difference, nearest)
                }
            }
        }
        ApplyErrorKind::Ambiguous { level, candidates } => {
            let message =
                format!("old_string does not occur in {path} exactly, and {level} it occurs several times");
            message + &listed("it matches", candidates)
        }
        ApplyErrorKind::Indentation { file_line, differences, new_line } => {
            indentation(path, *file_line, differences, new_line.as_deref())
        }
        ApplyErrorKind::AlreadyApplied { file_line } => {
            format!(
                "old_string does not occur in {path}, but new_string does, at line {file_line}: already applied?"
            )
        }
        other => format!("old_string does not occur in {path}: {other}"),
    };
    conflict(message).with_source(error)
}

/// Returns the message for text that does not occur even if whitespace is ignored. `line_of_new` is the line of the new
/// text, if the edit seems to be applied.
fn text_not_found(
    path: &str,
    line_of_new: Option<usize>,
    difference: Option<String>,
    nearest: &[Candidate],
) -> String {
    let mut message = format!("old_string does not occur in {path}");
    if let Some(line) = line_of_new {
        message.push_str(&format!(", but new_string does, at line {line}: already applied?"));
    } else if nearest.is_empty() && difference.is_none() {
        message.push_str(", and no line of it is like it; is it the right file?");
    }
    if let Some(difference) = difference {
        message.push('\n');
        message.push_str(&difference);
    }
    message + &listed("nearest places", nearest)
}

fn indentation(
    path: &str,
    file_line: usize,
    differences: &[WhitespaceDifference],
    new_line: Option<&str>,
) -> String {
    let why = match new_line {
        Some(line) => format!("line `{line}` of new_string cannot be indented to fit"),
        None => "the difference is not the same on every line".to_owned(),
    };
    let mut message = format!(
        "old_string occurs in {path} only with other indentation, at line {file_line}, and {why}. Give both with \
         the indentation of the file"
    );
    for WhitespaceDifference { file_line, expected, found, .. } in differences {
        message.push_str(&format!("\n  line {file_line}: old_string has {expected}, the file {found}"));
    }
    message
}

/// Lists candidates below a title.
fn listed(title: &str, candidates: &[Candidate]) -> String {
    if candidates.is_empty() {
        return String::new();
    }
    let lines =
        candidates.iter().map(|candidate| format!("\n  line {}: `{}`", candidate.file_line, candidate.text));
    format!("\n{title}:{}", lines.collect::<String>())
}

fn conflict(message: String) -> ToolError {
    ToolError::new(ToolErrorKind::EditConflict, message)
}
