//! Finds runs of lines in a file.
//!
//! At each level the lines of the patch are numbered so that equal lines have equal numbers, and the
//! lines of the file get the numbers of those that they equal. A run is sought where its rarest line
//! occurs, so that a hunk costs about its own length and not that of the file. The numbering is made
//! once, when a level is first asked for. Where every line is frequent this does not help, so all
//! searches together have a limit.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::level::{Form, MatchLevel};
use crate::text::Line;

/// How many lines all searches in one file may compare: less than a second's work.
const MAX_STEPS: usize = 1 << 27;

/// How many lines of a file may have the same start before it names none of them.
const MAX_STARTS: usize = 64;

pub(crate) struct Seeker<'a> {
    lines: &'a [Line<'a>],
    /// The lines of the patch: nothing else can be found.
    wanted: Vec<&'a [u8]>,
    /// Those of them that may be only the start of a line.
    hints: Vec<&'a [u8]>,
    form: Form,
    steps: Cell<usize>,
    /// What the lines begin with that may be meant by a hint that is only a start: without leading
    /// blanks and in alphabetical order, with their positions.
    by_start: OnceCell<Vec<(&'a [u8], usize)>>,
    file_is_ascii: OnceCell<bool>,
    patch_is_ascii: OnceCell<bool>,
    exact: OnceCell<Index<'a>>,
    trailing: OnceCell<Index<'a>>,
    surrounding: OnceCell<Index<'a>>,
    typography: OnceCell<Index<'a>>,
}

/// The lines of a file that are wanted at one level, numbered.
struct Index<'a> {
    /// The numbers of the wanted lines.
    known: Known<'a>,
    /// The number of each line of the file, or [`UNWANTED`]; empty if no line is wanted.
    numbers: Vec<usize>,
    /// The positions of all wanted lines, those of one number together and in order.
    positions: Vec<usize>,
    /// Where the positions of each number start, and one entry for the end.
    starts: Vec<usize>,
}

type Known<'a> = HashMap<Cow<'a, [u8]>, usize, RandomState>;

/// The number of the lines that no hunk names.
const UNWANTED: usize = usize::MAX;

impl<'a> Seeker<'a> {
    /// A seeker that can find the lines of `wanted` in `lines`.
    pub(crate) fn new(lines: &'a [Line<'a>], wanted: Vec<&'a [u8]>, form: Form) -> Self {
        Self {
            lines,
            wanted,
            hints: Vec::new(),
            form,
            steps: Cell::new(0),
            by_start: OnceCell::new(),
            file_is_ascii: OnceCell::new(),
            patch_is_ascii: OnceCell::new(),
            exact: OnceCell::new(),
            trailing: OnceCell::new(),
            surrounding: OnceCell::new(),
            typography: OnceCell::new(),
        }
    }

    /// Adds lines that can be found, also by their start.
    pub(crate) fn with_hints(mut self, hints: Vec<&'a [u8]>) -> Self {
        self.wanted.extend(&hints);
        self.hints = hints;
        self
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

    /// The first `limit` positions, from `from` on, of lines that begin with the hint `start`, leading
    /// blanks aside. None if so many lines of the file begin so that it says nothing.
    pub(crate) fn starting_with(&self, start: &[u8], from: usize, limit: usize) -> Vec<usize> {
        if start.is_empty() {
            return Vec::new();
        }
        let by_start = self.by_start.get_or_init(|| self.sorted_starts());
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

    /// The lines that begin as one of the hints does, as far as the shortest hint goes.
    fn sorted_starts(&self) -> Vec<(&'a [u8], usize)> {
        let hints = self.hints.iter().map(|hint| hint.trim_ascii()).filter(|hint| !hint.is_empty());
        let length = hints.clone().map(<[u8]>::len).min().unwrap_or(0);
        let heads: HashSet<&[u8], RandomState> = hints.filter_map(|hint| hint.get(..length)).collect();
        let texts = self.lines.iter().map(|line| line.text.trim_ascii_start()).zip(0..);
        let mut by_start: Vec<_> =
            texts.filter(|(text, _)| text.get(..length).is_some_and(|head| heads.contains(head))).collect();
        by_start.sort_unstable();
        by_start
    }

    /// The index of one level.
    ///
    /// Lines that match at a strict level match at a looser one. So the file is read for one loose
    /// level, and the indexes of the stricter ones look only at the lines that are wanted there.
    fn index(&self, level: MatchLevel) -> &Index<'a> {
        let cell = match level {
            MatchLevel::Exact => &self.exact,
            MatchLevel::TrailingBlanks => &self.trailing,
            // In ASCII there is no typography to forgive.
            MatchLevel::SurroundingBlanks if self.is_all_ascii() => &self.typography,
            MatchLevel::SurroundingBlanks => &self.surrounding,
            MatchLevel::Typography => &self.typography,
        };
        cell.get_or_init(|| {
            let loose = self.loose_level();
            if level >= loose {
                return self.build(level, 0..self.lines.len());
            }
            let numbers = self.index(loose).numbers.iter().enumerate();
            self.build(
                level,
                numbers.filter(|(_, number)| **number != UNWANTED).map(|(position, _)| position),
            )
        })
    }

    /// The loosest level at which no line of the file must be rewritten to be compared.
    fn loose_level(&self) -> MatchLevel {
        match self.is_file_ascii() {
            true => MatchLevel::Typography,
            false => MatchLevel::SurroundingBlanks,
        }
    }

    fn is_file_ascii(&self) -> bool {
        *self.file_is_ascii.get_or_init(|| self.lines.iter().all(|line| line.text.is_ascii()))
    }

    fn is_all_ascii(&self) -> bool {
        self.is_file_ascii()
            && *self.patch_is_ascii.get_or_init(|| self.wanted.iter().all(|line| line.is_ascii()))
    }

    fn build(&self, level: MatchLevel, candidates: impl IntoIterator<Item = usize>) -> Index<'a> {
        Index::new(self.lines, &self.wanted, candidates, |line| self.form.key(level, line))
    }
}

