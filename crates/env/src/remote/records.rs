//! What the far side says about a command, in the stream that the command writes to as well.

use memchr::memmem::Finder;

/// Opens a mark. A text that does not hold this byte is never held back.
const OPENING: char = '\u{1e}';

/// The longest record; what goes on for longer is none of ours.
const MAX_RECORD: usize = 16 << 10;

/// A mark that stands before each record: the one who writes to the stream does not know it.
#[derive(Clone, Debug)]
pub(super) struct Mark(String);

impl Mark {
    /// A mark from a nonce.
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

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// What stands between records; never empty.
    Text(Vec<u8>),
    /// A line behind a mark, without the mark, the space and the line end.
    Record(String),
}

/// Takes records out of a stream, however it is cut.
#[derive(Debug)]
pub(super) struct Scanner {
    mark: Finder<'static>,
    /// What may be the beginning of a record.
    held: Vec<u8>,
}

impl Scanner {
    pub(super) fn new(mark: &Mark) -> Self {
        Self { mark: Finder::new(mark.as_bytes()).into_owned(), held: Vec::new() }
    }

    /// Takes in the next bytes and hands on what is certain.
    pub(super) fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Piece)) {
        self.held.extend_from_slice(bytes);
        let mut rest = std::mem::take(&mut self.held);
        while let Some(at) = self.mark.find(&rest) {
            let end = rest.iter().skip(at).position(|byte| *byte == b'\n').map(|length| at + length);
            let record =
                rest.get(at + self.mark.needle().len()..end.unwrap_or(rest.len())).unwrap_or_default();
            let record = String::from_utf8_lossy(record).trim().to_owned();
            let behind = end.map(|end| rest.split_off(end + 1));
            if let Some(behind) = behind {
                rest.truncate(at);
                text(rest, &mut take);
                take(Piece::Record(record));
                rest = behind;
            } else if rest.len() - at > MAX_RECORD {
                return text(rest, &mut take);
            } else {
                self.held = rest.split_off(at);
                return text(rest, &mut take);
            }
        }
        self.held = rest.split_off(rest.len() - self.beginning(&rest));
        text(rest, &mut take);
    }

    /// What was held back at the end of the stream.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }

    /// How many bytes at the end of `bytes` may begin a mark.
    fn beginning(&self, bytes: &[u8]) -> usize {
        let needle = self.mark.needle();
        let from = bytes.len().saturating_sub(needle.len() - 1);
        let tail = bytes.get(from..).unwrap_or_default();
        let begins = |at: &usize| tail.get(*at..).is_some_and(|end| needle.starts_with(end));
        (0..tail.len()).find(begins).map_or(0, |at| tail.len() - at)
    }
}

fn text(bytes: Vec<u8>, take: &mut impl FnMut(Piece)) {
    if !bytes.is_empty() {
        take(Piece::Text(bytes));
    }
}

/// Takes the first record out of a stream, with all that stands before it: start-up files of a login shell may print.
#[derive(Debug)]
pub(super) struct Preamble {
    /// `None` when the record has come.
    mark: Option<Finder<'static>>,
    /// What may be the beginning of the record.
    held: Vec<u8>,
}

/// The first record of a stream and what stands behind it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Announced {
    pub(super) record: String,
    pub(super) behind: Vec<u8>,
}

impl Preamble {
    pub(super) fn new(mark: &Mark) -> Self {
        Self { mark: Some(Finder::new(mark.as_bytes()).into_owned()), held: Vec::new() }
    }

    /// Whether the record has come.
    pub(super) fn is_over(&self) -> bool {
        self.mark.is_none()
    }

    /// Takes in the next bytes of a stream whose first record has not come.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<Announced> {
        let mark = self.mark.as_ref()?;
        self.held.extend_from_slice(bytes);
        let length = mark.needle().len();
        let Some(at) = mark.find(&self.held) else {
            self.held.drain(..(self.held.len() + 1).saturating_sub(length));
            return None;
        };
        self.held.drain(..at);
        let end = self.held.iter().position(|byte| *byte == b'\n');
        if end.is_none() && self.held.len() > MAX_RECORD {
            self.held.drain(..length);
        }
        let behind = self.held.split_off(end? + 1);
        let record = String::from_utf8_lossy(self.held.get(length..)?).trim().to_owned();
        (self.mark, self.held) = (None, Vec::new());
        Some(Announced { record, behind })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Text in one, records in the other.
    fn scanned<'a>(blocks: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<String>) {
        let mut scanner = Scanner::new(&Mark::new("0123"));
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
    fn records_are_taken_out() {
        let stream: &[u8] =
            b"before\x1epintle:0123 start 7\nbetween\n\x1epintle:9999 no\n\x1epintle:0123 exit 0\n\x1epint";
        let (text, records) = scanned([stream].into_iter());
        assert_eq!(text, b"beforebetween\n\x1epintle:9999 no\n\x1epint");
        assert_eq!(records, ["start 7", "exit 0"]);
    }

    #[test]
    fn a_record_without_an_end_is_not_held_for_ever() {
        let mut scanner = Scanner::new(&Mark::new("0123"));
        let mut passed = 0;
        for block in [b"\x1epintle:0123 ".as_slice(), &[b'x'; MAX_RECORD], &[b'x'; 100]] {
            scanner.feed(block, |piece| passed += usize::from(matches!(piece, Piece::Text(_))));
        }
        assert_eq!((passed, scanner.finish().len()), (2, 0));
    }

    #[test]
    fn text_without_the_opening_is_passed_on_at_once() {
        let mut scanner = Scanner::new(&Mark::new("0123"));
        let mut pieces = Vec::new();
        scanner.feed(b"pintle:0123 ", |piece| pieces.push(piece));
        assert_eq!(pieces, [Piece::Text(b"pintle:0123 ".to_vec())]);
    }

    #[test]
    fn the_first_record_ends_a_preamble_however_it_is_cut() {
        let stream = b"noise\x1epintle:012 \x1epintle:0123 start 7\n\x1epintle:0123\nout";
        for size in 1..=stream.len() {
            let mut preamble = Preamble::new(&Mark::new("0123"));
            let mut blocks = stream.chunks(size);
            let Announced { record, mut behind } = blocks.find_map(|block| preamble.feed(block)).unwrap();
            assert!(preamble.is_over() && preamble.held.is_empty());
            blocks.for_each(|block| behind.extend_from_slice(block));
            assert_eq!((record.as_str(), behind.as_slice()), ("start 7", b"\x1epintle:0123\nout".as_slice()));
        }
    }

    #[test]
    fn a_preamble_holds_no_more_than_a_record() {
        let mut preamble = Preamble::new(&Mark::new("0123"));
        for block in [b"\x1epintle:0123 ".as_slice(), &[b'x'; MAX_RECORD], &[b'x'; MAX_RECORD]] {
            assert_eq!(preamble.feed(block), None);
            assert!(preamble.held.len() <= MAX_RECORD + 100);
        }
    }

    proptest! {
        #[test]
        fn cuts_do_not_matter(
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
