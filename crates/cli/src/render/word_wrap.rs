//! Word wrapping of streamed Markdown text. Code, tables and indentation keep their form.

use std::mem;

use super::sanitize::Sanitizer;
use super::width;

/// Distance between tab stops.
const TAB: usize = 8;

/// Indentation in columns that makes a line code, outside of lists.
const CODE_INDENT: usize = 4;

/// Bytes kept of a line of code to detect a closing fence.
const MAX_FENCE_LINE: usize = 80;

/// Sanitizes streamed text and wraps it at a width, if one is set. Holds back a word until it is complete.
#[derive(Debug, Default)]
pub(crate) struct WordWrapper {
    sanitizer: Sanitizer,
    /// Width at which lines are wrapped, if any.
    columns: Option<usize>,
    /// Columns used in the current row.
    used: usize,
    /// Pending blanks before the word.
    gap: String,
    /// Incomplete word.
    word: String,
    line: LineForm,
    fence: Option<CodeFence>,
    /// Whether indented lines belong to a list item.
    is_in_list: bool,
    /// Whether the last line is incomplete.
    is_open: bool,
}

/// Form of the current line.
#[derive(Debug, Default)]
enum LineForm {
    /// Not known yet.
    #[default]
    Unknown,
    /// Words to wrap, with the prefix of continuation rows.
    Words { hanging: String },
    /// Verbatim: code or a table. The start of the line is kept to detect a closing fence.
    Raw { start: String },
}

/// Opening fence of a code block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CodeFence {
    mark: char,
    length: usize,
}

impl WordWrapper {
    /// Sets the width at which lines are wrapped from now on.
    pub(crate) fn set_columns(&mut self, columns: Option<usize>) {
        self.columns = columns.filter(|columns| *columns > 0);
    }

    /// Appends text and returns the output that is complete.
    pub(crate) fn push(&mut self, text: &str) -> String {
        let mut sanitized = String::new();
        self.sanitizer.push(text, &mut sanitized);
        self.wrap(&sanitized)
    }

    /// Returns whether the last line is incomplete, even if only by a held-back word.
    pub(crate) fn is_line_open(&self) -> bool {
        self.is_open
    }

    /// Starts in a row whose first columns are already used.
    pub(crate) fn indent(&mut self, columns: usize) {
        (self.used, self.is_open) = (columns, true);
    }

    /// Ends the text and returns the rest of the output. The next text starts a line.
    pub(crate) fn end(&mut self) -> String {
        let mut sanitized = String::new();
        self.sanitizer.end(&mut sanitized);
        let mut out = self.wrap(&sanitized);
        self.flush_word(&mut out);
        *self = Self { columns: self.columns, ..Self::default() };
        out
    }

    fn wrap(&mut self, text: &str) -> String {
        if !text.is_empty() {
            self.is_open = !text.ends_with('\n');
        }
        if self.columns.is_none() {
            return text.to_owned();
        }
        let mut out = String::with_capacity(text.len());
        text.chars().for_each(|character| self.character(character, &mut out));
        out
    }

    fn character(&mut self, character: char, out: &mut String) {
        if character == '\n' {
            return self.end_line(out);
        }
        if let LineForm::Unknown = self.line
            && self.fence.is_some()
        {
            self.line = LineForm::Raw { start: String::new() };
        }
        let is_blank = matches!(character, ' ' | '\t');
        if is_blank {
            // The first word may determine the form of the line.
            self.flush_word(out);
        }
        if let LineForm::Raw { start } = &mut self.line {
            if start.len() < MAX_FENCE_LINE {
                start.push(character);
            }
            out.push(character);
        } else if is_blank {
            self.gap.push(character);
        } else {
            if self.may_break_before(character) {
                self.flush_word(out);
            }
            self.word.push(character);
        }
    }

