//! Search for runs of lines in a file.
//!
//! At each level, every line of the patch gets an id, and equal lines get the same one. Each line of the file gets the
//! id of the patch line that it equals. A run is searched for at the occurrences of its rarest line, so the cost of a
//! hunk depends on its length and not on the length of the file. The index of a level is built on first use. It does
//! not help if every line is frequent, so the total work of all searches is limited.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

use crate::level::{LineComparison, MatchLevel};
use crate::text::TextLine;
use crate::work;

/// Maximum number of line comparisons of all searches in one file: less than a second of work.
const MAX_STEPS: usize = 1 << 27;

/// Maximum number of lines that a prefix may match; a more frequent prefix matches none.
const MAX_PREFIX_MATCHES: usize = 64;

/// Searches the lines of one file for lines of a patch.
pub(crate) struct LineSearcher<'a> {
    lines: &'a [TextLine<'a>],
    /// The lines of the patch. Only these can be found.
    wanted: Vec<&'a [u8]>,
    /// Wanted lines that may match only the start of a line.
    hints: Vec<&'a [u8]>,
    comparison: LineComparison,
    steps: Cell<usize>,
    /// Lines that may start with a hint, without leading whitespace, sorted, with their positions.
    by_prefix: OnceCell<Vec<(&'a [u8], usize)>>,
    file_is_ascii: OnceCell<bool>,
    patch_is_ascii: OnceCell<bool>,
    exact: OnceCell<LevelIndex<'a>>,
    trailing: OnceCell<LevelIndex<'a>>,
    surrounding: OnceCell<LevelIndex<'a>>,
    typography: OnceCell<LevelIndex<'a>>,
}

/// Index of the wanted lines of a file at one level.
struct LevelIndex<'a> {
    /// Id of each wanted line, by its comparison key.
    ids: LineIds<'a>,
    /// Id of each line of the file, or [`NOT_WANTED`]; empty if the file has no wanted line.
    line_ids: Vec<usize>,
    /// Positions of all wanted lines, grouped by id, in order within a group.
    positions: Vec<usize>,
    /// Start of each group in `positions`, plus one entry for the end.
    starts: Vec<usize>,
}

type LineIds<'a> = HashMap<Cow<'a, [u8]>, usize, RandomState>;

/// Id of lines that are not in the patch.
const NOT_WANTED: usize = usize::MAX;

