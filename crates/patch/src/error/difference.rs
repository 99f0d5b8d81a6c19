//! First difference between a file and the expected lines, and the common mistake that explains it.

use std::borrow::Cow;
use std::fmt;

/// Separators between line number and text in listings of our tools, of other tools and of searches.
const AFTER_NUMBER: [&str; 5] = [" | ", "\t", "→", "|", ":"];

/// Starts of comments that may precede an ellipsis.
const COMMENT_STARTS: [&str; 6] = ["//", "#", "/*", "--", "<!--", ";"];

/// Escapes of characters in strings and markup.
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

/// First line in which the file differs from the lines of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// Line of the file.
    pub file_line: usize,
    /// Text that the hunk expects there, shortened.
    pub expected: String,
    /// Text found there, shortened; `None` past the last line.
    pub found: Option<String>,
    /// The common mistake that explains it, if any.
    pub mistake: Option<Mistake>,
}

/// Common mistake in a line quoted from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mistake {
    /// Different whitespace.
    Whitespace(Box<WhitespaceDifference>),
    /// Upper case instead of lower case, or vice versa.
    Case,
    /// `...` instead of omitted lines.
    Ellipsis,
    /// A line number, as in a listing, before the text.
    LineNumber,
    /// `\n`, `\"` or `&lt;` instead of the character itself.
    Escape,
}

/// Difference in whitespace between a line of a file and the expected line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WhitespaceDifference {
    /// Line of the file.
    pub file_line: usize,
    /// Column of the file's line at which the difference starts, in characters from 1.
    pub column: usize,
    /// Expected whitespace as text, such as `4 spaces`.
    pub expected: String,
    /// Whitespace found, as text.
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
    /// Returns the mistake that explains the difference between `expected` and `found`, if there is one. Whitespace at
    /// both ends is ignored, as in matching.
    pub(crate) fn classify(file_line: usize, expected: &[u8], found: &[u8]) -> Option<Self> {
        let (expected, found) = (std::str::from_utf8(expected).ok()?, std::str::from_utf8(found).ok()?);
        let (wanted, line) = (expected.trim(), found.trim());
        if is_ellipsis(wanted) {
            return Some(Self::Ellipsis);
        }
        if line.is_empty() || wanted == line {
            return None;
        }
        if let Some(mut difference) = WhitespaceDifference::compare(file_line, wanted, line) {
            difference.column += found.chars().count() - found.trim_start().chars().count();
            return Some(Self::Whitespace(Box::new(difference)));
        }
        if wanted.to_lowercase() == line.to_lowercase() {
            return Some(Self::Case);
        }
        if strip_line_number(expected).is_some_and(|text| text.trim() == line) {
            return Some(Self::LineNumber);
        }
        let plain = unescape(wanted);
        let first = plain.lines().next().unwrap_or_default().trim();
        (plain != wanted && (first == line || plain == line)).then_some(Self::Escape)
    }
}

impl WhitespaceDifference {
    /// Compares `found`, line `file_line` of a file, with the expected line. `None` unless they differ only in spaces
    /// and tabs.
    #[must_use]
    pub fn compare(file_line: usize, expected: &str, found: &str) -> Option<Self> {
        let words =
            |line: &str| line.chars().filter(|character| !is_space_or_tab(*character)).collect::<String>();
        if expected == found || words(expected) != words(found) {
            return None;
        }
        let pairs = expected.chars().zip(found.chars());
        let shared: Vec<char> =
            pairs.take_while(|(left, right)| left == right).map(|(left, _)| left).collect();
        let start =
            shared.len() - shared.iter().rev().take_while(|character| is_space_or_tab(**character)).count();
        let run = |line: &str| {
            line.chars().skip(start).take_while(|character| is_space_or_tab(*character)).collect()
        };
        let (expected, found): (String, String) = (run(expected), run(found));
        let (expected, found) = (describe_whitespace(&expected), describe_whitespace(&found));
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
            Self::Whitespace(difference) => {
                let WhitespaceDifference { column, expected, found, .. } = difference.as_ref();
                return write!(
                    f,
                    "only blanks differ: at column {column} expected {expected}, found {found}"
                );
            }
            Self::Case => "only upper and lower case differ",
            Self::Ellipsis => "an ellipsis is not expanded: quote every line as it is in the file",
            Self::LineNumber => "line numbers are not part of the file: quote its lines without them",
            Self::Escape => "escapes are not decoded: write the characters themselves",
        })
    }
}

