//! Patterns of names and values.

use std::fmt;

use pintle_tools::gate::matches_wildcard;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Pattern of a name or a value. `*` matches any number of characters, including zero. Every other character matches
/// itself, case-sensitively.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern. Every text is valid.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Creates the pattern that matches every text.
    #[must_use]
    pub fn any() -> Self {
        Self::new("*")
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether it contains `*`.
    #[must_use]
    pub fn has_wildcard(&self) -> bool {
        self.0.contains('*')
    }

    /// Returns whether the pattern matches a text as a whole.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        matches_wildcard(&self.0, text)
    }

    /// Returns whether the pattern matches everything that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.covers_symbols(&symbols(&other.0))
    }

    /// Matches symbols. Only `*` matches [`Symbol::Any`], since no other symbol of the pattern matches every text.
    fn covers_symbols(&self, text: &[Symbol]) -> bool {
        let pattern = symbols(&self.0);
        let (mut at, mut next) = (0, 0);
        // The last `*`, and the index after the symbols that it has consumed.
        let mut star: Option<(usize, usize)> = None;
        while let Some(symbol) = text.get(at) {
            match pattern.get(next) {
                Some(Symbol::Any) => {
                    star = Some((next, at));
                    next += 1;
                }
                Some(expected) if expected == symbol => (at, next) = (at + 1, next + 1),
                Some(Symbol::Character(_)) | None => match &mut star {
                    Some((position, taken)) => {
                        *taken += 1;
                        (at, next) = (*taken, *position + 1);
                    }
                    None => return false,
                },
            }
        }
        pattern.iter().skip(next).all(|symbol| *symbol == Symbol::Any)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Symbol {
    Any,
    Character(char),
}

fn symbols(text: &str) -> Vec<Symbol> {
    text.chars()
        .map(|character| if character == '*' { Symbol::Any } else { Symbol::Character(character) })
        .collect()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_are_matched_as_a_whole() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("read_*", "read_file", true),
            ("read_*", "read_", true),
            ("read_*", "reread_file", false),
            ("*_file", "read_file", true),
            ("a*b*c", "abbbc", true),
            ("a*b*c", "acb", false),
            ("a**c", "abc", true),
            ("A", "a", false),
            ("a", "*", false),
            ("*", "*", true),
            ("ü*", "über", true),
        ] {
            assert_eq!(Pattern::new(pattern).matches(text), expected, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn wider_patterns_cover_narrower_ones() {
        for (wide, narrow, expected) in [
            ("*", "read_*", true),
            ("read_*", "*", false),
            ("read_*", "read_file", true),
            ("read_*", "read_*_file", true),
            ("*a*", "*ba*", true),
            ("*ab", "*b", false),
            ("a*", "a", true),
            ("a", "a*", false),
            ("**", "*", true),
            ("", "*", false),
        ] {
            assert_eq!(Pattern::new(wide).covers(&Pattern::new(narrow)), expected, "{wide:?} {narrow:?}");
        }
    }

    proptest! {
        /// The covering pattern matches every text that the covered one matches.
        #[test]
        fn cover_is_containment(wide in "[ab*]{0,6}", narrow in "[ab*]{0,6}", text in "[ab]{0,8}") {
            let (wide, narrow) = (Pattern::new(wide), Pattern::new(narrow));
            if wide.covers(&narrow) && narrow.matches(&text) {
                prop_assert!(wide.matches(&text));
            }
        }

        /// A pattern covers itself and every text that it matches.
        #[test]
        fn matches_are_covered(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
            let pattern = Pattern::new(pattern);
            prop_assert!(pattern.covers(&pattern));
            prop_assert_eq!(pattern.matches(&text), pattern.covers(&Pattern::new(text)));
        }
    }
}
