//! How strictly two lines are compared, and the form in which they are.

use std::borrow::Cow;
use std::fmt;

use crate::canonical;

/// How strictly the old lines of a hunk are compared with the file, strictest first.
///
/// A looser level is tried only where no stricter one finds a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchLevel {
    /// Byte for byte.
    Exact,
    /// Blanks at the end of a line do not count.
    TrailingBlanks,
    /// Blanks at both ends of a line do not count.
    SurroundingBlanks,
    /// As before, and typographic dashes, quotes and spaces equal their ASCII counterparts, and
    /// canonically equal Unicode is equal.
    Typography,
}

impl MatchLevel {
    /// All levels, strictest first.
    pub const ALL: [Self; 4] = [Self::Exact, Self::TrailingBlanks, Self::SurroundingBlanks, Self::Typography];
}

impl fmt::Display for MatchLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exact => "exactly",
            Self::TrailingBlanks => "ignoring trailing blanks",
            Self::SurroundingBlanks => "ignoring leading and trailing blanks",
            Self::Typography => "ignoring blanks, typographic punctuation and composed accents",
        })
    }
}

/// The form in which lines of one file are compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Form {
    /// Whether the file is UTF-8: if not, its bytes above 127 mean nothing here.
    pub(crate) utf8: bool,
    /// Whether canonically equal Unicode is equal at the loosest level.
    pub(crate) canonical: bool,
}

impl Form {
    /// Two lines match at `level` if and only if their keys are equal.
    pub(crate) fn key<'a>(&self, level: MatchLevel, line: &'a [u8]) -> Cow<'a, [u8]> {
        if level == MatchLevel::Exact {
            return Cow::Borrowed(line);
        }
        let Some(text) = self.unicode(line) else {
            return Cow::Borrowed(match level {
                MatchLevel::Exact => line,
                MatchLevel::TrailingBlanks => trim_end(line),
                MatchLevel::SurroundingBlanks | MatchLevel::Typography => trim_end(trim_start(line)),
            });
        };
        match level {
            MatchLevel::Exact => Cow::Borrowed(line),
            MatchLevel::TrailingBlanks => Cow::Borrowed(text.trim_end().as_bytes()),
            MatchLevel::SurroundingBlanks => Cow::Borrowed(text.trim().as_bytes()),
            MatchLevel::Typography => Cow::Owned(self.plain(text.trim()).into_bytes()),
        }
    }

    pub(crate) fn equal(&self, level: MatchLevel, left: &[u8], right: &[u8]) -> bool {
        left == right || self.key(level, left) == self.key(level, right)
    }

    /// The blanks before the text of a line.
    pub(crate) fn indentation<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mut end = 0;
        while let Some(rest) = line.get(end..).filter(|rest| !rest.is_empty()) {
            end += match self.blank_at_start(rest) {
                0 => break,
                length => length,
            };
        }
        line.get(..end).unwrap_or_default()
    }

    pub(crate) fn is_blank(&self, line: &[u8]) -> bool {
        self.indentation(line).len() == line.len()
    }

    /// The length in bytes of the blank that a text begins with, or 0.
    fn blank_at_start(&self, text: &[u8]) -> usize {
        match text.first() {
            Some(byte) if byte.is_ascii() || !self.utf8 => usize::from(is_blank(*byte)),
            _ => {
                let head = text.get(..4).unwrap_or(text).utf8_chunks().next();
                let character = head.and_then(|chunk| chunk.valid().chars().next());
                character.filter(|character| character.is_whitespace()).map_or(0, char::len_utf8)
            }
        }
    }

    /// The line as text, if it has characters beyond ASCII that may be read.
    fn unicode<'a>(&self, line: &'a [u8]) -> Option<&'a str> {
        if !self.utf8 || line.is_ascii() {
            return None;
        }
        std::str::from_utf8(line).ok()
    }

    /// ASCII characters stay as they are, and no combining mark is moved across one: so the runs
    /// between them can be rewritten one by one.
    fn plain(&self, text: &str) -> String {
        let mut plain = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find(|character: char| !character.is_ascii()) {
            let (ascii, beyond) = rest.split_at(start);
            let end = beyond.find(|character: char| character.is_ascii()).unwrap_or(beyond.len());
            let (run, after) = beyond.split_at(end);
            plain.push_str(ascii);
            match self.canonical {
                true => plain.extend(canonical::decompose(run).map(ascii_counterpart)),
                false => plain.extend(run.chars().map(ascii_counterpart)),
            }
            rest = after;
        }
        plain.push_str(rest);
        plain
    }
}

/// `line` without ASCII blanks at its end. As Unicode has it, the vertical tab is one of them.
fn trim_end(line: &[u8]) -> &[u8] {
    let kept = line.iter().rposition(|byte| !is_blank(*byte)).map_or(0, |last| last + 1);
    line.get(..kept).unwrap_or_default()
}

fn trim_start(line: &[u8]) -> &[u8] {
    let first = line.iter().position(|byte| !is_blank(*byte)).unwrap_or(line.len());
    line.get(first..).unwrap_or_default()
}

fn is_blank(byte: u8) -> bool {
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
    fn each_level_forgives_what_it_says() {
        let form = Form { utf8: true, canonical: true };
        let strictest = |left: &str, right: &str| {
            let equal = |level: &MatchLevel| form.equal(*level, left.as_bytes(), right.as_bytes());
            MatchLevel::ALL.into_iter().find(|level| equal(level))
        };
        let cases = [
            ("a b", "a b", Some(MatchLevel::Exact)),
            ("a", "a \t", Some(MatchLevel::TrailingBlanks)),
            ("é", "é\u{A0}", Some(MatchLevel::TrailingBlanks)),
            ("    a", "\ta", Some(MatchLevel::SurroundingBlanks)),
            ("“a” – ‘b’", "\"a\" - 'b'", Some(MatchLevel::Typography)),
            ("a\u{A0}b", "a b", Some(MatchLevel::Typography)),
            ("caf\u{E9}", "cafe\u{301}", Some(MatchLevel::Typography)),
            ("a  b", "a b", None),
            ("a\u{B}", "a", Some(MatchLevel::TrailingBlanks)),
            ("\u{B}a\u{A0}", "\u{B}a", Some(MatchLevel::TrailingBlanks)),
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
            let form = Form { utf8, canonical: true };
            let equal = MatchLevel::ALL.map(|level| form.equal(level, left.as_bytes(), right.as_bytes()));
            prop_assert!(equal.is_sorted(), "{:?}", equal);
        }

        #[test]
        fn rewriting_run_by_run_is_rewriting_the_whole(
            text in "[a-c \u{E9}\u{1EA5}\u{D55C}\u{301}\u{323}\u{344}\u{F73}\u{2019}\u{2001}]{0,12}",
        ) {
            let form = Form { utf8: true, canonical: true };
            let whole: String = canonical::decompose(&text).map(ascii_counterpart).collect();
            prop_assert_eq!(form.plain(&text), whole);
        }
    }

    #[test]
    fn bytes_of_another_encoding_are_never_read_as_unicode() {
        let form = Form { utf8: false, canonical: true };
        // In Latin-1 this is a capital A with tilde and a copyright sign, not an accented e.
        assert!(!form.equal(MatchLevel::Typography, b"\xC3\xA9", "e\u{301}".as_bytes()));
        assert!(form.equal(MatchLevel::SurroundingBlanks, b"  \xE9 ", b"\xE9"));
    }
}
