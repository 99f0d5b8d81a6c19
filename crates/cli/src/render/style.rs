//! Colours and terminal capabilities.

use std::borrow::Cow;

use super::line::{Colour, Depth, Face};
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

/// Role of a piece of text, which determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Highlight {
    /// Secondary text: output of tools, footer.
    Dim,
    /// Tool name, file header of a diff, non-zero exit code of a command.
    Bold,
    /// Success, added line.
    Success,
    /// Failure, removed line.
    Failure,
    /// Hunk header of a diff, spinner.
    Location,
}

impl Highlight {
    /// Returns the face of the role.
    pub(super) fn face(self) -> Face {
        match self {
            Self::Dim => Face::DIM,
            Self::Bold => Face::BOLD,
            Self::Success => Face::coloured(Colour::Green),
            Self::Failure => Face::coloured(Colour::Red),
            Self::Location => Face::coloured(Colour::Cyan),
        }
    }
}

impl Style {
    /// Not a terminal.
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { terminal: false, colour: false, moves: false };

    /// Returns the supported colours.
    pub(super) fn depth(self) -> Depth {
        if self.colour { Depth::Sixteen } else { Depth::Plain }
    }

    /// Colours the text, which must be one line without control characters.
    pub(super) fn highlight(self, highlight: Highlight, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match highlight {
            Highlight::Dim => "2",
            Highlight::Bold => "1",
            Highlight::Success => "32",
            Highlight::Failure => "31",
            Highlight::Location => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Formats text that is the entire output. On a terminal it is sanitized and wrapped at `columns`; elsewhere it is
    /// unchanged.
    pub(crate) fn body(self, text: &str, columns: Option<usize>) -> Cow<'_, str> {
        if self.terminal { Cow::Owned(wrap(text, columns)) } else { Cow::Borrowed(text) }
    }

    /// Formats a line of a unified diff, with hidden characters escaped.
    pub(crate) fn diff_line(self, line: &str) -> String {
        let line = &*escape_hidden(line);
        Self::diff_highlight(line)
            .map_or_else(|| line.to_owned(), |highlight| self.highlight(highlight, line))
    }

    /// Returns the highlight for a line of a unified diff.
    pub(super) fn diff_highlight(line: &str) -> Option<Highlight> {
        if line.starts_with("+++ ") || line.starts_with("--- ") {
            Some(Highlight::Bold)
        } else if line.starts_with("@@ ") {
            Some(Highlight::Location)
        } else if line.starts_with('+') {
            Some(Highlight::Success)
        } else if line.starts_with('-') {
            Some(Highlight::Failure)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_depends_on_the_terminal() {
        let terminal = Style { terminal: true, colour: true, moves: true };
        let plain = Style::PLAIN;
        assert_eq!(terminal.highlight(Highlight::Success, "ok"), "\x1b[32mok\x1b[0m");
        assert_eq!(plain.highlight(Highlight::Success, "ok"), "ok");
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
