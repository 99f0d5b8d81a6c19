//! Prints lines above a live region, and redraws the region where it changed.
//!
//! The painter knows no absolute position on the screen, only the position of the cursor within the region. To print lines
//! above the region, it moves the region down by inserting lines. It first makes room below with line feeds, which scroll
//! the transcript into the scrollback if the region is at the bottom of the screen. It erases no row of the region for
//! that, and writes only rows that differ from the screen.
//!
//! After a change of the window width, terminals that reflow have broken long rows into several. The painter computes their
//! number above the cursor from the widths of the rows. Then it erases and redraws the region.

use std::fmt::Write as _;

use crate::render::TerminalSize;
use crate::render::{Depth, StyledLine};
use crate::terminal::keys::Background;

/// Size and capabilities of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) size: TerminalSize,
    pub(crate) depth: Depth,
    /// Whether the terminal reflows rows when its width changes.
    pub(crate) reflows: bool,
    /// Whether the cursor can be moved. Otherwise only lines are printed, as text.
    pub(crate) moves: bool,
}

/// Rows of the live region, from the top, and the cursor in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Region {
    /// Each row is narrower than the screen.
    pub(crate) rows: Vec<StyledLine>,
    /// Row and column. Without it, the cursor is hidden.
    pub(crate) cursor: Option<(usize, usize)>,
}

/// Painter of one terminal.
#[derive(Debug)]
pub(crate) struct Painter {
    screen: Screen,
    /// Rows on the screen.
    rows: Vec<Row>,
    /// Row of the terminal's cursor, from the top of the region.
    row: usize,
    /// Column of the terminal's cursor; `None` after text, whose width terminals may disagree about.
    column: Option<usize>,
    is_cursor_shown: bool,
}

/// Row on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Row {
    /// Output that shows the row.
    shown: String,
    columns: usize,
}

/// Start and end of a synchronized update.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

const HIDE_CURSOR: &str = "\x1b[?25l";
const SHOW_CURSOR: &str = "\x1b[?25h";

/// Erases from the cursor to the end of the screen.
const ERASE_BELOW: &str = "\x1b[J";

/// Erases from the cursor to the end of the row.
const ERASE_REST: &str = "\x1b[K";

impl Painter {
    /// Creates a painter. The cursor must be at the start of an empty row.
    pub(crate) fn new(screen: Screen) -> Self {
        Self { screen, rows: Vec::new(), row: 0, column: Some(0), is_cursor_shown: true }
    }

    /// Returns the supported colours.
    pub(crate) fn depth(&self) -> Depth {
        self.screen.depth
    }

    /// Sets the background of the terminal, if colours are shown. The next update redraws the rows whose faces change.
    pub(crate) fn set_background(&mut self, background: Background) {
        if !matches!(self.screen.depth, Depth::Plain | Depth::Monochrome) {
            self.screen.depth = match background {
                Background::Dark => Depth::OnDark,
                Background::Light => Depth::OnLight,
            };
        }
    }

    /// Returns the output that prints lines above the region and draws the new region. Both must be narrower than the
    /// screen, and the region less tall.
    pub(crate) fn paint(&mut self, printed: &[StyledLine], region: &Region) -> String {
        if !self.screen.moves {
            return printed.iter().map(|line| line.to_terminal(Depth::Plain) + "\n").collect();
        }
        let mut out = String::new();
        self.shorten(region.rows.len(), &mut out);
        let room = self.screen.size.rows.saturating_sub(self.rows.len()).max(1);
        for lines in printed.chunks(room) {
            self.print(lines, &mut out);
        }
        self.draw(&region.rows, &mut out);
        match region.cursor {
            Some((row, column)) => {
                self.move_to(row, column, &mut out);
                self.show_cursor(true, &mut out);
            }
            None => self.show_cursor(false, &mut out),
        }
        if out.is_empty() { out } else { format!("{BEGIN}{out}{END}") }
    }

