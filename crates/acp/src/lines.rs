//! Lines of a byte stream, of bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Line of the client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Bytes without the line end.
    Complete(Vec<u8>),
    /// The line had more bytes than allowed. Its bytes were dropped.
    TooLong,
}

/// Reads lines, and never holds more of one than the limit.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, line: Vec::new(), is_too_long: false }
    }

    /// Returns the next line that is not blank; `None` at the end of the stream. What follows the last line end is a line
    /// as well. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(self.take());
            }
            let (piece, used, has_ended) = match memchr::memchr(b'\n', available) {
                Some(end) => (available.get(..end).unwrap_or_default(), end + 1, true),
                None => (available, available.len(), false),
            };
            if self.is_too_long || self.line.len() + piece.len() > self.limit {
                self.is_too_long = true;
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(piece);
            }
            self.reader.consume(used);
            if has_ended && let Some(line) = self.take() {
                return Ok(Some(line));
            }
        }
    }

    /// Takes the line so far, unless it is blank.
    fn take(&mut self) -> Option<Line> {
        if std::mem::take(&mut self.is_too_long) {
            return Some(Line::TooLong);
        }
        let line = std::mem::take(&mut self.line);
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(Line::Complete(line))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn read(input: &[u8], capacity: usize) -> Vec<Line> {
        let mut lines = Lines::new(BufReader::with_capacity(capacity, input), 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line);
        }
        read
    }

    #[tokio::test]
    async fn long_lines_are_dropped_and_the_next_one_is_read() {
        let complete = |text: &str| Line::Complete(text.as_bytes().to_vec());
        let cases = [
            ("", vec![]),
            ("\n \r\n", vec![]),
            ("abc\ndef", vec![complete("abc"), complete("def")]),
            ("12345\n123456\nok\n", vec![complete("12345"), Line::TooLong, complete("ok")]),
            ("1234567890123", vec![Line::TooLong]),
        ];
        for (input, expected) in cases {
            for capacity in [1, 2, 7, 64] {
                assert_eq!(
                    read(input.as_bytes(), capacity).await,
                    expected,
                    "{input:?} in pieces of {capacity}"
                );
            }
        }
    }
}
