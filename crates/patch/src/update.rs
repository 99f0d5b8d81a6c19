//! Changes the content of one file by the hunks of one section.

use crate::error::{ApplyError, ApplyErrorKind};
use crate::excerpt::excerpt;
use crate::explain::explain;
use crate::indent::Shift;
use crate::level::{Form, MatchLevel};
use crate::locate::{Locator, Placement};
use crate::pattern::{Core, Pattern, Step};
use crate::seek::Seeker;
use crate::syntax::{Hunk, HunkLine, UpdateFile};
use crate::text::{LineEnd, Text};
use crate::{ApplyOptions, Diagnostic};

/// The content after `section`, whose file has `content` now and had `original` before the
/// patch.
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
    let form = form(&text, options);
    let old = patterns.iter().flat_map(|pattern| &pattern.old).copied().collect();
    let hints = section.hunks.iter().flat_map(|hunk| &hunk.hints).map(String::as_bytes).collect();
    let seeker = Seeker::new(&text.lines, old, form).with_hints(hints);
    let placements = Locator::new(&seeker, options).place(&patterns).map_err(|missed| {
        let pattern = missed.pattern;
        let lines = [pattern.old.as_slice(), &pattern.new_lines()].concat();
        let seeker = Seeker::new(&text.lines, lines, form);
        let before = |lines: &[&[u8]]| content != original && contains(original, lines, options);
        let kind = explain(&seeker, &missed, &before);
        ApplyError::new(&section.path, pattern.hunk.line, kind).with_hunk(pattern.number)
    })?;
    let shifts = shifts(section, &patterns, &placements, &text, options)?;
    for ((pattern, placement), shift) in patterns.iter().zip(&placements).zip(&shifts) {
        let shift = shift.as_ref().map(|shift| shift.note(placement.start));
        diagnostics.extend(placement.notes.iter().cloned().chain(shift).map(|note| {
            Diagnostic::new(note, pattern.hunk.line).with_path(&section.path).with_hunk(pattern.number)
        }));
    }
    Ok(Writer::new(&text, options).write(&edits(&patterns, &placements, &shifts)))
}

/// Refuses what cannot be patched whatever the file holds.
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

fn form(text: &Text<'_>, options: &ApplyOptions) -> Form {
    Form { utf8: text.utf8, canonical: options.canonical_unicode }
}

fn contains(content: &[u8], lines: &[&[u8]], options: &ApplyOptions) -> bool {
    let text = Text::new(content, !options.skip_byte_order_mark);
    Seeker::new(&text.lines, lines.to_vec(), form(&text, options)).find_anywhere(lines).is_some()
}

/// How the new lines of each hunk are to be indented.
fn shifts<'a>(
    section: &UpdateFile,
    patterns: &[Pattern<'a>],
    placements: &[Placement],
    text: &Text<'a>,
    options: &ApplyOptions,
) -> Result<Vec<Option<Shift<'a>>>, ApplyError> {
    let form = form(text, options);
    let shifts = patterns.iter().zip(placements).map(|(pattern, placement)| {
        if options.given_indentation || placement.level < MatchLevel::SurroundingBlanks {
            return Ok(None);
        }
        Shift::find(form, pattern, placement.dropped, &text.lines, placement.start)
            .map_err(|kind| ApplyError::new(&section.path, pattern.hunk.line, kind).with_hunk(pattern.number))
    });
    shifts.collect()
}

/// A change at a place.
struct Edit<'s, 'p> {
    /// The first line that it concerns, from 0.
    start: usize,
    core: Core<'s, 'p>,
    shift: Option<Shift<'p>>,
}

/// The changes in file order; those at one place stay in the order of the patch. But what has
/// context before it goes ahead of what has none: it belongs to that line, while additions alone at
/// the end of the file belong to the end.
fn edits<'s, 'p>(
    patterns: &'s [Pattern<'p>],
    placements: &[Placement],
    shifts: &[Option<Shift<'p>>],
) -> Vec<Edit<'s, 'p>> {
    let mut edits: Vec<Edit<'s, 'p>> = patterns
        .iter()
        .zip(placements)
        .zip(shifts)
        .filter_map(|((pattern, placement), shift)| {
            let core = pattern.core(placement.dropped)?;
            Some(Edit { start: placement.start + core.offset, core, shift: *shift })
        })
        .collect();
    edits.sort_by_key(|edit| (edit.start, edit.core.length, edit.core.offset == 0));
    edits
}

/// Writes the new content, line by line.
struct Writer<'t> {
    text: &'t Text<'t>,
    form: Form,
    options: &'t ApplyOptions,
    out: Vec<u8>,
    /// The next line of the file, from 0.
    next: usize,
    /// The line written last has no end; if another follows, it takes this one.
    open: Option<LineEnd>,
}

impl<'t> Writer<'t> {
    fn new(text: &'t Text<'t>, options: &'t ApplyOptions) -> Self {
        let mut out = Vec::with_capacity(text.mark.len() + text.body.len());
        out.extend_from_slice(text.mark);
        Self { text, form: form(text, options), options, out, next: 0, open: None }
    }

    fn write(mut self, edits: &[Edit<'_, '_>]) -> Vec<u8> {
        for edit in edits {
            self.keep_until(edit.start);
            for group in
                edit.core.steps.chunk_by(|left, right| (*left == Step::Keep) == (*right == Step::Keep))
            {
                match group.first() {
                    Some(Step::Keep) => self.keep_until(self.next + group.len()),
                    _ => self.change(group, edit.shift),
                }
            }
        }
        self.keep_until(self.text.lines.len());
        if let Some(end) = self.open
            && self.options.always_final_newline
        {
            self.out.extend_from_slice(end.as_bytes());
        }
        self.out
    }

    fn keep_until(&mut self, end: usize) {
        let lines = self.text.lines.get(self.next..end).unwrap_or_default();
        let Some((last, others)) = lines.split_last() else { return };
        if !others.is_empty() {
            // Only the last line of a file can miss its end: those before it are copied as they are.
            self.close();
            self.out.extend_from_slice(self.text.bytes_of(self.next..end - 1));
        }
        self.next = end;
        self.line(last.text, last.end);
    }

    /// Writes lines that replace others. Each new line takes the end of the line that it
    /// replaces, further ones that of the last, and where nothing is replaced a neighbour's.
    fn change(&mut self, group: &[Step<'_>], shift: Option<Shift<'_>>) {
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
                Some(shift) => self.line(&shift.apply(self.form, text), end),
                None => self.line(text.as_bytes(), end),
            }
        }
        self.next += removed;
    }

    fn line(&mut self, text: &[u8], end: LineEnd) {
        self.close();
        self.out.extend_from_slice(text);
        self.out.extend_from_slice(end.as_bytes());
        if end.is_missing() {
            self.open = Some(self.new_end());
        }
    }

    /// Ends the line written last, now that another one follows.
    fn close(&mut self) {
        if let Some(missing) = self.open.take() {
            self.out.extend_from_slice(missing.as_bytes());
        }
    }

    /// The end of a line that is new here.
    fn new_end(&self) -> LineEnd {
        match self.options.first_line_end {
            true => self.text.first_end(),
            false => self.text.neighbouring_end(self.next),
        }
    }
}
