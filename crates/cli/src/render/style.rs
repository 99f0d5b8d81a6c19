//! Colours.

use std::borrow::Cow;

use super::sanitize::visible;
use super::prose::wrapped;

/// What the other end of standard output can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    /// Whether it is a terminal, which control characters could steer.
    pub(crate) terminal: bool,
    /// Whether to use colours.
    pub(crate) colour: bool,
    /// Whether its cursor can be moved, which lines that change need.
    pub(crate) moves: bool,
}

/// What a piece of text is, which decides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Highlight {
    /// What matters less: output of tools, closing line.
    Faint,
    /// The name of a tool, the header of a diff.
    Strong,
    /// A success, an added line.
    Good,
    /// A failure, a removed line.
    Bad,
    /// A place in a diff.
    Place,
}

impl Style {
    /// For a file, a pipe, and everything else that is no terminal.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { terminal: false, colour: false, moves: false };

    /// The text in its colour. It must be one line, printable.
    pub(super) fn ink(self, ink: Highlight, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Highlight::Faint => "2",
            Highlight::Strong => "1",
            Highlight::Good => "32",
            Highlight::Bad => "31",
            Highlight::Place => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// An answer that stands alone: on a terminal without what could steer it, else to the byte, for a program.
    /// There it is broken between words at so many columns, if they are known.
    pub(crate) fn answer(self, text: &str, columns: Option<usize>) -> Cow<'_, str> {
        if self.terminal { Cow::Owned(wrapped(text, columns)) } else { Cow::Borrowed(text) }
    }

    /// A line of a unified diff in its colour, with nothing hidden in it.
    pub(crate) fn diff_line(self, line: &str) -> String {
        let line = &*visible(line);
        Self::diff_highlight(line).map_or_else(|| line.to_owned(), |ink| self.ink(ink, line))
    }

    /// The colour of a line of a unified diff.
    pub(super) fn diff_highlight(line: &str) -> Option<Highlight> {
        if line.starts_with("+++ ") || line.starts_with("--- ") {
            Some(Highlight::Strong)
        } else if line.starts_with("@@ ") {
            Some(Highlight::Place)
        } else if line.starts_with('+') {
            Some(Highlight::Good)
        } else if line.starts_with('-') {
            Some(Highlight::Bad)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_and_control_characters_depend_on_the_terminal() {
        let terminal = Style { terminal: true, colour: true, moves: true };
        let plain = Style::PLAIN;
        assert_eq!(terminal.highlight(Highlight::Good, "ok"), "\x1b[32mok\x1b[0m");
        assert_eq!(plain.highlight(Highlight::Good, "ok"), "ok");
        assert_eq!(terminal.answer("a\x1b[2Jb\r\n\tc\u{9b}\u{202e}", None), "a[2Jb\n\tc");
        assert_eq!(plain.answer("a\x1b[2J\r\n", None), "a\x1b[2J\r\n");
        assert_eq!(plain.diff_line("+a\x1b[2Jb\rc"), "+a\\u{1b}[2Jb\\rc");
    }

    #[test]
    fn a_diff_is_coloured_line_by_line() {
        let style = Style { terminal: true, colour: true, moves: true };
        let shown = ["--- a/x", "@@ -1 +1 @@", "-old", "+new", " same"].map(|line| style.diff_line(line));
        let expected = [
            "\x1b[1m--- a/x\x1b[0m",
            "\x1b[36m@@ -1 +1 @@\x1b[0m",
            "\x1b[31m-old\x1b[0m",
            "\x1b[32m+new\x1b[0m",
            " same",
        ];
        assert_eq!(shown, expected);
    }
}
