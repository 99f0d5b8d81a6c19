//! Completion of commands and files while the user types.

use nucleo_matcher::{Config, Matcher, Utf32Str};
use pintle_host::slash_commands;

use crate::render::{Colour, Face, StyledLine};

/// Maximum number of choices shown.
const MAX_SHOWN: usize = 8;

/// Files of the environment that can be named, relative to the working directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Files {
    /// Not requested yet.
    #[default]
    Unknown,
    Asked,
    Known(Vec<String>),
}

/// Choices for the word before the cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Menu {
    /// Replacements with their meanings.
    choices: Vec<(String, String)>,
    selected: usize,
    /// Bytes before the cursor that are replaced.
    length: usize,
    kind: Kind,
}

/// Kind of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Command,
    File,
}

/// Word before the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word<'a> {
    kind: Kind,
    /// The part after the sign.
    text: &'a str,
}

impl<'a> Word<'a> {
    /// Returns the word that can be completed: a command at the start, or a file after `@`.
    fn before(cursor: &'a str) -> Option<Self> {
        let start = cursor.rfind(char::is_whitespace).map_or(0, |blank| blank + 1);
        let word = cursor.get(start..)?.trim_start();
        if let Some(text) = word.strip_prefix('@') {
            return Some(Self { kind: Kind::File, text });
        }
        let text = cursor.strip_prefix('/').filter(|text| !text.contains(['/', ' ', '\n']))?;
        Some(Self { kind: Kind::Command, text })
    }
}

/// Returns whether the word before the cursor names a file.
pub(crate) fn names_file(before_cursor: &str) -> bool {
    Word::before(before_cursor).is_some_and(|word| word.kind == Kind::File)
}

impl Menu {
    /// Returns the choices for the word before the cursor, or `None` if it cannot be completed. Commands are the built-in
    /// ones and `more`, which contains names with their meanings.
    pub(crate) fn complete(before_cursor: &str, files: &Files, more: &[(String, String)]) -> Option<Self> {
        let word = Word::before(before_cursor)?;
        let choices: Vec<(String, String)> = match (word.kind, files) {
            (Kind::Command, _) => {
                let more = more.iter().filter(|(name, _)| name.starts_with(word.text)).cloned();
                let known = slash_commands::by_prefix(word.text);
                known.map(|(name, meaning)| (name.to_owned(), meaning.to_owned())).chain(more).collect()
            }
            (Kind::File, Files::Known(files)) => {
                best(word.text, files).into_iter().map(|file| (file.to_owned(), String::new())).collect()
            }
            (Kind::File, Files::Unknown | Files::Asked) => Vec::new(),
        };
        let is_complete = matches!(choices.as_slice(), [(only, _)] if only == word.text);
        let is_none = choices.is_empty() || is_complete;
        (!is_none).then_some(Self { choices, selected: 0, length: word.text.len(), kind: word.kind })
    }

    /// Selects the next or the previous choice.
    pub(crate) fn select(&mut self, next: bool) {
        let count = self.choices.len();
        self.selected = if next { self.selected + 1 } else { self.selected + count - 1 } % count;
    }

    /// Returns the kind of the completed word.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns whether exactly one command can be completed.
    pub(crate) fn is_only_command(&self) -> bool {
        self.kind == Kind::Command && self.choices.len() == 1
    }

    /// Returns the number of bytes to replace before the cursor, and the replacement.
    pub(crate) fn accept(&self) -> Option<(usize, String)> {
        let (choice, _) = self.choices.get(self.selected)?;
        let is_quoted = self.kind == Kind::File && choice.contains(char::is_whitespace);
        let choice = if is_quoted { format!("\"{choice}\" ") } else { format!("{choice} ") };
        Some((self.length, choice))
    }

