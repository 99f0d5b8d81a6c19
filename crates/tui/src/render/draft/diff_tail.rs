//! Tail of a growing diff.

use std::collections::VecDeque;

use pintle_host::sanitize::escape_hidden;

use super::super::line::{Face, StyledLine};
use super::super::wrap::expand_tabs;

/// Number of lines kept.
const MAX_LINES: usize = 16;

/// Bytes kept of each line.
const MAX_LINE_BYTES: usize = 400;

/// Kind of a line in a diff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineKind {
    Added,
    Removed,
    Context,
    /// Header of a hunk.
    Hunk,
    /// Header of a file.
    File,
}

/// Last lines of a diff, with counts of all added and removed lines.
#[derive(Debug, Default)]
pub(super) struct DiffTail {
    lines: VecDeque<StyledLine>,
    /// Incomplete last line.
    partial: Option<(LineKind, String)>,
    added: u64,
    removed: u64,
}

impl DiffTail {
    /// Appends a line.
    pub(super) fn line(&mut self, kind: LineKind, text: &str) {
        match kind {
            LineKind::Added => self.added += 1,
            LineKind::Removed => self.removed += 1,
            LineKind::Context | LineKind::Hunk | LineKind::File => {}
        }
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(format_line(kind, truncate(text)));
    }

    /// Appends part of a text whose lines are all of one kind.
    pub(super) fn text(&mut self, kind: LineKind, text: &str) {
        if let Some((other, line)) = self.partial.take_if(|(current, _)| *current != kind) {
            self.line(other, &line);
        }
        let mut rest = text;
        while let Some((end, after)) = rest.split_once('\n') {
            let mut line = self.partial.take().map(|(_, start)| start).unwrap_or_default();
            line.push_str(end);
            self.line(kind, &line);
            rest = after;
        }
        if !rest.is_empty() {
            let (_, line) = self.partial.get_or_insert((kind, String::new()));
            if line.len() < MAX_LINE_BYTES {
                line.push_str(truncate(rest));
            }
        }
    }

    /// Returns the numbers of added and removed lines.
    pub(super) fn counts(&self) -> (u64, u64) {
        let open = |wanted| u64::from(self.partial.as_ref().is_some_and(|(kind, _)| *kind == wanted));
        (self.added + open(LineKind::Added), self.removed + open(LineKind::Removed))
    }

    /// Returns at most `lines` lines from the end, including an incomplete one.
    pub(super) fn last_lines(&self, lines: usize) -> impl Iterator<Item = StyledLine> {
        let partial = self.partial.as_ref().map(|(kind, text)| format_line(*kind, text));
        let complete = lines.saturating_sub(usize::from(partial.is_some()));
        let skipped = self.lines.len().saturating_sub(complete);
        self.lines.iter().skip(skipped).cloned().chain(partial)
    }
}

/// Formats a line with its sign, tabs expanded and hidden characters escaped.
fn format_line(kind: LineKind, text: &str) -> StyledLine {
    let text = expand_tabs(&escape_hidden(text.strip_suffix('\r').unwrap_or(text)));
    let (sign, face) = match kind {
        LineKind::Added => ("+", Face::SUCCESS),
        LineKind::Removed => ("-", Face::FAILURE),
        LineKind::Context => (" ", Face::PLAIN),
        LineKind::Hunk if text.is_empty() => ("@@", Face::LOCATION),
        LineKind::Hunk => ("@@ ", Face::LOCATION),
        LineKind::File => ("", Face::BOLD),
    };
    StyledLine::new(format!("{sign}{text}"), face)
}

/// Truncates a line to [`MAX_LINE_BYTES`].
fn truncate(line: &str) -> &str {
    let end = line.char_indices().map(|(at, _)| at).find(|at| *at >= MAX_LINE_BYTES);
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}
