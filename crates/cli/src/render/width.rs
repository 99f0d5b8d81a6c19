//! How many columns of a terminal a text takes.

use unicode_width::UnicodeWidthChar as _;

use super::sanitize::sanitize;

/// The columns of a line without tabs and control characters. Never too few for a terminal that follows Unicode; too
/// many for characters that are joined to one, such as families.
pub(super) fn of(line: &str) -> usize {
    line.chars().map(of_character).sum()
}

/// The line if it fits into so many columns, else its beginning and an ellipsis.
pub(super) fn cut(line: &str, columns: usize) -> String {
    if of(line) <= columns {
        return line.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let fits = |character: &char| {
        used += of_character(*character);
        used <= room
    };
    let mut shown: String = line.chars().take_while(fits).collect();
    shown.push('…');
    shown
}

/// The rows that a text takes on a window of so many columns, its last line included unless it is empty.
pub(super) fn rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| of(line).div_ceil(columns.max(1)).max(1)).sum()
}

/// A line of foreign text as it may stand in a line that is measured: tabs are spaces, and nothing steers.
pub(super) fn measurable(line: &str) -> String {
    sanitize(line).replace('\t', "    ").replace('\n', " ")
}

pub(super) fn of_character(character: char) -> usize {
    match character {
        // It makes an emoji of the character before it, which may be one column wide by itself.
        '\u{FE0F}' => 1,
        _ => character.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_by_columns() {
        let rows = [
            ("plain", 5, "plain"),
            ("plain", 4, "pla…"),
            ("日本語です", 10, "日本語です"),
            ("日本語です", 9, "日本語で…"),
            ("日本語です", 8, "日本語…"),
            ("e\u{301}e\u{301}e\u{301}", 3, "e\u{301}e\u{301}e\u{301}"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("❤\u{FE0F}ab", 3, "❤\u{FE0F}…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
            ("", 0, ""),
        ];
        for (line, columns, expected) in rows {
            let shown = cut(line, columns);
            assert_eq!(shown, expected, "{columns}");
            assert!(of(&shown) <= columns, "{shown:?}");
        }
    }

    #[test]
    fn what_is_measured_has_no_tabs_and_steers_nothing() {
        assert_eq!(measurable("a\tb\x1b[2J\r\n\u{9b}\u{202e}c"), "a    b[2J c");
    }
}
