//! Applies the hunks of one section to the content of one file.

use crate::error::{ApplyError, ApplyErrorKind};
use crate::excerpt::excerpt;
use crate::explain::explain;
use crate::indent::IndentShift;
use crate::level::{LineComparison, MatchLevel};
use crate::locate::{Locator, Placement};
use crate::pattern::{ChangedRegion, Pattern, Step};
use crate::search::LineSearcher;
use crate::syntax::{Hunk, HunkLine, UpdateFile};
use crate::text::{LineEnd, Text};
use crate::{ApplyOptions, Diagnostic, work};

/// Returns the content after `section`. The file contains `content` now and contained `original` before the patch.
pub(crate) fn update(
    section: &UpdateFile,
    content: &[u8],
    original: &[u8],
    options: &ApplyOptions,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<u8>, ApplyError> {
    if section.hunks.is_empty() {
        return Ok(content.to_vec());
    }
    let text = Text::new(content, !options.skip_byte_order_mark);
    check(section, content, &text, options)?;
    let numbered = section.hunks.iter().zip(1..);
    let patterns: Vec<_> = numbered.map(|(hunk, number)| Pattern::new(number, hunk)).collect();
    let comparison = comparison(&text, options);
    let old = patterns.iter().flat_map(|pattern| &pattern.old).copied().collect();
    let hints = section.hunks.iter().flat_map(|hunk| &hunk.hints).map(String::as_bytes).collect();
    let searcher = LineSearcher::new(&text.lines, old, comparison).with_hints(hints);
    let placements = Locator::new(&searcher, options).place(&patterns).map_err(|failed| {
        let pattern = failed.pattern;
        let lines = [pattern.old.as_slice(), &pattern.new_lines()].concat();
        let searcher = LineSearcher::new(&text.lines, lines, comparison);
        let was_in_original = |lines: &[&[u8]]| content != original && contains(original, lines, options);
        let kind = explain(&searcher, &failed, &was_in_original);
        ApplyError::new(&section.path, pattern.hunk.line, kind).with_hunk(pattern.number)
    })?;
    let shifts = shifts(section, &patterns, &placements, &text, options)?;
    for ((pattern, placement), shift) in patterns.iter().zip(&placements).zip(&shifts) {
        let shift = shift.as_ref().map(|shift| shift.diagnostic(placement.start));
        diagnostics.extend(placement.diagnostics.iter().cloned().chain(shift).map(|kind| {
            Diagnostic::new(kind, pattern.hunk.line).with_path(&section.path).with_hunk(pattern.number)
        }));
    }
    Ok(Writer::new(&text, options).write(&edits(&patterns, &placements, &shifts)))
}

/// Refuses hunks that cannot be applied regardless of the content.
fn check(
    section: &UpdateFile,
    content: &[u8],
    text: &Text<'_>,
    options: &ApplyOptions,
) -> Result<(), ApplyError> {
    for (hunk, number) in section.hunks.iter().zip(1..) {
        let refuse = |kind| Err(ApplyError::new(&section.path, hunk.line, kind).with_hunk(number));
        if !text.utf8 {
            if content.starts_with(b"\xFF\xFE") || content.starts_with(b"\xFE\xFF") {
                return refuse(ApplyErrorKind::Utf16);
            }
            if let Some(line) = texts(hunk).find(|line| !line.is_ascii()) {
                return refuse(ApplyErrorKind::NotUtf8 { found: excerpt(line.as_bytes()) });
            }
        }
        if hunk.hints.len() > 1 && !options.stacked_hints {
            let what = "several `@@` lines before one hunk".to_owned();
            return refuse(ApplyErrorKind::Refused { what });
        }
    }
    Ok(())
}

fn texts(hunk: &Hunk) -> impl Iterator<Item = &str> {
    let lines = hunk.lines.iter().map(|line| match line {
        HunkLine::Context(text) | HunkLine::Remove(text) | HunkLine::Add(text) => text,
    });
    hunk.hints.iter().chain(lines).map(String::as_str)
}

fn comparison(text: &Text<'_>, options: &ApplyOptions) -> LineComparison {
    LineComparison { utf8: text.utf8, canonical: options.canonical_unicode }
}

fn contains(content: &[u8], lines: &[&[u8]], options: &ApplyOptions) -> bool {
    let text = Text::new(content, !options.skip_byte_order_mark);
    LineSearcher::new(&text.lines, lines.to_vec(), comparison(&text, options)).find_anywhere(lines).is_some()
}

/// Returns, for each hunk, how to re-indent its new lines.
fn shifts<'a>(
    section: &UpdateFile,
    patterns: &[Pattern<'a>],
    placements: &[Placement],
    text: &Text<'a>,
    options: &ApplyOptions,
) -> Result<Vec<Option<IndentShift<'a>>>, ApplyError> {
    let comparison = comparison(text, options);
    let shifts = patterns.iter().zip(placements).map(|(pattern, placement)| {
        if options.keep_given_indentation || placement.level < MatchLevel::SurroundingWhitespace {
            return Ok(None);
        }
        IndentShift::find(comparison, pattern, placement.dropped, &text.lines, placement.start)
            .map_err(|kind| ApplyError::new(&section.path, pattern.hunk.line, kind).with_hunk(pattern.number))
    });
    shifts.collect()
}