    /// Returns the output that erases the region after a change of the window's size.
    pub(crate) fn resize(&mut self, size: TerminalSize) -> String {
        if size == self.screen.size {
            return String::new();
        }
        let columns = size.columns.max(1);
        let rows_of = |width: usize| if self.screen.reflows { width.div_ceil(columns).max(1) } else { 1 };
        let above: usize = self.rows.iter().take(self.row).map(|row| rows_of(row.columns)).sum();
        let within = if self.screen.reflows { self.column.unwrap_or(0) / columns } else { 0 };
        self.screen.size = size;
        self.row = above + within;
        self.erase()
    }

    /// Returns the output that erases the region and moves the cursor to its start.
    pub(crate) fn erase(&mut self) -> String {
        if !self.screen.moves {
            return String::new();
        }
        let mut out = String::new();
        self.move_to(0, 0, &mut out);
        out.push_str(ERASE_BELOW);
        self.show_cursor(true, &mut out);
        self.rows.clear();
        out
    }

    /// Forgets the region, because another program has written to the terminal and left the cursor at the start of a row.
    pub(crate) fn forget(&mut self) {
        self.rows.clear();
        (self.row, self.column) = (0, Some(0));
        self.is_cursor_shown = true;
    }

    /// Prints lines, which must fit on the screen beside the region.
    fn print(&mut self, lines: &[StyledLine], out: &mut String) {
        self.show_cursor(false, out);
        if let Some(last) = self.rows.len().checked_sub(1) {
            self.move_to(last, 0, out);
            let count = lines.len();
            let _ = write!(out, "{}\x1b[{}A\x1b[{count}L", "\n".repeat(count), count + last);
        } else {
            self.move_to(0, 0, out);
        }
        for line in lines {
            out.push_str(&line.to_terminal(self.screen.depth));
            out.push_str("\r\n");
        }
        (self.row, self.column) = (0, Some(0));
    }

    /// Draws the rows that differ from those on the screen.
    fn draw(&mut self, rows: &[StyledLine], out: &mut String) {
        for (index, line) in rows.iter().enumerate() {
            let row = Row { shown: line.to_terminal(self.screen.depth), columns: line.columns() };
            let previous = self.rows.get(index);
            if previous == Some(&row) {
                continue;
            }
            let is_shorter = previous.is_some_and(|previous| previous.columns > row.columns);
            self.show_cursor(false, out);
            self.move_to(index, 0, out);
            out.push_str(&row.shown);
            self.column = None;
            if is_shorter {
                out.push_str(ERASE_REST);
            }
            match self.rows.get_mut(index) {
                Some(previous) => *previous = row,
                None => self.rows.push(row),
            }
        }
    }

    /// Erases the rows after the first `rows`.
    fn shorten(&mut self, rows: usize, out: &mut String) {
        if rows < self.rows.len() {
            self.show_cursor(false, out);
            self.move_to(rows, 0, out);
            out.push_str(ERASE_BELOW);
            self.rows.truncate(rows);
        }
    }

    /// Moves the cursor within the region, or to the row below it. That row is created if the screen ends there.
    fn move_to(&mut self, row: usize, column: usize, out: &mut String) {
        if row > self.row {
            out.push('\r');
            out.push_str(&"\n".repeat(row - self.row));
            self.column = Some(0);
        } else if row < self.row {
            let _ = write!(out, "\x1b[{}A", self.row - row);
        }
        if self.column != Some(column) {
            out.push('\r');
            if column > 0 {
                let _ = write!(out, "\x1b[{column}C");
            }
        }
        (self.row, self.column) = (row, Some(column));
    }

    fn show_cursor(&mut self, shown: bool, out: &mut String) {
        if self.is_cursor_shown != shown {
            out.push_str(if shown { SHOW_CURSOR } else { HIDE_CURSOR });
            self.is_cursor_shown = shown;
        }
    }
}

#[cfg(test)]
mod tests;
