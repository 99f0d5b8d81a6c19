//! Turns streamed Markdown into rows.
//!
//! Each line of the text is final once its end has arrived, so printed rows never change. Only tables and code are held
//! back: the column widths of a table depend on all rows, and code waits for the grammar of its language. Both are bounded.
//! An incomplete line can be previewed.
//!
//! Lines are independent: emphasis does not extend over a line end, and a line of dashes is a rule, not the underline of a
//! heading.

pub(super) mod block;
mod highlight;
mod inline;
mod table;

use pintle_host::sanitize::Sanitizer;

use self::block::{Block, Fence};
use self::highlight::Highlighter;
use self::table::Table;
use super::line::{Face, StyledLine};
use super::wrap::{self, Margins, expand_tabs};

/// Maximum length of a line that is buffered until its end. A longer line continues in a new row.
const MAX_LINE: usize = 4 << 10;

/// Maximum number of code lines that wait for the grammar of their language.
const MAX_WAITING: usize = 100;

/// Minimum width of a quotation, in columns. A narrower quotation is shown as written.
const MIN_QUOTE: usize = 8;

/// Formatter for one text.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    sanitizer: Sanitizer,
    /// Incomplete last line.
    pending: String,
    /// Whether the incomplete line continues a line that was too long.
    is_continued: bool,
    code: Option<Code>,
    table: Option<Table>,
}

/// Code block that has not ended.
#[derive(Debug)]
struct Code {
    fence: Fence,
    highlighter: Highlighter,
    /// Lines that are not coloured yet.
    waiting: Vec<String>,
}

impl Code {
    fn new(fence: Fence) -> Self {
        Self { highlighter: Highlighter::new(fence.language()), fence, waiting: Vec::new() }
    }

    /// Appends a line and returns the rows that are final.
    fn push(&mut self, line: &str, columns: usize) -> Vec<StyledLine> {
        self.waiting.push(expand_tabs(line));
        let waits = self.waiting.len() <= MAX_WAITING && !self.highlighter.is_ready();
        if waits { Vec::new() } else { self.take(columns) }
    }

    /// Returns the rows of the waiting lines.
    fn take(&mut self, columns: usize) -> Vec<StyledLine> {
        let lines = std::mem::take(&mut self.waiting).into_iter().map(|line| self.highlighter.line(&line));
        lines.flat_map(|line| wrap::break_anywhere(&line, columns, &Margins::default())).collect()
    }

    /// Returns the rows of lines that have not been printed, without colours.
    fn preview(&self, pending: &str, columns: usize) -> Vec<StyledLine> {
        let waiting = self.waiting.iter().map(|line| StyledLine::plain(line.as_str()));
        let line = StyledLine::plain(expand_tabs(pending));
        let line = if self.fence.is_closed_by(pending) { line.with_face(Face::DIM) } else { line };
        let pending = (!pending.is_empty()).then_some(line);
        let lines = waiting.chain(pending);
        lines.flat_map(|line| wrap::break_anywhere(&line, columns, &Margins::default())).collect()
    }
}

impl Markdown {
    /// Appends the next piece and returns the rows that are final.
    pub(crate) fn push(&mut self, piece: &str, columns: usize) -> Vec<StyledLine> {
        let mut sanitized = String::new();
        self.sanitizer.push(piece, &mut sanitized);
        let mut rows = Vec::new();
        self.take(&sanitized, columns, &mut rows);
        rows
    }

    /// Ends the text and returns the remaining rows.
    pub(crate) fn end(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut sanitized = String::new();
        self.sanitizer.end(&mut sanitized);
        let mut rows = Vec::new();
        self.take(&sanitized, columns, &mut rows);
        if !self.pending.is_empty() {
            self.end_line(columns, &mut rows);
        }
        rows.extend(self.code.take().into_iter().flat_map(|mut code| code.take(columns)));
        rows.extend(self.table.take().into_iter().flat_map(|table| table.rows(columns)));
        *self = Self::default();
        rows
    }

    /// Returns a preview of the rows that are not final.
    pub(crate) fn preview(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = self.table.as_ref().map(|table| table.rows(columns)).unwrap_or_default();
        if let Some(code) = &self.code {
            rows.extend(code.preview(&self.pending, columns));
        } else if !self.pending.is_empty() {
            rows.extend(self.line(&Block::parse(&self.pending), columns));
        }
        rows
    }

