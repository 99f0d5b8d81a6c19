//! Explains why a hunk could not be placed, so that its author can correct it with one attempt.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::error::{ApplyErrorKind, Candidate, Difference, Mistake, UnusableMatch, undo_common_mistakes};
use crate::excerpt::{common_prefix, excerpt, excerpt_around};
use crate::level::MatchLevel;
use crate::locate::{FailedHunk, MAX_CANDIDATES, PlacementError};
use crate::pattern::Pattern;
use crate::search::LineSearcher;

/// Maximum number of occurrences of one line that are considered in the search for similar positions.
const MAX_OCCURRENCES: usize = 64;

/// Weight of a line with letters or digits. A brace weighs 1, a blank line 0.
const DISTINCTIVE: usize = 4;

/// An alignment of the old lines of a hunk with the file in which at least one line matches.
struct Alignment {
    /// Line of the file aligned with the first old line, from 0. It is negative if it would be above the file.
    start: isize,
    /// Sum of the weights of the matching lines.
    weight: usize,
    /// First of the matching lines with the largest weight.
    distinctive: usize,
    distinctive_weight: usize,
}

/// Returns the error for a hunk that could not be placed in the file of `searcher`.
///
/// `was_in_original` returns whether lines were in the file before this patch changed it.
pub(crate) fn explain(
    searcher: &LineSearcher<'_>,
    failed: &FailedHunk<'_, '_>,
    was_in_original: &dyn Fn(&[&[u8]]) -> bool,
) -> ApplyErrorKind {
    let pattern = failed.pattern;
    let not_found =
        matches!(failed.error, PlacementError::HintNotFound { .. } | PlacementError::NotFound { .. });
    if not_found && let Some(start) = already_applied(searcher, pattern) {
        return ApplyErrorKind::AlreadyApplied { file_line: start + 1 };
    }
    match &failed.error {
        PlacementError::Ambiguous { level, starts } => {
            ApplyErrorKind::Ambiguous { level: *level, candidates: candidates(searcher, starts) }
        }
        PlacementError::AmbiguousHint { lines } => {
            ApplyErrorKind::AmbiguousHint { candidates: candidates(searcher, lines) }
        }
        PlacementError::HintNotFound { hint } => {
            let hint = pattern.hunk.hints.get(*hint).map_or(&[][..], String::as_bytes);
            ApplyErrorKind::HintNotFound {
                hint: excerpt(hint),
                nearest: candidates(searcher, &similar_lines(searcher, hint)),
                old_lines_at: searcher.find_unique(&pattern.old).map(|start| start + 1),
            }
        }
        PlacementError::NotFound { hinted } => {
            context_not_found(searcher, pattern, *hinted, failed.cursor, was_in_original)
        }
        PlacementError::TooRepetitive => ApplyErrorKind::TooRepetitive,
    }
}

fn context_not_found(
    searcher: &LineSearcher<'_>,
    pattern: &Pattern<'_>,
    hinted: Option<usize>,
    cursor: usize,
    was_in_original: &dyn Fn(&[&[u8]]) -> bool,
) -> ApplyErrorKind {
    let unusable_match = searcher.find_anywhere(&pattern.old).and_then(|start| {
        let file_line = start + 1;
        if pattern.hunk.end_of_file {
            Some(UnusableMatch::NotAtEnd { file_line })
        } else if start < cursor {
            Some(UnusableMatch::BeforePreviousHunk { file_line })
        } else {
            hinted.map(|_| UnusableMatch::BeforeHint { file_line })
        }
    });
    let ranked = match unusable_match {
        Some(_) => Vec::new(),
        None => nearest_alignments(searcher, pattern),
    };
    let blank = || Some(Alignment::new(*searcher.occurrences(pattern.old.first()?, 1).first()?, 0));
    let nearest: Vec<usize> = ranked.iter().map(|alignment| alignment.shown_line(searcher)).collect();
    // Blank lines are not worth listing, but a file that contains some does have similar lines.
    let best = ranked.into_iter().next().or_else(|| blank().filter(|_| unusable_match.is_none()));
    ApplyErrorKind::ContextNotFound {
        difference: best.and_then(|alignment| difference(searcher, pattern, &alignment)),
        nearest: candidates(searcher, &nearest),
        unusable_match,
        changed_earlier: unusable_match.is_none() && was_in_original(&pattern.old),
    }
}

