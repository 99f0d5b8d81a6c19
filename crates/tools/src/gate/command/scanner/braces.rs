//! Braces whose expansions are known, because they contain literal text only.

use super::{Content, Frame, Scanner};
use crate::gate::command::computed::EACH;
use crate::gate::command::programs;

/// Maximum number of characters within braces whose expansions are known.
const MAX_SOURCE: usize = 256;

/// Maximum number of words that one word expands to.
const MAX_WORDS: usize = 32;

/// Maximum number of bytes that one word expands to.
const MAX_EXPANDED: usize = 16 << 10;

/// Characters within braces, besides letters and digits, that have no other meaning.
const LITERAL: &str = "-_./:=+@%,";

/// Braces of a word.
#[derive(Debug)]
pub(super) struct KnownBraces {
    /// Position of `EACH` in the word, which represents them.
    at: usize,
    /// Text within the braces. Commas separate the choices.
    source: String,
}

impl KnownBraces {
    fn choices(&self) -> impl Iterator<Item = &str> {
        self.source.split(',')
    }
}

impl Scanner<'_> {
    /// Reads braces after `{` if their expansions are known. Returns whether they are.
    pub(super) fn known_braces(&mut self) -> bool {
        let Some(source) = self.skip_choices() else { return false };
        let at = self.current.word.get_or_insert_default().len();
        self.push(EACH);
        self.current.braces.push(KnownBraces { at, source });
        true
    }

    fn skip_choices(&mut self) -> Option<String> {
        let current = &self.current;
        let is_word = current.content == Content::Commands && current.redirection.is_none();
        let is_nested = matches!(self.frames.last(), Some(Frame::Group { .. }));
        // The shell expands no braces in variables set before a command and between `case` and `in`.
        let is_value = !current.has_program && current.word.as_deref().is_some_and(programs::is_assignment);
        if !is_word || is_nested || is_value || current.is_case {
            return None;
        }
        let mut ahead = self.rest.clone();
        let mut source = String::new();
        loop {
            match ahead.next()? {
                '}' => break,
                next if next.is_ascii_alphanumeric() || LITERAL.contains(next) => source.push(next),
                _ => return None,
            }
            if source.len() > MAX_SOURCE {
                return None;
            }
        }
        let has_choices = source.contains(',');
        if has_choices {
            self.rest = ahead;
        }
        has_choices.then_some(source)
    }
}

/// Returns the words that a word with these braces expands to; `None` without braces, or if there are too many words.
pub(super) fn expand(word: &str, braces: &[KnownBraces]) -> Option<Vec<String>> {
    let counts = braces.iter().map(|braces| braces.choices().count());
    let count = counts.fold(1, usize::saturating_mul);
    let length = braces.iter().fold(word.len(), |length, braces| length.saturating_add(braces.source.len()));
    if braces.is_empty() || count > MAX_WORDS || count.saturating_mul(length) > MAX_EXPANDED {
        return None;
    }
    let mut words = vec![String::new()];
    let mut rest = word;
    let mut start = 0;
    for braces in braces {
        let (before, after) = split(rest, braces.at.checked_sub(start)?)?;
        words = words
            .iter()
            .flat_map(|word| braces.choices().map(move |choice| format!("{word}{before}{choice}")))
            .collect();
        start = braces.at + EACH.len_utf8();
        rest = after;
    }
    words.iter_mut().for_each(|word| word.push_str(rest));
    Some(words)
}

/// Returns the word as a shell reads it that expands no braces.
pub(super) fn source(word: &str, braces: &[KnownBraces]) -> String {
    let mut text = String::new();
    let mut start = 0;
    for braces in braces {
        text.push_str(word.get(start..braces.at).unwrap_or_default());
        text.push_str(&format!("{{{}}}", braces.source));
        start = braces.at + EACH.len_utf8();
    }
    text.push_str(word.get(start..).unwrap_or_default());
    text
}

/// Splits a text around the `EACH` at this position.
fn split(text: &str, at: usize) -> Option<(&str, &str)> {
    let (before, after) = text.split_at_checked(at)?;
    Some((before, after.strip_prefix(EACH)?))
}