    /// Returns whether a word may end before this character without a blank. Scripts without blanks break between
    /// characters, but not before closing punctuation or within a joined sequence.
    fn may_break_before(&self, character: char) -> bool {
        let is_wide = |character| width::char_columns(character) == 2;
        let is_closing = "、。，．）」』】〉》！？：；".contains(character);
        let Some(last) = self.word.chars().next_back() else { return false };
        let is_joined = last == '\u{200D}' || width::char_columns(character) == 0 || character == '\u{FE0F}';
        (is_wide(last) || is_wide(character)) && !is_closing && !is_joined
    }

    fn end_line(&mut self, out: &mut String) {
        self.flush_word(out);
        self.gap.clear();
        if let LineForm::Raw { start } = &self.line {
            let found = CodeFence::parse(start.trim());
            if let (Some(open), Some(found)) = (self.fence, found)
                && open.mark == found.mark
                && open.length <= found.length
                && start.trim().chars().all(|character| character == open.mark)
            {
                self.fence = None;
            }
        }
        self.line = LineForm::Unknown;
        self.used = 0;
        out.push('\n');
    }

    /// Writes the word, on a new row if the current one is full.
    fn flush_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (gap, word) = (mem::take(&mut self.gap), mem::take(&mut self.word));
        let after_gap = gap.chars().fold(self.used, advance);
        let word_width = width::columns(&word);
        match &self.line {
            LineForm::Unknown => {
                self.line = self.form_of(&gap, &word);
                out.push_str(&gap);
                self.used = after_gap;
            }
            LineForm::Words { hanging }
                if self.columns.is_some_and(|columns| after_gap + word_width > columns) =>
            {
                out.push('\n');
                out.push_str(hanging);
                self.used = width::columns(hanging);
            }
            LineForm::Words { .. } | LineForm::Raw { .. } => {
                out.push_str(&gap);
                self.used = after_gap;
            }
        }
        out.push_str(&word);
        self.used += word_width;
        if let Some(columns) = self.columns.filter(|columns| self.used > *columns) {
            // The terminal wraps a word that is wider than a row at its last column.
            self.used %= columns + 1;
        }
    }

    /// Returns the form of a line that starts with this indentation and word.
    fn form_of(&mut self, indentation: &str, word: &str) -> LineForm {
        let indent = indentation.chars().fold(0, advance);
        let marker = marker_width(word);
        let is_code = indent >= CODE_INDENT && !self.is_in_list;
        self.is_in_list = marker > 0 && !is_code || self.is_in_list && indent > 0;
        if let Some(fence) = CodeFence::parse(word) {
            self.fence = Some(fence);
            return LineForm::Raw { start: String::new() };
        }
        if is_code || word.starts_with('|') {
            return LineForm::Raw { start: String::new() };
        }
        let hanging = if word == ">" { format!("{indentation}> ") } else { " ".repeat(indent + marker) };
        // Do not hang if that would leave less than half of the row.
        let fits = self.columns.is_some_and(|columns| 2 * width::columns(&hanging) <= columns);
        LineForm::Words { hanging: if fits { hanging } else { String::new() } }
    }
}

impl CodeFence {
    /// Parses the fence at the start of a line.
    fn parse(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let length = line.chars().take_while(|character| *character == mark).count();
        (length >= 3).then_some(Self { mark, length })
    }
}

/// Returns the width of a list marker and the blank after it, or 0 for any other word.
fn marker_width(word: &str) -> usize {
    let is_number = |number: &str| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    match word.strip_suffix(['.', ')']) {
        Some(number) if is_number(number) => word.len() + 1,
        _ if matches!(word, "-" | "*" | "+" | "•") => 2,
        _ => 0,
    }
}

/// Returns the column after a blank.
fn advance(column: usize, blank: char) -> usize {
    if blank == '\t' { column + TAB - column % TAB } else { column + width::char_columns(blank) }
}

/// Sanitizes and wraps a complete text.
pub(crate) fn wrap(text: &str, columns: Option<usize>) -> String {
    let mut wrapper = WordWrapper::default();
    wrapper.set_columns(columns);
    wrapper.push(text) + &wrapper.end()
}

#[cfg(test)]
mod tests;
