//! Finds runs of lines in a file.
//!
//! At each level the lines of the file are numbered so that equal lines have equal numbers. A
//! run is sought where its rarest line occurs, so that a hunk costs about its own length and not
//! that of the file. The numbering is made once, when a level is first asked for. Where every line
//! is frequent this does not help, so all searches together have a limit.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use crate::level::{Form, MatchLevel};
use crate::text::Line;

/// How many lines all searches in one file may compare: less than a second's work.
const MAX_STEPS: usize = 1 << 27;

/// How many lines of a file may have the same start before it names none of them.
const MAX_STARTS: usize = 64;

pub(crate) struct Seeker<'a> {
    lines: &'a [Line<'a>],
    form: Form,
    steps: Cell<usize>,
    /// All lines without leading blanks, in alphabetical order, and their positions.
    by_start: OnceCell<Vec<(&'a [u8], usize)>>,
    exact: OnceCell<Index<'a>>,
    trailing: OnceCell<Index<'a>>,
    surrounding: OnceCell<Index<'a>>,
    typography: OnceCell<Index<'a>>,
}

/// The numbered lines of a file at one level.
struct Index<'a> {
    known: HashMap<Cow<'a, [u8]>, usize>,
    /// The number of each line.
    numbers: Vec<usize>,
    /// The positions of all lines, those of one number together and in order.
    positions: Vec<usize>,
    /// Where the positions of each number start, and one entry for the end.
    starts: Vec<usize>,
}

impl<'a> Seeker<'a> {
    pub(crate) fn new(lines: &'a [Line<'a>], form: Form) -> Self {
        Self {
            lines,
            form,
            steps: Cell::new(0),
            by_start: OnceCell::new(),
            exact: OnceCell::new(),
            trailing: OnceCell::new(),
            surrounding: OnceCell::new(),
            typography: OnceCell::new(),
        }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn lines(&self) -> &'a [Line<'a>] {
        self.lines
    }

    /// Whether the searches have cost so much that they stopped: what was found since then is not
    /// all there is.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps.get() > MAX_STEPS
    }

    /// The first `limit` positions, from `from` on, at which `run` stands. An empty run is
    /// nowhere.
    pub(crate) fn find(&self, level: MatchLevel, run: &[&[u8]], from: usize, limit: usize) -> Vec<usize> {
        if self.is_exhausted() {
            return Vec::new();
        }
        let index = self.index(level);
        let Some(run) = index.numbers_of(run, &self.form, level) else { return Vec::new() };
        let (found, steps) = index.find(&run, from, limit);
        self.steps.set(self.steps.get().saturating_add(steps));
        found
    }

    /// The position at which `run` ends the file, if it does and that is not before `from`.
    pub(crate) fn find_at_end(&self, level: MatchLevel, run: &[&[u8]], from: usize) -> Option<usize> {
        let start = self.lines.len().checked_sub(run.len()).filter(|start| *start >= from)?;
        let index = self.index(level);
        let run = index.numbers_of(run, &self.form, level)?;
        (index.numbers.get(start..) == Some(&run)).then_some(start)
    }

    /// The first `limit` positions, from `from` on, of lines that begin with `start`, leading
    /// blanks aside. None if so many lines of the file begin so that it says nothing.
    pub(crate) fn starting_with(&self, start: &[u8], from: usize, limit: usize) -> Vec<usize> {
        let by_start = self.by_start.get_or_init(|| {
            let texts = self.lines.iter().map(|line| line.text.trim_ascii_start());
            let mut by_start: Vec<_> = texts.zip(0..).collect();
            by_start.sort_unstable();
            by_start
        });
        let first = by_start.partition_point(|(text, _)| *text < start);
        let behind = by_start.get(first..).unwrap_or_default();
        let count = behind.partition_point(|(text, _)| text.starts_with(start));
        if count > MAX_STARTS {
            return Vec::new();
        }
        let mut found: Vec<usize> = behind.iter().take(count).map(|(_, position)| *position).collect();
        found.retain(|at| *at >= from);
        found.sort_unstable();
        found.truncate(limit);
        found
    }

    /// Whether the line at `position` is `line` at the loosest level.
    pub(crate) fn is_like(&self, position: usize, line: &[u8]) -> bool {
        let index = self.index(MatchLevel::Typography);
        let number = index.known.get(&*self.form.key(MatchLevel::Typography, line));
        number.is_some_and(|number| index.numbers.get(position) == Some(number))
    }

    /// The strictest level at which `run` stands anywhere, and the first position there.
    pub(crate) fn find_anywhere(&self, run: &[&[u8]]) -> Option<usize> {
        let mut levels = MatchLevel::ALL.into_iter();
        levels.find_map(|level| self.find(level, run, 0, 1).first().copied())
    }

    /// The only position at which `run` stands at the strictest level where it stands at all.
    pub(crate) fn find_only(&self, run: &[&[u8]]) -> Option<usize> {
        let found = MatchLevel::ALL.into_iter().map(|level| self.find(level, run, 0, 2));
        match found.into_iter().find(|found| !found.is_empty())?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// The first `limit` positions of one line at the loosest level.
    pub(crate) fn occurrences(&self, line: &[u8], limit: usize) -> &[usize] {
        let index = self.index(MatchLevel::Typography);
        let key = self.form.key(MatchLevel::Typography, line);
        let found = index.known.get(&*key).map_or(&[][..], |number| index.positions_of(*number));
        found.get(..limit).unwrap_or(found)
    }

    fn index(&self, level: MatchLevel) -> &Index<'a> {
        let cell = match level {
            MatchLevel::Exact => &self.exact,
            MatchLevel::TrailingBlanks => &self.trailing,
            MatchLevel::SurroundingBlanks => &self.surrounding,
            MatchLevel::Typography => &self.typography,
        };
        cell.get_or_init(|| Index::new(self.lines, &self.form, level))
    }
}

