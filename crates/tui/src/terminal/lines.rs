//! Input in plain mode.

use pintle_env::LineSplitter;

/// Maximum size of a message that can be continued, in bytes.
const MAX_MESSAGE: usize = 4 << 20;

/// Joins the pieces of terminal input into messages: lines that continue on the next line after a backslash.
#[derive(Debug)]
pub(super) struct LineReader {
    lines: LineSplitter,
    /// Previous lines of a continued message.
    continued: String,
}

impl Default for LineReader {
    fn default() -> Self {
        // A line above a limit would be lost.
        Self { lines: LineSplitter::new(usize::MAX), continued: String::new() }
    }
}

impl LineReader {
    /// Appends bytes and returns the complete messages, without control characters.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        self.lines.push(bytes);
        let mut messages = Vec::new();
        while let Some(Ok(line)) = self.lines.next_line() {
            messages.extend(self.end_line(&line));
        }
        messages
    }

    fn end_line(&mut self, bytes: &[u8]) -> Option<String> {
        let line: String = String::from_utf8_lossy(bytes).chars().filter(is_text).collect();
        let backslashes = line.chars().rev().take_while(|character| *character == '\\').count();
        let is_continued = backslashes % 2 == 1 && self.continued.len() + line.len() < MAX_MESSAGE;
        if is_continued {
            self.continued.push_str(line.get(..line.len() - 1).unwrap_or_default());
            self.continued.push('\n');
            return None;
        }
        Some(std::mem::take(&mut self.continued) + &line)
    }
}

/// Returns whether a character is text. Keys that the terminal does not handle arrive as control characters.
fn is_text(character: &char) -> bool {
    *character == '\t' || !character.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_and_backslashes_continue_them() {
        let cases: [(&str, &[&str]); 7] = [
            ("one\ntwo\nthr", &["one", "two"]),
            ("first\\\n  second\\\nthird\n", &["first\n  second\nthird"]),
            ("C:\\\\\nnext\n", &["C:\\\\", "next"]),
            ("\n\\\n\n", &["", "\n"]),
            ("a\x1b[Ab\r\n", &["a[Ab"]),
            ("caf\u{e9}\tx\n", &["caf\u{e9}\tx"]),
            ("open\\\n", &[]),
        ];
        for (typed, expected) in cases {
            let whole = LineReader::default().push(typed.as_bytes());
            assert_eq!(whole, expected, "{typed:?}");
            let mut reader = LineReader::default();
            let pieces: Vec<String> = typed.bytes().flat_map(|byte| reader.push(&[byte])).collect();
            assert_eq!(pieces, expected, "{typed:?} byte by byte");
        }
        assert_eq!(LineReader::default().push(b"\xff\n"), ["\u{fffd}"]);
    }
}
