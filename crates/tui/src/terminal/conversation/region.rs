//! The live region: incomplete text, activity, questions, the editor and the status line.

use std::time::Duration;

use super::Conversation;
use crate::render::{Colour, Face, StyledLine, TerminalSize, one_line, plural};
use crate::terminal::painter::Region;

/// Prefix of the first row of the editor.
const PROMPT: &str = "› ";

/// Shown while the editor is empty.
const PLACEHOLDER: &str = "say what to do · /help lists keys and commands";

/// Height of a window below which the region has no room for the details of a call.
const LOW: usize = 20;

/// Maximum number of rows for queued messages.
const MOST_QUEUED: usize = 5;

/// Minimum width of a window with a region.
const MIN_COLUMNS: usize = 8;

/// Minimum number of rows that are available to the region.
const MIN_ROWS: usize = 4;

/// Returns the width of lines. Terminals differ in how they treat the last column.
pub(super) fn columns(size: TerminalSize) -> usize {
    size.columns.saturating_sub(1).max(1)
}

/// Returns the width of the editor. The cursor may be after a full row.
pub(super) fn editor_columns(size: TerminalSize) -> usize {
    columns(size).saturating_sub(PROMPT.chars().count() + 1).max(1)
}

/// Returns the maximum number of rows for the details of a call.
pub(super) fn most_details(size: TerminalSize) -> usize {
    if size.rows < LOW { 0 } else { size.rows / 4 }
}

impl Conversation {
    /// Returns the region, which takes at most half of the screen.
    pub(super) fn region(&self, now: Duration) -> Region {
        let size = self.size;
        let most = (size.rows / 2).max(MIN_ROWS).min(size.rows.saturating_sub(1));
        if size.columns < MIN_COLUMNS || most == 0 {
            return Region::default();
        }
        let columns = columns(size);
        let mut below: Vec<StyledLine> = self.hint_line().into_iter().collect();
        below.push(self.status.line(columns));
        // The editor has priority, then the status line, then the hint.
        while !below.is_empty() && below.len() >= most {
            below.remove(0);
        }
        let room = most - below.len();
        let is_deciding = self.approvals.is_focused();
        let is_asking = !self.approvals.is_empty() || !self.questions.is_empty();
        let share = if !is_asking { room.div_ceil(2) } else { room.div_ceil(3) };
        let (editor, editor_cursor) = self.editor_rows(share.max(1));
        let room = room - editor.len();
        let menu = self.menu.as_ref().map(|menu| menu.rows(room)).unwrap_or_default();
        let room = room - menu.len();
        let (approvals, approval_cursor) = self.approvals.rows(columns, room, most_details(size));
        let mut asked: Vec<StyledLine> = approvals.into_iter().take(room).collect();
        let (questions, answer_cursor) = self.questions.rows(columns, room - asked.len());
        let before_questions = asked.len();
        asked.extend(questions.into_iter().take(room - before_questions));
        let queued = self.queued_rows((room - asked.len()) / 2);
        let mut rows = self.activity_rows(now, room - asked.len() - queued.len());
        let above = rows.len();
        let cursor = if is_deciding {
            approval_cursor.map(|(row, column)| (above + row, column))
        } else if let Some((row, column)) = answer_cursor.filter(|_| self.questions.is_focused()) {
            Some((above + before_questions + row, column))
        } else {
            Some((above + asked.len() + queued.len() + editor_cursor.0, editor_cursor.1))
        };
        rows.extend(asked);
        rows.extend(queued);
        rows.extend(editor);
        rows.extend(menu);
        rows.extend(below);
        let rows: Vec<StyledLine> = rows.into_iter().map(|row| row.truncated(columns)).collect();
        let cursor = cursor.map(|(row, column)| (row.min(rows.len().saturating_sub(1)), column.min(columns)));
        Region { rows, cursor }
    }

    /// Sets the texts of the queued messages, in the order in which they are handled.
    pub(crate) fn set_queued(&mut self, queued: Vec<String>) {
        self.status.queued = queued.len();
        self.queued = queued;
    }

    /// Returns a row for each queued message, with its first line. If there are more messages than rows, the last row has the
    /// number of the others.
    fn queued_rows(&self, most: usize) -> Vec<StyledLine> {
        let most = most.min(MOST_QUEUED);
        let count = self.queued.len();
        let shown = if count > most { most.saturating_sub(1) } else { count };
        let row = |text: &String| {
            StyledLine::new(format!("  queued: {}", one_line(text, self.size.columns)), Face::DIM)
        };
        let mut rows: Vec<StyledLine> = self.queued.iter().take(shown).map(row).collect();
        if shown < count && most > 0 {
            let more = plural((count - shown) as u64, "more message");
            rows.push(StyledLine::new(format!("  queued: … {more}"), Face::DIM));
        }
        rows
    }

    /// Returns the newest rows of incomplete text and of activity, each followed by a blank row.
    fn activity_rows(&self, now: Duration, most: usize) -> Vec<StyledLine> {
        let size = TerminalSize { rows: most.max(1), ..self.size };
        let mut rows = self.transcript.preview();
        if !rows.is_empty() || !self.transcript.is_empty() {
            rows.push(StyledLine::default());
        }
        let mut activity = self.activity.lines(now, size);
        activity.extend(self.activity.plan_lines(most / 2));
        if !activity.is_empty() {
            rows.extend(activity);
            rows.push(StyledLine::default());
        }
        let first = rows.len().saturating_sub(most);
        rows.split_off(first)
    }

    /// Returns the rows of the editor around the cursor, and the position of the cursor in them.
    fn editor_rows(&self, most: usize) -> (Vec<StyledLine>, (usize, usize)) {
        if let Some(search) = &self.search {
            let (mut rows, cursor) = search.rows();
            rows.truncate(most);
            return (rows, cursor);
        }
        let indent = PROMPT.chars().count();
        let face = Face::coloured(Colour::Cyan).and(Face::BOLD);
        if self.editor.is_empty() {
            let row = StyledLine::new(PROMPT, face).and(PLACEHOLDER, Face::DIM);
            return (vec![row], (0, indent));
        }
        let layout = self.editor.layout(editor_columns(self.size));
        let (row, column) = layout.cursor;
        let first = (row + 1).saturating_sub(most);
        let rows = layout.rows.into_iter().enumerate().skip(first).take(most).map(|(index, row)| {
            let mut line = if index == 0 { StyledLine::new(PROMPT, face) } else { StyledLine::plain("  ") };
            line.append(row);
            line
        });
        (rows.collect(), (row - first, indent + column))
    }
}