impl<'a> Index<'a> {
    fn new(lines: &'a [Line<'a>], form: &Form, level: MatchLevel) -> Self {
        let mut known: HashMap<Cow<'a, [u8]>, usize> = HashMap::new();
        let mut numbers = Vec::with_capacity(lines.len());
        for line in lines {
            let next = known.len();
            numbers.push(*known.entry(form.key(level, line.text)).or_insert(next));
        }
        let mut positions: Vec<usize> = (0..numbers.len()).collect();
        positions.sort_by_key(|position| numbers.get(*position));
        let mut starts = Vec::with_capacity(known.len() + 1);
        let mut previous = None;
        for (at, position) in positions.iter().enumerate() {
            let number = numbers.get(*position);
            if number != previous {
                starts.push(at);
                previous = number;
            }
        }
        starts.push(positions.len());
        Self { known, numbers, positions, starts }
    }

    /// The numbers of the lines of `run`, unless one of them is not in the file.
    fn numbers_of(&self, run: &[&[u8]], form: &Form, level: MatchLevel) -> Option<Vec<usize>> {
        run.iter().map(|line| self.known.get(&*form.key(level, line)).copied()).collect()
    }

    fn positions_of(&self, number: usize) -> &[usize] {
        let range = self.starts.get(number).zip(self.starts.get(number + 1));
        range.and_then(|(start, end)| self.positions.get(*start..*end)).unwrap_or_default()
    }

    /// The first `limit` positions of `run` from `from` on, and how many lines were compared.
    fn find(&self, run: &[usize], from: usize, limit: usize) -> (Vec<usize>, usize) {
        let mut found = Vec::new();
        let mut steps = 0;
        let Some((offset, rarest)) = self.rarest(run, from) else { return (found, steps) };
        for position in rarest {
            if found.len() == limit {
                break;
            }
            let start = position - offset;
            // Repetitive files could make this quadratic: once the comparisons have cost as much
            // as reading the file, the rest is sought in linear time.
            if steps > self.numbers.len() {
                let wanted = limit - found.len();
                found.extend(find_linear(&self.numbers, run, start, wanted));
                steps += self.numbers.len();
                break;
            }
            let here = self.numbers.get(start..).unwrap_or_default();
            let equal = here.iter().zip(run).take_while(|(left, right)| left == right).count();
            steps += equal + 1;
            if equal == run.len() {
                found.push(start);
            }
        }
        (found, steps)
    }

    /// The line of `run` that occurs least where it could stand, as its offset and positions.
    fn rarest(&self, run: &[usize], from: usize) -> Option<(usize, &[usize])> {
        let occurrences = run.iter().enumerate().map(|(offset, number)| {
            let all = self.positions_of(*number);
            let skipped = all.partition_point(|position| *position < from + offset);
            (offset, all.get(skipped..).unwrap_or_default())
        });
        occurrences.min_by_key(|(_, positions)| positions.len())
    }
}

