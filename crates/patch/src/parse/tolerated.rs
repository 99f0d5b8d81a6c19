//! What the parser accepts although it is not quite right, and what is left of it.

use std::ops::Range;

use crate::error::{ParseError, ParseErrorKind};
use crate::parse::marker::MarkerLine;
use crate::{Diagnostic, DiagnosticKind};

/// What was tolerated so far: one diagnostic for each kind, so a bad patch makes few.
#[derive(Debug, Default)]
pub(super) struct Tolerated {
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Tolerated {
    pub(super) fn note(&mut self, kind: DiagnosticKind, line: usize) {
        self.note_lines(kind, line..line + 1);
    }

    /// Notes the same matter in each of `lines`, which may be none.
    pub(super) fn note_lines(&mut self, kind: DiagnosticKind, lines: Range<usize>) {
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

    pub(super) fn dress(&mut self, read: MarkerLine<'_>, line: usize) {
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
    pub(super) fn path(&mut self, path: &str, number: usize, line: &str) -> Result<String, ParseError> {
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
    pub(super) fn hint<'a>(&mut self, text: &'a str, number: usize) -> &'a str {
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
