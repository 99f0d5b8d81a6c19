//! Finds the positions at which the hunks of one section apply to a file.

use std::ops::Range;

use crate::error::WhitespaceDifference;
use crate::level::MatchLevel;
use crate::pattern::Pattern;
use crate::search::LineSearcher;
use crate::work;
use crate::{ApplyOptions, DiagnosticKind};

/// Maximum number of matches that an ambiguous search reports.
pub(crate) const MAX_CANDIDATES: usize = 3;

/// Maximum length in bytes of a line whose whitespace is compared for a diagnostic.
const MAX_COMPARED: usize = 4096;

/// Position at which a hunk applies.
#[derive(Debug)]
pub(crate) struct Placement {
    /// Line of the file at which the old lines start, from 0.
    pub(crate) start: usize,
    /// Number of empty old lines at the end of the hunk that the file lacks.
    pub(crate) dropped: usize,
    /// Deviations that were accepted.
    pub(crate) diagnostics: Vec<DiagnosticKind>,
    pub(crate) level: MatchLevel,
    /// The hint did not match a whole line byte for byte.
    loose_hint: bool,
    /// Line at which the search for the next hunk starts.
    cursor: usize,
}

/// Reason why a hunk could not be placed. Lines count from 0.
#[derive(Debug)]
pub(crate) enum PlacementError {
    HintNotFound { hint: usize },
    NotFound { hinted: Option<usize> },
    Ambiguous { level: MatchLevel, starts: Vec<usize> },
    AmbiguousHint { lines: Vec<usize> },
    TooRepetitive,
}

/// Hunk that could not be placed.
#[derive(Debug)]
pub(crate) struct FailedHunk<'m, 'p> {
    pub(crate) pattern: &'m Pattern<'p>,
    pub(crate) error: PlacementError,
    /// Line at which the search started.
    pub(crate) cursor: usize,
}

/// Assumption about the order of the hunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HunkOrder {
    /// The hunks are in file order: the next of several exact matches is taken.
    InFileOrder,
    /// The hunks are in any order: there must be exactly one match.
    Any,
}

/// Line to which the hints of a hunk lead.
struct Anchor {
    line: usize,
    /// Lines that the outermost hint matches, up to [`MAX_CANDIDATES`].
    matches: Vec<usize>,
    /// The hint did not match a whole line byte for byte.
    loose: bool,
    diagnostics: Vec<DiagnosticKind>,
}

pub(crate) struct Locator<'s, 'a> {
    searcher: &'s LineSearcher<'a>,
    options: &'s ApplyOptions,
}

impl<'s, 'a> Locator<'s, 'a> {
    pub(crate) fn new(searcher: &'s LineSearcher<'a>, options: &'s ApplyOptions) -> Self {
        Self { searcher, options }
    }

