//! Finds runs of lines in a file.
//!
//! At each level the lines of the file are numbered so that equal lines have equal numbers. A
//! run is sought where its rarest line occurs, so that a hunk costs about its own length and not
//! that of the file. The numbering is made once, when a level is first asked for.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;

use crate::level::{Form, MatchLevel};
use crate::text::Line;

pub(crate) struct Seeker<'a> {
    lines: &'a [Line<'a>],
    form: Form,
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

    /// The first `limit` positions, from `from` on, at which `run` stands. An empty run is
    /// nowhere.
    pub(crate) fn find(&self, level: MatchLevel, run: &[&[u8]], from: usize, limit: usize) -> Vec<usize> {
        let index = self.index(level);
        match index.numbers_of(run, &self.form, level) {
            Some(run) => index.find(&run, from, limit),
            None => Vec::new(),
        }
    }

    /// The position at which `run` ends the file, if it does and that is not before `from`.
    pub(crate) fn find_at_end(&self, level: MatchLevel, run: &[&[u8]], from: usize) -> Option<usize> {
        let start = self.lines.len().checked_sub(run.len()).filter(|start| *start >= from)?;
        let tail = self.lines.get(start..)?.iter().zip(run);
        tail.into_iter().all(|(line, wanted)| self.form.equal(level, line.text, wanted)).then_some(start)
    }

    /// The strictest level at which `run` stands anywhere, and the first position there.
    pub(crate) fn find_anywhere(&self, run: &[&[u8]]) -> Option<usize> {
        let mut levels = MatchLevel::ALL.into_iter();
        levels.find_map(|level| self.find(level, run, 0, 1).first().copied())
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

    fn find(&self, run: &[usize], from: usize, limit: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let Some((offset, rarest)) = self.rarest(run, from) else {
            return found;
        };
        // Repetitive files could make this quadratic: once the comparisons have cost as much
        // as reading the file, the rest is sought in linear time.
        let mut budget = self.numbers.len() + run.len();
        for position in rarest {
            let start = position - offset;
            if found.len() == limit {
                break;
            }
            let Some(left) = budget.checked_sub(run.len()) else {
                let wanted = limit - found.len();
                found.extend(find_linear(&self.numbers, run, start, wanted));
                break;
            };
            budget = left;
            if self.numbers.get(start..start + run.len()) == Some(run) {
                found.push(start);
            }
        }
        found
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
