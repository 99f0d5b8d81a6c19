//! Turns a hunk without a place into a message that lets its author get it right in one try.

use std::collections::HashMap;

use crate::error::{ApplyErrorKind, Candidate, Difference, Elsewhere, Mistake, as_meant};
use crate::excerpt::{common_prefix, excerpt, excerpt_around};
use crate::level::MatchLevel;
use crate::locate::{MAX_CANDIDATES, Miss, Missed};
use crate::pattern::Pattern;
use crate::seek::Seeker;

/// Occurrences of one line that count when the nearest places are sought.
const MAX_OCCURRENCES: usize = 64;

/// Why a hunk has no place in the file that `seeker` reads.
///
/// `before` says whether lines were in the file before this patch changed it.
pub(crate) fn explain(
    seeker: &Seeker<'_>,
    missed: &Missed<'_, '_>,
    before: &dyn Fn(&[&[u8]]) -> bool,
) -> ApplyErrorKind {
    let pattern = missed.pattern;
    let not_found = matches!(missed.miss, Miss::HintNotFound { .. } | Miss::NotFound { .. });
    if not_found && let Some(start) = already_applied(seeker, pattern) {
        return ApplyErrorKind::AlreadyApplied { file_line: start + 1 };
    }
    match &missed.miss {
        Miss::Ambiguous { level, starts } => {
            ApplyErrorKind::Ambiguous { level: *level, candidates: candidates(seeker, starts) }
        }
        Miss::AmbiguousHint { lines } => {
            ApplyErrorKind::AmbiguousHint { candidates: candidates(seeker, lines) }
        }
        Miss::HintNotFound { hint } => {
            let hint = pattern.hunk.hints.get(*hint).map_or(&[][..], String::as_bytes);
            ApplyErrorKind::HintNotFound {
                hint: excerpt(hint),
                nearest: candidates(seeker, &similar_lines(seeker, hint)),
                old_lines_at: seeker.find_only(&pattern.old).map(|start| start + 1),
            }
        }
        Miss::NotFound { hinted } => context_not_found(seeker, pattern, *hinted, missed.cursor, before),
        Miss::TooRepetitive => ApplyErrorKind::TooRepetitive,
    }
}

fn context_not_found(
    seeker: &Seeker<'_>,
    pattern: &Pattern<'_>,
    hinted: Option<usize>,
    cursor: usize,
    before: &dyn Fn(&[&[u8]]) -> bool,
) -> ApplyErrorKind {
    let elsewhere = seeker.find_anywhere(&pattern.old).and_then(|start| {
        let file_line = start + 1;
        if pattern.hunk.end_of_file {
            Some(Elsewhere::NotAtEnd { file_line })
        } else if start < cursor {
            Some(Elsewhere::BeforePreviousHunk { file_line })
        } else {
            hinted.map(|_| Elsewhere::BeforeHint { file_line })
        }
    });
    let places = match elsewhere {
        Some(_) => Vec::new(),
        None => nearest_places(seeker, pattern),
    };
    ApplyErrorKind::ContextNotFound {
        difference: places.first().and_then(|start| difference(seeker, pattern, *start)),
        nearest: candidates(seeker, &places),
        elsewhere,
        changed_earlier: elsewhere.is_none() && before(&pattern.old),
    }
}

/// Where the new lines are, if they say enough to be recognised and are in one place only, and the
/// old lines are nowhere else.
fn already_applied(seeker: &Seeker<'_>, pattern: &Pattern<'_>) -> Option<usize> {
    if !pattern.adds_words() && !pattern.removes_between() {
        return None;
    }
    let lines = pattern.new_lines();
    let mut levels = [MatchLevel::Exact, MatchLevel::TrailingBlanks].into_iter();
    let start = levels.find_map(|level| match seeker.find(level, &lines, 0, 2).as_slice() {
        [start] => Some(*start),
        _ => None,
    })?;
    // The new lines may hold the old ones: `b` is still there once `c` was added below it.
    let range = start..start + lines.len();
    let is_inside = |at: usize| range.contains(&at) && at + pattern.old.len() <= range.end;
    let left =
        MatchLevel::ALL.into_iter().flat_map(|level| seeker.find(level, &pattern.old, 0, lines.len() + 1));
    left.into_iter().all(is_inside).then_some(start)
}

