//! Lines of standard input.

use thiserror::Error;

/// Default limit on a line, in bytes: several images of the largest size that providers accept.
pub const MAX_LINE: usize = 64 << 20;

/// Why a line of the input cannot be used. The next one can.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LineError {
    /// The line is longer than the limit and was skipped.
    #[error("line too long: {bytes} bytes, the limit is {limit}")]
    TooLong {
        /// Its length in bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: usize,
    },
    /// The input ended within a line.
    #[error("the input ended within a line, after {bytes} bytes")]
    Incomplete {
        /// Length of the line so far, in bytes.
        bytes: u64,
    },
    /// The line is no UTF-8.
    #[error("line is not valid UTF-8")]
    NotUtf8,
    /// The line is no JSON object.
    #[error("line is not a JSON object: {reason}")]
    NotAnObject {
        /// Why.
        reason: String,
    },
    /// The line has a `type` that nobody knows.
    #[error("unknown type of line `{found}`")]
    UnknownType {
        /// The type, shortened.
        found: String,
    },
    /// A field is missing, or has the wrong type.
    #[error("invalid field `{field}`: expected {expected}")]
    InvalidField {
        /// The field.
        field: String,
        /// Expected form.
        expected: String,
    },
}

impl LineError {
    pub(super) fn field(field: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::InvalidField { field: field.into(), expected: expected.into() }
    }
}

/// Splits bytes into lines, in memory of bounded size.
///
/// ```
/// use pintle_compat::claude::{LineError, LineSplitter};
///
/// let mut splitter = LineSplitter::new(8);
/// let lines = splitter.feed(b"{}\n0123456789\n{\"a\"");
/// assert_eq!(lines, [Ok("{}".to_owned()), Err(LineError::TooLong { bytes: 10, limit: 8 })]);
/// assert_eq!(splitter.feed(b":1}\n"), [Ok("{\"a\":1}".to_owned())]);
/// assert_eq!(splitter.finish(), None);
/// ```
#[derive(Clone, Debug)]
pub struct LineSplitter {
    limit: usize,
    buffer: Vec<u8>,
    /// Bytes of the line that is being skipped.
    skipped: u64,
}

impl LineSplitter {
    /// Creates a splitter with a limit on a line, in bytes. [`MAX_LINE`] is a good one.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new(), skipped: 0 }
    }

    /// Takes bytes and returns the lines that they complete. Empty lines are left out.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Result<String, LineError>> {
        let mut lines = Vec::new();
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        // The last piece has no line feed after it.
        let last = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            self.add(piece);
            lines.extend(self.take());
        }
        self.add(last);
        lines
    }

    /// Returns the error for what is left at the end of the input.
    #[must_use]
    pub fn finish(self) -> Option<LineError> {
        let bytes = self.skipped.saturating_add(self.buffer.len() as u64);
        let is_blank = self.buffer.iter().all(u8::is_ascii_whitespace) && self.skipped == 0;
        (!is_blank).then_some(LineError::Incomplete { bytes })
    }

    fn add(&mut self, piece: &[u8]) {
        if self.skipped > 0 || self.buffer.len().saturating_add(piece.len()) > self.limit {
            let more = self.buffer.len().saturating_add(piece.len()) as u64;
            self.skipped = self.skipped.saturating_add(more);
            self.buffer = Vec::new();
        } else {
            self.buffer.extend_from_slice(piece);
        }
    }

    fn take(&mut self) -> Option<Result<String, LineError>> {
        let (bytes, skipped) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.skipped));
        if skipped > 0 {
            return Some(Err(LineError::TooLong { bytes: skipped, limit: self.limit }));
        }
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        Some(String::from_utf8(bytes).map_err(|_| LineError::NotUtf8))
    }
}
