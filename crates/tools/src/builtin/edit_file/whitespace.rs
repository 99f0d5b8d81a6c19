//! Search for text that occurs in a file with other whitespace.

use pintle_patch::WhitespaceDifference;

use super::replace::list_lines;

/// The largest file that is searched, in bytes.
const MAX_SEARCHED: usize = 1 << 20;

/// The occurrences of a text in a file, ignoring spaces and tabs.
pub(super) struct LooseOccurrences {
    /// The first line of each occurrence, from 1.
    lines: Vec<usize>,
    /// The first difference in whitespace at the first occurrence.
    difference: WhitespaceDifference,
}

impl LooseOccurrences {
    /// Searches a file with `\n` line ends for `old`.
    pub(super) fn find(file: &[u8], old: &str) -> Option<Self> {
        let file = std::str::from_utf8(file).ok().filter(|file| file.len() <= MAX_SEARCHED)?;
        let dense: String = file.chars().filter(|character| !is_blank(*character)).collect();
        let wanted: String = old.chars().filter(|character| !is_blank(*character)).collect();
        if wanted.trim().is_empty() {
            return None;
        }
        // The number of non-blank characters before an occurrence is the same in both texts.
        let offsets = dense.match_indices(&wanted).map(|(at, _)| at);
        let counts = cumulative_counts(&dense, offsets, |between| between.chars().count());
        let mut starts = offsets_after(file, &counts).into_iter();
        let start = starts.next()?;
        let difference = difference(file, old, start, wanted.chars().count())?;
        let starts = std::iter::once(start).chain(starts);
        let feeds = cumulative_counts(file, starts, |between| between.matches('\n').count());
        Some(Self { lines: feeds.into_iter().map(|feeds| feeds + 1).collect(), difference })
    }

    /// Returns the message for the model.
    pub(super) fn describe(&self, path: &str) -> String {
        let WhitespaceDifference { file_line, column, expected, found, .. } = &self.difference;
        format!(
            "old_string does not occur in {path}; with other blanks it does, at {}. Give them as the file has them: \
             in line {file_line}, column {column}, old_string has {expected}, the file {found}",
            list_lines(&self.lines)
        )
    }
}

/// Returns the count of the text before each of some ascending offsets, in one pass.
fn cumulative_counts(
    text: &str,
    offsets: impl Iterator<Item = usize>,
    count: impl Fn(&str) -> usize,
) -> Vec<usize> {
    let (mut done, mut counted) = (0, 0);
    offsets
        .map(|offset| {
            counted += count(text.get(done..offset).unwrap_or_default());
            done = offset;
            counted
        })
        .collect()
}

/// Returns the offset of the character after each number of non-blank characters; `counts` must ascend.
fn offsets_after(file: &str, counts: &[usize]) -> Vec<usize> {
    let mut dense =
        file.char_indices().filter(|(_, character)| !is_blank(*character)).map(|(at, _)| at).enumerate();
    counts.iter().filter_map(|count| dense.find(|(number, _)| number == count).map(|(_, at)| at)).collect()
}

/// Returns the first difference in whitespace between `old` and the file, where the text starts at `start` and has
/// `length` non-blank characters.
fn difference(file: &str, old: &str, start: usize, length: usize) -> Option<WhitespaceDifference> {
    let (before, rest) = file.split_at_checked(start)?;
    let last = rest.char_indices().filter(|(_, character)| !is_blank(*character)).nth(length - 1);
    let end = last.map(|(at, character)| at + character.len_utf8())?;
    // Surrounding whitespace belongs to the occurrence if `old` has some.
    let leading = if old.starts_with(is_blank) { before.trim_end_matches(is_blank).len() } else { start };
    let after = rest.get(end..)?;
    let trailing =
        if old.ends_with(is_blank) { after.len() - after.trim_start_matches(is_blank).len() } else { 0 };
    let found = file.get(leading..start + end + trailing)?;
    let line_start = file.get(..leading)?.rfind('\n').map_or(0, |feed| feed + 1);
    let first_line = file.get(..leading)?.matches('\n').count() + 1;
    let pairs = old.split('\n').zip(found.split('\n')).enumerate();
    let mut differences = pairs.filter_map(|(at, (old, found))| {
        let mut difference = WhitespaceDifference::compare(first_line + at, old, found)?;
        if at == 0 {
            difference.column += file.get(line_start..leading)?.chars().count();
        }
        Some(difference)
    });
    differences.next()
}

fn is_blank(character: char) -> bool {
    matches!(character, ' ' | '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_in_whitespace_is_reported() {
        let cases = [
            (
                "\tfor i {\n\t\tsay(i)\n",
                "    for i {\n        say",
                "line 1",
                "line 1, column 1, old_string has 4 spaces, the file 1 tab",
            ),
            (
                "a\nx = f(a,  b)\n",
                "f(a, b",
                "line 2",
                "line 2, column 9, old_string has 1 space, the file 2 spaces",
            ),
            (
                "é\tb\n\n c\n",
                "b\n\n  c",
                "line 1",
                "line 3, column 1, old_string has 2 spaces, the file 1 space",
            ),
            ("a \nb\n", "a\nb", "line 1", "line 1, column 2, old_string has none, the file 1 space"),
            (
                "a b\na b\n",
                "a  b",
                "lines 1, 2",
                "line 1, column 2, old_string has 2 spaces, the file 1 space",
            ),
            ("x\n  ab", "a b ", "line 2", "line 2, column 4, old_string has 1 space, the file none"),
        ];
        for (file, old, lines, difference) in cases {
            let found = LooseOccurrences::find(file.as_bytes(), old).unwrap_or_else(|| panic!("{old:?}"));
            let expected = format!(
                "old_string does not occur in f; with other blanks it does, at {lines}. Give them as the file has them: in {difference}"
            );
            assert_eq!(found.describe("f"), expected);
        }
    }

    /// Counting from the beginning of the file for each occurrence would take minutes.
    #[test]
    fn many_occurrences_take_linear_time() {
        let file = "é\"a\": 1,\n".repeat(90_000);
        let found = LooseOccurrences::find(file.as_bytes(), "\"a\":1").unwrap();
        assert_eq!((found.lines.len(), found.lines.last()), (90_000, Some(&90_000)));
    }

    #[test]
    fn missing_text_is_not_found() {
        for (file, old) in [("a\nb", "a b c"), ("a", "  "), ("a\nb", "a b"), ("", "a")] {
            assert!(LooseOccurrences::find(file.as_bytes(), old).is_none(), "{old:?}");
        }
        assert!(LooseOccurrences::find(b"\xFF a", "a").is_none());
    }
}
