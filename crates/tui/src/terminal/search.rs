//! Search in the input history.

use super::history::History;
use super::keys::{Key, KeyCode};
use crate::render::{Face, StyledLine};

/// Active search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Search {
    text: String,
    /// Index of the matching entry.
    at: Option<usize>,
    found: String,
    has_failed: bool,
}

/// Effect of a key on a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchKeyEffect {
    /// It continues.
    On,
    /// It ends with this entry.
    Taken(String),
    /// It ends without a change.
    Left,
}

impl Search {
    /// Handles a key.
    pub(crate) fn key(&mut self, key: Key, history: &History) -> SearchKeyEffect {
        match key {
            key if key == Key::ctrl('r') => self.find(history, self.at),
            Key { code: KeyCode::Escape, .. } => return SearchKeyEffect::Left,
            key if key == Key::ctrl('c') || key == Key::ctrl('g') => return SearchKeyEffect::Left,
            Key { code: KeyCode::Backspace, .. } => {
                self.text.pop();
                self.find(history, None);
            }
            Key { code: KeyCode::Char(character), modifiers } if !modifiers.ctrl && !modifiers.alt => {
                self.text.push(character);
                self.find(history, None);
            }
            // Any other key accepts the match.
            _ => return SearchKeyEffect::Taken(self.found.clone()),
        }
        SearchKeyEffect::On
    }

    fn find(&mut self, history: &History, before: Option<usize>) {
        if self.text.is_empty() {
            *self = Self::default();
            return;
        }
        match history.search(&self.text, before) {
            Some((index, entry)) => {
                entry.clone_into(&mut self.found);
                (self.at, self.has_failed) = (Some(index), false);
            }
            // Keep the last match.
            None => self.has_failed = true,
        }
    }

    /// Returns the rows that show the search, and the cursor position.
    pub(crate) fn rows(&self) -> (Vec<StyledLine>, (usize, usize)) {
        let label = if self.has_failed { "no other input has: " } else { "search inputs: " };
        let line = StyledLine::new(label, Face::DIM).and(self.text.clone(), Face::BOLD);
        let cursor = (0, line.columns());
        let found = self.found.lines().next().unwrap_or_default();
        let more = if self.found.lines().count() > 1 { " …" } else { "" };
        (vec![line, StyledLine::plain(format!("  {found}{more}"))], cursor)
    }
}
