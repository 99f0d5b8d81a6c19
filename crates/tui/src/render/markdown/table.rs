//! Tables.

use super::inline;
use crate::render::line::{Face, StyledLine};
use crate::render::wrap::{self, Margins};

/// Number of rows after which a table is shown before it ends.
const MAX_ROWS: usize = 200;

/// Minimum width of a column if the table is too wide.
const MIN_COLUMN: usize = 3;

/// Separator between two columns.
const GAP: &str = "  ";

/// Rows of a table.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<StyledLine>>,
    /// Whether the first row is the header.
    has_head: bool,
}

impl Table {
    /// Appends a row.
    pub(super) fn push(&mut self, cells: &[&str]) {
        let is_separator =
            |cell: &&str| cell.contains('-') && cell.chars().all(|character| matches!(character, '-' | ':'));
        if self.rows.len() == 1 && cells.iter().all(is_separator) {
            self.has_head = true;
        } else {
            self.rows.push(cells.iter().map(|cell| inline::line(&cell.replace("\\|", "|"))).collect());
        }
    }

    /// Returns whether the table has the maximum number of rows.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= MAX_ROWS
    }

    /// Removes all rows after they were shown.
    pub(super) fn forget_rows(&mut self) {
        *self = Self::default();
    }

    /// Returns the rows of the table in at most this many columns.
    pub(super) fn rows(&self, columns: usize) -> Vec<StyledLine> {
        let widths = self.widths(columns);
        let mut shown = Vec::new();
        for (index, cells) in self.rows.iter().enumerate() {
            let is_head = self.has_head && index == 0;
            shown.extend(row(cells, &widths, is_head));
            if is_head {
                let rules: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                shown.push(StyledLine::new(rules.join(GAP), Face::DIM));
            }
        }
        // If even the narrowest columns do not fit, rows are broken at the width.
        shown.into_iter().flat_map(|line| wrap::break_anywhere(&line, columns, &Margins::default())).collect()
    }

    /// Returns the width of each column. If the table is too wide, the widest columns shrink.
    fn widths(&self, columns: usize) -> Vec<usize> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |index: usize| {
            self.rows.iter().filter_map(|row| row.get(index)).map(StyledLine::columns).max().unwrap_or(0)
        };
        let mut widths: Vec<usize> = (0..count).map(widest).collect();
        let gaps = GAP.len() * count.saturating_sub(1);
        let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
        while excess > 0 {
            let Some(width) = widths.iter_mut().max().filter(|width| **width > MIN_COLUMN) else { break };
            *width -= 1;
            excess -= 1;
        }
        widths
    }
}

/// Returns the lines of a row.
fn row(cells: &[StyledLine], widths: &[usize], is_head: bool) -> Vec<StyledLine> {
    let wrapped: Vec<Vec<StyledLine>> = cells
        .iter()
        .zip(widths)
        .map(|(cell, width)| {
            let cell = if is_head { cell.clone().with_face(Face::BOLD) } else { cell.clone() };
            wrap::wrap(&cell, *width, &Margins::default())
        })
        .collect();
    let height = wrapped.iter().map(Vec::len).max().unwrap_or(1);
    let line = |number: usize| {
        let mut line = StyledLine::default();
        let mut blanks = 0;
        for (index, (cell, width)) in wrapped.iter().zip(widths).enumerate() {
            blanks += if index == 0 { 0 } else { GAP.len() };
            if let Some(part) = cell.get(number).filter(|part| !part.is_empty()) {
                line.push(" ".repeat(blanks), Face::PLAIN);
                blanks = width.saturating_sub(part.columns());
                line.append(part.clone());
            } else {
                blanks += width;
            }
        }
        line
    };
    (0..height).map(line).collect()
}
