//! Lines of the client, of bounded length.

use std::io;

use pintle_env::{LineSplitter, LineTooLong};
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Reads lines, and never holds more of a line than the limit.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    splitter: LineSplitter,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, splitter: LineSplitter::new(limit) }
    }

    /// Returns the next line that is not blank; `None` at the end of the stream. The bytes after the last line feed count
    /// as a line. Cancel safe.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Result<Vec<u8>, LineTooLong>>> {
        let is_blank = |line: &Result<Vec<u8>, LineTooLong>| {
            line.as_ref().is_ok_and(|line| line.trim_ascii().is_empty())
        };
        loop {
            while let Some(line) = self.splitter.next_line() {
                if !is_blank(&line) {
                    return Ok(Some(line));
                }
            }
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(self.splitter.finish().filter(|line| !is_blank(line)));
            }
            self.splitter.push(available);
            let used = available.len();
            self.reader.consume(used);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    async fn read(input: &[u8], capacity: usize) -> Vec<Result<Vec<u8>, u64>> {
        let mut lines = LineReader::new(BufReader::with_capacity(capacity, input), 5);
        let mut read = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            read.push(line.map_err(|error| error.bytes));
        }
        read
    }

    #[tokio::test]
    async fn long_lines_are_dropped_and_the_next_one_is_read() {
        let complete = |text: &str| Ok(text.as_bytes().to_vec());
        let cases = [
            ("", vec![]),
            ("\n \r\n", vec![]),
            ("abc\ndef", vec![complete("abc"), complete("def")]),
            ("12345\n123456\nok\n", vec![complete("12345"), Err(6), complete("ok")]),
            ("1234567890123", vec![Err(13)]),
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
