//! Records that the remote side embeds in the output stream of a command.

use memchr::memmem::Finder;

/// First byte of a marker. Text without this byte is never delayed.
const OPENING: char = '\u{1e}';

/// Maximum length of a record; anything longer is not a record.
const MAX_RECORD: usize = 16 << 10;

/// Marker that precedes each record; unknown to the command that writes to the stream.
#[derive(Clone, Debug)]
pub(super) struct RecordMarker(String);

impl RecordMarker {
    /// Creates a marker from a nonce.
    pub(super) fn new(nonce: &str) -> Self {
        Self(format!("{OPENING}pintle:{nonce}"))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A part of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text between records; never empty.
    Text(Vec<u8>),
    /// The line after a marker, without marker, space and line feed.
    Record(String),
}

/// Extracts records from a stream, regardless of how it is split into blocks.
#[derive(Debug)]
pub(super) struct Scanner {
    marker: Finder<'static>,
    /// Bytes that may be the start of a record.
    held: Vec<u8>,
}

impl Scanner {
    pub(super) fn new(marker: &RecordMarker) -> Self {
        Self { marker: Finder::new(marker.as_bytes()).into_owned(), held: Vec::new() }
    }

    /// Processes the next bytes and passes on complete pieces.
    pub(super) fn feed(&mut self, bytes: &[u8], mut emit: impl FnMut(Piece)) {
        self.held.extend_from_slice(bytes);
        let mut rest = std::mem::take(&mut self.held);
        while let Some(at) = self.marker.find(&rest) {
            let end = rest.iter().skip(at).position(|byte| *byte == b'\n').map(|length| at + length);
            let record =
                rest.get(at + self.marker.needle().len()..end.unwrap_or(rest.len())).unwrap_or_default();
            let record = String::from_utf8_lossy(record).trim().to_owned();
            let after = end.map(|end| rest.split_off(end + 1));
            if let Some(after) = after {
                rest.truncate(at);
                emit_text(rest, &mut emit);
                emit(Piece::Record(record));
                rest = after;
            } else if rest.len() - at > MAX_RECORD {
                return emit_text(rest, &mut emit);
            } else {
                self.held = rest.split_off(at);
                return emit_text(rest, &mut emit);
            }
        }
        self.held = rest.split_off(rest.len() - self.marker_prefix_len(&rest));
        emit_text(rest, &mut emit);
    }

    /// Returns the bytes held back at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// Returns the number of bytes at the end of `bytes` that may start a marker.
    fn marker_prefix_len(&self, bytes: &[u8]) -> usize {
        let needle = self.marker.needle();
        let from = bytes.len().saturating_sub(needle.len() - 1);
        let tail = bytes.get(from..).unwrap_or_default();
        let is_prefix = |at: &usize| tail.get(*at..).is_some_and(|end| needle.starts_with(end));
        (0..tail.len()).find(is_prefix).map_or(0, |at| tail.len() - at)
    }
}

fn emit_text(bytes: Vec<u8>, emit: &mut impl FnMut(Piece)) {
    if !bytes.is_empty() {
        emit(Piece::Text(bytes));
    }
}

/// Skips a stream up to its first record: start-up files of a login shell may print.
#[derive(Debug)]
pub(super) struct PreambleScanner {
    /// `None` once the record was found.
    marker: Option<Finder<'static>>,
    /// Bytes that may be the start of the record.
    held: Vec<u8>,
}

/// The first record of a stream and the bytes after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FirstRecord {
    pub(super) record: String,
    pub(super) after: Vec<u8>,
}

impl PreambleScanner {
    pub(super) fn new(marker: &RecordMarker) -> Self {
        Self { marker: Some(Finder::new(marker.as_bytes()).into_owned()), held: Vec::new() }
    }

    /// Returns true once the record was found.
    pub(super) fn is_over(&self) -> bool {
        self.marker.is_none()
    }

