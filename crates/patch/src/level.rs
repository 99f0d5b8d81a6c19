//! Levels of strictness in comparing lines.

use std::borrow::Cow;
use std::fmt;

use crate::{canonical, work};

/// Strictness of the comparison of a hunk's old lines with the file, strictest first.
///
/// A looser level is tried only if no stricter one matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MatchLevel {
    /// Byte for byte.
    Exact,
    /// Ignoring whitespace at the end of a line.
    TrailingWhitespace,
    /// Ignoring whitespace at both ends of a line.
    SurroundingWhitespace,
    /// Also treating typographic dashes, quotes and spaces as their ASCII counterparts, and
    /// canonically equivalent Unicode as equal.
    Typography,
}

impl MatchLevel {
    /// All levels, strictest first.
    pub const ALL: [Self; 4] =
        [Self::Exact, Self::TrailingWhitespace, Self::SurroundingWhitespace, Self::Typography];
}

impl fmt::Display for MatchLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exactly",
            Self::TrailingWhitespace => "ignoring trailing blanks",
            Self::SurroundingWhitespace => "ignoring leading and trailing blanks",
            Self::Typography => "ignoring blanks, typographic punctuation and composed accents",
        })
    }
}

/// Rules by which the lines of one file are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineComparison {
    /// Whether the file is UTF-8. If not, bytes above 127 are compared as bytes only.
    pub(crate) utf8: bool,
    /// Whether canonically equivalent Unicode is equal at the loosest level.
    pub(crate) canonical: bool,
}

impl LineComparison {
    /// Returns the comparison key of a line: two lines match at `level` if and only if their keys are equal.
    pub(crate) fn key<'a>(&self, level: MatchLevel, line: &'a [u8]) -> Cow<'a, [u8]> {
        work::count(line.len());
        if level == MatchLevel::Exact {
            return Cow::Borrowed(line);
        }
        let Some(text) = self.unicode(line) else {
            return Cow::Borrowed(match level {
                MatchLevel::Exact => line,
                MatchLevel::TrailingWhitespace => trim_end(line),
                MatchLevel::SurroundingWhitespace | MatchLevel::Typography => trim_end(trim_start(line)),
            });
        };
        match level {
            MatchLevel::Exact => Cow::Borrowed(line),
            MatchLevel::TrailingWhitespace => Cow::Borrowed(text.trim_end().as_bytes()),
            MatchLevel::SurroundingWhitespace => Cow::Borrowed(text.trim().as_bytes()),
            MatchLevel::Typography => Cow::Owned(self.normalize_typography(text.trim()).into_bytes()),
        }
    }

    pub(crate) fn equal(&self, level: MatchLevel, left: &[u8], right: &[u8]) -> bool {
        work::count(left.len().min(right.len()));
        left == right || self.key(level, left) == self.key(level, right)
    }

    /// Returns the leading whitespace of a line.
    pub(crate) fn indentation<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mut end = 0;
        while let Some(rest) = line.get(end..).filter(|rest| !rest.is_empty()) {
            end += match self.leading_whitespace_len(rest) {
                0 => break,
                length => length,
            };
        }
        work::count(end + 1);
        line.get(..end).unwrap_or_default()
    }

    pub(crate) fn is_blank(&self, line: &[u8]) -> bool {
        self.indentation(line).len() == line.len()
    }

    /// Returns the length in bytes of the whitespace character at the start of `text`, or 0.
    fn leading_whitespace_len(&self, text: &[u8]) -> usize {
        match text.first() {
            Some(byte) if byte.is_ascii() || !self.utf8 => usize::from(is_whitespace(*byte)),
            _ => {
                let head = text.get(..4).unwrap_or(text).utf8_chunks().next();
                let character = head.and_then(|chunk| chunk.valid().chars().next());
                character.filter(|character| character.is_whitespace()).map_or(0, char::len_utf8)
            }
        }
    }

    /// Returns the line as text if it has non-ASCII characters and the file is UTF-8.
    fn unicode<'a>(&self, line: &'a [u8]) -> Option<&'a str> {
        if !self.utf8 || line.is_ascii() {
            return None;
        }
        std::str::from_utf8(line).ok()
    }

    /// Replaces typographic characters by their ASCII counterparts. ASCII characters are kept, and no combining
    /// mark moves across one, so each run between them can be rewritten separately.
    fn normalize_typography(&self, text: &str) -> String {
        let mut normalized = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(|character: char| !character.is_ascii()) {
            let (ascii, beyond) = rest.split_at(start);
            let end = beyond.find(|character: char| character.is_ascii()).unwrap_or(beyond.len());
            let (run, after) = beyond.split_at(end);
            normalized.push_str(ascii);
            match self.canonical {
                true => normalized.extend(canonical::decompose(run).map(ascii_counterpart)),
                false => normalized.extend(run.chars().map(ascii_counterpart)),
            }
            rest = after;
        }
        normalized.push_str(rest);
        normalized
    }
}

