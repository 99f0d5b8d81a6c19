//! Turns a hunk without a place into a message that lets its author get it right in one try.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use crate::error::{ApplyErrorKind, Candidate, Difference, Elsewhere, Mistake, as_meant};
use crate::excerpt::{common_prefix, excerpt, excerpt_around};
use crate::level::MatchLevel;
use crate::locate::{MAX_CANDIDATES, Miss, Missed};
use crate::pattern::Pattern;
use crate::seek::Seeker;

/// Occurrences of one line that count when the nearest places are sought.
const MAX_OCCURRENCES: usize = 64;

/// The weight of a line with words, against 1 for a brace and 0 for a blank line.
const TELLING: usize = 4;

/// A place in the file that is like the old lines of a hunk.
struct Place {
    /// The line on which the first of them falls, from 0; negative where lines are missing above the first.
    start: isize,
    /// How much the lines that match tell.
    weight: usize,
    /// The first of the lines that match and tell the most.
    telling: usize,
    telling_weight: usize,
}

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
    let blank = || Some(Place::new(*seeker.occurrences(pattern.old.first()?, 1).first()?, 0));
    let nearest: Vec<usize> = places.iter().map(|place| place.shown(seeker)).collect();
    // Blank lines are no place to name, but a file that has some is not without any line like them.
    let best = places.into_iter().next().or_else(|| blank().filter(|_| elsewhere.is_none()));
    ApplyErrorKind::ContextNotFound {
        difference: best.and_then(|place| difference(seeker, pattern, &place)),
        nearest: candidates(seeker, &nearest),
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
    if !left.into_iter().all(is_inside) {
        return None;
    }
    // Where the old lines are mostly there, the new ones are elsewhere by chance: as context that outlives the
    // deletion of what is between, for example.
    let old: Vec<_> = pattern.old.iter().map(|line| Cow::Borrowed(*line)).collect();
    let likeness = alignments(seeker, &old).iter().map(|place| place.weight).max().unwrap_or(0);
    let certainty: usize = lines.iter().map(|line| weight(line)).sum();
    (likeness < certainty).then_some(start)
}

/// The places most like the old lines, best first.
fn nearest_places(seeker: &Seeker<'_>, pattern: &Pattern<'_>) -> Vec<Place> {
    let old = as_meant(&pattern.old);
    let mut places = alignments(seeker, &old);
    places.sort_unstable_by_key(|place| (Reverse(place.weight), place.start));
    if places.first().is_none_or(|best| best.weight < TELLING) {
        let lines = old.iter().enumerate();
        let telling = lines.max_by_key(|(offset, line)| (weight(line), Reverse(*offset)));
        if let Some((offset, line)) = telling {
            let similar = similar_lines(seeker, line).into_iter();
            let similar: Vec<_> = similar.map(|line| Place::new(line, offset)).collect();
            places = if similar.is_empty() { places } else { similar };
        }
    }
    let mut shown = HashSet::new();
    places.retain(|place| shown.len() < MAX_CANDIDATES && shown.insert(place.shown(seeker)));
    places
}

/// Every way to lay `old` over the file in which a line that tells something matches.
fn alignments(seeker: &Seeker<'_>, old: &[Cow<'_, [u8]>]) -> Vec<Place> {
    let mut places: HashMap<isize, Place> = HashMap::new();
    for (offset, line) in old.iter().enumerate() {
        let weight = weight(line);
        if weight == 0 {
            continue;
        }
        for position in seeker.occurrences(line, MAX_OCCURRENCES) {
            let found = Place::new(*position, offset);
            let place = places.entry(found.start).or_insert(found);
            if weight > place.telling_weight {
                (place.telling, place.telling_weight) = (*position, weight);
            }
            place.weight += weight;
        }
    }
    places.into_values().collect()
}

impl Place {
    /// The place at which the old line `offset` falls on line `position` of the file.
    fn new(position: usize, offset: usize) -> Self {
        let start = position.cast_signed().saturating_sub_unsigned(offset);
        Self { start, weight: 0, telling: position, telling_weight: 0 }
    }

    /// The line that a message shows: the first, or one that matches if that is blank or above the file.
    fn shown(&self, seeker: &Seeker<'_>) -> usize {
        let is_blank =
            |at: &usize| seeker.lines().get(*at).is_none_or(|line| seeker.form().is_blank(line.text));
        self.line(0).filter(|at| !is_blank(at)).unwrap_or(self.telling)
    }

    /// The line of the file on which the old line `offset` falls; `None` above the first.
    fn line(&self, offset: usize) -> Option<usize> {
        self.start.checked_add_unsigned(offset).and_then(|line| usize::try_from(line).ok())
    }
}

/// How much a line tells about its place: nothing, little (a brace), or much.
fn weight(line: &[u8]) -> usize {
    if line.iter().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii()) {
        TELLING
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
    scored.sort_unstable_by_key(|&(score, at)| (Reverse(score), at));
    scored.into_iter().map(|(_, at)| at).take(MAX_CANDIDATES).collect()
}

/// The first line that no level accepts when the pattern is laid at `place`.
fn difference(seeker: &Seeker<'_>, pattern: &Pattern<'_>, place: &Place) -> Option<Difference> {
    pattern.old.iter().enumerate().find_map(|(offset, expected)| {
        let Some(at) = place.line(offset) else {
            // A line that is missing above the first one: that is where the file begins instead.
            let found = seeker.lines().first().map(|line| excerpt(line.text));
            return Some(Difference::new(1, excerpt(expected), found));
        };
        let Some(found) = seeker.lines().get(at) else {
            return Some(Difference::new(at + 1, excerpt(expected), None));
        };
        if seeker.form().equal(MatchLevel::Typography, expected, found.text) {
            return None;
        }
        let point = common_prefix(expected, found.text);
        let mistake = Mistake::of(at + 1, expected, found.text);
        let (expected, found) = (excerpt_around(expected, point), excerpt_around(found.text, point));
        Some(Difference::new(at + 1, expected, Some(found)).with_mistake(mistake))
    })
}

fn candidates(seeker: &Seeker<'_>, starts: &[usize]) -> Vec<Candidate> {
    let lines = seeker.lines();
    let places = starts.iter().filter_map(|start| Some((start, lines.get(*start)?)));
    places.map(|(start, line)| Candidate::new(start + 1, excerpt(line.text))).collect()
}