    /// Processes the next bytes until the first record.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<FirstRecord> {
        let marker = self.marker.as_ref()?;
        self.held.extend_from_slice(bytes);
        let length = marker.needle().len();
        let Some(at) = marker.find(&self.held) else {
            self.held.drain(..(self.held.len() + 1).saturating_sub(length));
            return None;
        };
        self.held.drain(..at);
        let end = self.held.iter().position(|byte| *byte == b'\n');
        if end.is_none() && self.held.len() > MAX_RECORD {
            self.held.drain(..length);
        }
        let after = self.held.split_off(end? + 1);
        let record = String::from_utf8_lossy(self.held.get(length..)?).trim().to_owned();
        (self.marker, self.held) = (None, Vec::new());
        Some(FirstRecord { record, after })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Splits a stream into text and records.
    fn scanned<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<String>) {
        let mut scanner = Scanner::new(&RecordMarker::new("0123"));
        let (mut bytes, mut records) = (Vec::new(), Vec::new());
        for block in blocks {
            scanner.feed(block, |piece| match piece {
                Piece::Text(text) => bytes.extend(text),
                Piece::Record(record) => records.push(record),
            });
        }
        bytes.extend(scanner.finish());
        (bytes, records)
    }

    #[test]
    fn records_are_extracted() {
        let stream: &[u8] =
            b"before\x1epintle:0123 start 7\nbetween\n\x1epintle:9999 no\n\x1epintle:0123 exit 0\n\x1epint";
        let (text, records) = scanned([stream].into_iter());
        assert_eq!(text, b"beforebetween\n\x1epintle:9999 no\n\x1epint");
        assert_eq!(records, ["start 7", "exit 0"]);
    }

    #[test]
    fn an_endless_record_is_not_held_back() {
        let mut scanner = Scanner::new(&RecordMarker::new("0123"));
        let mut passed = 0;
        for block in [b"\x1epintle:0123 ".as_slice(), &[b'x'; MAX_RECORD], &[b'x'; 100]] {
            scanner.feed(block, |piece| passed += usize::from(matches!(piece, Piece::Text(_))));
        }
        assert_eq!((passed, scanner.finish().len()), (2, 0));
    }

    #[test]
    fn text_without_a_marker_passes_at_once() {
        let mut scanner = Scanner::new(&RecordMarker::new("0123"));
        let mut pieces = Vec::new();
        scanner.feed(b"pintle:0123 ", |piece| pieces.push(piece));
        assert_eq!(pieces, [Piece::Text(b"pintle:0123 ".to_vec())]);
    }

    #[test]
    fn the_first_record_ends_a_preamble() {
        let stream = b"noise\x1epintle:012 \x1epintle:0123 start 7\n\x1epintle:0123\nout";
        for size in 1..=stream.len() {
            let mut preamble = PreambleScanner::new(&RecordMarker::new("0123"));
            let mut blocks = stream.chunks(size);
            let FirstRecord { record, mut after } = blocks.find_map(|block| preamble.feed(block)).unwrap();
            assert!(preamble.is_over() && preamble.held.is_empty());
            blocks.for_each(|block| after.extend_from_slice(block));
            assert_eq!((record.as_str(), after.as_slice()), ("start 7", b"\x1epintle:0123\nout".as_slice()));
        }
    }

    #[test]
    fn a_preamble_buffers_at_most_one_record() {
        let mut preamble = PreambleScanner::new(&RecordMarker::new("0123"));
        for block in [b"\x1epintle:0123 ".as_slice(), &[b'x'; MAX_RECORD], &[b'x'; MAX_RECORD]] {
            assert_eq!(preamble.feed(block), None);
            assert!(preamble.held.len() <= MAX_RECORD + 100);
        }
    }

    proptest! {
        #[test]
        fn block_boundaries_do_not_matter(
            parts in prop::collection::vec(prop::sample::select(vec![
                "a", "\n", "\u{1e}", "pintle", "\u{1e}pintle:0123", " exit 1\n", "\u{1e}pintle:0123 start\n", "\u{1e}pintle:01",
            ]), 0..12),
            size in 1_usize..20,
        ) {
            let stream = parts.concat().into_bytes();
            prop_assert_eq!(scanned(stream.chunks(size)), scanned([stream.as_slice()].into_iter()));
        }
    }
}
