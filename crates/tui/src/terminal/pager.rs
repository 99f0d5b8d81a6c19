//! Pager for text that is too long for the conversation, on the alternate screen.

use super::keys::{Input, Key, KeyCode};
use crate::render::{Face, Margins, StyledLine, TerminalSize, break_anywhere};

/// Lines to look through.
#[derive(Clone, Debug)]
pub(crate) struct Pager {
    lines: Vec<StyledLine>,
    /// Rows of the lines at the current width.
    rows: Vec<StyledLine>,
    size: TerminalSize,
    /// Row at the top.
    top: usize,
    /// Text to search for.
    search: String,
    /// Whether the search text is being written.
    is_writing: bool,
    has_failed: bool,
}

impl Pager {
    /// Creates a pager that shows the end of the lines.
    pub(crate) fn new(lines: Vec<StyledLine>, size: TerminalSize) -> Self {
        let mut pager = Self {
            lines,
            rows: Vec::new(),
            size,
            top: 0,
            search: String::new(),
            is_writing: false,
            has_failed: false,
        };
        pager.resize(size);
        pager.top = pager.last_top();
        pager
    }

    /// Handles a change of the window size. The line at the top stays there approximately.
    pub(crate) fn resize(&mut self, size: TerminalSize) {
        let share = self.top as u64 * self.lines.len() as u64 / self.rows.len().max(1) as u64;
        let columns = size.columns.saturating_sub(1).max(1);
        let line_rows = |line: &StyledLine| break_anywhere(line, columns, &Margins::default());
        let before = self.lines.iter().take(usize::try_from(share).unwrap_or(0));
        let top = before.map(|line| line_rows(line).len()).sum();
        self.rows = self.lines.iter().flat_map(line_rows).collect();
        self.size = size;
        self.top = self.last_top().min(top);
    }

