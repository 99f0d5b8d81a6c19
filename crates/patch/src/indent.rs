//! Re-indents the new lines of a hunk whose old lines are indented differently in the file.

use std::borrow::Cow;

use crate::error::{ApplyErrorKind, WhitespaceDifference, describe_whitespace};
use crate::excerpt::excerpt;
use crate::level::LineComparison;
use crate::pattern::Pattern;
use crate::text::{self, TextLine};
use crate::{DiagnosticKind, HunkLine};

/// Maximum number of lines that an error names.
const MAX_DIFFERENCES: usize = 3;

/// Maximum length of an indentation that an error describes, in bytes.
const MAX_COMPARED: usize = 4096;

/// Replacement of the hunk's indentation prefix by the file's. Usually one of the two is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndentShift<'a> {
    given: &'a [u8],
    found: &'a [u8],
}

/// An old line and the matching line of the file. Neither is blank.
struct Pair<'a> {
    /// Line of the file, from 0.
    at: usize,
    given: &'a [u8],
    found: &'a [u8],
}

impl<'a> IndentShift<'a> {
    /// Returns how to re-indent the new lines of `pattern`, or `None` if they stay unchanged. The old lines, without
    /// the last `dropped`, match the file from line `start` on.
    ///
    /// # Errors
    ///
    /// [`ApplyErrorKind::Indentation`] if the difference is not the same on every line or cannot be applied to a new line.
    pub(crate) fn find(
        comparison: LineComparison,
        pattern: &Pattern<'a>,
        dropped: usize,
        file: &[TextLine<'a>],
        start: usize,
    ) -> Result<Option<Self>, ApplyErrorKind> {
        let pairs = || {
            let found = file.iter().enumerate().skip(start);
            let pairs = pattern.old_without(dropped).iter().zip(found);
            let pairs = pairs.map(|(given, (at, found))| Pair { at, given, found: found.text() });
            pairs.filter(|pair| !comparison.is_blank(pair.given))
        };
        if !added(pattern).any(|line| !comparison.is_blank(line)) {
            return Ok(None);
        }
        let Some(shift) = pairs().next().map(|pair| pair.shift(comparison)) else { return Ok(None) };
        if pairs().any(|pair| pair.shift(comparison) != shift) {
            return Err(indentation_error(comparison, start, pairs(), None));
        }
        if shift.is_empty() {
            return Ok(None);
        }
        match shift.unindentable_line(comparison, pattern, pairs()) {
            Some(line) => Err(indentation_error(comparison, start, pairs(), Some(line))),
            None => Ok(Some(shift)),
        }
    }

    fn is_empty(&self) -> bool {
        self.given.is_empty() && self.found.is_empty()
    }

    /// Returns the first new line that cannot be re-indented without guessing the author's intent.
    fn unindentable_line(
        &self,
        comparison: LineComparison,
        pattern: &Pattern<'a>,
        pairs: impl Iterator<Item = Pair<'a>>,
    ) -> Option<&'a [u8]> {
        let (mut file_is_mixed, mut least_old): (bool, Option<&[u8]>) = (false, None);
        for pair in pairs {
            file_is_mixed |= is_mixed(comparison.indentation(pair.found));
            least_old = shorter(least_old, comparison.indentation(pair.given));
        }
        let lines = pattern.new_lines().into_iter().filter(|line| !comparison.is_blank(line));
        let least_new = lines.fold(None, |least, line| shorter(least, comparison.indentation(line)));
        // Without this check, a block whose old lines were quoted without indentation, but whose new lines are
        // indented as in the file, would be indented twice.
        let is_indented = self.given.is_empty()
            && least_old
                .zip(least_new)
                .is_some_and(|(old, new)| new.starts_with(&[self.found, old].concat()));
        let mut added = added(pattern).filter(|line| !comparison.is_blank(line));
        added.find(|line| {
            let fits = line.strip_prefix(self.given).is_some_and(|rest| {
                file_is_mixed || !is_mixed(&[self.found, comparison.indentation(rest)].concat())
            });
            is_indented || !fits
        })
    }

    /// Returns the bytes of a new line, indented as in the file.
    pub(crate) fn apply<'l>(&self, comparison: LineComparison, line: &'l str) -> Cow<'l, [u8]> {
        // A carriage return within a line of the patch is a line end in the file.
        let lines = text::lines_of(line).map(|line| match line.strip_prefix(self.given) {
            Some(rest) if !comparison.is_blank(line) => Cow::Owned([self.found, rest].concat()),
            _ => Cow::Borrowed(line),
        });
        Cow::Owned(lines.collect::<Vec<_>>().join(&b'\r'))
    }

    /// Returns the diagnostic for the author of the patch. `start` counts from 0.
    pub(crate) fn diagnostic(&self, start: usize) -> DiagnosticKind {
        let words = |whitespace: &[u8]| {
            let whitespace = String::from_utf8_lossy(whitespace);
            (!whitespace.is_empty()).then(|| describe_whitespace(&whitespace))
        };
        DiagnosticKind::Reindented {
            file_line: start + 1,
            removed: words(self.given),
            added: words(self.found),
        }
    }
}

impl<'a> Pair<'a> {
    /// Returns the difference in indentation, without the trailing part that both lines share.
    fn shift(&self, comparison: LineComparison) -> IndentShift<'a> {
        let (given, found) = (comparison.indentation(self.given), comparison.indentation(self.found));
        let pairs = given.iter().rev().zip(found.iter().rev());
        let shared = pairs.take_while(|(given, found)| given == found).count();
        let without = |indent: &'a [u8]| indent.get(..indent.len() - shared).unwrap_or_default();
        IndentShift { given: without(given), found: without(found) }
    }

    /// Returns the difference as text for an error message.
    fn difference(&self, comparison: LineComparison) -> Option<WhitespaceDifference> {
        let (given, found) = (comparison.indentation(self.given), comparison.indentation(self.found));
        if given.len().max(found.len()) > MAX_COMPARED {
            return None;
        }
        let text = |indent| std::str::from_utf8(indent).ok();
        WhitespaceDifference::compare(self.at + 1, text(given)?, text(found)?)
    }
}

fn indentation_error<'a>(
    comparison: LineComparison,
    start: usize,
    pairs: impl Iterator<Item = Pair<'a>>,
    new_line: Option<&[u8]>,
) -> ApplyErrorKind {
    ApplyErrorKind::Indentation {
        file_line: start + 1,
        differences: pairs.filter_map(|pair| pair.difference(comparison)).take(MAX_DIFFERENCES).collect(),
        new_line: new_line.map(excerpt),
    }
}

/// Returns the lines that a pattern adds.
fn added<'p>(pattern: &Pattern<'p>) -> impl Iterator<Item = &'p [u8]> + use<'p> {
    let added = pattern.hunk.lines.iter().filter_map(|line| match line {
        HunkLine::Add(text) => Some(text.as_str()),
        HunkLine::Context(_) | HunkLine::Remove(_) => None,
    });
    added.flat_map(text::lines_of)
}

/// Returns whether an indentation mixes spaces and tabs, which is rarely intended.
fn is_mixed(indent: &[u8]) -> bool {
    indent.contains(&b' ') && indent.contains(&b'\t')
}

fn shorter<'a>(least: Option<&'a [u8]>, indent: &'a [u8]) -> Option<&'a [u8]> {
    Some(least.filter(|least| least.len() <= indent.len()).unwrap_or(indent))
}