impl<'a> Index<'a> {
    /// Numbers the lines at `candidates`, which are in order: no other line is wanted.
    fn new(
        lines: &'a [Line<'a>],
        wanted: &[&'a [u8]],
        candidates: impl IntoIterator<Item = usize>,
        key: impl Fn(&'a [u8]) -> Cow<'a, [u8]>,
    ) -> Self {
        let mut known = Known::default();
        for line in wanted {
            let next = known.len();
            known.entry(key(line)).or_insert(next);
        }
        // Stays empty at a level where nothing is found.
        let mut numbers = Vec::new();
        let mut counts = vec![0_usize; known.len()];
        // Repetitive files have the same line many times in a row.
        let mut previous: (&[u8], Option<usize>) = (b"", known.get(&*key(b"")).copied());
        for position in candidates {
            let Some(line) = lines.get(position) else { continue };
            if line.text != previous.0 {
                previous = (line.text, known.get(&*key(line.text)).copied());
            }
            let Some(wanted) = previous.1 else { continue };
            if numbers.is_empty() {
                numbers.resize(lines.len(), UNWANTED);
            }
            if let (Some(number), Some(count)) = (numbers.get_mut(position), counts.get_mut(wanted)) {
                *number = wanted;
                *count += 1;
            }
        }
        let (positions, starts) = grouped(&numbers, counts);
        Self { known, numbers, positions, starts }
    }

    /// The numbers of the lines of `run`, unless one of them is not in the file.
    fn numbers_of(&self, run: &[&[u8]], form: &Form, level: MatchLevel) -> Option<Vec<usize>> {
        let number = |line: &&[u8]| self.known.get(&*form.key(level, line)).copied();
        run.iter().map(|line| number(line).filter(|number| !self.positions_of(*number).is_empty())).collect()
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

/// The positions of the numbered lines, grouped by number, and where each group starts.
fn grouped(numbers: &[usize], counts: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut starts = Vec::with_capacity(counts.len() + 1);
    let mut total = 0;
    starts.push(total);
    for count in counts {
        total += count;
        starts.push(total);
    }
    let mut next = starts.clone();
    let mut positions = vec![0; total];
    for (position, number) in numbers.iter().enumerate().filter(|(_, number)| **number != UNWANTED) {
        let Some(at) = next.get_mut(*number) else { continue };
        if let Some(slot) = positions.get_mut(*at) {
            *slot = position;
        }
        *at += 1;
    }
    (positions, starts)
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
mod tests;