    /// Places every hunk: in file order, or otherwise each at its only match.
    pub(crate) fn place<'m, 'p>(
        &self,
        patterns: &'m [Pattern<'p>],
    ) -> Result<Vec<Placement>, FailedHunk<'m, 'p>> {
        let failed = match self.place_in_order(patterns) {
            Ok(placements) => return Ok(placements),
            Err(failed) => failed,
        };
        match self.options.out_of_order && patterns.len() > 1 {
            true => self.place_in_any_order(patterns).ok_or(failed),
            false => Err(failed),
        }
    }

    fn place_in_order<'m, 'p>(
        &self,
        patterns: &'m [Pattern<'p>],
    ) -> Result<Vec<Placement>, FailedHunk<'m, 'p>> {
        let mut cursor = 0;
        let mut taken = Vec::new();
        let mut placements = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let located = self.locate(pattern, cursor, HunkOrder::InFileOrder);
            let placement = located
                .and_then(|placement| match self.better_match_above(pattern, &placement, &taken) {
                    Some(error) => Err(error),
                    None => Ok(placement),
                })
                .map_err(|error| FailedHunk { pattern, error, cursor })?;
            cursor = placement.cursor;
            if !pattern.old.is_empty() {
                taken.push(placement.start..placement.cursor);
            }
            placements.push(placement);
        }
        Ok(placements)
    }

    /// Returns the error for a loose placement that cannot be trusted because a search of the whole file finds a match
    /// above it: at a stricter level, or if the hint matched only loosely. Lines that earlier hunks have `taken`,
    /// in file order, do not count.
    fn better_match_above(
        &self,
        pattern: &Pattern<'_>,
        placement: &Placement,
        taken: &[Range<usize>],
    ) -> Option<PlacementError> {
        let is_strict = placement.level == MatchLevel::Exact && !placement.loose_hint;
        if !self.options.out_of_order || self.options.take_first_loose_match || is_strict {
            return None;
        }
        let is_free_above = |start: usize| {
            let next = taken.get(taken.partition_point(|lines| is_before(lines, start)));
            start < placement.start && next.is_none_or(|lines| lines.start >= start + pattern.old.len())
        };
        let is_better = |level| placement.loose_hint || level < placement.level;
        match self.locate(pattern, 0, HunkOrder::Any) {
            Ok(above) if is_better(above.level) && is_free_above(above.start) => {
                Some(PlacementError::NotFound { hinted: None })
            }
            Err(PlacementError::Ambiguous { level, starts })
                if is_better(level) && starts.iter().any(|start| is_free_above(*start)) =>
            {
                Some(PlacementError::Ambiguous { level, starts })
            }
            // A hunk with additions only takes no lines, so each of the hinted lines is still a candidate.
            Err(PlacementError::AmbiguousHint { lines }) => Some(PlacementError::AmbiguousHint { lines }),
            Err(PlacementError::TooRepetitive) => Some(PlacementError::TooRepetitive),
            Ok(_)
            | Err(
                PlacementError::Ambiguous { .. }
                | PlacementError::HintNotFound { .. }
                | PlacementError::NotFound { .. },
            ) => None,
        }
    }

    /// Places every hunk at its only match. `None` if a hunk has several matches or two hunks change the same line.
    fn place_in_any_order(&self, patterns: &[Pattern<'_>]) -> Option<Vec<Placement>> {
        let mut cursor = 0;
        let mut placements = Vec::with_capacity(patterns.len());
        for pattern in patterns {
            let mut placement = self.locate(pattern, 0, HunkOrder::Any).ok()?;
            if placement.start < cursor {
                let file_line = placement.start + 1;
                placement.diagnostics.push(DiagnosticKind::OutOfOrder { file_line });
            }
            cursor = placement.cursor;
            placements.push(placement);
        }
        (!overlap(patterns, &placements)).then_some(placements)
    }

    fn locate(
        &self,
        pattern: &Pattern<'_>,
        from: usize,
        order: HunkOrder,
    ) -> Result<Placement, PlacementError> {
        let located = self.locate_unlimited(pattern, from, order);
        match self.searcher.is_exhausted() {
            true => Err(PlacementError::TooRepetitive),
            false => located,
        }
    }

    fn locate_unlimited(
        &self,
        pattern: &Pattern<'_>,
        from: usize,
        order: HunkOrder,
    ) -> Result<Placement, PlacementError> {
        let anchor = self.anchor(&pattern.hunk.hints, from)?;
        if pattern.old.is_empty() {
            return self.locate_additions(pattern, anchor, from, order);
        }
        let start = anchor.as_ref().map_or(from, |anchor| self.search_start(pattern, anchor, from));
        let loose_hint = anchor.as_ref().is_some_and(|anchor| anchor.loose);
        let hint_is_ambiguous =
            anchor.as_ref().is_some_and(|anchor| anchor.loose && anchor.matches.len() > 1);
        for level in MatchLevel::ALL {
            for dropped in self.drop_counts(pattern) {
                let starts = self.candidates(pattern, level, dropped, start);
                let Some(&first) = starts.first() else { continue };
                if dropped > 0
                    && let Some((level, whole)) = self.match_whole(pattern, start)
                {
                    if self.options.take_first_loose_match
                        || (whole == first && self.options.allow_missing_last_line)
                    {
                        continue;
                    }
                    if whole != first {
                        let starts = vec![first.min(whole), first.max(whole)];
                        return Err(PlacementError::Ambiguous { level, starts });
                    }
                }
                let loose = level != MatchLevel::Exact || dropped > 0 || hint_is_ambiguous;
                let ambiguous = order == HunkOrder::Any || (loose && !self.options.take_first_loose_match);
                if starts.len() > 1 && ambiguous {
                    return Err(PlacementError::Ambiguous { level, starts });
                }
                let mut diagnostics = anchor.map_or_else(Vec::new, |anchor| anchor.diagnostics);
                diagnostics.extend(self.match_diagnostics(pattern, level, dropped, &starts));
                let cursor = first + pattern.old.len() - dropped;
                return Ok(Placement { start: first, dropped, diagnostics, level, loose_hint, cursor });
            }
        }
        Err(PlacementError::NotFound { hinted: anchor.map(|anchor| anchor.line) })
    }

    /// Returns the strictest match of all lines of a pattern, including its empty tail.
    fn match_whole(&self, pattern: &Pattern<'_>, from: usize) -> Option<(MatchLevel, usize)> {
        let mut levels = MatchLevel::ALL.into_iter();
        levels.find_map(|level| Some((level, *self.candidates(pattern, level, 0, from).first()?)))
    }

    /// Returns how many lines to drop at the end of a pattern, in the order of the attempts: first none, then the empty
    /// ones, but never all.
    fn drop_counts(&self, pattern: &Pattern<'_>) -> impl Iterator<Item = usize> + use<> {
        let tail = match self.options.allow_missing_last_line {
            true => usize::from(pattern.old.last().is_some_and(|line| line.is_empty())),
            false => pattern.empty_tail,
        };
        let tail = Some(tail).filter(|tail| (1..pattern.old.len()).contains(tail));
        std::iter::once(0).chain(tail)
    }

    /// Places a hunk with additions only: after its hinted line, or at the end of the file without a hint.
    fn locate_additions(
        &self,
        pattern: &Pattern<'_>,
        anchor: Option<Anchor>,
        from: usize,
        order: HunkOrder,
    ) -> Result<Placement, PlacementError> {
        let end = self.searcher.lines().len();
        let level = MatchLevel::Exact;
        let Some(anchor) = anchor else {
            let is_explicit = pattern.hunk.end_of_file || end == 0;
            let diagnostic = (!is_explicit).then_some(DiagnosticKind::AdditionsAtEnd { file_line: end });
            return Ok(Placement {
                start: end,
                dropped: 0,
                diagnostics: diagnostic.into_iter().collect(),
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
                diagnostics: anchor.diagnostics,
                level,
                loose_hint: false,
                cursor,
            });
        }
        let is_ambiguous = anchor.loose && !self.options.take_first_loose_match;
        if anchor.matches.len() > 1 && (is_ambiguous || order == HunkOrder::Any) {
            return Err(PlacementError::AmbiguousHint { lines: anchor.matches });
        }
        let mut diagnostics = anchor.diagnostics;
        if let [first, second, ..] = anchor.matches.as_slice() {
            diagnostics.push(DiagnosticKind::MultipleMatches { file_line: first + 1, other: second + 1 });
        }
        Ok(Placement { start: cursor, dropped: 0, diagnostics, level, loose_hint, cursor })
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
            true => self.searcher.find_at_end(level, old, from).into_iter().collect(),
            false => self.searcher.find(level, old, from, MAX_CANDIDATES),
        }
    }

    /// Returns the line at which the search below a hint starts. If the hint repeats a line of the hunk, the
    /// hunk may start far enough above for both to match the same line of the file.
    fn search_start(&self, pattern: &Pattern<'_>, anchor: &Anchor, from: usize) -> usize {
        if !self.options.search_hinted_line {
            return anchor.line + 1;
        }
        let offset =
            pattern.old.iter().position(|line| self.searcher.matches_loosely(anchor.line, line)).unwrap_or(0);
        anchor.line.saturating_sub(offset).max(from)
    }

    /// Resolves the hints, each below the previous one.
    fn anchor(&self, hints: &[String], from: usize) -> Result<Option<Anchor>, PlacementError> {
        let mut anchor: Option<Anchor> = None;
        for (hint, text) in hints.iter().enumerate() {
            let below = anchor.as_ref().map_or(from, |outer| outer.line + 1);
            let mut found =
                self.hinted_lines(text.as_bytes(), below).ok_or(PlacementError::HintNotFound { hint })?;
            if let Some(outer) = anchor {
                found.diagnostics.splice(..0, outer.diagnostics);
                // The outer hint narrows the inner one, so ambiguity depends on the outer hint alone.
                found.matches = outer.matches;
                found.loose = outer.loose;
            }
            anchor = Some(found);
        }
        Ok(anchor)
    }

    fn hinted_lines(&self, hint: &[u8], from: usize) -> Option<Anchor> {
        for level in MatchLevel::ALL {
            let matches = self.searcher.find(level, &[hint], from, MAX_CANDIDATES);
            if let Some(&line) = matches.first() {
                let file_line = line + 1;
                let loose = level != MatchLevel::Exact;
                let diagnostic = loose.then_some(DiagnosticKind::LooseHint { level, file_line });
                return Some(Anchor { line, matches, loose, diagnostics: diagnostic.into_iter().collect() });
            }
        }
        if !self.options.tolerant_syntax {
            return None;
        }
        let matches = self.searcher.starting_with(hint.trim_ascii(), from, MAX_CANDIDATES);
        let line = *matches.first()?;
        let diagnostics = vec![DiagnosticKind::HintPrefix { file_line: line + 1 }];
        Some(Anchor { line, matches, loose: true, diagnostics })
    }

    fn match_diagnostics(
        &self,
        pattern: &Pattern<'_>,
        level: MatchLevel,
        dropped: usize,
        starts: &[usize],
    ) -> Vec<DiagnosticKind> {
        let mut diagnostics = Vec::new();
        let start = starts.first().copied().unwrap_or_default();
        let file_line = start + 1;
        if level != MatchLevel::Exact {
            let whitespace = self.whitespace_difference(pattern, start).map(Box::new);
            diagnostics.push(DiagnosticKind::LooseMatch { level, file_line, whitespace });
        }
        if dropped > 0 {
            diagnostics.push(DiagnosticKind::MissingTrailingContext { file_line });
        }
        if let ([_, second, ..], []) = (starts, pattern.hunk.hints.as_slice()) {
            diagnostics.push(DiagnosticKind::MultipleMatches { file_line, other: second + 1 });
        }
        diagnostics
    }

    /// Returns the whitespace difference of the first differing line, if it differs in whitespace only.
    fn whitespace_difference(&self, pattern: &Pattern<'_>, start: usize) -> Option<WhitespaceDifference> {
        let lines = self.searcher.lines().iter().enumerate().skip(start);
        let (at, expected, found) = pattern
            .old
            .iter()
            .zip(lines)
            .map(|(expected, (at, line))| (at, *expected, line.text()))
            .inspect(|(_, expected, found)| work::count(expected.len().min(found.len())))
            .find(|(_, expected, found)| expected != found)
            // Thousands of hunks may match the same line of several megabytes.
            .filter(|(_, expected, found)| expected.len().max(found.len()) <= MAX_COMPARED)?;
        let text = |line| std::str::from_utf8(line).ok();
        WhitespaceDifference::compare(at + 1, text(expected)?, text(found)?)
    }
}

/// Returns whether the lines that a hunk has taken end before `line`.
fn is_before(taken: &Range<usize>, line: usize) -> bool {
    work::count(1);
    taken.end <= line
}

/// Returns whether two hunks change the same lines. Shared context is allowed.
fn overlap(patterns: &[Pattern<'_>], placements: &[Placement]) -> bool {
    let mut changed: Vec<(usize, usize)> = patterns
        .iter()
        .zip(placements)
        .filter_map(|(pattern, placement)| {
            let changed_region = pattern.changed_region(placement.dropped)?;
            let start = placement.start + changed_region.offset;
            Some((start, start + changed_region.length))
        })
        .collect();
    changed.sort_unstable();
    let mut changed_until = 0;
    changed.into_iter().any(|(start, end)| {
        let overlaps = start < changed_until;
        changed_until = changed_until.max(end);
        overlaps
    })
}