/// Returns the line where the new lines start, if they are distinctive and occur once, and the old lines occur nowhere
/// else.
fn already_applied(searcher: &LineSearcher<'_>, pattern: &Pattern<'_>) -> Option<usize> {
    if !pattern.adds_words() && !pattern.removes_between() {
        return None;
    }
    let lines = pattern.new_lines();
    let mut levels = [MatchLevel::Exact, MatchLevel::TrailingWhitespace].into_iter();
    let start = levels.find_map(|level| match searcher.find(level, &lines, 0, 2).as_slice() {
        [start] => Some(*start),
        _ => None,
    })?;
    // The new lines may contain the old ones: `b` is still present after `c` was added below it.
    let range = start..start + lines.len();
    let is_within_new = |at: usize| range.contains(&at) && at + pattern.old.len() <= range.end;
    let left =
        MatchLevel::ALL.into_iter().flat_map(|level| searcher.find(level, &pattern.old, 0, lines.len() + 1));
    if !left.into_iter().all(is_within_new) {
        return None;
    }
    // If most of the old lines are in the file, the new lines occur there by coincidence, for example as context that
    // remained after the lines in between were deleted.
    let old: Vec<_> = pattern.old.iter().map(|line| Cow::Borrowed(*line)).collect();
    let similarity = alignments(searcher, &old).iter().map(|alignment| alignment.weight).max().unwrap_or(0);
    let certainty: usize = lines.iter().map(|line| weight(line)).sum();
    (similarity < certainty).then_some(start)
}

/// Returns the alignments most similar to the old lines, best first.
fn nearest_alignments(searcher: &LineSearcher<'_>, pattern: &Pattern<'_>) -> Vec<Alignment> {
    let old = undo_common_mistakes(&pattern.old);
    let mut ranked = alignments(searcher, &old);
    ranked.sort_unstable_by_key(|alignment| (Reverse(alignment.weight), alignment.start));
    if ranked.first().is_none_or(|best| best.weight < DISTINCTIVE) {
        let lines = old.iter().enumerate();
        let distinctive = lines.max_by_key(|(offset, line)| (weight(line), Reverse(*offset)));
        if let Some((offset, line)) = distinctive {
            let similar = similar_lines(searcher, line).into_iter();
            let similar: Vec<_> = similar.map(|line| Alignment::new(line, offset)).collect();
            ranked = if similar.is_empty() { ranked } else { similar };
        }
    }
    let mut lines = HashSet::new();
    ranked.retain(|alignment| lines.len() < MAX_CANDIDATES && lines.insert(alignment.shown_line(searcher)));
    ranked
}

/// Returns every alignment of `old` with the file in which a line that is not blank matches.
fn alignments(searcher: &LineSearcher<'_>, old: &[Cow<'_, [u8]>]) -> Vec<Alignment> {
    let mut by_start: HashMap<isize, Alignment> = HashMap::new();
    for (offset, line) in old.iter().enumerate() {
        let weight = weight(line);
        if weight == 0 {
            continue;
        }
        for position in searcher.occurrences(line, MAX_OCCURRENCES) {
            let found = Alignment::new(*position, offset);
            let alignment = by_start.entry(found.start).or_insert(found);
            if weight > alignment.distinctive_weight {
                (alignment.distinctive, alignment.distinctive_weight) = (*position, weight);
            }
            alignment.weight += weight;
        }
    }
    by_start.into_values().collect()
}

