//! A question on a window: blank runs are folded and counted, and where there is more than fits on the window, how much
//! there is, the beginning and the end of it are shown once more beside the question.

use std::borrow::Cow;

use super::sanitize::{Sanitizer, visible};
use super::prose::wrapped;
use super::screen::TerminalSize;
use super::style::{Highlight, Style};
use super::{summary, width};

/// The margin of what is asked about. Only our own notes begin further left, so nothing can pass for one.
const MARGIN: &str = "    ";

/// The margin of a row that continues a line.
const CONTINUED: &str = "  ↳ ";

/// The margin of our own notes.
const NOTE: &str = "  … ";

/// Columns of each of these margins.
const MARGIN_WIDTH: usize = 4;

/// The fewest columns that are laid out for; a narrower window wraps by itself.
const LEAST_COLUMNS: usize = 20;

/// The fewest rows of a part that is cut: one at each end, and the note between them.
const LEAST_ROWS: usize = 3;

/// Blank rows from this many on are folded.
const BLANK_RUN: usize = 3;

/// Characters without a width that one character may carry before the next of them is written out.
const MARKS: usize = 4;

/// The distance of tab stops.
const TAB: usize = 8;

/// Columns that are kept for the amount in the first line.
const AMOUNT_WIDTH: usize = 50;

/// Lines that belong together, each with its colour.
#[derive(Debug, Default)]
pub(crate) struct Section {
    lines: Vec<(Option<Highlight>, String)>,
    is_diff: bool,
    /// Whether the last line has no line end.
    is_open: bool,
}

/// TerminalSize of a text.
#[derive(Clone, Copy, Debug, Default)]
struct TextSize {
    lines: usize,
    bytes: usize,
}

/// One row of the window.
#[derive(Clone, Debug)]
struct Row {
    margin: &'static str,
    ink: Option<Highlight>,
    text: String,
    /// Lines that begin in it, and bytes that it shows.
    amount: TextSize,
}

/// The question with this head above these parts, and with this prompt below. All of each part is shown; where that does
/// not fit on the window, the beginning and the end follow once more, beside the prompt.
pub(crate) fn question(head: &str, parts: &[Section], prompt: &str, size: TerminalSize, style: Style) -> String {
    // The last column stays free, where terminals differ.
    let columns = size.columns.max(LEAST_COLUMNS) - 1;
    let amount = parts.iter().map(Section::amount).fold(TextSize::default(), TextSize::and);
    let parts: Vec<Vec<Row>> = parts.iter().map(|part| part.rows(columns - MARGIN_WIDTH)).collect();
    let head = width::truncate(&visible(head).replace('\n', "\\n"), 2 * columns - AMOUNT_WIDTH.min(columns));
    let is_folded = parts.iter().flatten().any(|row| row.margin == NOTE);
    let first = if is_folded { format!("{head}, {amount}:\n") } else { format!("{head}:\n") };
    let whole = format!("\n{first}{}", shown(&parts, style));
    // The blank line before the head counts.
    let room =
        |head: &str| size.rows.saturating_sub(1 + width::rows(head, columns) + width::rows(prompt, columns));
    if parts.iter().map(Vec::len).sum::<usize>() <= room(&first) {
        return format!("{whole}{prompt}");
    }
    let again = format!("{head}, {amount}, all of it above:\n");
    let ends = within(&parts, room(&again));
    format!("{whole}\n{again}{}{prompt}", shown(&ends, style))
}

/// The model's own question above this prompt, wrapped at words. Where it does not fit on the window, it is told as the
/// question about a call is.
pub(crate) fn of_model(text: &str, prompt: &str, size: TerminalSize, style: Style) -> String {
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(visible).collect();
    let wrapped = wrapped(&lines.join("\n"), size.columns.checked_sub(1));
    // The blank line before it and the row of the prompt count.
    if width::rows(&wrapped, size.columns) + 2 > size.rows {
        return question("question", &[Section::text(text)], prompt, size, style);
    }
    format!("\n{wrapped}\n{prompt}")
}

fn shown(parts: &[Vec<Row>], style: Style) -> String {
    parts.iter().flatten().map(|row| row.shown(style)).collect()
}

impl Section {
    /// Lines without a colour.
    pub(crate) fn plain(lines: impl IntoIterator<Item = String>) -> Self {
        Self { lines: lines.into_iter().map(|line| (None, line)).collect(), ..Self::default() }
    }

    /// The lines of a text.
    pub(crate) fn text(text: &str) -> Self {
        Self { is_open: true, ..Self::plain(text.split('\n').map(str::to_owned)) }
    }

    /// Lines of unified diffs.
    pub(crate) fn diff<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let lines = lines.into_iter().map(|line| (Style::diff_highlight(line), line.to_owned())).collect();
        Self { lines, is_diff: true, ..Self::default() }
    }

    fn amount(&self) -> TextSize {
        let bytes: usize = self.lines.iter().map(|(_, line)| line.len() + 1).sum();
        TextSize { lines: self.lines.len(), bytes: bytes.saturating_sub(usize::from(self.is_open)) }
    }

    fn rows(&self, columns: usize) -> Vec<Row> {
        let rows = self.lines.iter().flat_map(|(ink, line)| rows_of(line, *ink, columns));
        folded(rows, self.is_diff)
    }
}

