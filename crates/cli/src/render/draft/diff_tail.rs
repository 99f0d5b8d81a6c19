//! The end of a diff that grows.

use std::collections::VecDeque;

use super::super::sanitize::visible;
use super::super::style::Highlight;
use super::field_reader::Piece;

/// Lines that are kept, the newest.
const KEPT: usize = 16;

/// Bytes of a line that are kept.
const LONGEST: usize = 400;

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::render) enum LineKind {
    /// It comes.
    Added,
    /// It goes.
    Removed,
    /// It stays.
    Kept,
    /// It is none: it says where a hunk is.
    Place,
    /// It is none: it names a file.
    File,
}

/// One line, with spaces for tabs and with nothing hidden in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::render) struct DiffLine {
    /// What becomes of it.
    pub(in crate::render) sign: LineKind,
    /// With the sign before it.
    pub(in crate::render) text: String,
}

/// The newest lines of a diff, and how many there were.
#[derive(Debug, Default)]
pub(super) struct DiffTail {
    lines: VecDeque<DiffLine>,
    /// A line that has begun.
    partial: Option<(LineKind, String)>,
    added: u64,
    removed: u64,
}

impl LineKind {
    /// Its colour.
    pub(in crate::render) fn ink(self) -> Option<Highlight> {
        match self {
            Self::Added => Some(Highlight::Good),
            Self::Removed => Some(Highlight::Bad),
            Self::Kept => None,
            Self::Place => Some(Highlight::Place),
            Self::File => Some(Highlight::Strong),
        }
    }
}

impl DiffLine {
    fn new(sign: LineKind, text: &str) -> Self {
        let text = visible(text.strip_suffix('\r').unwrap_or(text)).replace('\t', "    ");
        let text = match sign {
            LineKind::Added => format!("+{text}"),
            LineKind::Removed => format!("-{text}"),
            LineKind::Kept => format!(" {text}"),
            LineKind::Place if text.is_empty() => "@@".to_owned(),
            LineKind::Place => format!("@@ {text}"),
            LineKind::File => text,
        };
        Self { sign, text }
    }
}

impl DiffTail {
    /// Adds a line.
    pub(super) fn line(&mut self, sign: LineKind, text: &str) {
        match sign {
            LineKind::Added => self.added += 1,
            LineKind::Removed => self.removed += 1,
            LineKind::Kept | LineKind::Place | LineKind::File => {}
        }
        if self.lines.len() == KEPT {
            self.lines.pop_front();
        }
        self.lines.push_back(DiffLine::new(sign, beginning(text)));
    }

    /// Adds a piece of a text whose lines all come, or all go.
    pub(super) fn piece(&mut self, sign: LineKind, piece: &Piece) {
        let mut rest = piece.text.as_str();
        while let Some((line, after)) = rest.split_once('\n') {
            let mut whole = self.partial.take().map(|(_, begun)| begun).unwrap_or_default();
            whole.push_str(line);
            self.line(sign, &whole);
            rest = after;
        }
        if !rest.is_empty() {
            let (_, begun) = self.partial.get_or_insert((sign, String::new()));
            if begun.len() < LONGEST {
                begun.push_str(beginning(rest));
            }
        }
        if piece.ends
            && let Some((sign, last)) = self.partial.take()
        {
            self.line(sign, &last);
        }
    }

    /// How many lines come and go.
    pub(super) fn counts(&self) -> (u64, u64) {
        let open = |wanted| u64::from(self.partial.as_ref().is_some_and(|(sign, _)| *sign == wanted));
        (self.added + open(LineKind::Added), self.removed + open(LineKind::Removed))
    }

    /// The newest lines, at most so many, the one that has begun included.
    pub(super) fn newest(&self, lines: usize) -> impl Iterator<Item = DiffLine> {
        let begun = self.partial.as_ref().map(|(sign, text)| DiffLine::new(*sign, text));
        let before = lines.saturating_sub(usize::from(begun.is_some()));
        let skipped = self.lines.len().saturating_sub(before);
        self.lines.iter().skip(skipped).cloned().chain(begun)
    }
}

/// As much of a line as is kept.
fn beginning(line: &str) -> &str {
    let end = line.char_indices().map(|(at, _)| at).find(|at| *at >= LONGEST);
    end.and_then(|end| line.get(..end)).unwrap_or(line)
}
