//! Text that a file has with other blanks.

use pintle_patch::WhitespaceDifference;

use super::replace::list_lines;

/// The most bytes of a file that are searched: the blanks of a longer one are not what people look at.
const MAX_SEARCHED: usize = 1 << 20;

/// Where a file has a text, if spaces and tabs do not count.
pub(super) struct OtherBlanks {
    /// The lines, from 1, at which it begins.
    lines: Vec<usize>,
    /// The first blanks that differ at the first of them.
    difference: WhitespaceDifference,
}

impl OtherBlanks {
    /// Looks for `old` in a file whose line ends are `\n`.
    pub(super) fn find(file: &[u8], old: &str) -> Option<Self> {
        let file = std::str::from_utf8(file).ok().filter(|file| file.len() <= MAX_SEARCHED)?;
        let dense: String = file.chars().filter(|character| !is_blank(*character)).collect();
        let wanted: String = old.chars().filter(|character| !is_blank(*character)).collect();
        if wanted.trim().is_empty() {
            return None;
        }
        // What stands before a place is as many characters that are no blanks.
        let places = dense.match_indices(&wanted).map(|(at, _)| at);
        let counts = counted_up_to(&dense, places, |between| between.chars().count());
        let mut starts = place_of(file, &counts).into_iter();
        let start = starts.next()?;
        let difference = difference(file, old, start, wanted.chars().count())?;
        let starts = std::iter::once(start).chain(starts);
        let feeds = counted_up_to(file, starts, |between| between.matches('\n').count());
        Some(Self { lines: feeds.into_iter().map(|feeds| feeds + 1).collect(), difference })
    }

    /// What the model should know of it.
    pub(super) fn describe(&self, path: &str) -> String {
        let WhitespaceDifference { file_line, column, expected, found, .. } = &self.difference;
        format!(
            "old_string does not occur in {path}; with other blanks it does, at {}. Give them as the file has them: \
             in line {file_line}, column {column}, old_string has {expected}, the file {found}",
            list_lines(&self.lines)
        )
    }
}

/// How much stands before each of some ascending places, looking at the text once.
fn counted_up_to(
    text: &str,
    places: impl Iterator<Item = usize>,
    count: impl Fn(&str) -> usize,
) -> Vec<usize> {
    let (mut done, mut counted) = (0, 0);
    places
        .map(|place| {
            counted += count(text.get(done..place).unwrap_or_default());
            done = place;
            counted
        })
        .collect()
}

/// The bytes at which the characters stand that have so many before them, blanks not counted; `counts` ascend.
fn place_of(file: &str, counts: &[usize]) -> Vec<usize> {
    let mut dense =
        file.char_indices().filter(|(_, character)| !is_blank(*character)).map(|(at, _)| at).enumerate();
    counts.iter().filter_map(|count| dense.find(|(number, _)| number == count).map(|(_, at)| at)).collect()
}

/// The first blanks in which `old` differs from the file, where it begins at `start` and has `length` other characters.
fn difference(file: &str, old: &str, start: usize, length: usize) -> Option<WhitespaceDifference> {
    let (before, rest) = file.split_at_checked(start)?;
    let last = rest.char_indices().filter(|(_, character)| !is_blank(*character)).nth(length - 1);
    let end = last.map(|(at, character)| at + character.len_utf8())?;
    // Blanks around the text belong to it where it has some itself.
    let leading = if old.starts_with(is_blank) { before.trim_end_matches(is_blank).len() } else { start };
    let after = rest.get(end..)?;
    let trailing =
        if old.ends_with(is_blank) { after.len() - after.trim_start_matches(is_blank).len() } else { 0 };
    let found = file.get(leading..start + end + trailing)?;
    let line_start = file.get(..leading)?.rfind('\n').map_or(0, |feed| feed + 1);
    let first_line = file.get(..leading)?.matches('\n').count() + 1;
    let pairs = old.split('\n').zip(found.split('\n')).enumerate();
    let mut differences = pairs.filter_map(|(at, (old, found))| {
        let mut difference = WhitespaceDifference::of(first_line + at, old, found)?;
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
    fn the_first_blanks_that_differ_are_named() {
        let rows = [
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
        for (file, old, lines, difference) in rows {
            let found = OtherBlanks::find(file.as_bytes(), old).unwrap_or_else(|| panic!("{old:?}"));
            let expected = format!(
                "old_string does not occur in f; with other blanks it does, at {lines}. Give them as the file has them: in {difference}"
            );
            assert_eq!(found.describe("f"), expected);
        }
    }

    /// This takes long where each place is counted from the beginning of the file.
    #[test]
    fn many_places_cost_no_more_than_the_file() {
        let file = "é\"a\": 1,\n".repeat(90_000);
        let found = OtherBlanks::find(file.as_bytes(), "\"a\":1").unwrap();
        assert_eq!((found.lines.len(), found.lines.last()), (90_000, Some(&90_000)));
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        for (file, old) in [("a\nb", "a b c"), ("a", "  "), ("a\nb", "a b"), ("", "a")] {
            assert!(OtherBlanks::find(file.as_bytes(), old).is_none(), "{old:?}");
        }
        assert!(OtherBlanks::find(b"\xFF a", "a").is_none());
    }
}