impl<'a> LineSearcher<'a> {
    /// Creates a searcher for the lines of `wanted` in `lines`.
    pub(crate) fn new(lines: &'a [TextLine<'a>], wanted: Vec<&'a [u8]>, comparison: LineComparison) -> Self {
        Self {
            lines,
            wanted,
            hints: Vec::new(),
            comparison,
            steps: Cell::new(0),
            by_prefix: OnceCell::new(),
            file_is_ascii: OnceCell::new(),
            patch_is_ascii: OnceCell::new(),
            exact: OnceCell::new(),
            trailing: OnceCell::new(),
            surrounding: OnceCell::new(),
            typography: OnceCell::new(),
        }
    }

    /// Adds wanted lines that may also match only the start of a line.
    pub(crate) fn with_hints(mut self, hints: Vec<&'a [u8]>) -> Self {
        self.wanted.extend(&hints);
        self.hints = hints;
        self
    }

    pub(crate) fn comparison(&self) -> LineComparison {
        self.comparison
    }

    pub(crate) fn lines(&self) -> &'a [TextLine<'a>] {
        self.lines
    }

    /// Returns whether the work limit was exceeded. Results since then are incomplete.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps.get() > MAX_STEPS
    }

    /// Returns the first `limit` positions of `run`, from `from` on. An empty run is never found.
    pub(crate) fn find(&self, level: MatchLevel, run: &[&[u8]], from: usize, limit: usize) -> Vec<usize> {
        if self.is_exhausted() {
            return Vec::new();
        }
        let index = self.index(level);
        let Some(run) = index.ids_of(run, &self.comparison, level) else { return Vec::new() };
        let (found, steps) = index.find(&run, from, limit);
        self.steps.set(self.steps.get().saturating_add(steps));
        found
    }

    /// Returns the position of `run` at the end of the file, if it occurs there and not before `from`.
    pub(crate) fn find_at_end(&self, level: MatchLevel, run: &[&[u8]], from: usize) -> Option<usize> {
        let start = self.lines.len().checked_sub(run.len()).filter(|start| *start >= from)?;
        let index = self.index(level);
        let run = index.ids_of(run, &self.comparison, level)?;
        (index.line_ids.get(start..) == Some(&run)).then_some(start)
    }

    /// Returns the first `limit` positions, from `from` on, of lines that start with the hint `start`, ignoring leading
    /// whitespace. Empty if more than [`MAX_PREFIX_MATCHES`] lines of the file match.
    pub(crate) fn starting_with(&self, start: &[u8], from: usize, limit: usize) -> Vec<usize> {
        if start.is_empty() {
            return Vec::new();
        }
        let by_prefix = self.by_prefix.get_or_init(|| self.sorted_prefixes());
        let compared = || work::count(start.len());
        let first = by_prefix.partition_point(|(text, _)| {
            compared();
            *text < start
        });
        let following = by_prefix.get(first..).unwrap_or_default();
        let count = following.partition_point(|(text, _)| {
            compared();
            text.starts_with(start)
        });
        if count > MAX_PREFIX_MATCHES {
            return Vec::new();
        }
        let mut found: Vec<usize> = following.iter().take(count).map(|(_, position)| *position).collect();
        found.retain(|at| *at >= from);
        found.sort_unstable();
        found.truncate(limit);
        found
    }

    /// Returns whether the line at `position` matches `line` at the loosest level.
    pub(crate) fn matches_loosely(&self, position: usize, line: &[u8]) -> bool {
        let index = self.index(MatchLevel::Typography);
        let id = index.ids.get(&*self.comparison.key(MatchLevel::Typography, line));
        id.is_some_and(|id| index.line_ids.get(position) == Some(id))
    }

    /// Returns the first position of `run` at the strictest level at which it occurs.
    pub(crate) fn find_anywhere(&self, run: &[&[u8]]) -> Option<usize> {
        let mut levels = MatchLevel::ALL.into_iter();
        levels.find_map(|level| self.find(level, run, 0, 1).first().copied())
    }

    /// Returns the position of `run` if it is unique at the strictest level at which the run occurs.
    pub(crate) fn find_unique(&self, run: &[&[u8]]) -> Option<usize> {
        let found = MatchLevel::ALL.into_iter().map(|level| self.find(level, run, 0, 2));
        match found.into_iter().find(|found| !found.is_empty())?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// Returns the first `limit` positions of one line at the loosest level.
    pub(crate) fn occurrences(&self, line: &[u8], limit: usize) -> &[usize] {
        let index = self.index(MatchLevel::Typography);
        let key = self.comparison.key(MatchLevel::Typography, line);
        let found = index.ids.get(&*key).map_or(&[][..], |id| index.positions_of(*id));
        found.get(..limit).unwrap_or(found)
    }

    /// Returns the lines that share a prefix with a hint, sorted. The prefix has the length of the shortest hint.
    fn sorted_prefixes(&self) -> Vec<(&'a [u8], usize)> {
        let hints = self.hints.iter().map(|hint| hint.trim_ascii()).filter(|hint| !hint.is_empty());
        let length = hints.clone().map(<[u8]>::len).min().unwrap_or(0);
        let heads: HashSet<&[u8], RandomState> = hints.filter_map(|hint| hint.get(..length)).collect();
        let texts = self.lines.iter().map(|line| line.text().trim_ascii_start()).zip(0..);
        let mut by_prefix: Vec<_> =
            texts.filter(|(text, _)| text.get(..length).is_some_and(|head| heads.contains(head))).collect();
        by_prefix.sort_unstable();
        by_prefix
    }

    /// Returns the index of one level, built on first use.
    ///
    /// Lines that match at a strict level match at every looser one. The whole file is therefore scanned for one loose
    /// level only, and the indexes of stricter levels scan only the lines that are wanted there.
    fn index(&self, level: MatchLevel) -> &LevelIndex<'a> {
        let cell = match level {
            MatchLevel::Exact => &self.exact,
            MatchLevel::TrailingWhitespace => &self.trailing,
            // ASCII has no typography to ignore, so the two levels are the same.
            MatchLevel::SurroundingWhitespace if self.is_all_ascii() => &self.typography,
            MatchLevel::SurroundingWhitespace => &self.surrounding,
            MatchLevel::Typography => &self.typography,
        };
        cell.get_or_init(|| {
            let loose = self.loose_level();
            if level >= loose {
                return self.build(level, 0..self.lines.len());
            }
            let line_ids = self.index(loose).line_ids.iter().enumerate();
            self.build(level, line_ids.filter(|(_, id)| **id != NOT_WANTED).map(|(position, _)| position))
        })
    }

    /// Returns the loosest level whose comparison keys borrow from the file.
    fn loose_level(&self) -> MatchLevel {
        match self.is_file_ascii() {
            true => MatchLevel::Typography,
            false => MatchLevel::SurroundingWhitespace,
        }
    }

    fn is_file_ascii(&self) -> bool {
        *self.file_is_ascii.get_or_init(|| self.lines.iter().all(|line| line.text().is_ascii()))
    }

    fn is_all_ascii(&self) -> bool {
        self.is_file_ascii()
            && *self.patch_is_ascii.get_or_init(|| self.wanted.iter().all(|line| line.is_ascii()))
    }

    fn build(&self, level: MatchLevel, candidates: impl IntoIterator<Item = usize>) -> LevelIndex<'a> {
        LevelIndex::new(self.lines, &self.wanted, candidates, |line| self.comparison.key(level, line))
    }
}

