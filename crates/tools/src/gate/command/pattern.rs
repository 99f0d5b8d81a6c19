//! Patterns of commands.

use std::fmt;

use super::programs::{self, UNKNOWN};

/// Characters that a pattern must not contain: command separators, and what the shell interprets.
const FOREIGN: &[char] = &[';', '&', '|', '<', '>', '(', ')', '`', '$', '"', '\'', '\\', '\n', '\r'];

/// A pattern that no command can match.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command pattern `{pattern}` {problem}, expected the words of one command such as `git log *`")]
pub struct PatternError {
    pattern: String,
    problem: String,
}

/// The words of one command. `*` in a word matches any characters; as the last word it matches any number of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern {
    words: Vec<String>,
    /// Whether more words may follow.
    is_open: bool,
}

impl CommandPattern {
    /// Parses a pattern, such as `git log *`.
    ///
    /// # Errors
    ///
    /// A pattern that cannot match any command, because it has no words or contains a command separator.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let refused = |problem: String| PatternError { pattern: text.to_owned(), problem };
        if let Some(foreign) = text.chars().find(|character| FOREIGN.contains(character)) {
            return Err(refused(format!("contains {foreign:?}")));
        }
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let is_open = words.last().is_some_and(|last| last == "*");
        if is_open {
            words.pop();
        }
        if words.is_empty() && !is_open {
            return Err(refused("has no words".to_owned()));
        }
        Ok(Self { words, is_open })
    }

    /// Returns whether this command matches.
    pub(super) fn matches(&self, command: &[String]) -> bool {
        self.fits(command, matches_wildcard) && !self.covers_side_effects(command)
    }

    /// Returns whether the last `*` would cover an option that writes, runs a program or connects.
    fn covers_side_effects(&self, command: &[String]) -> bool {
        // A pattern without words means every command.
        let Some(program) = command.first().filter(|_| self.is_open && !self.words.is_empty()) else {
            return false;
        };
        let rest = command.get(self.words.len()..).unwrap_or_default();
        programs::first_side_effect_option(program, rest).is_some()
    }

    /// As [`CommandPattern::matches`], but also matches a program by the last part of its path, and whatever its options do.
    /// Words that are not known match.
    pub(super) fn matches_anywhere(&self, command: &[impl AsRef<str>]) -> bool {
        let first = |pattern: &str, word: &str| {
            let name = word.rsplit_once('/').map(|(_, name)| name);
            matches_wildcard(pattern, word) || name.is_some_and(|name| matches_wildcard(pattern, name))
        };
        if command.last().is_some_and(|last| last.as_ref() == UNKNOWN) && command.len() <= self.words.len() {
            // Any number of words may come.
            let start =
                Self { words: self.words.iter().take(command.len()).cloned().collect(), is_open: true };
            return start.fits(command, first);
        }
        self.fits(command, first)
    }

    fn fits(&self, command: &[impl AsRef<str>], first: impl Fn(&str, &str) -> bool) -> bool {
        if command.len() < self.words.len() || (command.len() > self.words.len() && !self.is_open) {
            return false;
        }
        let words = command.iter().map(AsRef::as_ref);
        self.words.iter().zip(words).enumerate().all(|(index, (pattern, word))| match index {
            0 => first(pattern, word),
            _ => word == UNKNOWN || matches_wildcard(pattern, word),
        })
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.words.iter().map(String::as_str).chain(self.is_open.then_some("*"));
        f.write_str(&words.collect::<Vec<_>>().join(" "))
    }
}

/// Returns whether `text` as a whole matches `pattern`, where `*` matches any characters, also none. Case counts. Takes at
/// most time proportional to the product of both lengths, and allocates nothing.
#[must_use]
pub fn matches_wildcard(pattern: &str, text: &str) -> bool {
    // Most patterns are about something else, which their first byte tells.
    if let Some(first) = pattern.bytes().next()
        && first != b'*'
        && text.bytes().next() != Some(first)
    {
        return false;
    }
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = pieces.next_back() else { return rest.is_empty() };
    for piece in pieces {
        // The earliest match leaves the most for the rest.
        let Some((_, after)) = rest.split_once(piece) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        let cases = [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "a", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c", "ac", true),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("test:*", "test:unit", true),
            ("*", "", true),
            ("é*", "éa", true),
        ];
        for (pattern, text, expected) in cases {
            assert_eq!(matches_wildcard(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_match_is_refused() {
        let cases = [
            (
                "",
                "the command pattern `` has no words, expected the words of one command such as `git log *`",
            ),
            (
                "  ",
                "the command pattern `  ` has no words, expected the words of one command such as `git log *`",
            ),
            (
                "a && b",
                "the command pattern `a && b` contains '&', expected the words of one command such as `git log *`",
            ),
        ];
        for (pattern, expected) in cases {
            assert_eq!(CommandPattern::parse(pattern).unwrap_err().to_string(), expected);
        }
        assert_eq!(CommandPattern::parse(" git  log * ").unwrap().to_string(), "git log *");
        assert!(CommandPattern::parse("*").unwrap().matches(&["anything".to_owned()]));
    }
}