    /// Returns at most `most` rows of the menu.
    pub(crate) fn rows(&self, most: usize) -> Vec<StyledLine> {
        let most = most.min(MAX_SHOWN);
        let first = (self.selected + 1).saturating_sub(most);
        let sign = match self.kind {
            Kind::Command => "/",
            Kind::File => "@",
        };
        let shown = self.choices.iter().enumerate().skip(first).take(most);
        shown
            .map(|(index, (choice, meaning))| {
                let face = if index == self.selected {
                    Face::coloured(Colour::Cyan).and(Face::BOLD)
                } else {
                    Face::PLAIN
                };
                let gap = if meaning.is_empty() { "" } else { "  " };
                StyledLine::new(format!("  {sign}{choice}"), face).and(format!("{gap}{meaning}"), Face::DIM)
            })
            .collect()
    }
}

/// Returns the files that match best, the best first. Without a text, these are the first files.
fn best<'a>(text: &str, files: &'a [String]) -> Vec<&'a str> {
    /// More choices than a user looks through.
    const MAX_CHOICES: usize = 50;
    if text.is_empty() {
        return files.iter().take(MAX_CHOICES).map(String::as_str).collect();
    }
    let mut matcher = Matcher::new(Config::DEFAULT.match_paths());
    let mut needle = Vec::new();
    // Lower-case letters match upper-case letters, too.
    let lower = text.to_lowercase();
    let needle = Utf32Str::new(&lower, &mut needle);
    let mut haystack = Vec::new();
    let mut scored: Vec<(u16, &str)> = files
        .iter()
        .filter_map(|file| {
            let score = matcher.fuzzy_match(Utf32Str::new(file, &mut haystack), needle)?;
            Some((score, file.as_str()))
        })
        .collect();
    // Of files with equal scores, the shorter name is more likely.
    scored.sort_by_key(|(score, file)| (std::cmp::Reverse(*score), file.len()));
    scored.into_iter().take(MAX_CHOICES).map(|(_, file)| file).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        let files = ["Cargo.toml", "src/main.rs", "src/manifest.rs", "docs/Main page.md", "tests/it/main.rs"];
        Files::Known(files.map(str::to_owned).to_vec())
    }

    fn choices(before_cursor: &str) -> Vec<String> {
        let menu = Menu::complete(before_cursor, &files(), &[]);
        menu.map(|menu| menu.choices.into_iter().map(|(choice, _)| choice).collect()).unwrap_or_default()
    }

    #[test]
    fn commands_and_files_are_completed() {
        let cases: &[(&str, &[&str])] = &[
            ("/co", &["compact", "config", "context", "copy", "cost"]),
            ("/quit", &[]),
            ("/tmp/x", &[]),
            ("say /co", &[]),
            ("/mode ", &[]),
            ("read @cargo", &["Cargo.toml"]),
            ("@srcmain", &["src/main.rs"]),
            ("@main.rs", &["src/main.rs", "tests/it/main.rs"]),
            ("me@example", &[]),
            ("@nothing", &[]),
            ("@ ", &[]),
        ];
        for (before_cursor, expected) in cases {
            assert_eq!(choices(before_cursor), *expected, "{before_cursor:?}");
        }
        assert_eq!(choices("@").len(), 5, "all, as far as they fit");
        assert_eq!(Menu::complete("@x", &Files::Asked, &[]), None);
    }

    #[test]
    fn a_choice_takes_the_place_of_what_was_typed() {
        let mut menu = Menu::complete("/co", &Files::Unknown, &[]).unwrap();
        menu.select(true);
        assert_eq!(menu.accept(), Some((2, "config ".to_owned())));
        menu.select(false);
        menu.select(false);
        assert_eq!(menu.accept(), Some((2, "cost ".to_owned())), "the last one comes before the first");
        let page = Menu::complete("@page", &files(), &[]).and_then(|menu| menu.accept());
        assert_eq!(page, Some((4, "\"docs/Main page.md\" ".to_owned())), "a name with blanks is quoted");
        let rows: Vec<String> = menu.rows(2).iter().map(StyledLine::text).collect();
        assert_eq!(
            rows,
            ["  /copy  copy the last response to the clipboard", "  /cost  show tokens and cost"]
        );
    }
}
