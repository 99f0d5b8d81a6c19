//! Where a file and the lines that were expected in it part, and what usual mistake that looks like.

use std::borrow::Cow;
use std::fmt;

/// What stands between the number of a line and its text in listings: of our tools, of others, of searches.
const AFTER_NUMBER: [&str; 5] = [" | ", "\t", "→", "|", ":"];

/// What may stand before an ellipsis to make it a comment.
const COMMENT_STARTS: [&str; 6] = ["//", "#", "/*", "--", "<!--", ";"];

/// Characters that are written as escapes where texts are put into other texts.
const ESCAPES: [(&str, &str); 10] = [
    ("\\r", ""),
    ("\\n", "\n"),
    ("\\t", "\t"),
    ("\\\"", "\""),
    ("\\'", "'"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&amp;", "&"),
];

/// The first line in which the file differs from what a hunk expects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The line of the file.
    pub file_line: usize,
    /// What the hunk expects there, shortened.
    pub expected: String,
    /// What is there, shortened; `None` behind the last line.
    pub found: Option<String>,
    /// The mistake that it looks like, if it is a usual one.
    pub mistake: Option<Mistake>,
}

/// Usual mistakes in a line that is quoted from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// Other blanks, which look alike.
    Blanks(Box<BlankDifference>),
    /// Upper case for lower case, or the other way round.
    Case,
    /// `...` in the place of lines that were left out.
    Ellipsis,
    /// The number of the line, as a listing shows it, before its text.
    LineNumber,
    /// `\n`, `\"` or `&lt;` in the place of the character itself.
    Escape,
}

/// Blanks that differ between a line of a file and what was expected there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlankDifference {
    /// The line of the file.
    pub file_line: usize,
    /// The character of the file's line, from 1, at which they begin.
    pub column: usize,
    /// The blanks that were expected there, in words, such as `4 spaces`.
    pub expected: String,
    /// Those that are there.
    pub found: String,
}

impl Difference {
    pub(crate) fn new(file_line: usize, expected: String, found: Option<String>) -> Self {
        Self { file_line, expected, found, mistake: None }
    }

    pub(crate) fn with_mistake(mut self, mistake: Option<Mistake>) -> Self {
        self.mistake = mistake;
        self
    }
}

impl Mistake {
    /// The mistake that made `expected` of a line, if one did. Blanks at both ends are forgiven anyway.
    pub(crate) fn of(file_line: usize, expected: &[u8], found: &[u8]) -> Option<Self> {
        let (expected, found) = (std::str::from_utf8(expected).ok()?, std::str::from_utf8(found).ok()?);
        let (wanted, line) = (expected.trim(), found.trim());
        if is_ellipsis(wanted) {
            return Some(Self::Ellipsis);
        }
        if line.is_empty() || wanted == line {
            return None;
        }
        if let Some(mut blanks) = BlankDifference::of(file_line, wanted, line) {
            blanks.column += found.chars().count() - found.trim_start().chars().count();
            return Some(Self::Blanks(Box::new(blanks)));
        }
        if wanted.to_lowercase() == line.to_lowercase() {
            return Some(Self::Case);
        }
        if without_number(expected).is_some_and(|text| text.trim() == line) {
            return Some(Self::LineNumber);
        }
        let plain = unescaped(wanted);
        let first = plain.lines().next().unwrap_or_default().trim();
        (plain != wanted && (first == line || plain == line)).then_some(Self::Escape)
    }
}

impl BlankDifference {
    /// Where line `file_line` of a file, `found`, differs from what was expected there, if it is in blanks alone.
    #[must_use]
    pub fn of(file_line: usize, expected: &str, found: &str) -> Option<Self> {
        let words = |line: &str| line.chars().filter(|character| !is_blank(*character)).collect::<String>();
        if expected == found || words(expected) != words(found) {
            return None;
        }
        let pairs = expected.chars().zip(found.chars());
        let shared: Vec<char> =
            pairs.take_while(|(left, right)| left == right).map(|(left, _)| left).collect();
        let start = shared.len() - shared.iter().rev().take_while(|character| is_blank(**character)).count();
        let run =
            |line: &str| line.chars().skip(start).take_while(|character| is_blank(*character)).collect();
        let (expected, found): (String, String) = (run(expected), run(found));
        let (expected, found) = (blanks_in_words(&expected), blanks_in_words(&found));
        Some(Self { file_line, column: start + 1, expected, found })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "first difference at line {}:", self.file_line)?;
        writeln!(f, "  expected: `{}`", self.expected)?;
        match &self.found {
            Some(found) => write!(f, "  found:    `{found}`")?,
            None => f.write_str("  found:    the end of the file")?,
        }
        self.mistake.as_ref().map_or(Ok(()), |mistake| write!(f, "\n  {mistake}"))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blanks(blanks) => {
                let BlankDifference { column, expected, found, .. } = blanks.as_ref();
                return write!(
                    f,
                    "only blanks differ: at column {column} expected {expected}, found {found}"
                );
            }
            Self::Case => "only upper and lower case differ",
            Self::Ellipsis => "an ellipsis stands for no lines: give every line as the file has it",
            Self::LineNumber => "line numbers are no part of the file: give its lines without them",
            Self::Escape => "escapes are taken as they stand: give the characters themselves",
        })
    }
}

