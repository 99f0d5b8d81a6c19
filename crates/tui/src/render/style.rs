//! Capabilities of standard output.

use std::borrow::Cow;

use super::line::{Depth, Face, StyledLine};
use super::word_wrap::wrap;

/// Capabilities of standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Whether it is a terminal, which interprets control characters.
    pub terminal: bool,
    /// Whether to use colours.
    pub colour: bool,
    /// Whether the cursor can be moved, as the live region requires.
    pub moves: bool,
}

impl Style {
    /// Not a terminal.
    pub const PLAIN: Self = Self { terminal: false, colour: false, moves: false };

    /// Returns the supported colours.
    pub(super) fn depth(self) -> Depth {
        if self.colour { Depth::Sixteen } else { Depth::Plain }
    }

    /// Formats text with one face. The text must be one line.
    pub(super) fn paint(self, text: &str, face: Face) -> String {
        StyledLine::new(text, face).to_terminal(self.depth())
    }

    /// Formats text that is the entire output. On a terminal it is sanitized and wrapped at `columns`; elsewhere it is
    /// unchanged.
    pub fn body(self, text: &str, columns: Option<usize>) -> Cow<'_, str> {
        if self.terminal { Cow::Owned(wrap(text, columns)) } else { Cow::Borrowed(text) }
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
    }
}
