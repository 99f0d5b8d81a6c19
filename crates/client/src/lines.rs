//! Lines of a response, independent of its chunks.

use std::collections::VecDeque;

use reqwest::Response;

use crate::error::ClientError;
use crate::transport::Transport;

/// Splits bytes into lines. Holds at most one line, up to a limit.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    limit: usize,
    /// Unfinished line.
    open: Vec<u8>,
    /// Whether the last byte was a CR: an LF after it does not end another line.
    is_after_return: bool,
}

impl LineSplitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, open: Vec::new(), is_after_return: false }
    }

    /// Adds the lines that a piece completes, without their ends.
    pub(crate) fn push(
        &mut self,
        mut piece: &[u8],
        lines: &mut VecDeque<Vec<u8>>,
    ) -> Result<(), ClientError> {
        while let Some(end) = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = piece.split_at(end);
            let is_return = rest.first() == Some(&b'\r');
            let is_second_half = self.is_after_return && line.is_empty() && !is_return;
            self.is_after_return = is_return;
            piece = rest.get(1..).unwrap_or_default();
            if is_second_half {
                continue;
            }
            self.hold(line)?;
            lines.push_back(std::mem::take(&mut self.open));
        }
        if !piece.is_empty() {
            self.is_after_return = false;
        }
        self.hold(piece)
    }

    fn hold(&mut self, part: &[u8]) -> Result<(), ClientError> {
        if self.open.len() + part.len() > self.limit {
            return Err(ClientError::TooLong(self.limit));
        }
        self.open.extend_from_slice(part);
        Ok(())
    }
}

/// Lines of a response. Reads only the chunks that the next line needs.
#[derive(Debug)]
pub(crate) struct ResponseLines {
    response: Response,
    transport: Transport,
    splitter: LineSplitter,
    complete: VecDeque<Vec<u8>>,
}

impl ResponseLines {
    pub(crate) fn new(response: Response, transport: Transport) -> Self {
        let splitter = LineSplitter::new(transport.options.max_bytes);
        Self { response, transport, splitter, complete: VecDeque::new() }
    }

    /// Returns the next line; `None` at the end. Bytes after the last line end are dropped.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, ClientError> {
        loop {
            if let Some(line) = self.complete.pop_front() {
                return Ok(Some(line));
            }
            let silence = self.transport.options.silence;
            let chunk = tokio::time::timeout(silence, self.response.chunk()).await;
            let chunk = chunk.map_err(|_elapsed| ClientError::Silent(silence))?;
            match chunk.map_err(|error| self.transport.failed(error))? {
                Some(chunk) => self.splitter.push(&chunk, &mut self.complete)?,
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_however_they_are_cut() {
        let text = "a\nbc\r\n\r\n\rd\n\ne\r";
        let expected = ["a", "bc", "", "", "d", "", "e"];
        for size in 1..=text.len() {
            let (mut splitter, mut lines) = (LineSplitter::new(2), VecDeque::new());
            for piece in text.as_bytes().chunks(size) {
                splitter.push(piece, &mut lines).unwrap();
            }
            let lines: Vec<String> = lines.into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
            assert_eq!(lines, expected, "pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_not_held() {
        let (mut splitter, mut lines) = (LineSplitter::new(4), VecDeque::new());
        splitter.push(b"1234\n12", &mut lines).unwrap();
        assert!(matches!(splitter.push(b"345", &mut lines), Err(ClientError::TooLong(4))));
        assert_eq!(lines, [b"1234"]);
    }
}
