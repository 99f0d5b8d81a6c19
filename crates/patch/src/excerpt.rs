//! Bounded, printable excerpts of lines and paths for messages.

use std::borrow::Cow;

/// Maximum number of characters shown of a line.
const MAX_CHARACTERS: usize = 120;
/// Maximum number of bytes shown of a path.
const MAX_PATH_BYTES: usize = 512;
/// Bytes shown before the point of interest if the start of the line is cut.
const LEADING_BYTES: usize = 30;

/// Returns the start of a line.
pub(crate) fn excerpt(line: &[u8]) -> String {
    excerpt_around(line, 0)
}

/// Returns the part of a line around byte `point`, so that a late difference between two long lines is visible.
pub(crate) fn excerpt_around(line: &[u8], point: usize) -> String {
    let from = if point < MAX_CHARACTERS - LEADING_BYTES {
        0
    } else {
        start_of_character(line, point - LEADING_BYTES)
    };
    // A character has at most four bytes, so the shown part is not cut here.
    let window = line.get(from..).unwrap_or_default();
    let window = window.get(..MAX_CHARACTERS * 4 + 4).unwrap_or(window);
    let shown = String::from_utf8_lossy(window);
    let mut text = String::from(if from > 0 { "…" } else { "" });
    let mut characters = shown.chars();
    for character in characters.by_ref().take(MAX_CHARACTERS) {
        match character {
            '\t' => text.push('\t'),
            _ if character.is_control() => text.extend(character.escape_default()),
            _ => text.push(character),
        }
    }
    if characters.next().is_some() {
        text.push('…');
    }
    text
}

/// Returns a path. The middle of an unreasonably long one is cut out.
pub(crate) fn excerpt_of_path(path: &str) -> Cow<'_, str> {
    if path.len() <= MAX_PATH_BYTES {
        return Cow::Borrowed(path);
    }
    let is_boundary = |at: &usize| path.is_char_boundary(*at);
    let head = (0..=MAX_PATH_BYTES / 2).rev().find(is_boundary).and_then(|end| path.get(..end));
    let tail =
        (path.len() - MAX_PATH_BYTES / 2..path.len()).find(is_boundary).and_then(|start| path.get(start..));
    Cow::Owned(format!("{}…{}", head.unwrap_or_default(), tail.unwrap_or_default()))
}

/// Returns the number of leading bytes that two lines share.
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

fn start_of_character(line: &[u8], near: usize) -> usize {
    let is_continuation = |at: usize| line.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    (near.saturating_sub(3)..=near).rev().find(|&at| !is_continuation(at)).unwrap_or(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_cut_around_the_point() {
        assert_eq!(excerpt(b"short"), "short");
        let long = format!("{}é{}", "a".repeat(500), "b".repeat(500));
        let shown = excerpt_around(long.as_bytes(), 501);
        assert!(shown.starts_with("…a") && shown.contains("é") && shown.ends_with("b…"));
        assert!(shown.chars().count() <= MAX_CHARACTERS + 2);
    }

    #[test]
    fn a_path_keeps_both_ends() {
        let whole = "d/".repeat(MAX_PATH_BYTES / 2);
        assert_eq!(excerpt_of_path(&whole), whole);
        let long = format!("src/{}/name.rs", "é".repeat(MAX_PATH_BYTES));
        let shown = excerpt_of_path(&long);
        assert!(
            shown.starts_with("src/é") && shown.contains("é…é") && shown.ends_with("é/name.rs"),
            "{shown}"
        );
        assert!((MAX_PATH_BYTES - 2..MAX_PATH_BYTES + 4).contains(&shown.len()), "{}", shown.len());
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(excerpt(b"a\tb\x00\x1b\xFF"), "a\tb\\u{0}\\u{1b}\u{FFFD}");
    }
}
