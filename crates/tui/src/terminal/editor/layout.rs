//! Rows that show a text.

use super::buffer::Element;
use crate::render::width;
use crate::render::{Face, StyledLine};

/// Rows that show a text at some width. After a full row, the cursor is in the next column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) rows: Vec<StyledLine>,
    /// Row and column of the cursor.
    pub(crate) cursor: (usize, usize),
    /// Row and column of each element, and of the end.
    places: Vec<(usize, usize)>,
}

impl Layout {
    pub(super) fn new(elements: &[Element], cursor: usize, columns: usize) -> Self {
        let columns = columns.max(1);
        let mut rows = vec![StyledLine::default()];
        let mut used = 0;
        let mut places = Vec::with_capacity(elements.len() + 1);
        for element in elements {
            let is_full = used + width::columns(&element.render(used)) > columns;
            if used > 0 && is_full && !element.is_line_end() {
                rows.push(StyledLine::default());
                used = 0;
            }
            places.push((rows.len() - 1, used));
            if element.is_line_end() {
                rows.push(StyledLine::default());
                used = 0;
                continue;
            }
            let shown = width::truncate(&element.render(used), columns);
            used += width::columns(&shown);
            let face = if element.is_fold() { Face::DIM } else { Face::PLAIN };
            if let Some(row) = rows.last_mut() {
                row.push(shown, face);
            }
        }
        places.push((rows.len() - 1, used));
        let cursor = places.get(cursor).copied().unwrap_or_default();
        Self { rows, cursor, places }
    }

    /// Returns the layout with blanks before each row.
    pub(super) fn indented(mut self, columns: usize) -> Self {
        for row in &mut self.rows {
            let text = std::mem::replace(row, StyledLine::plain(" ".repeat(columns)));
            row.append(text);
        }
        self.cursor.1 += columns;
        for place in &mut self.places {
            place.1 += columns;
        }
        self
    }

    /// Returns the index of the element after the cursor when it moves one row up or down, or `None` beyond the text.
    pub(super) fn cursor_in_next_row(&self, down: bool, column: usize) -> Option<usize> {
        let row = if down { self.cursor.0 + 1 } else { self.cursor.0.checked_sub(1)? };
        let in_row = self.places.iter().enumerate().filter(|(_, place)| place.0 == row);
        in_row.min_by_key(|(_, place)| place.1.abs_diff(column)).map(|(index, _)| index)
    }
}