impl<'a> LevelIndex<'a> {
    /// Builds the index from the lines at `candidates`, which are sorted. No other line is wanted.
    fn new(
        lines: &'a [TextLine<'a>],
        wanted: &[&'a [u8]],
        candidates: impl IntoIterator<Item = usize>,
        key: impl Fn(&'a [u8]) -> Cow<'a, [u8]>,
    ) -> Self {
        let mut ids = LineIds::default();
        for line in wanted {
            let next = ids.len();
            ids.entry(key(line)).or_insert(next);
        }
        // Stays empty if no line is found at this level.
        let mut line_ids = Vec::new();
        let mut counts = vec![0_usize; ids.len()];
        // Repetitive files repeat the same line many times in a row.
        let mut previous: (&[u8], Option<usize>) = (b"", ids.get(&*key(b"")).copied());
        for position in candidates {
            let Some(line) = lines.get(position) else { continue };
            let text = line.text();
            if text != previous.0 {
                previous = (text, ids.get(&*key(text)).copied());
            }
            let Some(wanted) = previous.1 else { continue };
            if line_ids.is_empty() {
                line_ids.resize(lines.len(), NOT_WANTED);
            }
            if let (Some(id), Some(count)) = (line_ids.get_mut(position), counts.get_mut(wanted)) {
                *id = wanted;
                *count += 1;
            }
        }
        let (positions, starts) = grouped(&line_ids, counts);
        Self { ids, line_ids, positions, starts }
    }

    /// Returns the ids of the lines of `run`, or `None` if one of them is not in the file.
    fn ids_of(&self, run: &[&[u8]], comparison: &LineComparison, level: MatchLevel) -> Option<Vec<usize>> {
        let id = |line: &&[u8]| self.ids.get(&*comparison.key(level, line)).copied();
        run.iter().map(|line| id(line).filter(|id| !self.positions_of(*id).is_empty())).collect()
    }

    fn positions_of(&self, id: usize) -> &[usize] {
        let range = self.starts.get(id).zip(self.starts.get(id + 1));
        range.and_then(|(start, end)| self.positions.get(*start..*end)).unwrap_or_default()
    }

    /// Returns the first `limit` positions of `run` from `from` on, and the number of lines compared.
    fn find(&self, run: &[usize], from: usize, limit: usize) -> (Vec<usize>, usize) {
        let mut found = Vec::new();
        let mut steps = 0;
        let Some((offset, rarest)) = self.rarest(run, from) else { return (found, steps) };
        for position in rarest {
            if found.len() == limit {
                break;
            }
            let start = position - offset;
            // Repetitive files would make this quadratic. Once the comparisons have cost as much as reading the file,
            // the remaining lines are searched in linear time.
            if steps > self.line_ids.len() {
                let wanted = limit - found.len();
                found.extend(find_linear(&self.line_ids, run, start, wanted));
                steps += self.line_ids.len();
                break;
            }
            let here = self.line_ids.get(start..).unwrap_or_default();
            let equal = here.iter().zip(run).take_while(|(left, right)| left == right).count();
            steps += equal + 1;
            work::count(equal + 1);
            if equal == run.len() {
                found.push(start);
            }
        }
        (found, steps)
    }

    /// Returns the rarest line of `run`, as its offset and its possible positions.
    fn rarest(&self, run: &[usize], from: usize) -> Option<(usize, &[usize])> {
        let occurrences = run.iter().enumerate().map(|(offset, id)| {
            let all = self.positions_of(*id);
            let skipped = all.partition_point(|position| *position < from + offset);
            (offset, all.get(skipped..).unwrap_or_default())
        });
        occurrences.min_by_key(|(_, positions)| positions.len())
    }
}

/// Returns the positions of the wanted lines, grouped by id, and the start of each group.
fn grouped(line_ids: &[usize], counts: Vec<usize>) -> (Vec<usize>, Vec<usize>) {
    let mut starts = Vec::with_capacity(counts.len() + 1);
    let mut total = 0;
    starts.push(total);
    for count in counts {
        total += count;
        starts.push(total);
    }
    let mut next = starts.clone();
    let mut positions = vec![0; total];
    for (position, id) in line_ids.iter().enumerate().filter(|(_, id)| **id != NOT_WANTED) {
        let Some(at) = next.get_mut(*id) else { continue };
        if let Some(slot) = positions.get_mut(*at) {
            *slot = position;
        }
        *at += 1;
    }
    (positions, starts)
}

/// Finds runs in linear time (Knuth-Morris-Pratt).
fn find_linear(line_ids: &[usize], run: &[usize], from: usize, limit: usize) -> Vec<usize> {
    let borders = borders(run);
    let mut found = Vec::new();
    let mut matched = 0;
    for (at, id) in line_ids.iter().enumerate().skip(from) {
        matched = extend(run, &borders, matched, *id);
        if matched == run.len() {
            found.push(at + 1 - matched);
            if found.len() == limit {
                break;
            }
        }
    }
    found
}

/// Returns, for each prefix of `run`, the length of its longest proper prefix that is also its suffix.
fn borders(run: &[usize]) -> Vec<usize> {
    let mut borders = vec![0; run.len().min(1)];
    let mut matched = 0;
    for id in run.iter().skip(1) {
        matched = extend(run, &borders, matched, *id);
        borders.push(matched);
    }
    borders
}

/// Returns the number of lines of `run` matched after `id`, given that `matched` were matched before it.
fn extend(run: &[usize], borders: &[usize], mut matched: usize, id: usize) -> usize {
    loop {
        work::count(1);
        if run.get(matched) == Some(&id) {
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