impl TextSize {
    fn and(self, other: Self) -> Self {
        Self { lines: self.lines + other.lines, bytes: self.bytes + other.bytes }
    }
}

/// Such as `3 lines, 1,024 bytes`.
impl std::fmt::Display for TextSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.lines > 0 {
            write!(f, "{}, ", summary::plural(self.lines as u64, "line"))?;
        }
        f.write_str(&summary::plural(self.bytes as u64, "byte"))
    }
}

impl Row {
    fn note(text: String, amount: TextSize) -> Self {
        Self { margin: NOTE, ink: Some(Highlight::Faint), text, amount }
    }

    fn shown(&self, style: Style) -> String {
        if self.text.is_empty() {
            return "\n".to_owned();
        }
        let text = self.ink.map_or_else(|| self.text.clone(), |ink| style.ink(ink, &self.text));
        format!("{}{text}\n", self.margin)
    }

    /// The sign of a blank line of a diff, a blank for every other blank row; `None` if there is something to see.
    fn blank(&self, is_diff: bool) -> Option<char> {
        match self.text.trim() {
            "" => Some(' '),
            "+" if is_diff => Some('+'),
            "-" if is_diff => Some('-'),
            _ => None,
        }
    }
}

/// Beginning and end of each part, in so many rows together or the fewest that there must be. The last part is what
/// would be done; those before it share a third.
fn within(parts: &[Vec<Row>], room: usize) -> Vec<Vec<Row>> {
    let Some((last, before)) = parts.split_last() else { return Vec::new() };
    let share = (room / 3).checked_div(before.len()).unwrap_or(0).max(LEAST_ROWS);
    let mut cut: Vec<Vec<Row>> = before.iter().map(|rows| ends(rows, share)).collect();
    let used: usize = cut.iter().map(Vec::len).sum();
    cut.push(ends(last, room.saturating_sub(used).max(LEAST_ROWS)));
    cut
}

/// The rows if there are no more than so many, else the first and the last of them, with a note between.
fn ends(rows: &[Row], room: usize) -> Vec<Row> {
    if rows.len() <= room {
        return rows.to_vec();
    }
    let kept = room.saturating_sub(1);
    let (first, rest) = rows.split_at(kept.div_ceil(2).min(rows.len()));
    let (between, last) = rest.split_at(rest.len().saturating_sub(kept / 2));
    let amount = between.iter().map(|row| row.amount).fold(TextSize::default(), TextSize::and);
    let note = Row::note(format!("{amount} between"), amount);
    [first, &[note], last].concat()
}

/// The line in rows of at most so many columns, with nothing hidden in it.
fn rows_of(line: &str, ink: Option<Highlight>, columns: usize) -> Vec<Row> {
    let row = |margin, lines| Row { margin, ink, text: String::new(), amount: TextSize { lines, bytes: 0 } };
    let mut rows = Vec::new();
    let mut last = row(MARGIN, 1);
    let (mut used, mut marks) = (0, 0);
    let mut filter = Sanitizer::escaping();
    let mut shown = String::new();
    for character in line.chars().map(Some).chain([None]) {
        shown.clear();
        match character {
            Some('\t') => shown.push_str(&" ".repeat(TAB - used % TAB)),
            Some(character) => filter.character(character, &mut shown),
            None => filter.end(&mut shown),
        }
        let mut wide = width::columns(&shown);
        marks = if wide == 0 { marks + 1 } else { 0 };
        if marks > MARKS {
            shown = shown.chars().flat_map(char::escape_unicode).collect();
            wide = width::columns(&shown);
        }
        if used + wide > columns && used > 0 {
            rows.push(std::mem::replace(&mut last, row(CONTINUED, 0)));
            used = 0;
        }
        last.text.push_str(&shown);
        // The line end is a byte, too.
        last.amount.bytes += character.map_or(1, char::len_utf8);
        used += wide;
    }
    rows.push(last);
    rows
}

/// The rows, with one note for each run of blank ones.
fn folded(rows: impl Iterator<Item = Row>, is_diff: bool) -> Vec<Row> {
    let (mut shown, mut run, mut sign) = (Vec::new(), Vec::new(), None);
    for row in rows {
        let blank = row.blank(is_diff);
        if blank != sign {
            close(&mut run, sign, &mut shown);
            sign = blank;
        }
        if blank.is_some() { run.push(row) } else { shown.push(row) }
    }
    close(&mut run, sign, &mut shown);
    shown
}

/// Ends a run of blank rows.
fn close(run: &mut Vec<Row>, sign: Option<char>, shown: &mut Vec<Row>) {
    if run.len() < BLANK_RUN {
        shown.append(run);
        return;
    }
    let amount = run.drain(..).map(|row| row.amount).fold(TextSize::default(), TextSize::and);
    let blank = match sign {
        Some('+') => "added blank",
        Some('-') => "removed blank",
        Some(_) | None => "blank",
    };
    let (count, unit) = if amount.lines == 0 { (amount.bytes, "byte") } else { (amount.lines, "line") };
    shown.push(Row::note(summary::plural(count as u64, &format!("{blank} {unit}")), amount));
}

#[cfg(test)]
mod tests;
