//! Questions that must fit a window: blank runs are folded, and the ends of a long text are repeated next to the prompt.

use std::borrow::Cow;
use std::fmt;

use pintle_host::sanitize::{Sanitizer, escape_hidden};

use super::diff;
use super::line::{Face, StyledLine};
use super::live_region::TerminalSize;
use super::style::Style;
use super::word_wrap::wrap;
use super::wrap::{advance, expand_tabs};
use super::{summary, width};

/// Margin of quoted text. Only Pintle's own notes start further left, so quoted text cannot imitate a note.
const MARGIN: &str = "    ";

/// Margin of continuation rows.
const CONTINUATION: &str = "  ↳ ";

/// Margin of Pintle's own notes.
const NOTE: &str = "  … ";

/// Width of each of these margins.
const MARGIN_WIDTH: usize = 4;

/// Minimum width for layout. A narrower terminal wraps the rows itself.
const MIN_COLUMNS: usize = 20;

/// Minimum rows of a shortened section: one at each end, and the note between them.
const MIN_ROWS: usize = 3;

/// Minimum number of consecutive blank rows to fold.
const BLANK_RUN: usize = 3;

/// Maximum number of zero-width characters on one base character. Further characters are escaped.
const MAX_MARKS: usize = 4;

/// Columns reserved for the text size in the first line.
const SIZE_WIDTH: usize = 50;

/// Lines of quoted text.
#[derive(Debug, Default)]
pub struct Section {
    lines: Vec<String>,
    is_diff: bool,
    /// Whether the last line has no line end.
    is_open: bool,
}

/// Size of a text.
#[derive(Clone, Copy, Debug, Default)]
struct TextSize {
    lines: usize,
    bytes: usize,
}

/// Row of the window.
#[derive(Clone, Debug)]
struct Row {
    margin: &'static str,
    face: Face,
    text: String,
    /// Number of lines that start in the row, and of bytes that it shows.
    size: TextSize,
}

/// Formats a question with a head, sections and a prompt.
///
/// Every section is shown in full. If that does not fit the window, the beginning and the end of each section are repeated
/// next to the prompt.
pub(crate) fn question(
    head: &str,
    sections: &[Section],
    prompt: &str,
    terminal: TerminalSize,
    style: Style,
) -> String {
    // Terminals differ in how they treat the last column.
    let columns = terminal.columns.max(MIN_COLUMNS) - 1;
    let size = sections.iter().map(Section::size).fold(TextSize::default(), TextSize::add);
    let sections: Vec<Vec<Row>> =
        sections.iter().map(|section| section.rows(columns - MARGIN_WIDTH)).collect();
    let head = escape_hidden(head).replace('\n', "\\n");
    let head = width::truncate(&head, 2 * columns - SIZE_WIDTH.min(columns));
    let is_folded = sections.iter().flatten().any(|row| row.margin == NOTE);
    let first = if is_folded { format!("{head}, {size}:\n") } else { format!("{head}:\n") };
    let full = format!("\n{first}{}", format_rows(&sections, style));
    // Includes the blank line before the head.
    let available = |head: &str| {
        terminal.rows.saturating_sub(1 + width::rows(head, columns) + width::rows(prompt, columns))
    };
    if sections.iter().map(Vec::len).sum::<usize>() <= available(&first) {
        return format!("{full}{prompt}");
    }
    let again = format!("{head}, {size}, in full above:\n");
    let ends = shorten(&sections, available(&again));
    format!("{full}\n{again}{}{prompt}", format_rows(&ends, style))
}

/// Formats a question of the model, wrapped at words. If it does not fit the window, [`question`] formats it.
pub(crate) fn model_question(text: &str, prompt: &str, terminal: TerminalSize, style: Style) -> String {
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(escape_hidden).collect();
    let wrapped = wrap(&lines.join("\n"), terminal.columns.checked_sub(1));
    // Includes the blank line before the text and the row of the prompt.
    if width::rows(&wrapped, terminal.columns) + 2 > terminal.rows {
        return question("question", &[Section::text(text)], prompt, terminal, style);
    }
    format!("\n{wrapped}\n{prompt}")
}

fn format_rows(sections: &[Vec<Row>], style: Style) -> String {
    sections.iter().flatten().map(|row| row.format(style)).collect()
}

impl Section {
    /// Creates a section from lines.
    pub(crate) fn plain(lines: impl IntoIterator<Item = String>) -> Self {
        Self { lines: lines.into_iter().collect(), ..Self::default() }
    }

    /// Creates a section from a text.
    pub fn text(text: &str) -> Self {
        Self { is_open: true, ..Self::plain(text.split('\n').map(str::to_owned)) }
    }

    /// Creates a section from the lines of unified diffs.
    pub(crate) fn diff<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        Self { is_diff: true, ..Self::plain(lines.into_iter().map(str::to_owned)) }
    }

    fn size(&self) -> TextSize {
        let bytes: usize = self.lines.iter().map(|line| line.len() + 1).sum();
        TextSize { lines: self.lines.len(), bytes: bytes.saturating_sub(usize::from(self.is_open)) }
    }

    fn rows(&self, columns: usize) -> Vec<Row> {
        let face = |line: &str| if self.is_diff { diff::face(line) } else { Face::PLAIN };
        let rows = self.lines.iter().flat_map(|line| wrap_line(line, face(line), columns));
        fold_blank(rows, self.is_diff)
    }

    /// Returns all lines for a window that is redrawn, with hidden characters escaped: the user must see exactly what
    /// runs.
    pub(crate) fn to_lines(&self) -> Vec<StyledLine> {
        if self.is_diff {
            return diff::complete(&self.lines.join("\n"));
        }
        self.lines.iter().map(|line| StyledLine::plain(expand_tabs(&escape_hidden(line)))).collect()
    }
}

