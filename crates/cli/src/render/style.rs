//! Capabilities of standard output.

use std::borrow::Cow;

use super::diff;
use super::line::{Depth, Face, Line};
use super::sanitize::escape_hidden;
use super::word_wrap::wrap;

/// Capabilities of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether it is a terminal, which interprets control characters.
    pub(crate) terminal: bool,
    /// Whether to use colours.
    pub(crate) colour: bool,
    /// Whether the cursor can be moved, as the live region requires.
    pub(crate) moves: bool,
}

impl Style {
    /// Not a terminal.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { terminal: false, colour: false, moves: false };

    /// Returns the supported colours.
    pub(super) fn depth(self) -> Depth {
        if self.colour { Depth::Sixteen } else { Depth::Plain }
    }

    /// Formats text with one face. The text must be one line.
    pub(super) fn paint(self, text: &str, face: Face) -> String {
        Line::new(text, face).to_terminal(self.depth())
    }

    /// Formats text that is the entire output. On a terminal it is sanitized and wrapped at `columns`; elsewhere it is
    /// unchanged.
    pub(crate) fn body(self, text: &str, columns: Option<usize>) -> Cow<'_, str> {
        if self.terminal { Cow::Owned(wrap(text, columns)) } else { Cow::Borrowed(text) }
    }

    /// Formats a line of a unified diff, with hidden characters escaped.
    pub(crate) fn diff_line(self, line: &str) -> String {
        let line = &*escape_hidden(line);
        self.paint(line, diff::face(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_depends_on_the_terminal() {
        let terminal = Style { terminal: true, colour: true, moves: true };
        let plain = Style::PLAIN;
        assert_eq!(terminal.paint("ok", Face::SUCCESS), "\x1b[32mok\x1b[0m");
        assert_eq!(plain.paint("ok", Face::SUCCESS), "ok");
        assert_eq!(terminal.body("a\x1b[2Jb\r\n\tc\u{9b}\u{202e}", None), "a[2Jb\n\tc");
        assert_eq!(plain.body("a\x1b[2J\r\n", None), "a\x1b[2J\r\n");
        assert_eq!(plain.diff_line("+a\x1b[2Jb\rc"), "+a\\u{1b}[2Jb\\rc");
    }

    #[test]
    fn diff_lines_are_coloured() {
        let style = Style { terminal: true, colour: true, moves: true };
        let coloured = ["--- a/x", "@@ -1 +1 @@", "-old", "+new", " same"].map(|line| style.diff_line(line));
        let expected = [
            "\x1b[1m--- a/x\x1b[0m",
            "\x1b[36m@@ -1 +1 @@\x1b[0m",
            "\x1b[31m-old\x1b[0m",
            "\x1b[32m+new\x1b[0m",
            " same",
        ];
        assert_eq!(coloured, expected);
    }
}
