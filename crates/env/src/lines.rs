//! Lines of a byte stream, of bounded length.

use std::collections::VecDeque;

/// A line has more bytes than the limit. Its bytes were dropped, and the next line can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line too long: {bytes} bytes, the limit is {limit}")]
pub struct LineTooLong {
    /// Number of bytes before the line feed.
    pub bytes: u64,
    /// The limit in bytes.
    pub limit: usize,
}

/// Splits bytes that arrive in pieces into lines, without I/O.
///
/// It buffers complete lines until they are taken, and at most the limit of an incomplete line.
///
/// ```
/// use pintle_env::{LineSplitter, LineTooLong};
///
/// let mut lines = LineSplitter::new(8);
/// lines.push(b"one\r\n0123456789\ntw");
/// assert_eq!(lines.next_line(), Some(Ok(b"one".to_vec())));
/// assert_eq!(lines.next_line(), Some(Err(LineTooLong { bytes: 10, limit: 8 })));
/// assert_eq!(lines.next_line(), None);
/// lines.push(b"o\nthree");
/// assert_eq!(lines.next_line(), Some(Ok(b"two".to_vec())));
/// assert_eq!(lines.finish(), Some(Ok(b"three".to_vec())));
/// ```
#[derive(Clone, Debug)]
pub struct LineSplitter {
    limit: usize,
    complete: VecDeque<Result<Vec<u8>, LineTooLong>>,
    /// Bytes of the line that has not ended.
    pending: Vec<u8>,
    /// Number of its bytes if they were dropped.
    dropped: u64,
}

impl LineSplitter {
    /// Creates a splitter. The limit counts the bytes of a line before its line feed.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, complete: VecDeque::new(), pending: Vec::new(), dropped: 0 }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', bytes) {
            self.extend(bytes.get(start..end).unwrap_or_default());
            let line = self.finish().unwrap_or_else(|| Ok(Vec::new())).map(without_return);
            self.complete.push_back(line);
            start = end + 1;
        }
        self.extend(bytes.get(start..).unwrap_or_default());
    }

    /// Takes the next complete line, without its line feed and a carriage return before it; `None` if more bytes are
    /// needed.
    ///
    /// # Errors
    ///
    /// [`LineTooLong`] in place of a line above the limit.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, LineTooLong>> {
        self.complete.pop_front()
    }

    /// Returns whether the line that has not ended is already above the limit.
    #[must_use]
    pub fn is_above_limit(&self) -> bool {
        self.dropped > 0
    }

    /// Takes the bytes after the last line feed, at the end of the stream; `None` if the stream ends with a line feed.
    ///
    /// # Errors
    ///
    /// [`LineTooLong`] if they are above the limit.
    pub fn finish(&mut self) -> Option<Result<Vec<u8>, LineTooLong>> {
        let (line, bytes) = (std::mem::take(&mut self.pending), std::mem::take(&mut self.dropped));
        if bytes > 0 {
            return Some(Err(LineTooLong { bytes, limit: self.limit }));
        }
        (!line.is_empty()).then_some(Ok(line))
    }

    fn extend(&mut self, piece: &[u8]) {
        let length = self.pending.len().saturating_add(piece.len());
        if self.dropped > 0 || length > self.limit {
            self.dropped = self.dropped.saturating_add(length as u64);
            self.pending = Vec::new();
        } else {
            self.pending.extend_from_slice(piece);
        }
    }
}

/// Removes the carriage return at the end.
fn without_return(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, size: usize) -> Vec<Result<String, u64>> {
        let mut splitter = LineSplitter::new(5);
        let mut lines = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            splitter.push(piece);
            lines.extend(std::iter::from_fn(|| splitter.next_line()));
        }
        lines.extend(splitter.finish());
        assert_eq!(splitter.finish(), None, "{text:?}");
        lines
            .into_iter()
            .map(|line| line.map(|line| String::from_utf8(line).unwrap()).map_err(|error| error.bytes))
            .collect()
    }

    #[test]
    fn lines_are_the_same_in_pieces_of_any_size() {
        let line = |text: &str| Ok(text.to_owned());
        let cases = [
            ("", vec![]),
            ("\n \r\n", vec![line(""), line(" ")]),
            ("abc\r\n\ndef", vec![line("abc"), line(""), line("def")]),
            ("12345\n123456\nok\n", vec![line("12345"), Err(6), line("ok")]),
            ("1234\r\n12345\r\n", vec![line("1234"), Err(6)]),
            ("1234567890123", vec![Err(13)]),
            ("end\r", vec![line("end\r")]),
        ];
        for (text, expected) in cases {
            for size in 1..=text.len().max(1) {
                assert_eq!(split(text, size), expected, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_line_above_the_limit_is_known_before_it_ends() {
        let mut lines = LineSplitter::new(4);
        lines.push(b"1234\n1234");
        assert!(!lines.is_above_limit());
        lines.push(b"5");
        assert!(lines.is_above_limit());
        assert_eq!(lines.next_line(), Some(Ok(b"1234".to_vec())));
        assert_eq!(lines.next_line(), None);
        lines.push(b"6\n");
        assert!(!lines.is_above_limit());
        assert_eq!(lines.next_line(), Some(Err(LineTooLong { bytes: 6, limit: 4 })));
    }
}