impl fmt::Display for WhitespaceDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file_line, column, expected, found } = self;
        write!(f, "at line {file_line}, column {column}, expected {expected}, found {found}")
    }
}

/// Corrects two mistakes that affect whole hunks: lines copied with their numbers, and lines joined by escaped
/// newlines.
pub(crate) fn undo_common_mistakes<'a>(lines: &[&'a [u8]]) -> Vec<Cow<'a, [u8]>> {
    let texts: Option<Vec<&str>> = lines.iter().map(|line| std::str::from_utf8(line).ok()).collect();
    let texts = texts.unwrap_or_default();
    let plain: Option<Vec<&str>> = texts.iter().map(|text| strip_line_number(text)).collect();
    if let Some(plain) = plain.filter(|plain| !plain.is_empty()) {
        return plain.into_iter().map(|text| Cow::Borrowed(text.as_bytes())).collect();
    }
    match texts.as_slice() {
        [text] if text.contains("\\n") => {
            unescape(text).lines().map(|line| Cow::Owned(line.as_bytes().to_vec())).collect()
        }
        _ => lines.iter().map(|line| Cow::Borrowed(*line)).collect(),
    }
}

/// Strips the line number before a line; `None` if the line has no number.
fn strip_line_number(line: &str) -> Option<&str> {
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

fn unescape(text: &str) -> String {
    ESCAPES.iter().fold(text.to_owned(), |text, (escape, character)| text.replace(escape, character))
}

/// Describes whitespace as text, such as `1 tab and 2 spaces`.
pub(crate) fn describe_whitespace(whitespace: &str) -> String {
    let mut runs: Vec<(char, usize)> = Vec::new();
    for character in whitespace.chars() {
        match runs.last_mut() {
            Some((last, count)) if *last == character => *count += 1,
            _ => runs.push((character, 1)),
        }
    }
    let words: Vec<String> = runs.iter().map(|(character, count)| describe_run(*character, *count)).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" and ") }
}

fn describe_run(character: char, count: usize) -> String {
    let name = if character == '\t' { "tab" } else { "space" };
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

fn is_space_or_tab(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_mistakes_are_recognized() {
        let cases = [
            ("x    = 1", "  x\t= 1", "only blanks differ: at column 4 expected 4 spaces, found 1 tab"),
            ("f(a,b)", "f(a, b)", "only blanks differ: at column 5 expected none, found 1 space"),
            (
                "a \t b",
                "a b",
                "only blanks differ: at column 2 expected 1 space and 1 tab and 1 space, found 1 space",
            ),
            ("Return x", "return x", "only upper and lower case differ"),
            ("    // ...", "a", "an ellipsis is not expanded: quote every line as it is in the file"),
            ("# ... the rest ...", "", "an ellipsis is not expanded: quote every line as it is in the file"),
            ("…", "b", "an ellipsis is not expanded: quote every line as it is in the file"),
            (" 12 | a = 1", "  a = 1", "line numbers are not part of the file: quote its lines without them"),
            ("    12→\ta", "\ta", "line numbers are not part of the file: quote its lines without them"),
            ("12:a", "a", "line numbers are not part of the file: quote its lines without them"),
            ("a\\n    b", "a", "escapes are not decoded: write the characters themselves"),
            ("if (a &lt; b)", "if (a < b)", "escapes are not decoded: write the characters themselves"),
            ("say(\\\"x\\\")", "say(\"x\")", "escapes are not decoded: write the characters themselves"),
            ("a = 1", "a = 2", ""),
            ("...rest,", "...args,", ""),
            ("12 apples", "apples", ""),
            ("", "a", ""),
            ("a", "", ""),
        ];
        for (expected, found, message) in cases {
            let mistake = Mistake::classify(1, expected.as_bytes(), found.as_bytes());
            assert_eq!(mistake.map_or(String::new(), |mistake| mistake.to_string()), message, "{expected:?}");
        }
    }

    #[test]
    fn line_numbers_and_escaped_newlines_are_undone() {
        let undone = |lines: &[&str]| {
            let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            let undone = undo_common_mistakes(&lines);
            undone.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(undone(&[" 9 | a", "10 | ", "11 |"]), ["a", "", ""]);
        assert_eq!(undone(&["9: a", "b"]), ["9: a", "b"], "not every line has a number");
        assert_eq!(undone(&["a\\n\\tb"]), ["a", "\tb"]);
        assert_eq!(undone(&["a\\n", "b"]), ["a\\n", "b"]);
        assert_eq!(undone(&[]), [""; 0]);
    }
}
