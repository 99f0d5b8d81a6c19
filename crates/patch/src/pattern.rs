//! A hunk as the search and the writer see it: old lines, and one step for each line.

use crate::syntax::{Hunk, HunkLine};
use crate::text;

/// What happens at one line of a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'p> {
    Keep,
    Remove,
    Add(&'p str),
}

#[derive(Debug)]
pub(crate) struct Pattern<'p> {
    pub(crate) hunk: &'p Hunk,
    /// The hunk's number inside its section, from 1.
    pub(crate) number: usize,
    /// The lines that must be in the file.
    pub(crate) old: Vec<&'p [u8]>,
    /// How many of the last lines are empty context: they may be only a gap in the patch.
    pub(crate) empty_tail: usize,
    steps: Vec<Step<'p>>,
}

/// The part of a pattern that changes something, without the context around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Core<'s, 'p> {
    /// How many old lines stand before it.
    pub(crate) offset: usize,
    /// How many old lines it spans.
    pub(crate) length: usize,
    pub(crate) steps: &'s [Step<'p>],
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

    /// The old lines without the last `dropped`, which are context.
    pub(crate) fn old_without(&self, dropped: usize) -> &[&'p [u8]] {
        let kept = self.old.len().saturating_sub(dropped);
        self.old.get(..kept).unwrap_or_default()
    }

    /// The changing part; `None` if nothing changes.
    pub(crate) fn core(&self) -> Option<Core<'_, 'p>> {
        let changes = |step: &Step<'_>| *step != Step::Keep;
        let first = self.steps.iter().position(changes)?;
        let last = self.steps.iter().rposition(changes)?;
        let steps = self.steps.get(first..=last)?;
        let length = steps.iter().filter(|step| !matches!(step, Step::Add(_))).count();
        Some(Core { offset: first, length, steps })
    }

    /// The lines as they are once the hunk is applied.
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

    /// Whether the hunk adds a line that has a letter or a digit.
    pub(crate) fn adds_words(&self) -> bool {
        self.steps.iter().any(|step| match step {
            Step::Add(text) => text.chars().any(char::is_alphanumeric),
            Step::Keep | Step::Remove => false,
        })
    }

    /// Whether the hunk only removes, with context on both sides.
    pub(crate) fn removes_between(&self) -> bool {
        let adds = self.steps.iter().any(|step| matches!(step, Step::Add(_)));
        let ends = [self.steps.first(), self.steps.last()];
        !adds && ends.iter().all(|step| *step == Some(&Step::Keep))
    }
}
