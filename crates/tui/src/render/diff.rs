//! Unified diffs as lines, with marks on the words that differ between two lines.

use std::ops::Range;

use pintle_host::sanitize::{diff_lines, escape_hidden};
use pintle_patch::diff_parts;
use unicode_segmentation::UnicodeSegmentation as _;

use super::line::{Face, StyledLine};
use super::wrap::expand_tabs;

/// Maximum length of a line, in characters. Longer lines have no marks, and are truncated where no user decides on them.
const MAX_LINE_CHARS: usize = 500;

/// Maximum number of line pairs in a diff that are compared word by word.
const MAX_PAIRS: usize = 200;

/// Minimum share of equal text in a pair of lines, in percent. Pairs with less are not marked.
const MIN_SAME: usize = 40;

/// Returns the lines of a diff with tabs expanded.
pub(crate) fn diff(diff: &str) -> Vec<StyledLine> {
    lines(diff, expand_tabs)
}

/// Returns the complete lines of a diff with tabs expanded, for a user who decides on it.
pub(super) fn complete(diff: &str) -> Vec<StyledLine> {
    lines_up_to(diff, usize::MAX, expand_tabs)
}

/// Returns the lines of a diff. Removed lines are compared with the added lines below them, in order. `with_tabs` formats
/// the tabs of a line after its sign.
pub(super) fn lines(diff: &str, with_tabs: impl Fn(&str) -> String) -> Vec<StyledLine> {
    lines_up_to(diff, MAX_LINE_CHARS, with_tabs)
}

fn lines_up_to(diff: &str, max_chars: usize, with_tabs: impl Fn(&str) -> String) -> Vec<StyledLine> {
    let texts: Vec<String> = diff_lines(diff).map(|line| render_line(line, max_chars, &with_tabs)).collect();
    let mut lines = Vec::with_capacity(texts.len());
    let mut rest = texts.as_slice();
    let mut pairs = MAX_PAIRS;
    while let Some((first, after)) = rest.split_first() {
        let removed = count(rest, '-');
        let (old, below) = rest.split_at(removed);
        let added = count(below, '+');
        if removed == 0 || added == 0 {
            lines.push(line(first));
            rest = after;
            continue;
        }
        let (new, below) = below.split_at(added);
        let compared = removed.min(added).min(pairs);
        pairs -= compared;
        let (old_lines, new_lines): (Vec<StyledLine>, Vec<StyledLine>) =
            old.iter().zip(new).take(compared).map(|(old, new)| pair(old, new)).unzip();
        lines.extend(old_lines);
        lines.extend(old.iter().skip(compared).map(|text| line(text)));
        lines.extend(new_lines);
        lines.extend(new.iter().skip(compared).map(|text| line(text)));
        rest = below;
    }
    lines
}

fn render_line(line: &str, max_chars: usize, with_tabs: impl Fn(&str) -> String) -> String {
    let line = match line.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    };
    // Tab stops count from the column after the sign.
    let signed = line.split_at_checked(1).filter(|(sign, _)| ["+", "-", " "].contains(sign));
    let (sign, text) = signed.unwrap_or(("", &line));
    format!("{sign}{}", with_tabs(&escape_hidden(text)))
}

/// Returns the number of leading lines with this sign. File headers, which start with three signs and a blank, do not
/// count.
fn count(lines: &[String], sign: char) -> usize {
    let is_name = |line: &str| line.starts_with("--- ") || line.starts_with("+++ ");
    lines.iter().take_while(|line| line.starts_with(sign) && !is_name(line)).count()
}

fn line(text: &str) -> StyledLine {
    StyledLine::new(text, face(text))
}

/// Returns the face of a line of a unified diff.
pub(super) fn face(line: &str) -> Face {
    if line.starts_with("+++ ") || line.starts_with("--- ") {
        Face::BOLD
    } else if line.starts_with("@@ ") {
        Face::LOCATION
    } else if line.starts_with('+') {
        Face::SUCCESS
    } else if line.starts_with('-') {
        Face::FAILURE
    } else {
        Face::PLAIN
    }
}

