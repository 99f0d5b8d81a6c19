//! Decides where in a file the hunks of one section go.

use std::ops::Range;

use crate::error::BlankDifference;
use crate::level::MatchLevel;
use crate::pattern::Pattern;
use crate::seek::Seeker;
use crate::{ApplyOptions, DiagnosticKind};

/// How many places are looked at before a search is called ambiguous and reported.
pub(crate) const MAX_CANDIDATES: usize = 3;

/// The longest line whose blanks are told apart, in bytes.
const MAX_COMPARED: usize = 4096;

/// Where a hunk goes.
#[derive(Debug)]
pub(crate) struct Placement {
    /// The file line at which its old lines start, from 0.
    pub(crate) start: usize,
    /// How many of its last old lines, all empty, are not there.
    pub(crate) dropped: usize,
    /// What had to be tolerated.
    pub(crate) notes: Vec<DiagnosticKind>,
    pub(crate) level: MatchLevel,
    /// Its hint was not the whole line, byte for byte.
    loose_hint: bool,
    /// Where the search for the next hunk starts.
    cursor: usize,
}

/// Why a hunk has no place, or that the search for it was given up. Lines count from 0.
#[derive(Debug)]
pub(crate) enum Miss {
    HintNotFound { hint: usize },
    NotFound { hinted: Option<usize> },
    Ambiguous { level: MatchLevel, starts: Vec<usize> },
    AmbiguousHint { lines: Vec<usize> },
    TooRepetitive,
}

/// A hunk that has no place.
#[derive(Debug)]
pub(crate) struct Missed<'m, 'p> {
    pub(crate) pattern: &'m Pattern<'p>,
    pub(crate) miss: Miss,
    /// Where the search started.
    pub(crate) cursor: usize,
}

/// What a search may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// The hunks are in file order: of equal places the next one is meant.
    File,
    /// Nothing: there must be one place only.
    Any,
}

/// The line that the hints of a hunk lead to.
struct Anchor {
    line: usize,
    /// All lines that the first hint can mean, this one included; one where it was narrowed.
    rivals: Vec<usize>,
    /// The hint was not the whole line, byte for byte.
    loose: bool,
    notes: Vec<DiagnosticKind>,
}

pub(crate) struct Locator<'s, 'a> {
    seeker: &'s Seeker<'a>,
    options: &'s ApplyOptions,
}

impl<'s, 'a> Locator<'s, 'a> {
    pub(crate) fn new(seeker: &'s Seeker<'a>, options: &'s ApplyOptions) -> Self {
        Self { seeker, options }
    }

