//! Escape sequences of terminals: colours, erasing, titles and links.

/// Starts an escape sequence.
pub(super) const ESCAPE: u8 = 0x1b;

/// Ends an operating system command, as the string terminator (`ESC \`) does.
const BELL: u8 = 0x07;

/// The most bytes of a sequence. A longer one is kept, as a sequence without an end is.
const MAX_SEQUENCE: usize = 4 << 10;

/// Removes escape sequences from text that arrives in blocks: control sequences (`ESC [`), operating system commands
/// (`ESC ]`) and choices of a character set (`ESC (`). Other text is kept, also bytes that only look like a start.
#[derive(Debug, Default)]
pub(super) struct EscapeStripper {
    /// The sequence that is being read. Empty between sequences.
    sequence: Vec<u8>,
    /// Whether any sequence was removed.
    pub(super) has_removed: bool,
}

/// State of a sequence after a byte.
enum SequenceState {
    Incomplete,
    Complete,
    /// The bytes are no escape sequence.
    Invalid,
}

impl EscapeStripper {
    /// Passes the kept bytes of a block to `keep`.
    pub(super) fn push(&mut self, block: &[u8], mut keep: impl FnMut(u8)) {
        for byte in block {
            if self.sequence.is_empty() && *byte != ESCAPE {
                keep(*byte);
                continue;
            }
            if *byte == ESCAPE && !self.ends_with_terminator_start() {
                self.finish(&mut keep);
            }
            self.sequence.push(*byte);
            match state(&self.sequence) {
                SequenceState::Incomplete => {}
                SequenceState::Complete => {
                    self.sequence.clear();
                    self.has_removed = true;
                }
                SequenceState::Invalid => self.finish(&mut keep),
            }
        }
    }

    /// Passes the bytes of an incomplete sequence to `keep`.
    pub(super) fn finish(&mut self, keep: &mut impl FnMut(u8)) {
        for byte in self.sequence.drain(..) {
            keep(byte);
        }
    }

    /// Returns true if an escape at this point starts a string terminator.
    fn ends_with_terminator_start(&self) -> bool {
        self.sequence.get(1) == Some(&b']') && self.sequence.last() != Some(&ESCAPE)
    }
}

fn state(sequence: &[u8]) -> SequenceState {
    let (kind, last) = match (sequence.get(1), sequence.last()) {
        (Some(kind), Some(last)) => (*kind, *last),
        (None, _) | (_, None) => return SequenceState::Incomplete,
    };
    let is_first = sequence.len() == 2;
    match (kind, last) {
        _ if sequence.len() > MAX_SEQUENCE => SequenceState::Invalid,
        (b'[' | b']' | b'(', _) if is_first => SequenceState::Incomplete,
        (b'[', 0x20..=0x3f) => SequenceState::Incomplete,
        (b'[', 0x40..=0x7e) => SequenceState::Complete,
        (b'(', 0x30..=0x7e) => SequenceState::Complete,
        (b']', BELL) => SequenceState::Complete,
        (b']', b'\\') if sequence.ends_with(b"\x1b\\") => SequenceState::Complete,
        // A line without an end of the command is text.
        (b']', b'\n') => SequenceState::Invalid,
        (b']', _) if is_broken_terminator(sequence) => SequenceState::Invalid,
        (b']', _) => SequenceState::Incomplete,
        (_, _) => SequenceState::Invalid,
    }
}

/// Returns true if an escape within the sequence does not start a string terminator.
fn is_broken_terminator(sequence: &[u8]) -> bool {
    sequence.len() > 3 && sequence.iter().rev().nth(1) == Some(&ESCAPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the kept text of blocks.
    fn strip<'a>(blocks: impl IntoIterator<Item = &'a [u8]>) -> (String, bool) {
        let (mut stripper, mut kept) = (EscapeStripper::default(), Vec::new());
        for block in blocks {
            stripper.push(block, |byte| kept.push(byte));
        }
        stripper.finish(&mut |byte| kept.push(byte));
        (String::from_utf8(kept).unwrap(), stripper.has_removed)
    }

    #[test]
    fn sequences_are_removed_and_other_text_is_kept() {
        for (text, expected) in [
            // Colours, also of 256 and of 24 bits, in both notations.
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[1;38;5;196mred\u{1b}[m é", "red é"),
            ("\u{1b}[38:2::1:2:3mred\u{1b}[39m", "red"),
            ("\u{1b}(B\u{1b}[mplain", "plain"),
            // Erasing, and moving the cursor.
            ("1%\u{1b}[K\u{1b}[2K\u{1b}[1A\u{1b}[?25l2%", "1%2%"),
            // Titles and links, with both ends.
            ("\u{1b}]0;title\u{7}text", "text"),
            ("\u{1b}]8;;https://a.b/\u{1b}\\link\u{1b}]8;;\u{1b}\\ more", "link more"),
            ("\u{1b}\u{1b}[31mred", "\u{1b}red"),
            // No sequence, or none that ends.
            ("a [31m b", "a [31m b"),
            ("\u{1b}", "\u{1b}"),
            ("\u{1b}[31", "\u{1b}[31"),
            ("\u{1b}[31\u{1b}[32mgreen", "\u{1b}[31green"),
            ("\u{1b}[3é", "\u{1b}[3é"),
            ("\u{1b}7saved\u{1b}8", "\u{1b}7saved\u{1b}8"),
            ("\u{1b}]0;no end\nnext line", "\u{1b}]0;no end\nnext line"),
            ("\u{1b}]0;x\u{1b}[31mred", "\u{1b}]0;x\u{1b}[31mred"),
            ("", ""),
        ] {
            let expected = (expected.to_owned(), expected != text);
            assert_eq!(strip([text.as_bytes()]), expected, "{text:?}");
            // A block may end within a sequence.
            assert_eq!(strip(text.as_bytes().chunks(1)), expected, "{text:?} in single bytes");
        }
    }

    #[test]
    fn a_sequence_that_is_too_long_is_kept() {
        let long = format!("\u{1b}]0;{}\u{7}end", "x".repeat(MAX_SEQUENCE));
        assert_eq!(strip([long.as_bytes()]), (long.clone(), false));
    }
}