    fn take(&mut self, text: &str, columns: usize, rows: &mut Vec<StyledLine>) {
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            self.append(line, columns, rows);
            self.end_line(columns, rows);
            rest = after;
        }
        self.append(rest, columns, rows);
    }

    /// Appends to the incomplete line. While it is too long, its first part becomes a row.
    fn append(&mut self, text: &str, columns: usize, rows: &mut Vec<StyledLine>) {
        self.pending.push_str(text);
        while self.pending.len() > MAX_LINE {
            let limit = (0..=MAX_LINE).rev().find(|end| self.pending.is_char_boundary(*end)).unwrap_or(0);
            let blank = self.pending.get(..limit).and_then(|head| head.rfind(' '));
            let end = blank.map_or(limit, |blank| blank + 1);
            let rest = self.pending.split_off(end);
            self.end_line(columns, rows);
            (self.pending, self.is_continued) = (rest, true);
        }
    }

    fn end_line(&mut self, columns: usize, rows: &mut Vec<StyledLine>) {
        let line = std::mem::take(&mut self.pending);
        let is_continued = std::mem::take(&mut self.is_continued);
        if let Some(code) = &mut self.code {
            if is_continued || !code.fence.is_closed_by(&line) {
                rows.extend(code.push(&line, columns));
                return;
            }
            rows.extend(code.take(columns));
            let fence = StyledLine::new(expand_tabs(&line), Face::DIM);
            rows.extend(wrap::break_anywhere(&fence, columns, &Margins::default()));
            self.code = None;
            return;
        }
        let block = if is_continued { Block::Words { indent: 0, text: &line } } else { Block::parse(&line) };
        if let Block::Row(cells) = &block {
            let table = self.table.get_or_insert_default();
            table.push(cells);
            if table.is_full() {
                rows.extend(table.rows(columns));
                table.forget_rows();
            }
            return;
        }
        rows.extend(self.table.take().into_iter().flat_map(|table| table.rows(columns)));
        rows.extend(self.line(&block, columns));
        if let Block::Fence(fence) = block {
            self.code = Some(Code::new(fence));
        }
    }

    /// Returns the rows of a line that is not in a code block.
    fn line(&self, block: &Block<'_>, columns: usize) -> Vec<StyledLine> {
        match block {
            Block::Blank => vec![StyledLine::default()],
            Block::Rule => vec![StyledLine::new("─".repeat(columns.min(40)), Face::DIM)],
            Block::Heading { text } => {
                let heading = inline::line(text).with_face(Face { underlined: true, ..Face::BOLD });
                wrap::wrap(&heading, columns, &Margins::default())
            }
            Block::Fence(fence) => {
                let line = StyledLine::new(fence.line().to_owned(), Face::DIM);
                wrap::break_anywhere(&line, columns, &Margins::default())
            }
            Block::Code(text) => {
                wrap::break_anywhere(&StyledLine::plain(expand_tabs(text)), columns, &Margins::default())
            }
            Block::Item { indent, marker, text } => {
                let first = StyledLine::plain(" ".repeat(*indent)).and(format!("{marker} "), Face::PLAIN);
                let rest = StyledLine::plain(" ".repeat(first.columns()));
                wrap::wrap(&inline::line(text), columns, &Margins { first, rest })
            }
            Block::Quote(text) => {
                let margin = StyledLine::new("│ ", Face::DIM);
                let inner = columns.saturating_sub(margin.columns());
                if inner < MIN_QUOTE {
                    return wrap::wrap(&StyledLine::plain(format!("> {text}")), columns, &Margins::default());
                }
                let rows = self.line(&Block::parse(text), inner).into_iter();
                rows.map(|row| {
                    let mut quoted = margin.clone();
                    quoted.append(row.with_face(Face::DIM));
                    quoted
                })
                .collect()
            }
            Block::Row(cells) => {
                let mut table = Table::default();
                table.push(cells);
                table.rows(columns)
            }
            Block::Words { indent, text } => {
                wrap::wrap(&inline::line(text), columns, &Margins::blank(*indent))
            }
        }
    }
}

#[cfg(test)]
mod tests;
