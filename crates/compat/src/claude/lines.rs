//! Lines of standard input.

use pintle_env::{LineSplitter, LineTooLong};
use thiserror::Error;

/// Default limit on a line, in bytes: room for several images of the largest size that providers accept.
pub const MAX_LINE: usize = 64 << 20;

/// Reason why a line of the input cannot be used. Later lines still can.
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
    /// The line is not UTF-8.
    #[error("line is not valid UTF-8")]
    NotUtf8,
    /// The line is not a JSON object.
    #[error("line is not a JSON object: {reason}")]
    NotAnObject {
        /// The reason.
        reason: String,
    },
    /// The `type` of the line is unknown.
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
        /// Expected format.
        expected: String,
    },
}

impl LineError {
    pub(super) fn field(field: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::InvalidField { field: field.into(), expected: expected.into() }
    }
}

impl From<LineTooLong> for LineError {
    fn from(LineTooLong { bytes, limit }: LineTooLong) -> Self {
        Self::TooLong { bytes, limit }
    }
}

/// Lines of standard input as text, in bounded memory.
///
/// ```
/// use pintle_compat::claude::{InputLines, LineError};
///
/// let mut input = InputLines::new(8);
/// let lines = input.feed(b"{}\n0123456789\n{\"a\"");
/// assert_eq!(lines, [Ok("{}".to_owned()), Err(LineError::TooLong { bytes: 10, limit: 8 })]);
/// assert_eq!(input.feed(b":1}\n"), [Ok("{\"a\":1}".to_owned())]);
/// assert_eq!(input.finish(), None);
/// ```
#[derive(Clone, Debug)]
pub struct InputLines(LineSplitter);

impl InputLines {
    /// Creates a splitter with a limit on a line, in bytes, such as [`MAX_LINE`].
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self(LineSplitter::new(limit))
    }

    /// Adds bytes and returns the lines that they complete, without their line ends. Blank lines are left out.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Result<String, LineError>> {
        self.0.push(bytes);
        std::iter::from_fn(|| self.0.next_line()).filter_map(to_text).collect()
    }

    /// Returns an error if the input ended within a line.
    #[must_use]
    pub fn finish(mut self) -> Option<LineError> {
        let bytes = match self.0.finish()? {
            Ok(line) if is_blank(&line) => return None,
            Ok(line) => line.len() as u64,
            Err(error) => error.bytes,
        };
        Some(LineError::Incomplete { bytes })
    }
}

/// Returns a line as text; `None` if it is blank.
fn to_text(line: Result<Vec<u8>, LineTooLong>) -> Option<Result<String, LineError>> {
    match line {
        Ok(line) if is_blank(&line) => None,
        Ok(line) => Some(String::from_utf8(line).map_err(|_| LineError::NotUtf8)),
        Err(error) => Some(Err(error.into())),
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}
