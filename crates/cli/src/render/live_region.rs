//! The end of a terminal's text: lines that change, below a transcript that only grows.

/// How many columns and rows a terminal has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    /// Characters of a line.
    pub(crate) columns: usize,
    /// Lines.
    pub(crate) rows: usize,
}

/// Knows which lines stand below the transcript.
///
/// After every change the cursor stands where the first of these lines begins, or where the transcript goes on. So
/// they are erased by erasing whatever is below the cursor, however many rows they take by now: a terminal that was
/// made narrower may have wrapped them. Nothing else is remembered of the terminal, and no mode of it is left changed.
#[derive(Debug, Default)]
pub(super) struct LiveRegion {
    drawn: Vec<String>,
}

/// To the beginning of the line, and erase all that is below.
const ERASE: &str = "\r\x1b[J";

impl LiveRegion {
    /// Whether there are lines below the transcript.
    pub(super) fn is_drawn(&self) -> bool {
        !self.drawn.is_empty()
    }

    /// What adds `text` to the transcript and has `lines` below it. There must be none below text whose last line is
    /// open, none may be wider than the terminal, and they must not be more than fit on it.
    pub(super) fn update(&mut self, text: &str, lines: Vec<String>) -> String {
        if text.is_empty() && lines == self.drawn {
            return String::new();
        }
        let mut shown = String::new();
        if self.is_drawn() && (lines.is_empty() || !text.is_empty()) {
            shown.push_str(ERASE);
        }
        shown.push_str(text);
        shown.push_str(&draw(&lines));
        self.drawn = lines;
        shown
    }
}

/// Draws over what stands there and goes back to the beginning. The terminal must not wrap what it takes for wider
/// than we do.
fn draw(lines: &[String]) -> String {
    let Some((last, before)) = lines.split_last() else { return String::new() };
    let mut shown = "\x1b[?7l\r".to_owned();
    for line in before {
        shown.push_str(line);
        shown.push_str("\x1b[K\n");
    }
    shown.push_str(last);
    shown.push_str("\x1b[J\x1b[?7h");
    if !before.is_empty() {
        shown.push_str(&format!("\x1b[{}A", before.len()));
    }
    shown.push('\r');
    shown
}
