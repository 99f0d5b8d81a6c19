//! Accepted deviations and their normalization.

use std::ops::Range;

use crate::error::{ParseError, ParseErrorKind};
use crate::parse::marker::MarkerLine;
use crate::{Diagnostic, DiagnosticKind};

/// Diagnostics so far. There is at most one per kind, so even a bad patch has few.
#[derive(Debug, Default)]
pub(super) struct Diagnostics {
    pub(super) list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub(super) fn report(&mut self, kind: DiagnosticKind, line: usize) {
        self.report_lines(kind, line..line + 1);
    }

    /// Reports the same deviation for each of `lines`, which may be empty.
    pub(super) fn report_lines(&mut self, kind: DiagnosticKind, lines: Range<usize>) {
        if lines.is_empty() {
            return;
        }
        let count = lines.len();
        match self.list.iter_mut().find(|seen| seen.kind == kind) {
            Some(seen) => {
                seen.count += count;
                seen.line = seen.line.min(lines.start);
            }
            None => self.list.push(Diagnostic { count, ..Diagnostic::new(kind, lines.start) }),
        }
    }

    /// Reports the deviations in the spelling of a marker.
    pub(super) fn report_marker(&mut self, read: MarkerLine<'_>, line: usize) {
        if read.indented {
            self.report(DiagnosticKind::IndentedMarker, line);
        }
        if read.trailing_stars {
            self.report(DiagnosticKind::TrailingStars, line);
        }
        if read.missing_space {
            self.report(DiagnosticKind::MissingSpaceBeforePath, line);
        }
    }

    /// Returns the path of a header without `.` segments.
    pub(super) fn normalize_path(
        &mut self,
        path: &str,
        number: usize,
        line: &str,
    ) -> Result<String, ParseError> {
        if path.chars().any(char::is_control) {
            return Err(ParseError::new(number, line, ParseErrorKind::ControlCharacterInPath));
        }
        let root = if path.starts_with('/') { "/" } else { "" };
        let segments = path.split('/').filter(|segment| !matches!(*segment, "" | "."));
        let clean = format!("{root}{}", segments.collect::<Vec<_>>().join("/"));
        if clean == root {
            return Err(ParseError::new(number, line, ParseErrorKind::EmptyPath));
        }
        if clean != path {
            self.report(DiagnosticKind::DotSegments, number);
        }
        Ok(clean)
    }

    /// Returns the hint of a `@@` line, which may be empty. Its indentation is kept, since it may distinguish otherwise
    /// equal lines.
    pub(super) fn normalize_hint<'a>(&mut self, text: &'a str, number: usize) -> &'a str {
        let mut missing_space = !text.starts_with(' ');
        let mut hint = text.strip_prefix(' ').unwrap_or(text).trim_end();
        loop {
            if let Some(heading) = strip_ranges(hint.trim_start()) {
                self.report(DiagnosticKind::GitHunkHeader, number);
                missing_space = false;
                hint = heading.strip_prefix(' ').unwrap_or(heading);
            } else if strip_closing(hint).is_some() {
                self.report(DiagnosticKind::TrailingHintMarker, number);
                // All are stripped at once, since each pass of the outer loop skips the leading whitespace again.
                while let Some(opened) = strip_closing(hint) {
                    hint = opened.trim_end();
                }
                hint = hint.strip_prefix(' ').unwrap_or(hint);
            } else {
                if missing_space && !hint.is_empty() {
                    self.report(DiagnosticKind::MissingSpaceBeforeHint, number);
                }
                return hint;
            }
        }
    }
}

/// Returns the heading after the ranges of a git-style header: `-1,2 +1,3 @@ heading`.
fn strip_ranges(hint: &str) -> Option<&str> {
    let rest = strip_range(hint.strip_prefix('-')?)?.trim_start();
    let rest = strip_range(rest.strip_prefix('+')?)?.trim_start();
    match rest.strip_prefix("@@") {
        Some(heading) => Some(heading),
        None => rest.is_empty().then_some(rest),
    }
}

/// Strips a range, `12` or `12,3`, and returns the rest.
fn strip_range(text: &str) -> Option<&str> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.get(digits(text)..).filter(|rest| rest.len() < text.len())?;
    match rest.strip_prefix(',') {
        Some(count) => count.get(digits(count)..).filter(|rest| rest.len() < count.len()),
        None => Some(rest),
    }
}

/// Strips a separate `@@` at the end of a hint.
fn strip_closing(hint: &str) -> Option<&str> {
    let rest = hint.strip_suffix("@@")?;
    (rest.is_empty() || rest.ends_with(char::is_whitespace)).then_some(rest)
}