impl TextSize {
    fn add(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, bytes: self.bytes + other.bytes }
    }
}

/// For example `3 lines, 1,024 bytes`.
impl fmt::Display for TextSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.lines > 0 {
            write!(f, "{}, ", summary::plural(self.lines as u64, "line"))?;
        }
        f.write_str(&summary::plural(self.bytes as u64, "byte"))
    }
}

impl Row {
    fn note(text: String, size: TextSize) -> Self {
        Self { margin: NOTE, face: Face::DIM, text, size }
    }

    fn format(&self, style: Style) -> String {
        if self.text.is_empty() {
            return "\n".to_owned();
        }
        format!("{}{}\n", self.margin, style.paint(&self.text, self.face))
    }

    /// Returns the diff sign of a blank line, a space for any other blank row, or `None` if the row is not blank.
    fn blank_sign(&self, is_diff: bool) -> Option<char> {
        match self.text.trim() {
            "" => Some(' '),
            "+" if is_diff => Some('+'),
            "-" if is_diff => Some('-'),
            _ => None,
        }
    }
}

/// Shortens the sections to a total number of rows, or to their minimum. The last section is the effect of the call. The
/// sections before it share a third of the rows.
fn shorten(sections: &[Vec<Row>], available: usize) -> Vec<Vec<Row>> {
    let Some((last, before)) = sections.split_last() else { return Vec::new() };
    let share = (available / 3).checked_div(before.len()).unwrap_or(0).max(MIN_ROWS);
    let mut shortened: Vec<Vec<Row>> = before.iter().map(|rows| head_and_tail(rows, share)).collect();
    let used: usize = shortened.iter().map(Vec::len).sum();
    shortened.push(head_and_tail(last, available.saturating_sub(used).max(MIN_ROWS)));
    shortened
}

/// Returns the first and the last rows with a note between them, or all rows if they fit.
fn head_and_tail(rows: &[Row], available: usize) -> Vec<Row> {
    if rows.len() <= available {
        return rows.to_vec();
    }
    let kept = available.saturating_sub(1);
    let (first, rest) = rows.split_at(kept.div_ceil(2).min(rows.len()));
    let (omitted, last) = rest.split_at(rest.len().saturating_sub(kept / 2));
    let size = omitted.iter().map(|row| row.size).fold(TextSize::default(), TextSize::add);
    let note = Row::note(format!("{size} omitted"), size);
    [first, &[note], last].concat()
}

/// Wraps a line at a width, with hidden characters escaped.
fn wrap_line(line: &str, face: Face, columns: usize) -> Vec<Row> {
    let row = |margin, lines| Row { margin, face, text: String::new(), size: TextSize { lines, bytes: 0 } };
    let mut rows = Vec::new();
    let mut last = row(MARGIN, 1);
    let (mut used, mut marks) = (0, 0);
    let mut sanitizer = Sanitizer::escaping();
    let mut text = String::new();
    for character in line.chars().map(Some).chain([None]) {
        text.clear();
        match character {
            Some('\t') => text.push_str(&" ".repeat(advance(used, '\t') - used)),
            Some(character) => sanitizer.character(character, &mut text),
            None => sanitizer.end(&mut text),
        }
        let mut text_width = width::columns(&text);
        marks = if text_width == 0 { marks + 1 } else { 0 };
        if marks > MAX_MARKS {
            text = text.chars().flat_map(char::escape_unicode).collect();
            text_width = width::columns(&text);
        }
        if used + text_width > columns && used > 0 {
            rows.push(std::mem::replace(&mut last, row(CONTINUATION, 0)));
            used = 0;
        }
        last.text.push_str(&text);
        // The line end counts as a byte.
        last.size.bytes += character.map_or(1, char::len_utf8);
        used += text_width;
    }
    rows.push(last);
    rows
}

/// Replaces each run of blank rows by a note.
fn fold_blank(rows: impl Iterator<Item = Row>, is_diff: bool) -> Vec<Row> {
    let (mut folded, mut run, mut sign) = (Vec::new(), Vec::new(), None);
    for row in rows {
        let row_sign = row.blank_sign(is_diff);
        if row_sign != sign {
            end_run(&mut run, sign, &mut folded);
            sign = row_sign;
        }
        if row_sign.is_some() { run.push(row) } else { folded.push(row) }
    }
    end_run(&mut run, sign, &mut folded);
    folded
}

/// Appends a run of blank rows, as a note if it is long enough.
fn end_run(run: &mut Vec<Row>, sign: Option<char>, folded: &mut Vec<Row>) {
    if run.len() < BLANK_RUN {
        folded.append(run);
        return;
    }
    let size = run.drain(..).map(|row| row.size).fold(TextSize::default(), TextSize::add);
    let blank = match sign {
        Some('+') => "added blank",
        Some('-') => "removed blank",
        Some(_) | None => "blank",
    };
    let (count, unit) = if size.lines == 0 { (size.bytes, "byte") } else { (size.lines, "line") };
    folded.push(Row::note(summary::plural(count as u64, &format!("{blank} {unit}")), size));
}

#[cfg(test)]
mod tests;
