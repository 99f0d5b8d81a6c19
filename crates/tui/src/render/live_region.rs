//! Live region: lines below the transcript that are redrawn.

use super::style::Style;

/// Size of a terminal in cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Number of columns.
    pub columns: usize,
    /// Number of rows.
    pub rows: usize,
}

/// Lines below the transcript.
///
/// After every update the cursor is at the start of the region, which is where the transcript continues. Erasing below the
/// cursor therefore erases the region even if the terminal was narrowed and has wrapped it. No other terminal state is
/// tracked, and no terminal mode outlives an update.
#[derive(Debug, Default)]
pub(super) struct LiveRegion {
    lines: Vec<String>,
}

/// Moves to the start of the line and erases everything below.
const ERASE: &str = "\r\x1b[J";

/// Returns the output that erases a region that may be drawn, for code that writes to the terminal between two updates.
pub(crate) fn erase_live_region(style: Style) -> &'static str {
    // The cursor is at the start of the region. An open line before it is kept.
    if style.moves { "\x1b[J" } else { "" }
}

impl LiveRegion {
    /// Returns whether the region has lines.
    pub(super) fn is_drawn(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Returns the output that appends `text` to the transcript and draws `lines` below it.
    ///
    /// `lines` must be empty if `text` ends within a line. They must fit the width and the height of the terminal.
    pub(super) fn update(&mut self, text: &str, lines: Vec<String>) -> String {
        if text.is_empty() && lines == self.lines {
            return String::new();
        }
        let mut output = String::new();
        if self.is_drawn() && (lines.is_empty() || !text.is_empty()) {
            output.push_str(ERASE);
        }
        output.push_str(text);
        output.push_str(&draw(&lines));
        self.lines = lines;
        output
    }
}

/// Draws over the current lines and moves back to the first. Turns off wrapping meanwhile, in case the terminal computes
/// larger widths.
fn draw(lines: &[String]) -> String {
    let Some((last, before)) = lines.split_last() else { return String::new() };
    let mut output = "\x1b[?7l\r".to_owned();
    for line in before {
        output.push_str(line);
        output.push_str("\x1b[K\n");
    }
    output.push_str(last);
    output.push_str("\x1b[J\x1b[?7h");
    if !before.is_empty() {
        output.push_str(&format!("\x1b[{}A", before.len()));
    }
    output.push('\r');
    output
}