/// Strips ASCII whitespace at the end of `line`. As in Unicode, this includes the vertical tab.
fn trim_end(line: &[u8]) -> &[u8] {
    let kept = line.iter().rposition(|byte| !is_whitespace(*byte)).map_or(0, |last| last + 1);
    line.get(..kept).unwrap_or_default()
}

fn trim_start(line: &[u8]) -> &[u8] {
    let first = line.iter().position(|byte| !is_whitespace(*byte)).unwrap_or(line.len());
    line.get(first..).unwrap_or_default()
}

fn is_whitespace(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'\x0B'
}

fn ascii_counterpart(character: char) -> char {
    match character {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' | '\u{3000}' => ' ',
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_level_ignores_what_it_documents() {
        let comparison = LineComparison { utf8: true, canonical: true };
        let strictest = |left: &str, right: &str| {
            let equal = |level: &MatchLevel| comparison.equal(*level, left.as_bytes(), right.as_bytes());
            MatchLevel::ALL.into_iter().find(|level| equal(level))
        };
        let cases = [
            ("a b", "a b", Some(MatchLevel::Exact)),
            ("a", "a \t", Some(MatchLevel::TrailingWhitespace)),
            ("é", "é\u{A0}", Some(MatchLevel::TrailingWhitespace)),
            ("    a", "\ta", Some(MatchLevel::SurroundingWhitespace)),
            ("“a” – ‘b’", "\"a\" - 'b'", Some(MatchLevel::Typography)),
            ("a\u{A0}b", "a b", Some(MatchLevel::Typography)),
            ("caf\u{E9}", "cafe\u{301}", Some(MatchLevel::Typography)),
            ("a  b", "a b", None),
            ("a\u{B}", "a", Some(MatchLevel::TrailingWhitespace)),
            ("\u{B}a\u{A0}", "\u{B}a", Some(MatchLevel::TrailingWhitespace)),
            ("x\u{B2}", "x2", None),
            ("a", "A", None),
        ];
        for (left, right, expected) in cases {
            assert_eq!(strictest(left, right), expected, "{left:?} and {right:?}");
        }
    }

    proptest! {
        #[test]
        fn lines_that_match_at_a_level_match_at_every_looser_one(
            left in "[\u{B}\u{C}\t a\u{A0}\u{E9}\u{2019}']{0,4}",
            right in "[\u{B}\u{C}\t a\u{A0}\u{E9}\u{2019}']{0,4}",
            utf8 in any::<bool>(),
        ) {
            let comparison = LineComparison { utf8, canonical: true };
            let equal = MatchLevel::ALL.map(|level| comparison.equal(level, left.as_bytes(), right.as_bytes()));
            prop_assert!(equal.is_sorted(), "{:?}", equal);
        }

        #[test]
        fn rewriting_runs_equals_rewriting_the_whole(
            text in "[a-c \u{E9}\u{1EA5}\u{D55C}\u{301}\u{323}\u{344}\u{F73}\u{2019}\u{2001}]{0,12}",
        ) {
            let comparison = LineComparison { utf8: true, canonical: true };
            let whole: String = canonical::decompose(&text).map(ascii_counterpart).collect();
            prop_assert_eq!(comparison.normalize_typography(&text), whole);
        }
    }

    #[test]
    fn bytes_of_another_encoding_are_never_read_as_unicode() {
        let comparison = LineComparison { utf8: false, canonical: true };
        // In Latin-1 this is a capital A with tilde and a copyright sign, not an accented e.
        assert!(!comparison.equal(MatchLevel::Typography, b"\xC3\xA9", "e\u{301}".as_bytes()));
        assert!(comparison.equal(MatchLevel::SurroundingWhitespace, b"  \xE9 ", b"\xE9"));
    }
}
