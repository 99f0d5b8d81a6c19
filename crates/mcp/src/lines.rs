//! Splits the output of a server into lines of a limited length.

/// Longest message that a server may send, in bytes.
pub(crate) const MAX_MESSAGE: usize = 64 << 20;

/// Lines of a stream that arrives in pieces.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Bytes that were not taken yet.
    buffer: Vec<u8>,
    /// Number of bytes at its beginning that belong to lines that were taken.
    taken: usize,
    /// Number of bytes after those that have no line end.
    searched: usize,
    limit: usize,
}

/// A line is longer than it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), taken: 0, searched: 0, limit }
    }

    /// Adds bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next complete line, without its end; `None` if there is none yet.
    ///
    /// # Errors
    ///
    /// [`TooLong`] for a line above the limit, complete or not. Nothing can be taken after it.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let rest = self.buffer.get(self.taken + self.searched..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', rest) else {
            self.searched += rest.len();
            return if self.searched > self.limit { Err(TooLong) } else { Ok(None) };
        };
        let (begin, length) = (self.taken, self.searched + end);
        (self.taken, self.searched) = (begin + length + 1, 0);
        if length > self.limit {
            return Err(TooLong);
        }
        let line = self.buffer.get(begin..begin + length).unwrap_or_default();
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &mut Lines) -> Result<Vec<String>, TooLong> {
        let mut found = Vec::new();
        while let Some(line) = lines.next()? {
            found.push(String::from_utf8(line.to_vec()).unwrap());
        }
        Ok(found)
    }

    #[test]
    fn lines_are_the_same_however_they_arrive() {
        let text = "one\r\n\ntwo and more\nthree\nrest";
        for size in 1..text.len() {
            let (mut lines, mut found) = (Lines::new(20), Vec::new());
            for piece in text.as_bytes().chunks(size) {
                lines.push(piece);
                found.extend(all(&mut lines).unwrap());
            }
            assert_eq!(found, ["one", "", "two and more", "three"], "pieces of {size}");
        }
    }

    #[test]
    fn a_line_above_the_limit_is_an_error_before_it_ends() {
        let mut lines = Lines::new(4);
        lines.push(b"1234\n123");
        assert_eq!(all(&mut lines), Ok(vec!["1234".to_owned()]));
        lines.push(b"45");
        assert_eq!(all(&mut lines), Err(TooLong));
        let mut lines = Lines::new(4);
        lines.push(b"12345\n");
        assert_eq!(all(&mut lines), Err(TooLong));
    }
}
