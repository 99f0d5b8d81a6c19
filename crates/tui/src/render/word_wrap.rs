//! Word wrapping of streamed Markdown text. Code, tables and indentation keep their form.

use std::mem;

use pintle_host::sanitize::Sanitizer;

use super::line::StyledLine;
use super::markdown::block::{Block, CODE_INDENT, Fence};
use super::width;
use super::wrap::{Breaks, Rows, Word, advance, is_blank};

/// Bytes kept of a line of code to detect a closing fence.
const MAX_FENCE_LINE: usize = 80;

/// Sanitizes streamed text and wraps it at a width, if one is set. Holds back a word until it is complete.
#[derive(Debug, Default)]
pub struct WordWrapper {
    sanitizer: Sanitizer,
    /// Width at which lines are wrapped, if any.
    columns: Option<usize>,
    /// Columns that are used before the line starts.
    indent: usize,
    breaks: Breaks,
    /// Pending blanks before the word.
    gap: String,
    /// Incomplete word.
    word: String,
    line: LineForm,
    fence: Option<Fence>,
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
    /// Words to wrap.
    Words(Rows),
    /// Verbatim: code or a table. The start of the line is kept to detect a closing fence.
    Raw { start: String },
}

impl WordWrapper {
    /// Sets the width at which lines are wrapped from now on.
    pub fn set_columns(&mut self, columns: Option<usize>) {
        self.columns = columns.filter(|columns| *columns > 0);
        if let (Some(columns), LineForm::Words(rows)) = (self.columns, &mut self.line) {
            rows.resize(columns);
        }
    }

    /// Appends text and returns the output that is complete.
    pub fn push(&mut self, text: &str) -> String {
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
        (self.indent, self.is_open) = (columns, true);
    }

    /// Ends the text and returns the rest of the output. The next text starts a line.
    pub fn end(&mut self) -> String {
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
        if self.breaks.may_break_before(character) {
            // The first word determines the form of the line.
            self.flush_word(out);
        }
        if let LineForm::Raw { start } = &mut self.line {
            if start.len() < MAX_FENCE_LINE {
                start.push(character);
            }
            out.push(character);
        } else if is_blank(character) {
            self.gap.push(character);
        } else {
            self.word.push(character);
        }
    }

    fn end_line(&mut self, out: &mut String) {
        self.flush_word(out);
        self.gap.clear();
        if let LineForm::Raw { start } = mem::take(&mut self.line) {
            self.fence.take_if(|fence| fence.is_closed_by(&start));
        }
        (self.breaks, self.indent) = (Breaks::default(), 0);
        out.push('\n');
    }

    /// Writes the word, on a new row if the current one is full.
    fn flush_word(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (mut gap, word) = (mem::take(&mut self.gap), mem::take(&mut self.word));
        if let LineForm::Unknown = self.line {
            self.line = self.form_of(&gap, &word);
            if let LineForm::Words(_) = self.line {
                // The rows start with these blanks.
                gap.clear();
            }
        }
        if let LineForm::Words(rows) = &mut self.line {
            if !gap.is_empty() {
                rows.push(Word::plain(gap));
            }
            rows.push(Word::plain(word));
            out.push_str(&rows.take_text());
        } else {
            out.push_str(&gap);
            out.push_str(&word);
        }
    }

    /// Returns the form of a line that starts with this indentation and word.
    fn form_of(&mut self, indentation: &str, word: &str) -> LineForm {
        let columns = self.columns.unwrap_or(usize::MAX);
        let indent = indentation.chars().fold(0, advance);
        let is_code = indent >= CODE_INDENT && !self.is_in_list;
        let start = format!("{word} ");
        let block = Block::parse(&start);
        self.is_in_list = matches!(block, Block::Item { .. }) && !is_code || self.is_in_list && indent > 0;
        let hanging = match block {
            Block::Fence(fence) => {
                self.fence = Some(fence);
                return LineForm::Raw { start: String::new() };
            }
            Block::Row(_) => return LineForm::Raw { start: String::new() },
            _ if is_code => return LineForm::Raw { start: String::new() },
            Block::Quote(_) => format!("{indentation}> "),
            Block::Item { marker, .. } => " ".repeat(indent + width::columns(&marker) + 1),
            Block::Blank | Block::Rule | Block::Heading { .. } | Block::Code(_) | Block::Words { .. } => {
                " ".repeat(indent)
            }
        };
        // Do not hang if that would leave less than half of the row.
        let fits = 2 * width::columns(&hanging) <= columns;
        let margin = if fits { StyledLine::plain(hanging) } else { StyledLine::default() };
        LineForm::Words(Rows::streamed(columns, self.indent, indentation, margin))
    }
}

/// Sanitizes and wraps a complete text.
pub(crate) fn wrap(text: &str, columns: Option<usize>) -> String {
    let mut wrapper = WordWrapper::default();
    wrapper.set_columns(columns);
    wrapper.push(text) + &wrapper.end()
}

#[cfg(test)]
mod tests;
