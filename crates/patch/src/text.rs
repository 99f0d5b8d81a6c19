//! The bytes of a file as lines, each with its own line end.

use std::ops::Range;

use memchr::memchr2_iter;

use crate::work;

/// Bytes that end a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnd {
    Lf,
    CrLf,
    Cr,
    /// The last line of a file without a final newline.
    Missing,
}

impl LineEnd {
    pub(crate) fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
            Self::Cr => b"\r",
            Self::Missing => b"",
        }
    }

    pub(crate) fn is_missing(self) -> bool {
        self == Self::Missing
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextLine<'a> {
    /// Offset of the line in the body.
    start: usize,
    text: &'a [u8],
    pub(crate) end: LineEnd,
}

impl<'a> TextLine<'a> {
    /// Returns the line without its end.
    pub(crate) fn text(&self) -> &'a [u8] {
        work::count(1);
        self.text
    }
}

/// A whole file. The mark, followed by every line with its end, is byte for byte the file.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    /// The byte-order mark, or nothing.
    pub(crate) mark: &'a [u8],
    /// All bytes after the mark.
    pub(crate) body: &'a [u8],
    pub(crate) lines: Vec<TextLine<'a>>,
    /// Whether the whole file is UTF-8.
    pub(crate) utf8: bool,
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<'a> Text<'a> {
    /// Splits `bytes` into lines. With `keep_mark`, a byte-order mark is part of the first line.
    pub(crate) fn new(bytes: &'a [u8], keep_mark: bool) -> Self {
        let mark_length = match bytes.starts_with(BYTE_ORDER_MARK) && !keep_mark {
            true => BYTE_ORDER_MARK.len(),
            false => 0,
        };
        let (mark, body) = bytes.split_at(mark_length);
        work::count(bytes.len());
        Self { mark, body, lines: split(body), utf8: std::str::from_utf8(bytes).is_ok() }
    }

    /// Returns the bytes of a range of lines, including their ends.
    pub(crate) fn bytes_of(&self, lines: Range<usize>) -> &'a [u8] {
        let start = |at: usize| self.lines.get(at).map_or(self.body.len(), |line| line.start);
        self.body.get(start(lines.start)..start(lines.end)).unwrap_or_default()
    }

    /// Returns the first line end of the file, or LF for a file without line ends.
    pub(crate) fn first_end(&self) -> LineEnd {
        match self.lines.first() {
            Some(line) if !line.end.is_missing() => line.end,
            _ => LineEnd::Lf,
        }
    }

    /// Returns the line end for a new line at position `at`: the end of the line before it, of the line after it, or
    /// LF.
    pub(crate) fn neighbouring_end(&self, at: usize) -> LineEnd {
        let before = at.checked_sub(1).and_then(|before| self.lines.get(before));
        [before, self.lines.get(at)]
            .into_iter()
            .flatten()
            .map(|line| line.end)
            .find(|end| !end.is_missing())
            .unwrap_or_else(|| self.last_end())
    }

    /// Returns the last line end of the file. Only the last line can lack one.
    fn last_end(&self) -> LineEnd {
        let ends = self.lines.iter().rev().map(|line| line.end);
        ends.take(2).find(|end| !end.is_missing()).unwrap_or(LineEnd::Lf)
    }
}

/// Splits a line of a patch into lines of a file: a CR within it is a line end there.
pub(crate) fn lines_of(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().split(|&byte| byte == b'\r')
}

fn split(body: &[u8]) -> Vec<TextLine<'_>> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut line = |start: usize, end_at: usize, end: LineEnd| {
        lines.push(TextLine { start, text: body.get(start..end_at).unwrap_or_default(), end });
    };
    for at in memchr2_iter(b'\n', b'\r', body) {
        if at < start {
            // The second half of CRLF.
            continue;
        }
        let end = match body.get(at..).unwrap_or_default() {
            [b'\r', b'\n', ..] => LineEnd::CrLf,
            [b'\r', ..] => LineEnd::Cr,
            [..] => LineEnd::Lf,
        };
        line(start, at, end);
        start = at + end.as_bytes().len();
    }
    if start < body.len() {
        line(start, body.len(), LineEnd::Missing);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_line_keeps_its_own_end() {
        let text = Text::new(b"\xEF\xBB\xBFa\nb\r\nc\rd", false);
        let lines: Vec<_> = text.lines.iter().map(|line| (line.text, line.end)).collect();
        assert_eq!(
            lines,
            [(&b"a"[..], LineEnd::Lf), (b"b", LineEnd::CrLf), (b"c", LineEnd::Cr), (b"d", LineEnd::Missing),]
        );
        assert_eq!(text.mark, BYTE_ORDER_MARK);
    }

    #[test]
    fn a_new_line_takes_a_neighbours_end() {
        let text = Text::new(b"a\nb\r\nc", false);
        let ends: Vec<_> = (0..=3).map(|at| text.neighbouring_end(at)).collect();
        assert_eq!(ends, [LineEnd::Lf, LineEnd::Lf, LineEnd::CrLf, LineEnd::CrLf]);
        assert_eq!(Text::new(b"a", false).neighbouring_end(1), LineEnd::Lf);
        assert_eq!(Text::new(b"", false).neighbouring_end(0), LineEnd::Lf);
    }

    proptest! {
        #[test]
        fn splitting_loses_no_byte(bytes in prop::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), any::<u8>()], 0..64)) {
            let text = Text::new(&bytes, false);
            let mut again = text.mark.to_vec();
            for line in &text.lines {
                again.extend_from_slice(line.text);
                again.extend_from_slice(line.end.as_bytes());
            }
            prop_assert_eq!(&again, &bytes);
            let parts: Vec<u8> =
                (0..text.lines.len()).flat_map(|at| text.bytes_of(at..at + 1)).copied().collect();
            prop_assert_eq!([text.mark, &parts].concat(), bytes);
        }
    }
}
