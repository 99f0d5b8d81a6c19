//! Indents the new lines of a hunk whose old lines are indented differently in the file.

use std::borrow::Cow;

use crate::error::{ApplyErrorKind, BlankDifference, blanks_in_words};
use crate::excerpt::excerpt;
use crate::level::Form;
use crate::pattern::Pattern;
use crate::text::{self, Line};
use crate::{DiagnosticKind, HunkLine};

/// How many lines an error names.
const MAX_NAMED: usize = 3;

/// The longest indentation that an error describes, in bytes.
const MAX_COMPARED: usize = 4096;

/// The indentation of the file in place of the one in the hunk: a prefix replaced by another one, of which one is
/// usually empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shift<'a> {
    given: &'a [u8],
    found: &'a [u8],
}

/// An old line and the line of the file that it matches, neither of them blank.
struct Pair<'a> {
    /// Number of the line in the file, from 0.
    at: usize,
    given: &'a [u8],
    found: &'a [u8],
}

impl<'a> Shift<'a> {
    /// Returns how to indent the new lines of `pattern`, whose old lines, without the last `dropped`, match the file
    /// from line `start` on, or `None` if they stay as they are.
    ///
    /// # Errors
    ///
    /// [`ApplyErrorKind::Indentation`] if the difference is not the same on every line, or does not suit a new line.
    pub(crate) fn find(
        form: Form,
        pattern: &Pattern<'a>,
        dropped: usize,
        file: &[Line<'a>],
        start: usize,
    ) -> Result<Option<Self>, ApplyErrorKind> {
        let pairs = || {
            let found = file.iter().enumerate().skip(start);
            let pairs = pattern.old_without(dropped).iter().zip(found);
            let pairs = pairs.map(|(given, (at, found))| Pair { at, given, found: found.text });
            pairs.filter(|pair| !form.is_blank(pair.given))
        };
        if !added(pattern).any(|line| !form.is_blank(line)) {
            return Ok(None);
        }
        let Some(shift) = pairs().next().map(|pair| pair.shift(form)) else { return Ok(None) };
        if pairs().any(|pair| pair.shift(form) != shift) {
            return Err(refusal(form, start, pairs(), None));
        }
        if shift.is_empty() {
            return Ok(None);
        }
        match shift.misfit(form, pattern, pairs()) {
            Some(line) => Err(refusal(form, start, pairs(), Some(line))),
            None => Ok(Some(shift)),
        }
    }

    fn is_empty(&self) -> bool {
        self.given.is_empty() && self.found.is_empty()
    }

    /// The first new line that cannot be indented without guessing what its author meant.
    fn misfit(
        &self,
        form: Form,
        pattern: &Pattern<'a>,
        pairs: impl Iterator<Item = Pair<'a>>,
    ) -> Option<&'a [u8]> {
        let (mut file_is_mixed, mut least_old): (bool, Option<&[u8]>) = (false, None);
        for pair in pairs {
            file_is_mixed |= is_mixed(form.indentation(pair.found));
            least_old = shorter(least_old, form.indentation(pair.given));
        }
        let lines = pattern.new_lines().into_iter().filter(|line| !form.is_blank(line));
        let least_new = lines.fold(None, |least, line| shorter(least, form.indentation(line)));
        // Without this, a block whose old lines were quoted at the margin but whose new lines are indented as in the
        // file would be indented twice.
        let is_indented = self.given.is_empty()
            && least_old
                .zip(least_new)
                .is_some_and(|(old, new)| new.starts_with(&[self.found, old].concat()));
        let mut added = added(pattern).filter(|line| !form.is_blank(line));
        added.find(|line| {
            let fits = line.strip_prefix(self.given).is_some_and(|rest| {
                file_is_mixed || !is_mixed(&[self.found, form.indentation(rest)].concat())
            });
            is_indented || !fits
        })
    }

    /// The bytes of a new line, indented as the file is.
    pub(crate) fn apply<'l>(&self, form: Form, line: &'l str) -> Cow<'l, [u8]> {
        // A carriage return inside a line of a patch is a line end of the file.
        let lines = text::lines_of(line).map(|line| match line.strip_prefix(self.given) {
            Some(rest) if !form.is_blank(line) => Cow::Owned([self.found, rest].concat()),
            _ => Cow::Borrowed(line),
        });
        Cow::Owned(lines.collect::<Vec<_>>().join(&b'\r'))
    }

    /// What the author of the patch should know of it; `start` counts from 0.
    pub(crate) fn note(&self, start: usize) -> DiagnosticKind {
        let words = |blanks: &[u8]| {
            let blanks = String::from_utf8_lossy(blanks);
            (!blanks.is_empty()).then(|| blanks_in_words(&blanks))
        };
        DiagnosticKind::Reindented {
            file_line: start + 1,
            removed: words(self.given),
            added: words(self.found),
        }
    }
}

impl<'a> Pair<'a> {
    /// The difference in indentation, without the indentation that both lines have behind it.
    fn shift(&self, form: Form) -> Shift<'a> {
        let (given, found) = (form.indentation(self.given), form.indentation(self.found));
        let pairs = given.iter().rev().zip(found.iter().rev());
        let shared = pairs.take_while(|(given, found)| given == found).count();
        let without = |blanks: &'a [u8]| blanks.get(..blanks.len() - shared).unwrap_or_default();
        Shift { given: without(given), found: without(found) }
    }

    /// The difference for a message.
    fn difference(&self, form: Form) -> Option<BlankDifference> {
        let (given, found) = (form.indentation(self.given), form.indentation(self.found));
        if given.len().max(found.len()) > MAX_COMPARED {
            return None;
        }
        let text = |blanks| std::str::from_utf8(blanks).ok();
        BlankDifference::of(self.at + 1, text(given)?, text(found)?)
    }
}

fn refusal<'a>(
    form: Form,
    start: usize,
    pairs: impl Iterator<Item = Pair<'a>>,
    new_line: Option<&[u8]>,
) -> ApplyErrorKind {
    ApplyErrorKind::Indentation {
        file_line: start + 1,
        differences: pairs.filter_map(|pair| pair.difference(form)).take(MAX_NAMED).collect(),
        new_line: new_line.map(excerpt),
    }
}

/// The lines that a pattern adds.
fn added<'p>(pattern: &Pattern<'p>) -> impl Iterator<Item = &'p [u8]> + use<'p> {
    let added = pattern.hunk.lines.iter().filter_map(|line| match line {
        HunkLine::Add(text) => Some(text.as_str()),
        HunkLine::Context(_) | HunkLine::Remove(_) => None,
    });
    added.flat_map(text::lines_of)
}

/// Whether blanks are of both kinds, which indentation rarely is on purpose.
fn is_mixed(blanks: &[u8]) -> bool {
    blanks.contains(&b' ') && blanks.contains(&b'\t')
}

fn shorter<'a>(least: Option<&'a [u8]>, blanks: &'a [u8]) -> Option<&'a [u8]> {
    Some(least.filter(|least| least.len() <= blanks.len()).unwrap_or(blanks))
}