/// Returns a removed and an added line, with the differing words marked.
fn pair(old: &str, new: &str) -> (StyledLine, StyledLine) {
    let is_cut = |line: &str| line.chars().nth(MAX_LINE_CHARS).is_some();
    if is_cut(old) || is_cut(new) {
        return (line(old), line(new));
    }
    let (old_words, new_words) = (words(old), words(new));
    let parts = diff_parts(&old_words, &new_words);
    let equal = parts.iter().filter(|part| part.is_equal);
    let same: usize = equal.map(|part| text(&old_words, part.old.clone()).len()).sum();
    if 2 * same * 100 < (old.len() + new.len()) * MIN_SAME {
        return (line(old), line(new));
    }
    let mut removed = StyledLine::new("-", Face::FAILURE);
    let mut added = StyledLine::new("+", Face::SUCCESS);
    for part in parts {
        let mark = if part.is_equal { Face::PLAIN } else { Face::REVERSED };
        removed.push(text(&old_words, part.old), Face::FAILURE.and(mark));
        added.push(text(&new_words, part.new), Face::SUCCESS.and(mark));
    }
    (removed, added)
}

/// Returns the words of a line and the characters between them, without the sign. Grapheme clusters are kept together.
fn words(line: &str) -> Vec<&str> {
    let text = line.get(1..).unwrap_or_default();
    let is_word = |cluster: &str| cluster.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    let mut words = Vec::new();
    let mut start = 0;
    let mut clusters = text.grapheme_indices(true).peekable();
    while let Some((index, cluster)) = clusters.next() {
        let next = clusters.peek();
        if is_word(cluster) && next.is_some_and(|(_, next)| is_word(next)) {
            continue;
        }
        let end = next.map_or(text.len(), |(next, _)| *next).max(index);
        words.extend(text.get(start..end));
        start = end;
    }
    words
}

/// Returns the text of a range of words.
fn text(words: &[&str], range: Range<usize>) -> String {
    words.get(range).unwrap_or_default().concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::line::Depth;

    /// Returns the lines of a diff, with angle brackets around what is marked.
    fn marked(text: &str) -> Vec<String> {
        let mark = |span: &crate::render::line::Span| {
            if span.face.reversed { format!("<{}>", span.text) } else { span.text.clone() }
        };
        diff(text).iter().map(|line| line.spans().iter().map(mark).collect()).collect()
    }

    #[test]
    fn changed_words_within_a_line_are_marked() {
        let cases: [(&str, &[&str]); 8] = [
            ("-let total = 1;\n+let total = 12;\n", &["-let total = <1>;", "+let total = <12>;"]),
            ("-a(x, y, z)\n+b(x, y, w)\n", &["-<a>(x, y, <z>)", "+<b>(x, y, <w>)"]),
            ("-one two\n+one big two\n", &["-one two", "+one <big >two"]),
            ("-\tgone\n+\u{202e}new line\n", &["-    gone", "+\\u{202e}new line"]),
            // The first of each are compared, whatever follows.
            ("-same a\n+same b\n+more\n", &["-same <a>", "+same <b>", "+more"]),
            ("-same a\n-less\n+same b\n", &["-same <a>", "-less", "+same <b>"]),
            ("+only\n-gone\n", &["+only", "-gone"]),
            ("-cafe\u{301} is here\n+cafe is here\n", &["-<cafe\u{301}> is here", "+<cafe> is here"]),
        ];
        for (text, expected) in cases {
            assert_eq!(marked(text), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_are_coloured_by_their_sign() {
        let shown = diff("--- a/x\n@@ -1 +1 @@\n-old\n+new\n same\n+a\x1b[2Jb\rc\n");
        let shown: Vec<String> = shown.iter().map(|line| line.to_terminal(Depth::Sixteen)).collect();
        let expected = [
            "\x1b[1m--- a/x\x1b[0m",
            "\x1b[36m@@ -1 +1 @@\x1b[0m",
            "\x1b[31m-old\x1b[0m",
            "\x1b[32m+new\x1b[0m",
            " same",
            "\x1b[32m+a\\u{1b}[2Jb\\rc\x1b[0m",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn heads_and_unchanged_lines_have_no_marks() {
        let text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n same\n--- a\n+++ b\n";
        assert_eq!(marked(text), text.lines().collect::<Vec<_>>());
        assert_eq!(diff(""), [StyledLine::default()]);
    }

    #[test]
    fn long_lines_and_long_diffs_are_shown_without_marks() {
        let long = format!("-{}\n+{}b\n", "a ".repeat(MAX_LINE_CHARS), "a ".repeat(MAX_LINE_CHARS));
        let shown = marked(&long);
        assert!(shown.iter().all(|line| line.ends_with('…') && !line.contains('<')), "{shown:?}");
        let many: String = (0..MAX_PAIRS + 10).map(|_| "-x = 1\n+x = 2\n").collect();
        let shown = marked(&many);
        assert_eq!(shown.len(), 2 * (MAX_PAIRS + 10));
        assert_eq!(shown.iter().filter(|line| line.contains('<')).count(), 2 * MAX_PAIRS);
    }
}