    fn height(&self) -> usize {
        self.size.rows.saturating_sub(1).max(1)
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height())
    }

    /// Handles terminal input. Returns whether the pager stays open.
    pub(crate) fn input(&mut self, input: &Input) -> bool {
        match input {
            Input::Key(key) if self.is_writing => {
                self.write(*key);
                true
            }
            Input::Key(key) => self.key(*key),
            Input::Paste(_) | Input::Burst(_) | Input::Background(_) => true,
        }
    }

    fn write(&mut self, key: Key) {
        if let KeyCode::Char(character) = key.code
            && !key.modifiers.ctrl
            && !key.modifiers.alt
        {
            self.search.push(character);
        } else if key.code == KeyCode::Backspace {
            self.search.pop();
        } else if key.code == KeyCode::Enter {
            self.is_writing = false;
            self.find(true);
        } else if key.code == KeyCode::Escape {
            self.is_writing = false;
        }
    }

    fn key(&mut self, key: Key) -> bool {
        let page = self.height().saturating_sub(1).max(1);
        let character = match key.code {
            KeyCode::Char(character) if !key.modifiers.alt => Some((character, key.modifiers.ctrl)),
            KeyCode::Up => Some(('k', false)),
            KeyCode::Down | KeyCode::Enter => Some(('j', false)),
            KeyCode::PageUp => Some(('b', false)),
            KeyCode::PageDown => Some((' ', false)),
            KeyCode::Home => Some(('g', false)),
            KeyCode::End => Some(('G', false)),
            KeyCode::Escape => Some(('q', false)),
            KeyCode::Char(_)
            | KeyCode::Tab
            | KeyCode::Backspace
            | KeyCode::Left
            | KeyCode::Right
            | KeyCode::Insert
            | KeyCode::Delete
            | KeyCode::Function(_) => None,
        };
        match character {
            Some(('q', false) | ('c' | 't', true)) => return false,
            Some(('k', false)) => self.top = self.top.saturating_sub(1),
            Some(('j', false)) => self.top = self.last_top().min(self.top + 1),
            Some(('b', _)) => self.top = self.top.saturating_sub(page),
            Some((' ', false) | ('f', true)) => self.top = self.last_top().min(self.top + page),
            Some(('g', false)) => self.top = 0,
            Some(('G', false)) => self.top = self.last_top(),
            Some(('/', false)) => {
                self.search.clear();
                self.is_writing = true;
            }
            Some(('n', false)) => self.find(true),
            Some(('N', false)) => self.find(false),
            Some(_) | None => {}
        }
        true
    }

    /// Moves to the next or the previous row that contains the search text, regardless of case.
    fn find(&mut self, forward: bool) {
        let text = self.search.to_lowercase();
        if text.is_empty() {
            return;
        }
        let has =
            |row: &usize| self.rows.get(*row).is_some_and(|row| row.text().to_lowercase().contains(&text));
        let found = if forward {
            (self.top + 1..self.rows.len()).chain(0..=self.top).find(has)
        } else {
            (0..self.top).rev().chain((self.top..self.rows.len()).rev()).find(has)
        };
        self.has_failed = found.is_none();
        if let Some(row) = found {
            self.top = row.min(self.rows.len().saturating_sub(1));
        }
    }

    /// Returns the rows of the screen.
    pub(crate) fn visible_rows(&self) -> Vec<StyledLine> {
        let columns = self.size.columns.saturating_sub(1).max(1);
        let height = self.height();
        let mut rows: Vec<StyledLine> = self.rows.iter().skip(self.top).take(height).cloned().collect();
        rows.resize(height, StyledLine::default());
        let end = self.rows.len().min(self.top + height);
        let text = if self.is_writing {
            format!("/{}", self.search)
        } else if self.has_failed {
            format!("no row has {}", self.search)
        } else {
            format!("q closes · / searches · rows {} to {end} of {}", self.top + 1, self.rows.len())
        };
        rows.push(StyledLine::new(text, Face::REVERSED).truncated(columns));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::keys::Decoder;

    fn pager(count: usize) -> Pager {
        let lines = (0..count).map(|number| StyledLine::plain(format!("line {number}"))).collect();
        Pager::new(lines, TerminalSize { columns: 20, rows: 5 })
    }

    fn press(pager: &mut Pager, keys: &str) -> bool {
        let mut decoder = Decoder::default();
        let mut inputs = decoder.push(keys.as_bytes());
        inputs.extend(decoder.flush());
        inputs.iter().all(|input| pager.input(input))
    }

    fn first(pager: &Pager) -> String {
        pager.visible_rows()[0].text()
    }

    #[test]
    fn keys_move_and_search() {
        let mut pager = pager(100);
        assert_eq!(first(&pager), "line 96", "the end comes first");
        for (keys, expected) in [
            ("g", "line 0"),
            ("j", "line 1"),
            (" ", "line 4"),
            ("\x1b[6~\x1b[B", "line 8"),
            ("\x1b[5~k", "line 4"),
            ("/LINE 2\r", "line 20"),
            ("n", "line 21"),
            ("N", "line 20"),
            ("/nothing\r", "line 20"),
            ("G", "line 96"),
        ] {
            assert!(press(&mut pager, keys));
            assert_eq!(first(&pager), expected, "{keys:?}");
        }
        for keys in ["q", "\x1b", "\x03", "\x14"] {
            assert!(!press(&mut pager, keys), "{keys:?} closes");
        }
    }

    #[test]
    fn few_lines_and_small_windows_are_shown() {
        let few = pager(2);
        let shown: Vec<String> = few.visible_rows().iter().map(StyledLine::text).collect();
        assert_eq!(shown, ["line 0", "line 1", "", "", "q closes · / searc…"]);
        let mut none = pager(0);
        assert!(press(&mut none, "jk /x\rnN"));
        none.resize(TerminalSize { columns: 1, rows: 1 });
        assert_eq!(none.visible_rows().len(), 2);
        let mut long =
            Pager::new(vec![StyledLine::plain("x".repeat(100))], TerminalSize { columns: 11, rows: 4 });
        assert_eq!(long.rows.len(), 10);
        long.resize(TerminalSize { columns: 51, rows: 4 });
        assert_eq!((long.rows.len(), long.top), (2, 0));
    }
}
