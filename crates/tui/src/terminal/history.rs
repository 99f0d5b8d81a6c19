//! Input history.

use std::collections::VecDeque;

/// Maximum number of inputs kept.
pub(crate) const MAX_ENTRIES: usize = 1_000;

/// Inputs, the newest last, and the position of the user in them.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    entries: VecDeque<String>,
    /// Index of the entry that is shown, if any.
    at: Option<usize>,
    /// Input that was being written before the first step back.
    draft: String,
}

impl History {
    /// Creates a history of earlier inputs, the newest last.
    pub(crate) fn new(entries: impl IntoIterator<Item = String>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.add(entry);
        }
        history
    }

    /// Appends an input, unless it is the same as the newest one.
    pub(crate) fn add(&mut self, entry: String) {
        self.at = None;
        if entry.trim().is_empty() || self.entries.back() == Some(&entry) {
            return;
        }
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
        }
        self.entries.push_back(entry);
    }

    /// Steps back from the text that is being written. Returns the entry, if there is an older one.
    pub(crate) fn back(&mut self, written: &str) -> Option<&str> {
        let at = match self.at {
            Some(at) => at.checked_sub(1)?,
            None => {
                let newest = self.entries.len().checked_sub(1)?;
                written.clone_into(&mut self.draft);
                newest
            }
        };
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    /// Steps forward. Returns the entry, or the text from before the first step back.
    pub(crate) fn forward(&mut self) -> Option<&str> {
        let next = self.at? + 1;
        if next < self.entries.len() {
            self.at = Some(next);
            return self.entries.get(next).map(String::as_str);
        }
        self.at = None;
        Some(&self.draft)
    }

    /// Returns the newest entry before `before` that contains a text, regardless of case, and its index. If `before` is
    /// `None`, the search starts with the newest entry.
    pub(crate) fn search(&self, text: &str, before: Option<usize>) -> Option<(usize, &str)> {
        let text = text.to_lowercase();
        let entries = self.entries.iter().enumerate().take(before.unwrap_or(usize::MAX)).rev();
        let mut found = entries.filter(|(_, entry)| entry.to_lowercase().contains(&text));
        found.next().map(|(index, entry)| (index, entry.as_str()))
    }

    /// Ends the steps, because the shown text was changed or taken.
    pub(crate) fn leave(&mut self) {
        self.at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(entries: &[&str]) -> History {
        History::new(entries.iter().map(|entry| (*entry).to_owned()))
    }

    #[test]
    fn steps_lead_back_and_to_the_draft_again() {
        let mut history = history(&["one", "two", "two", " "]);
        assert_eq!(history.back("draft"), Some("two"));
        assert_eq!(history.back("two"), Some("one"));
        assert_eq!(history.back("one"), None);
        assert_eq!(history.forward(), Some("two"));
        assert_eq!(history.forward(), Some("draft"));
        assert_eq!(history.forward(), None);
    }

    #[test]
    fn entries_are_searched_from_the_newest() {
        let history = history(&["cargo test", "ls", "Cargo build"]);
        assert_eq!(history.search("cargo", None), Some((2, "Cargo build")));
        assert_eq!(history.search("cargo", Some(2)), Some((0, "cargo test")));
        assert_eq!(history.search("cargo", Some(0)), None);
    }

    #[test]
    fn the_oldest_entries_give_way() {
        let history = History::new((0..MAX_ENTRIES + 5).map(|number| number.to_string()));
        assert_eq!(history.entries.len(), MAX_ENTRIES);
        assert_eq!(history.entries.front().map(String::as_str), Some("5"));
    }
}
