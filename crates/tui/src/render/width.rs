//! Display width of text on a terminal.

use pintle_host::sanitize::sanitize;
use unicode_width::UnicodeWidthChar as _;

/// Returns the width of a line without tabs and control characters. Never too small for a terminal that follows Unicode,
/// but too large for joined sequences such as family emoji.
pub(crate) fn columns(line: &str) -> usize {
    line.chars().map(char_columns).sum()
}

/// Truncates a line to a width, with an ellipsis if it was cut.
pub(crate) fn truncate(line: &str, columns: usize) -> String {
    if self::columns(line) <= columns {
        return line.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let fits = |character: &char| {
        used += char_columns(*character);
        used <= room
    };
    let mut shown: String = line.chars().take_while(fits).collect();
    shown.push('…');
    shown
}

/// Returns the number of rows that a text takes. An empty last line does not count.
pub(crate) fn rows(text: &str, columns: usize) -> usize {
    text.lines().map(|line| self::columns(line).div_ceil(columns.max(1)).max(1)).sum()
}

/// Sanitizes a text and joins its lines, with tabs expanded, so that its width can be computed.
pub(crate) fn single_line(line: &str) -> String {
    sanitize(line).replace('\t', "    ").replace('\n', " ")
}

/// Returns the width of a character.
pub(crate) fn char_columns(character: char) -> usize {
    match character {
        // Turns the previous character, which may be one column wide, into a two-column emoji.
        '\u{FE0F}' => 1,
        _ => character.width().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_truncated_by_width() {
        let cases = [
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
        for (line, columns, expected) in cases {
            let truncated = truncate(line, columns);
            assert_eq!(truncated, expected, "{columns}");
            assert!(super::columns(&truncated) <= columns, "{truncated:?}");
        }
    }

    #[test]
    fn single_line_expands_tabs_and_sanitizes() {
        assert_eq!(single_line("a\tb\x1b[2J\r\n\u{9b}\u{202e}c"), "a    b[2J c");
    }
}