    /// Places every hunk: in file order, or else each where alone it fits.
    pub(crate) fn place<'m, 'p>(
        &self,
        patterns: &'m [Pattern<'p>],
    ) -> Result<Vec<Placement>, Missed<'m, 'p>> {
        let missed = match self.place_in_order(patterns) {
            Ok(placements) => return Ok(placements),
            Err(missed) => missed,
        };
        match self.options.out_of_order && patterns.len() > 1 {
            true => self.place_in_any_order(patterns).ok_or(missed),
            false => Err(missed),
        }
    }

    fn place_in_order<'m, 'p>(&self, patterns: &'m [Pattern<'p>]) -> Result<Vec<Placement>, Missed<'m, 'p>> {
        let mut cursor = 0;
        let mut taken = Vec::new();
        let mut placements = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let located = self.locate(pattern, cursor, Order::File);
            let placement = located
                .and_then(|placement| match self.better_above(pattern, &placement, &taken) {
                    Some(miss) => Err(miss),
                    None => Ok(placement),
                })
                .map_err(|miss| Missed { pattern, miss, cursor })?;
            cursor = placement.cursor;
            if !pattern.old.is_empty() {
                taken.push(placement.start..placement.cursor);
            }
            placements.push(placement);
        }
        Ok(placements)
    }

    /// Why a loose placement cannot be trusted, if a search of the whole file leads above it: by a
    /// stricter level, or by a hint that is loose itself. Lines that earlier hunks have `taken`,
    /// which are in file order, do not count.
    fn better_above(
        &self,
        pattern: &Pattern<'_>,
        placement: &Placement,
        taken: &[Range<usize>],
    ) -> Option<Miss> {
        let is_strict = placement.level == MatchLevel::Exact && !placement.loose_hint;
        if !self.options.out_of_order || self.options.first_loose_match || is_strict {
            return None;
        }
        let is_free_above = |start: usize| {
            let next = taken.get(taken.partition_point(|lines| lines.end <= start));
            start < placement.start && next.is_none_or(|lines| lines.start >= start + pattern.old.len())
        };
        let is_better = |level| placement.loose_hint || level < placement.level;
        match self.locate(pattern, 0, Order::Any) {
            Ok(above) if is_better(above.level) && is_free_above(above.start) => {
                Some(Miss::NotFound { hinted: None })
            }
            Err(Miss::Ambiguous { level, starts })
                if is_better(level) && starts.iter().any(|start| is_free_above(*start)) =>
            {
                Some(Miss::Ambiguous { level, starts })
            }
            // Nothing is taken by additions alone: they go after any of the lines.
            Err(Miss::AmbiguousHint { lines }) => Some(Miss::AmbiguousHint { lines }),
            Err(Miss::TooRepetitive) => Some(Miss::TooRepetitive),
            Ok(_) | Err(Miss::Ambiguous { .. } | Miss::HintNotFound { .. } | Miss::NotFound { .. }) => None,
        }
    }

    /// Places every hunk where alone it fits, unless one fits twice or two change one line.
    fn place_in_any_order(&self, patterns: &[Pattern<'_>]) -> Option<Vec<Placement>> {
        let mut cursor = 0;
        let mut placements = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let mut placement = self.locate(pattern, 0, Order::Any).ok()?;
            if placement.start < cursor {
                let file_line = placement.start + 1;
                placement.notes.push(DiagnosticKind::OutOfOrder { file_line });
            }
            cursor = placement.cursor;
            placements.push(placement);
        }
        (!overlap(patterns, &placements)).then_some(placements)
    }

    fn locate(&self, pattern: &Pattern<'_>, from: usize, order: Order) -> Result<Placement, Miss> {
        let located = self.locate_unlimited(pattern, from, order);
        match self.seeker.is_exhausted() {
            true => Err(Miss::TooRepetitive),
            false => located,
        }
    }

    fn locate_unlimited(&self, pattern: &Pattern<'_>, from: usize, order: Order) -> Result<Placement, Miss> {
        let anchor = self.anchor(&pattern.hunk.hints, from)?;
        if pattern.old.is_empty() {
            return self.locate_additions(pattern, anchor, from, order);
        }
        let start = anchor.as_ref().map_or(from, |anchor| self.search_start(pattern, anchor, from));
        let loose_hint = anchor.as_ref().is_some_and(|anchor| anchor.loose);
        let hint_is_open = anchor.as_ref().is_some_and(|anchor| anchor.loose && anchor.rivals.len() > 1);
        for level in MatchLevel::ALL {
            for dropped in self.tails(pattern) {
                let starts = self.candidates(pattern, level, dropped, start);
                let Some(&first) = starts.first() else { continue };
                if dropped > 0
                    && let Some((level, whole)) = self.whole(pattern, start)
                {
                    if self.options.first_loose_match || (whole == first && self.options.last_line_may_miss) {
                        continue;
                    }
                    if whole != first {
                        let starts = vec![first.min(whole), first.max(whole)];
                        return Err(Miss::Ambiguous { level, starts });
                    }
                }
                let loose = level != MatchLevel::Exact || dropped > 0 || hint_is_open;
                let ambiguous = order == Order::Any || (loose && !self.options.first_loose_match);
                if starts.len() > 1 && ambiguous {
                    return Err(Miss::Ambiguous { level, starts });
                }
                let mut notes = anchor.map_or_else(Vec::new, |anchor| anchor.notes);
                notes.extend(self.match_notes(pattern, level, dropped, &starts));
                let cursor = first + pattern.old.len() - dropped;
                return Ok(Placement { start: first, dropped, notes, level, loose_hint, cursor });
            }
        }
        Err(Miss::NotFound { hinted: anchor.map(|anchor| anchor.line) })
    }

    /// The strictest place of all lines of a pattern, its empty tail included.
    fn whole(&self, pattern: &Pattern<'_>, from: usize) -> Option<(MatchLevel, usize)> {
        let mut levels = MatchLevel::ALL.into_iter();
        levels.find_map(|level| Some((level, *self.candidates(pattern, level, 0, from).first()?)))
    }

    /// How many lines may be left out at the end of a pattern: none, then those that are empty, but
    /// never all.
    fn tails(&self, pattern: &Pattern<'_>) -> impl Iterator<Item = usize> + use<> {
        let tail = match self.options.last_line_may_miss {
            true => usize::from(pattern.old.last().is_some_and(|line| line.is_empty())),
            false => pattern.empty_tail,
        };
        let tail = Some(tail).filter(|tail| (1..pattern.old.len()).contains(tail));
        std::iter::once(0).chain(tail)
    }

    /// A hunk that only adds goes after its hinted line, else to the end.
    fn locate_additions(
        &self,
        pattern: &Pattern<'_>,
        anchor: Option<Anchor>,
        from: usize,
        order: Order,
    ) -> Result<Placement, Miss> {
        let end = self.seeker.lines().len();
        let level = MatchLevel::Exact;
        let Some(anchor) = anchor else {
            let is_said = pattern.hunk.end_of_file || end == 0;
            let note = (!is_said).then_some(DiagnosticKind::AdditionsAtEnd { file_line: end });
            return Ok(Placement {
                start: end,
                dropped: 0,
                notes: note.into_iter().collect(),
                level,
                loose_hint: false,
                cursor: from,
            });
        };
        let (cursor, loose_hint) = (anchor.line + 1, anchor.loose);
        if pattern.hunk.end_of_file || self.options.additions_at_end {
            return Ok(Placement {
                start: end,
                dropped: 0,
                notes: anchor.notes,
                level,
                loose_hint: false,
                cursor,
            });
        }
        let open = anchor.loose && !self.options.first_loose_match;
        if anchor.rivals.len() > 1 && (open || order == Order::Any) {
            return Err(Miss::AmbiguousHint { lines: anchor.rivals });
        }
        let mut notes = anchor.notes;
        if let [first, second, ..] = anchor.rivals.as_slice() {
            notes.push(DiagnosticKind::SeveralPlaces { file_line: first + 1, other: second + 1 });
        }
        Ok(Placement { start: cursor, dropped: 0, notes, level, loose_hint, cursor })
    }

    fn candidates(
        &self,
        pattern: &Pattern<'_>,
        level: MatchLevel,
        dropped: usize,
        from: usize,
    ) -> Vec<usize> {
        let old = pattern.old_without(dropped);
        match pattern.hunk.end_of_file {
            true => self.seeker.find_at_end(level, old, from).into_iter().collect(),
            false => self.seeker.find(level, old, from, MAX_CANDIDATES),
        }
    }

    /// Where the search starts below a hint. The hint may repeat a line of the hunk: then the
    /// hunk may start so far above that both fall on the same line of the file.
    fn search_start(&self, pattern: &Pattern<'_>, anchor: &Anchor, from: usize) -> usize {
        if !self.options.search_hinted_line {
            return anchor.line + 1;
        }
        let offset = pattern.old.iter().position(|line| self.seeker.is_like(anchor.line, line)).unwrap_or(0);
        anchor.line.saturating_sub(offset).max(from)
    }

    /// Follows the hints, each below the one before.
    fn anchor(&self, hints: &[String], from: usize) -> Result<Option<Anchor>, Miss> {
        let mut anchor: Option<Anchor> = None;
        for (hint, text) in hints.iter().enumerate() {
            let below = anchor.as_ref().map_or(from, |outer| outer.line + 1);
            let mut found = self.hinted_lines(text.as_bytes(), below).ok_or(Miss::HintNotFound { hint })?;
            if let Some(outer) = anchor {
                found.notes.splice(..0, outer.notes);
                // The outer hint narrows: the first line below it is meant, if the outer was one.
                found.rivals = outer.rivals;
                found.loose = outer.loose;
            }
            anchor = Some(found);
        }
        Ok(anchor)
    }

    fn hinted_lines(&self, hint: &[u8], from: usize) -> Option<Anchor> {
        for level in MatchLevel::ALL {
            let rivals = self.seeker.find(level, &[hint], from, MAX_CANDIDATES);
            if let Some(&line) = rivals.first() {
                let file_line = line + 1;
                let loose = level != MatchLevel::Exact;
                let note = loose.then_some(DiagnosticKind::LooseHint { level, file_line });
                return Some(Anchor { line, rivals, loose, notes: note.into_iter().collect() });
            }
        }
        if !self.options.tolerant_syntax {
            return None;
        }
        let rivals = self.seeker.starting_with(hint.trim_ascii(), from, MAX_CANDIDATES);
        let line = *rivals.first()?;
        let notes = vec![DiagnosticKind::HintPrefix { file_line: line + 1 }];
        Some(Anchor { line, rivals, loose: true, notes })
    }

    fn match_notes(
        &self,
        pattern: &Pattern<'_>,
        level: MatchLevel,
        dropped: usize,
        starts: &[usize],
    ) -> Vec<DiagnosticKind> {
        let mut notes = Vec::new();
        let start = starts.first().copied().unwrap_or_default();
        let file_line = start + 1;
        if level != MatchLevel::Exact {
            let blanks = self.other_blanks(pattern, start).map(Box::new);
            notes.push(DiagnosticKind::LooseMatch { level, file_line, blanks });
        }
        if dropped > 0 {
            notes.push(DiagnosticKind::TrailingContext { file_line });
        }
        if let ([_, second, ..], []) = (starts, pattern.hunk.hints.as_slice()) {
            notes.push(DiagnosticKind::SeveralPlaces { file_line, other: second + 1 });
        }
        notes
    }

    /// How the first line that differs does so, if it is in blanks.
    fn other_blanks(&self, pattern: &Pattern<'_>, start: usize) -> Option<BlankDifference> {
        let lines = self.seeker.lines().iter().enumerate().skip(start);
        let (at, expected, found) = pattern
            .old
            .iter()
            .zip(lines)
            .map(|(expected, (at, line))| (at, *expected, line.text))
            .find(|(_, expected, found)| expected != found)
            // Thousands of hunks may match in one line of megabytes.
            .filter(|(_, expected, found)| expected.len().max(found.len()) <= MAX_COMPARED)?;
        let text = |line| std::str::from_utf8(line).ok();
        BlankDifference::of(at + 1, text(expected)?, text(found)?)
    }
}

/// Whether two hunks change the same lines. Shared context is fine.
fn overlap(patterns: &[Pattern<'_>], placements: &[Placement]) -> bool {
    let mut changed: Vec<(usize, usize)> = patterns
        .iter()
        .zip(placements)
        .filter_map(|(pattern, placement)| {
            let core = pattern.core(placement.dropped)?;
            let start = placement.start + core.offset;
            Some((start, start + core.length))
        })
        .collect();
    changed.sort_unstable();
    let mut behind = 0;
    changed.into_iter().any(|(start, end)| {
        let overlaps = start < behind;
        behind = behind.max(end);
        overlaps
    })
}
