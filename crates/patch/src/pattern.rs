//! A hunk as the search and the writer use it: its old lines, and one step per line.

use std::borrow::Cow;

use crate::syntax::{Hunk, HunkLine};
use crate::text;

/// Action at one line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'p> {
    Keep,
    Remove,
    Add(&'p str),
}

#[derive(Debug)]
pub(crate) struct Pattern<'p> {
    pub(crate) hunk: &'p Hunk,
    /// The hunk's number within its section, from 1.
    pub(crate) number: usize,
    /// Lines that must be in the file.
    pub(crate) old: Vec<&'p [u8]>,
    /// Number of empty context lines at the end, which may be just a gap in the text of the patch.
    pub(crate) empty_tail: usize,
    steps: Vec<Step<'p>>,
}

/// Part of a pattern from its first to its last change, without the context around it.
#[derive(Debug)]
pub(crate) struct ChangedRegion<'s, 'p> {
    /// Number of old lines before it.
    pub(crate) offset: usize,
    /// Number of old lines in it.
    pub(crate) length: usize,
    pub(crate) steps: Cow<'s, [Step<'p>]>,
}

impl<'p> Pattern<'p> {
    pub(crate) fn new(number: usize, hunk: &'p Hunk) -> Self {
        let (mut old, mut steps) = (Vec::new(), Vec::new());
        for line in &hunk.lines {
            let (text, step) = match line {
                HunkLine::Context(text) => (text, Step::Keep),
                HunkLine::Remove(text) => (text, Step::Remove),
                HunkLine::Add(text) => {
                    steps.push(Step::Add(text));
                    continue;
                }
            };
            let lines = text::lines_of(text);
            let before = old.len();
            old.extend(lines);
            steps.extend(std::iter::repeat_n(step, old.len() - before));
        }
        let kept = steps.iter().rev().take_while(|step| **step == Step::Keep).count();
        let empty = old.iter().rev().take_while(|line| line.is_empty()).count();
        Self { hunk, number, empty_tail: kept.min(empty), old, steps }
    }

    /// Returns the old lines without the last `dropped`.
    pub(crate) fn old_without(&self, dropped: usize) -> &[&'p [u8]] {
        let kept = self.old.len().saturating_sub(dropped);
        self.old.get(..kept).unwrap_or_default()
    }

    /// Returns the changed region if the file lacks the last `dropped` old lines; `None` if nothing changes.
    pub(crate) fn changed_region(&self, dropped: usize) -> Option<ChangedRegion<'_, 'p>> {
        let changes = |step: &Step<'_>| *step != Step::Keep;
        // Context at the end is outside the region, dropped or not.
        let steps = match dropped > 0 && self.steps.last().is_some_and(changes) {
            true => Cow::Owned(self.steps_without_last_line()),
            false => Cow::Borrowed(self.steps.as_slice()),
        };
        let first = steps.iter().position(changes)?;
        let last = steps.iter().rposition(changes)?;
        let steps = match steps {
            Cow::Borrowed(steps) => Cow::Borrowed(steps.get(first..=last)?),
            Cow::Owned(steps) => Cow::Owned(steps.get(first..=last)?.to_vec()),
        };
        let length = steps.iter().filter(|step| !matches!(step, Step::Add(_))).count();
        Some(ChangedRegion { offset: first, length, steps })
    }

    /// Returns the lines after the hunk is applied.
    pub(crate) fn new_lines(&self) -> Vec<&'p [u8]> {
        let mut old = self.old.iter().copied();
        let mut lines = Vec::new();
        for step in &self.steps {
            match step {
                Step::Keep => lines.extend(old.next()),
                Step::Remove => {
                    old.next();
                }
                Step::Add(text) => lines.extend(text::lines_of(text)),
            }
        }
        lines
    }

    /// Returns the steps for a file that lacks the last old line, an empty one. A step that kept that line now adds it.
    /// Then an empty line at the end of the new lines is dropped, as in the reference implementation.
    fn steps_without_last_line(&self) -> Vec<Step<'p>> {
        let mut steps = self.steps.clone();
        match steps.iter().rposition(|step| !matches!(step, Step::Add(_))) {
            Some(at) if steps.get(at) == Some(&Step::Keep) => steps.splice(at..=at, [Step::Add("")]).count(),
            Some(at) => steps.splice(at..=at, []).count(),
            None => 0,
        };
        let Some(at) = steps.iter().rposition(|step| *step != Step::Remove) else { return steps };
        let old = steps.iter().take(at).filter(|step| !matches!(step, Step::Add(_))).count();
        let is_empty = self.old.get(old).is_some_and(|line| line.is_empty());
        match steps.get_mut(at) {
            Some(step @ Step::Keep) if is_empty => *step = Step::Remove,
            Some(Step::Add("")) => {
                steps.remove(at);
            }
            Some(Step::Keep | Step::Remove | Step::Add(_)) | None => {}
        }
        steps
    }

    /// Returns whether the hunk adds a line with a letter or a digit.
    pub(crate) fn adds_words(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Add(text) => text.chars().any(char::is_alphanumeric),
            Step::Keep | Step::Remove => false,
        })
    }

    /// Returns whether the hunk only removes lines, with context on both sides.
    pub(crate) fn removes_between(&self) -> bool {
        let adds = self.steps.iter().any(|step| matches!(step, Step::Add(_)));
        let ends = [self.steps.first(), self.steps.last()];
        !adds && ends.iter().all(|step| *step == Some(&Step::Keep))
    }
}
