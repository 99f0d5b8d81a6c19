//! A model's text on its way to a terminal: wrapped at words as it streams, while code, tables and indentation keep their
//! form.

use std::mem;

use super::sanitize::Sanitizer;
use super::width;

/// The distance of tab stops.
const TAB: usize = 8;

/// Columns of indentation that make a line code, outside of lists.
const CODE: usize = 4;

/// Bytes of a line of code that are kept to find the end of a fence.
const HEAD: usize = 80;

/// Passes a streamed text on, filtered, and with line breaks between words where a width is set. A word is held back
/// until it is complete.
#[derive(Debug, Default)]
pub(crate) struct WordWrapper {
    filter: Sanitizer,
    /// Where lines are broken; `None` where they are not.
    columns: Option<usize>,
    /// Columns of the row that are written to.
    used: usize,
    /// Blanks before the word, not written yet.
    gap: String,
    /// The word that is not complete yet.
    word: String,
    line: Line,
    fence: Option<Fence>,
    /// Whether indented lines belong to an item of a list.
    is_in_list: bool,
    /// Whether the last line goes on.
    is_open: bool,
}

/// Form of the line that is being written.
#[derive(Debug, Default)]
enum Line {
    /// Nothing is written of it yet.
    #[default]
    Begun,
    /// Words, and the beginning of each continuation row.
    Words { hang: String },
    /// As it is: code, or a table. The end of a fence is looked for in its beginning.
    Raw { head: String },
}

/// Header fence of a block of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
}

impl WordWrapper {
    /// Breaks lines at so many columns from now on, or not at all.
    pub(crate) fn set_columns(&mut self, columns: Option<usize>) {
        self.columns = columns.filter(|columns| *columns > 0);
    }

    /// Returns what a piece of the text adds to the output.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut filtered = String::new();
        self.filter.push(text, &mut filtered);
        self.take(&filtered)
    }

    /// Whether the last line of what was pushed goes on, be it with a word that is held back.
    pub(crate) fn is_line_open(&self) -> bool {
        self.is_open
    }

    /// So many columns of the row are taken by something else, which leaves its line open.
    pub(crate) fn indent(&mut self, columns: usize) {
        (self.used, self.is_open) = (columns, true);
    }

    /// Returns what was held back, at the end of the text or before something else is written. The next text begins a
    /// line.
    pub(crate) fn end(&mut self) -> String {
        let mut filtered = String::new();
        self.filter.end(&mut filtered);
        let mut shown = self.take(&filtered);
        self.place(&mut shown);
        *self = Self { columns: self.columns, ..Self::default() };
        shown
    }

    fn take(&mut self, text: &str) -> String {
        if !text.is_empty() {
            self.is_open = !text.ends_with('\n');
        }
        if self.columns.is_none() {
            return text.to_owned();
        }
        let mut shown = String::with_capacity(text.len());
        text.chars().for_each(|character| self.character(character, &mut shown));
        shown
    }

    fn character(&mut self, character: char, shown: &mut String) {
        if character == '\n' {
            return self.end_line(shown);
        }
        if let Line::Begun = self.line
            && self.fence.is_some()
        {
            self.line = Line::Raw { head: String::new() };
        }
        let is_blank = matches!(character, ' ' | '\t');
        if is_blank {
            // This may be what tells which kind of line it is.
            self.place(shown);
        }
        if let Line::Raw { head } = &mut self.line {
            if head.len() < HEAD {
                head.push(character);
            }
            shown.push(character);
        } else if is_blank {
            self.gap.push(character);
        } else {
            if self.may_break_before(character) {
                self.place(shown);
            }
            self.word.push(character);
        }
    }

    /// Whether a word ends before this character without a blank: scripts without blanks break between characters, but
    /// not before closing punctuation or what joins the character before it.
    fn may_break_before(&self, character: char) -> bool {
        let is_wide = |character| width::char_columns(character) == 2;
        let is_closing = "、。，．）」』】〉》！？：；".contains(character);
        let Some(last) = self.word.chars().next_back() else { return false };
        let is_joined = last == '\u{200D}' || width::char_columns(character) == 0 || character == '\u{FE0F}';
        (is_wide(last) || is_wide(character)) && !is_closing && !is_joined
    }

    fn end_line(&mut self, shown: &mut String) {
        self.place(shown);
        self.gap.clear();
        if let Line::Raw { head } = &self.line {
            let found = Fence::of(head.trim());
            if let (Some(open), Some(found)) = (self.fence, found)
                && open.mark == found.mark
                && open.length <= found.length
                && head.trim().chars().all(|character| character == open.mark)
            {
                self.fence = None;
            }
        }
        self.line = Line::Begun;
        self.used = 0;
        shown.push('\n');
    }

    /// Writes the word where there is room for it.
    fn place(&mut self, shown: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (gap, word) = (mem::take(&mut self.gap), mem::take(&mut self.word));
        let after_gap = gap.chars().fold(self.used, advance);
        let wide = width::columns(&word);
        match &self.line {
            Line::Begun => {
                self.line = self.form_of(&gap, &word);
                shown.push_str(&gap);
                self.used = after_gap;
            }
            Line::Words { hang } if self.columns.is_some_and(|columns| after_gap + wide > columns) => {
                shown.push('\n');
                shown.push_str(hang);
                self.used = width::columns(hang);
            }
            Line::Words { .. } | Line::Raw { .. } => {
                shown.push_str(&gap);
                self.used = after_gap;
            }
        }
        shown.push_str(&word);
        self.used += wide;
        if let Some(columns) = self.columns.filter(|columns| self.used > *columns) {
            // The terminal has broken what is wider than a row, at its last column.
            self.used %= columns + 1;
        }
    }

    /// Returns the form of a line that begins with this indentation and this word.
    fn form_of(&mut self, indentation: &str, word: &str) -> Line {
        let indent = indentation.chars().fold(0, advance);
        let marker = marker_width(word);
        let is_code = indent >= CODE && !self.is_in_list;
        self.is_in_list = marker > 0 && !is_code || self.is_in_list && indent > 0;
        if let Some(fence) = Fence::of(word) {
            self.fence = Some(fence);
            return Line::Raw { head: String::new() };
        }
        if is_code || word.starts_with('|') {
            return Line::Raw { head: String::new() };
        }
        let hang = if word == ">" { format!("{indentation}> ") } else { " ".repeat(indent + marker) };
        // Where little room would be left, there is no form to keep.
        let fits = self.columns.is_some_and(|columns| 2 * width::columns(&hang) <= columns);
        Line::Words { hang: if fits { hang } else { String::new() } }
    }
}

impl Fence {
    /// The fence that a line begins with.
    fn of(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = line.chars().take_while(|character| *character == mark).count();
        (length >= 3).then_some(Self { mark, length })
    }
}

/// The columns of a list's marker and the blank after it; 0 if it is none.
fn marker_width(word: &str) -> usize {
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match word.strip_suffix(['.', ')']) {
        Some(number) if is_number(number) => word.len() + 1,
        _ if matches!(word, "-" | "*" | "+" | "•") => 2,
        _ => 0,
    }
}

/// The column after a blank.
fn advance(column: usize, blank: char) -> usize {
    if blank == '\t' { column + TAB - column % TAB } else { column + width::char_columns(blank) }
}

/// A whole text, wrapped at so many columns.
pub(crate) fn wrapped(text: &str, columns: Option<usize>) -> String {
    let mut prose = WordWrapper::default();
    prose.set_columns(columns);
    prose.push(text) + &prose.end()
}

#[cfg(test)]
mod tests;