/// The starts at which most lines of the pattern would match, best first.
fn nearest_places(seeker: &Seeker<'_>, pattern: &Pattern<'_>) -> Vec<usize> {
    let mut votes: HashMap<usize, usize> = HashMap::new();
    let old = as_meant(&pattern.old);
    for (offset, line) in old.iter().enumerate() {
        let weight = weight(line);
        if weight == 0 {
            continue;
        }
        for position in seeker.occurrences(line, MAX_OCCURRENCES) {
            if let Some(start) = position.checked_sub(offset) {
                *votes.entry(start).or_default() += weight;
            }
        }
    }
    if votes.is_empty() {
        let lines = old.iter().enumerate();
        let telling = lines.max_by_key(|(offset, line)| (weight(line), std::cmp::Reverse(*offset)));
        let Some((offset, line)) = telling else { return Vec::new() };
        let lines = similar_lines(seeker, line);
        return lines.into_iter().filter_map(|line| line.checked_sub(offset)).collect();
    }
    let mut places: Vec<(usize, usize)> = votes.into_iter().collect();
    places.sort_unstable_by_key(|&(start, votes)| (std::cmp::Reverse(votes), start));
    places.into_iter().map(|(start, _)| start).take(MAX_CANDIDATES).collect()
}

/// How much a line tells about its place: nothing, little (a brace), or much.
fn weight(line: &[u8]) -> usize {
    if line.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
        4
    } else {
        usize::from(!line.trim_ascii().is_empty())
    }
}

/// The lines that share most of their bytes with `line` at both ends, at least half, best first.
fn similar_lines(seeker: &Seeker<'_>, line: &[u8]) -> Vec<usize> {
    let wanted = line.trim_ascii();
    let mut scored: Vec<(usize, usize)> = Vec::new();
    for (at, line) in seeker.lines().iter().enumerate() {
        let found = line.text.trim_ascii();
        let shorter = wanted.len().min(found.len());
        let start = common_prefix(wanted, found);
        let end = wanted.iter().rev().zip(found.iter().rev());
        let end = end.take(shorter - start).take_while(|(left, right)| left == right).count();
        let total = wanted.len() + found.len();
        let shared = 2 * (start + end);
        if shared == 0 || 2 * shared < total {
            continue;
        }
        // Per thousand, so that whole numbers sort.
        scored.push((shared.saturating_mul(1000) / total, at));
    }
    scored.sort_unstable_by_key(|&(score, at)| (std::cmp::Reverse(score), at));
    scored.into_iter().map(|(_, at)| at).take(MAX_CANDIDATES).collect()
}

/// The first line that no level accepts when the pattern is laid at `start`.
fn difference(seeker: &Seeker<'_>, pattern: &Pattern<'_>, start: usize) -> Option<Difference> {
    pattern.old.iter().enumerate().find_map(|(offset, expected)| {
        let Some(found) = seeker.lines().get(start + offset) else {
            return Some(Difference::new(start + offset + 1, excerpt(expected), None));
        };
        if seeker.form().equal(MatchLevel::Typography, expected, found.text) {
            return None;
        }
        let point = common_prefix(expected, found.text);
        let mistake = Mistake::of(start + offset + 1, expected, found.text);
        let (expected, found) = (excerpt_around(expected, point), excerpt_around(found.text, point));
        Some(Difference::new(start + offset + 1, expected, Some(found)).with_mistake(mistake))
    })
}

fn candidates(seeker: &Seeker<'_>, starts: &[usize]) -> Vec<Candidate> {
    let lines = seeker.lines();
    let places = starts.iter().filter_map(|start| Some((start, lines.get(*start)?)));
    places.map(|(start, line)| Candidate::new(start + 1, excerpt(line.text))).collect()
}