/// Finds runs in linear time (Knuth, Morris and Pratt).
fn find_linear(numbers: &[usize], run: &[usize], from: usize, limit: usize) -> Vec<usize> {
    let borders = borders(run);
    let mut found = Vec::new();
    let mut matched = 0;
    for (at, number) in numbers.iter().enumerate().skip(from) {
        matched = extend(run, &borders, matched, *number);
        if matched == run.len() {
            found.push(at + 1 - matched);
            if found.len() == limit {
                break;
            }
        }
    }
    found
}

/// For each prefix of `run`, the length of its longest proper prefix that is also its suffix.
fn borders(run: &[usize]) -> Vec<usize> {
    let mut borders = vec![0; run.len().min(1)];
    let mut matched = 0;
    for number in run.iter().skip(1) {
        matched = extend(run, &borders, matched, *number);
        borders.push(matched);
    }
    borders
}

/// How much of `run` is matched after `number`, when `matched` lines were before it.
fn extend(run: &[usize], borders: &[usize], mut matched: usize, number: usize) -> usize {
    loop {
        if run.get(matched) == Some(&number) {
            return matched + 1;
        }
        match matched.checked_sub(1).and_then(|last| borders.get(last)) {
            Some(shorter) => matched = *shorter,
            None => return 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Text;
    use proptest::prelude::*;

    fn naive(numbers: &[usize], run: &[usize], from: usize) -> Vec<usize> {
        let windows = numbers.windows(run.len()).enumerate().skip(from);
        windows.filter(|(_, window)| *window == run).map(|(at, _)| at).collect()
    }

    /// Two kinds of lines in an order that does not repeat: no line of a hunk is rare.
    fn noise(length: usize) -> Vec<usize> {
        let next = |state: &u64| Some(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        let states = std::iter::successors(Some(1_u64), next);
        states.take(length).map(|state| usize::from(state >> 63 == 1)).collect()
    }

    #[test]
    fn what_a_search_costs_is_counted_and_limited() {
        let numbers = noise(10_000);
        let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        let text = Text::new(text.as_bytes(), false);
        let seeker = Seeker::new(&text.lines, Form { utf8: true, canonical: true });
        let run: Vec<&[u8]> = text.lines[5_000..5_040].iter().map(|line| line.text).collect();
        assert_eq!(seeker.find(MatchLevel::Exact, &run, 0, 3), [5_000]);
        let cost = seeker.steps.get();
        assert!((5_000..40_000).contains(&cost), "{cost}");
        assert!(!seeker.is_exhausted());
        seeker.steps.set(MAX_STEPS);
        seeker.find(MatchLevel::Exact, &run, 0, 3);
        assert!(seeker.is_exhausted());
        assert_eq!(seeker.find(MatchLevel::Exact, &run, 0, 3), [0; 0]);
    }

    proptest! {
        #[test]
        fn every_search_agrees_with_the_plain_one(
            numbers in prop::collection::vec(0..3usize, 0..60),
            run in prop::collection::vec(0..3usize, 1..6),
            from in 0..60usize,
            limit in 1..4usize,
        ) {
            let mut expected = naive(&numbers, &run, from);
            expected.truncate(limit);
            prop_assert_eq!(&find_linear(&numbers, &run, from, limit), &expected);

            let text: String = numbers.iter().map(|number| format!("{number}\n")).collect();
            let text = Text::new(text.as_bytes(), false);
            let seeker = Seeker::new(&text.lines, Form { utf8: true, canonical: true });
            let run: Vec<String> = run.iter().map(usize::to_string).collect();
            let run: Vec<&[u8]> = run.iter().map(String::as_bytes).collect();
            prop_assert_eq!(seeker.find(MatchLevel::Exact, &run, from, limit), expected);
        }
    }
}