impl fmt::Display for BlankDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file_line, column, expected, found } = self;
        write!(f, "at line {file_line}, column {column}, expected {expected}, found {found}")
    }
}

/// The lines as they are in a file if they were copied with their numbers, or as one line with escaped line ends.
pub(crate) fn as_meant<'a>(lines: &[&'a [u8]]) -> Vec<Cow<'a, [u8]>> {
    let texts: Option<Vec<&str>> = lines.iter().map(|line| std::str::from_utf8(line).ok()).collect();
    let texts = texts.unwrap_or_default();
    let plain: Option<Vec<&str>> = texts.iter().map(|text| without_number(text)).collect();
    if let Some(plain) = plain.filter(|plain| !plain.is_empty()) {
        return plain.into_iter().map(|text| Cow::Borrowed(text.as_bytes())).collect();
    }
    match texts.as_slice() {
        [text] if text.contains("\\n") => {
            unescaped(text).lines().map(|line| Cow::Owned(line.as_bytes().to_vec())).collect()
        }
        _ => lines.iter().map(|line| Cow::Borrowed(*line)).collect(),
    }
}

/// A line without the number before it, if there is one.
fn without_number(line: &str) -> Option<&str> {
    let numbered = line.trim_start();
    let rest = numbered.trim_start_matches(|character: char| character.is_ascii_digit());
    if rest.len() == numbered.len() {
        return None;
    }
    let rest = if rest == " |" { " | " } else { rest };
    AFTER_NUMBER.iter().find_map(|separator| rest.strip_prefix(separator))
}

fn is_ellipsis(line: &str) -> bool {
    let inner = COMMENT_STARTS.iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line).trim_start();
    let rest = inner.strip_prefix("...").or_else(|| inner.strip_prefix('…'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn unescaped(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

/// Blanks in words, such as `1 tab and 2 spaces`.
pub(crate) fn blanks_in_words(blanks: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for blank in blanks.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == blank => *count += 1,
            _ => runs.push((blank, 1)),
        }
    }
    let words: Vec<String> = runs.iter().map(|(blank, count)| counted(*blank, *count)).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" and ") }
}

fn counted(blank: char, count: usize) -> String {
    let name = if blank == '\t' { "tab" } else { "space" };
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_mistakes_are_told_from_plain_differences() {
        let rows = [
            ("x    = 1", "  x\t= 1", "only blanks differ: at column 4 expected 4 spaces, found 1 tab"),
            ("f(a,b)", "f(a, b)", "only blanks differ: at column 5 expected none, found 1 space"),
            (
                "a \t b",
                "a b",
                "only blanks differ: at column 2 expected 1 space and 1 tab and 1 space, found 1 space",
            ),
            ("Return x", "return x", "only upper and lower case differ"),
            ("    // ...", "a", "an ellipsis stands for no lines: give every line as the file has it"),
            ("# ... the rest ...", "", "an ellipsis stands for no lines: give every line as the file has it"),
            ("…", "b", "an ellipsis stands for no lines: give every line as the file has it"),
            (" 12 | a = 1", "  a = 1", "line numbers are no part of the file: give its lines without them"),
            ("    12→\ta", "\ta", "line numbers are no part of the file: give its lines without them"),
            ("12:a", "a", "line numbers are no part of the file: give its lines without them"),
            ("a\\n    b", "a", "escapes are taken as they stand: give the characters themselves"),
            (
                "if (a &lt; b)",
                "if (a < b)",
                "escapes are taken as they stand: give the characters themselves",
            ),
            (
                "say(\\\"x\\\")",
                "say(\"x\")",
                "escapes are taken as they stand: give the characters themselves",
            ),
            ("a = 1", "a = 2", ""),
            ("...rest,", "...args,", ""),
            ("12 apples", "apples", ""),
            ("", "a", ""),
            ("a", "", ""),
        ];
        for (expected, found, told) in rows {
            let mistake = Mistake::of(1, expected.as_bytes(), found.as_bytes());
            assert_eq!(mistake.map_or(String::new(), |mistake| mistake.to_string()), told, "{expected:?}");
        }
    }

    #[test]
    fn lines_are_taken_as_they_were_meant() {
        let meant = |lines: &[&str]| {
            let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            let meant = as_meant(&lines);
            meant.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(meant(&[" 9 | a", "10 | ", "11 |"]), ["a", "", ""]);
        assert_eq!(meant(&["9: a", "b"]), ["9: a", "b"], "not all of them have a number");
        assert_eq!(meant(&["a\\n\\tb"]), ["a", "\tb"]);
        assert_eq!(meant(&["a\\n", "b"]), ["a\\n", "b"]);
        assert_eq!(meant(&[]), [""; 0]);
    }
}
