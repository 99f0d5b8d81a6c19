//! Converts two states of a text to arguments of an editing tool: the changed lines, with enough context to be unique.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Context lines on each side of a hunk.
const CONTEXT: usize = 3;

/// Two states of a text, and their differences.
pub(super) struct Rewrite<'a> {
    old: Vec<&'a str>,
    new: Vec<&'a str>,
    changed: Vec<Window>,
}

/// A range of lines in both states. The lines outside of all windows are the same in both.
#[derive(Clone)]
struct Window {
    old: Range<usize>,
    new: Range<usize>,
}

impl<'a> Rewrite<'a> {
    /// Compares pieces between line feeds: a text that ends with a line feed has an empty last piece.
    pub(super) fn of_pieces(old: &'a str, new: &'a str) -> Self {
        Self::new(old.split('\n').collect(), new.split('\n').collect())
    }

    /// Compares lines, with or without a final line feed.
    pub(super) fn of_lines(old: &'a str, new: &'a str) -> Self {
        Self::new(old.lines().collect(), new.lines().collect())
    }

    fn new(old: Vec<&'a str>, new: Vec<&'a str>) -> Self {
        let changed = capture_diff_slices(Algorithm::Myers, &old, &new)
            .iter()
            .filter(|op| !matches!(op, DiffOp::Equal { .. }))
            .map(|op| Window { old: op.old_range(), new: op.new_range() })
            .collect();
        Self { old, new, changed }
    }

    /// Returns texts and their replacements. Each text is unique when its turn comes.
    pub(super) fn replacements(&self) -> Result<Vec<(String, String)>, String> {
        let windows = self.windows(0, |window| {
            let text = self.old[window.old.clone()].join("\n");
            let now = [&self.new[..window.new.start], &self.old[window.old.start..]].concat().join("\n");
            !window.new.is_empty() && !text.is_empty() && now.matches(&text).count() == 1
        })?;
        let replacement = |window: &Window| {
            (self.old[window.old.clone()].join("\n"), self.new[window.new.clone()].join("\n"))
        };
        Ok(windows.iter().map(replacement).collect())
    }

    /// Returns the hunks of a patch. The old lines of each are unique.
    pub(super) fn hunks(&self) -> Result<String, String> {
        let windows = self.windows(CONTEXT, |window| {
            let lines = &self.old[window.old.clone()];
            // An empty file has no lines.
            self.old.is_empty()
                || !lines.is_empty()
                    && self.old.windows(lines.len()).filter(|found| found == &lines).count() == 1
        })?;
        Ok(windows.iter().map(|window| self.hunk(window)).collect())
    }

    fn hunk(&self, window: &Window) -> String {
        let mut hunk = String::from("@@\n");
        let mut line = |prefix: char, text: &str| hunk.push_str(&format!("{prefix}{text}\n"));
        let mut at = window.old.start;
        for change in self.changed.iter().filter(|change| holds(window, change)) {
            self.old[at..change.old.start].iter().for_each(|text| line(' ', text));
            self.old[change.old.clone()].iter().for_each(|text| line('-', text));
            self.new[change.new.clone()].iter().for_each(|text| line('+', text));
            at = change.old.end;
        }
        self.old[at..window.old.end].iter().for_each(|text| line(' ', text));
        hunk
    }

    /// Returns the changes with at least `context` lines around them, and more until `is_enough`.
    fn windows(&self, context: usize, is_enough: impl Fn(&Window) -> bool) -> Result<Vec<Window>, String> {
        let mut windows = self.changed.clone();
        for _ in 0..context {
            windows.iter_mut().for_each(|window| _ = self.grow(window));
            windows = merged(windows);
        }
        loop {
            windows = merged(windows);
            let Some(vague) = windows.iter_mut().find(|window| !is_enough(window)) else { break };
            if !self.grow(vague) {
                return Err(format!("no lines name the place of line {}", vague.old.start + 1));
            }
        }
        let mut lines = windows.iter().flat_map(|window| &self.new[window.new.clone()]);
        match lines.find(|line| !is_quotable(line)) {
            Some(line) => Err(format!("the fix changes a line that is not UTF-8: {line}")),
            None => Ok(windows),
        }
    }

    /// Adds a line on each side. Returns false if there is none that can be quoted.
    fn grow(&self, window: &mut Window) -> bool {
        let Window { old, new } = window;
        let above = old.start > 0 && new.start > 0 && is_quotable(self.old[old.start - 1]);
        let below = self.old.get(old.end).is_some_and(|line| is_quotable(line));
        (old.start, new.start) = (old.start - usize::from(above), new.start - usize::from(above));
        (old.end, new.end) = (old.end + usize::from(below), new.end + usize::from(below));
        above || below
    }
}

/// Merges adjacent windows.
fn merged(windows: Vec<Window>) -> Vec<Window> {
    let mut merged: Vec<Window> = Vec::new();
    for window in windows {
        match merged.last_mut() {
            Some(last) if window.old.start <= last.old.end => {
                last.old.end = last.old.end.max(window.old.end);
                last.new.end = last.new.end.max(window.new.end);
            }
            _ => merged.push(window),
        }
    }
    merged
}

fn holds(window: &Window, change: &Window) -> bool {
    window.old.start <= change.old.start && change.old.end <= window.old.end
}

/// Returns whether a model can write the line: bytes that are not UTF-8 are shown as replacement characters.
fn is_quotable(line: &str) -> bool {
    !line.contains(char::REPLACEMENT_CHARACTER)
}