/// Change at a position in the file.
struct Edit<'s, 'p> {
    /// First line of the change, from 0.
    start: usize,
    changed_region: ChangedRegion<'s, 'p>,
    shift: Option<IndentShift<'p>>,
}

/// Returns the changes in file order. Changes at the same line keep the order of the patch, except that a change with
/// context before it precedes one without: it belongs to that context, while a change of additions alone at the end of
/// the file belongs to the end.
fn edits<'s, 'p>(
    patterns: &'s [Pattern<'p>],
    placements: &[Placement],
    shifts: &[Option<IndentShift<'p>>],
) -> Vec<Edit<'s, 'p>> {
    let mut edits: Vec<Edit<'s, 'p>> = patterns
        .iter()
        .zip(placements)
        .zip(shifts)
        .filter_map(|((pattern, placement), shift)| {
            let changed_region = pattern.changed_region(placement.dropped)?;
            Some(Edit { start: placement.start + changed_region.offset, changed_region, shift: *shift })
        })
        .collect();
    edits.sort_by_key(|edit| (edit.start, edit.changed_region.length, edit.changed_region.offset == 0));
    edits
}

/// Writes the new content line by line.
struct Writer<'t> {
    text: &'t Text<'t>,
    comparison: LineComparison,
    options: &'t ApplyOptions,
    out: Vec<u8>,
    /// Next line of the file, from 0.
    next: usize,
    /// Line end for the last written line, which has none, in case another line follows.
    missing_end: Option<LineEnd>,
}

impl<'t> Writer<'t> {
    fn new(text: &'t Text<'t>, options: &'t ApplyOptions) -> Self {
        let mut out = Vec::with_capacity(text.mark.len() + text.body.len());
        out.extend_from_slice(text.mark);
        Self { text, comparison: comparison(text, options), options, out, next: 0, missing_end: None }
    }

    fn write(mut self, edits: &[Edit<'_, '_>]) -> Vec<u8> {
        for edit in edits {
            self.copy_until(edit.start);
            for group in edit
                .changed_region
                .steps
                .chunk_by(|left, right| (*left == Step::Keep) == (*right == Step::Keep))
            {
                match group.first() {
                    Some(Step::Keep) => self.copy_until(self.next + group.len()),
                    _ => self.replace_lines(group, edit.shift),
                }
            }
        }
        self.copy_until(self.text.lines.len());
        if let Some(end) = self.missing_end
            && self.options.always_final_newline
        {
            self.out.extend_from_slice(end.as_bytes());
        }
        self.out
    }

    fn copy_until(&mut self, end: usize) {
        let lines = self.text.lines.get(self.next..end).unwrap_or_default();
        let Some((last, others)) = lines.split_last() else { return };
        if !others.is_empty() {
            // Only the last line of a file can lack its end, so the lines before it are copied unchanged.
            self.end_line();
            let unchanged = self.text.bytes_of(self.next..end - 1);
            work::count(unchanged.len());
            self.out.extend_from_slice(unchanged);
        }
        self.next = end;
        self.write_line(last.text(), last.end);
    }

    /// Writes lines that replace others. Each new line takes the end of the line that it replaces, and additional lines
    /// take the end of the last replaced line. If no line is replaced, they take a neighbour's.
    fn replace_lines(&mut self, group: &[Step<'_>], shift: Option<IndentShift<'_>>) {
        let removed = group.iter().filter(|step| **step == Step::Remove).count();
        let replaced = self.text.lines.get(self.next..self.next + removed).unwrap_or_default();
        let mut ends = replaced.iter().map(|line| line.end).filter(|end| !end.is_missing());
        let mut end = self.new_end();
        for step in group {
            let Step::Add(text) = step else { continue };
            if !self.options.first_line_end {
                end = ends.next().unwrap_or(end);
            }
            match shift {
                Some(shift) => self.write_line(&shift.apply(self.comparison, text), end),
                None => self.write_line(text.as_bytes(), end),
            }
        }
        self.next += removed;
    }

    fn write_line(&mut self, text: &[u8], end: LineEnd) {
        self.end_line();
        work::count(text.len());
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(end.as_bytes());
        if end.is_missing() {
            self.missing_end = Some(self.new_end());
        }
    }

    /// Ends the last line written, since another one follows.
    fn end_line(&mut self) {
        if let Some(missing) = self.missing_end.take() {
            self.out.extend_from_slice(missing.as_bytes());
        }
    }

    /// Returns the line end for a new line at the current position.
    fn new_end(&self) -> LineEnd {
        match self.options.first_line_end {
            true => self.text.first_end(),
            false => self.text.neighbouring_end(self.next),
        }
    }
}