impl Alignment {
    /// Creates the alignment of the old line `offset` with line `position` of the file.
    fn new(position: usize, offset: usize) -> Self {
        let start = position.cast_signed().saturating_sub_unsigned(offset);
        Self { start, weight: 0, distinctive: position, distinctive_weight: 0 }
    }

    /// Returns the line that a message shows: the first one, or a matching line if the first is blank or above the
    /// file.
    fn shown_line(&self, searcher: &LineSearcher<'_>) -> usize {
        let is_blank = |at: &usize| {
            searcher.lines().get(*at).is_none_or(|line| searcher.comparison().is_blank(line.text()))
        };
        self.line(0).filter(|at| !is_blank(at)).unwrap_or(self.distinctive)
    }

    /// Returns the line of the file aligned with the old line `offset`; `None` if it is above the file.
    fn line(&self, offset: usize) -> Option<usize> {
        self.start.checked_add_unsigned(offset).and_then(|line| usize::try_from(line).ok())
    }
}

/// Returns how distinctive a line is: 0 if blank, 1 for punctuation such as a brace, else [`DISTINCTIVE`].
fn weight(line: &[u8]) -> usize {
    if line.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
        DISTINCTIVE
    } else {
        usize::from(!line.trim_ascii().is_empty())
    }
}

/// Returns the lines that share at least half of their bytes with `line`, counted from both ends, best first.
fn similar_lines(searcher: &LineSearcher<'_>, line: &[u8]) -> Vec<usize> {
    let wanted = line.trim_ascii();
    let mut scored: Vec<(usize, usize)> = Vec::new();
    for (at, line) in searcher.lines().iter().enumerate() {
        let found = line.text().trim_ascii();
        let shorter = wanted.len().min(found.len());
        let start = common_prefix(wanted, found);
        let end = wanted.iter().rev().zip(found.iter().rev());
        let end = end.take(shorter - start).take_while(|(left, right)| left == right).count();
        let total = wanted.len() + found.len();
        let shared = 2 * (start + end);
        if shared == 0 || 2 * shared < total {
            continue;
        }
        // Per mille: integers can be sorted.
        scored.push((shared.saturating_mul(1000) / total, at));
    }
    scored.sort_unstable_by_key(|&(score, at)| (Reverse(score), at));
    scored.into_iter().map(|(_, at)| at).take(MAX_CANDIDATES).collect()
}

/// Returns the first line that matches at no level when the pattern is aligned as in `alignment`.
fn difference(
    searcher: &LineSearcher<'_>,
    pattern: &Pattern<'_>,
    alignment: &Alignment,
) -> Option<Difference> {
    pattern.old.iter().enumerate().find_map(|(offset, expected)| {
        let Some(at) = alignment.line(offset) else {
            // The old line is above the file, so the message shows the file's first line instead.
            let found = searcher.lines().first().map(|line| excerpt(line.text()));
            return Some(Difference::new(1, excerpt(expected), found));
        };
        let Some(found) = searcher.lines().get(at) else {
            return Some(Difference::new(at + 1, excerpt(expected), None));
        };
        if searcher.comparison().equal(MatchLevel::Typography, expected, found.text()) {
            return None;
        }
        let point = common_prefix(expected, found.text());
        let mistake = Mistake::classify(at + 1, expected, found.text());
        let (expected, found) = (excerpt_around(expected, point), excerpt_around(found.text(), point));
        Some(Difference::new(at + 1, expected, Some(found)).with_mistake(mistake))
    })
}

fn candidates(searcher: &LineSearcher<'_>, starts: &[usize]) -> Vec<Candidate> {
    let lines = searcher.lines();
    let lines_found = starts.iter().filter_map(|start| Some((start, lines.get(*start)?)));
    lines_found.map(|(start, line)| Candidate::new(start + 1, excerpt(line.text()))).collect()
}
