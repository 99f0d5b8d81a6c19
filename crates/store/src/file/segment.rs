//! One segment of a journal: the lines of one writer, verified while they are read.
//!
//! The first line of a segment names the line that it follows ([`SegmentHeader`]). Later lines of the older segment are
//! void: their writer crashed, or lost the session, before they were acknowledged.

use std::io::{self, BufRead, BufReader, Seek as _, SeekFrom};

use super::disk::ReadSeek;
use crate::hash::Hash;
use crate::line::{HashChain, RawLine, SegmentHeader};
use crate::store::{Line, Position};

/// Longest line that is read, in bytes. Written lines have at most half of this length.
const MAX_LINE: usize = 256 << 10;

/// First line of a file, if it is one.
#[derive(Debug)]
pub(super) enum FirstLine {
    Header(SegmentHeader),
    /// It was changed after it was written. The number comes from the line, and may be wrong as well.
    Damaged {
        seq: u64,
    },
    /// A complete line, or a very long one, in another format.
    Foreign,
    /// An empty file, or the start of a line: the writer crashed before the segment was in use.
    Incomplete,
}

/// Verifies and returns the lines of a segment.
pub(super) struct SegmentScan {
    input: BufReader<Box<dyn ReadSeek>>,
    chain: HashChain,
    /// Position of the last verified line.
    head: Position,
    /// Highest `synced` member of a verified line.
    synced: u64,
    /// Size of the verified lines in bytes.
    offset: u64,
}

/// Result of reading the next line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScannedLine {
    Line(Line),
    /// The end of the file.
    End,
    /// Bytes that are not the next line.
    Misfit,
}

/// Bytes after the verified lines of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentRest {
    pub(super) bytes: u64,
    /// Highest line that one of these lines reports as synced.
    pub(super) synced: u64,
    /// Whether they are the start of a single line, which may still be being written.
    pub(super) is_partial_line: bool,
}

impl SegmentScan {
    /// Starts at the first line of a segment, which follows `before`.
    pub(super) fn new(input: Box<dyn ReadSeek>, epoch: u64, chain: HashChain, before: &Position) -> Self {
        let head = Position { epoch, seq: before.seq, hash: before.hash };
        Self { input: BufReader::new(input), chain, head, synced: 0, offset: 0 }
    }

    pub(super) fn head(&self) -> Position {
        self.head
    }

    pub(super) fn synced(&self) -> u64 {
        self.synced
    }

    /// Reads and verifies the next line.
    pub(super) fn next(&mut self) -> io::Result<ScannedLine> {
        let mut bytes = Vec::new();
        match read_line(&mut self.input, &mut bytes)? {
            ReadLine::End => return Ok(ScannedLine::End),
            ReadLine::Partial | ReadLine::TooLong => return Ok(ScannedLine::Misfit),
            ReadLine::Complete => {}
        }
        let line = RawLine::parse(&bytes).filter(|line| {
            line.seq == self.head.seq + 1
                && line.synced < line.seq
                && self.chain.verifies(line, &self.head.hash)
        });
        let Some((line, object)) = line.and_then(|line| Some((line, line.object()?))) else {
            return Ok(ScannedLine::Misfit);
        };
        self.head.seq = line.seq;
        self.head.hash = line.hash;
        self.synced = self.synced.max(line.synced);
        self.offset += bytes.len() as u64 + 1;
        Ok(ScannedLine::Line(Line { seq: line.seq, epoch: self.head.epoch, object }))
    }

    /// Reads the bytes after the verified lines. The next call of [`next`](Self::next) reads them again.
    pub(super) fn rest(&mut self) -> io::Result<SegmentRest> {
        self.rewind()?;
        let mut rest = SegmentRest { bytes: 0, synced: 0, is_partial_line: false };
        let mut lines = 0;
        loop {
            let mut bytes = Vec::new();
            let read = read_line(&mut self.input, &mut bytes)?;
            rest.is_partial_line = lines == 0 && matches!(read, ReadLine::Partial);
            match read {
                ReadLine::End => break,
                ReadLine::Complete => rest.bytes += bytes.len() as u64 + 1,
                ReadLine::Partial | ReadLine::TooLong => rest.bytes += bytes.len() as u64,
            }
            lines += 1;
            // A line after a misfit cannot be verified. Its claim about earlier lines was still true when it was
            // written.
            if let Some(line) = RawLine::parse(&bytes) {
                rest.synced = rest.synced.max(line.synced);
            }
        }
        self.rewind()?;
        rest.is_partial_line &= lines == 1;
        Ok(rest)
    }

    fn rewind(&mut self) -> io::Result<()> {
        self.input.seek(SeekFrom::Start(self.offset)).map(drop)
    }
}

/// Reads and verifies the first line of a segment. All versions use this format.
pub(super) fn read_first_line(input: Box<dyn ReadSeek>, chain: &HashChain) -> io::Result<FirstLine> {
    let mut bytes = Vec::new();
    match read_line(&mut BufReader::new(input), &mut bytes)? {
        ReadLine::Complete => {}
        ReadLine::End | ReadLine::Partial => return Ok(FirstLine::Incomplete),
        ReadLine::TooLong => return Ok(FirstLine::Foreign),
    }
    let Some(line) = RawLine::parse(&bytes) else { return Ok(FirstLine::Foreign) };
    let header = line.object().and_then(|object| serde_json::from_str::<SegmentHeader>(&object).ok());
    Ok(match header {
        Some(header) if line.seq == header.follows.seq + 1 && chain.verifies(&line, &header.follows.hash) => {
            FirstLine::Header(header)
        }
        Some(_) | None => FirstLine::Damaged { seq: line.seq },
    })
}

/// Returns whether these are the first lines of a new session, written but never synced before the machine crashed: zeros
/// replace a part of the first one, and no line claims that another one is on disk. JSON has no zero bytes.
pub(super) fn is_lost_start(input: Box<dyn ReadSeek>) -> io::Result<bool> {
    let mut input = BufReader::new(input);
    let mut bytes = Vec::new();
    read_line(&mut input, &mut bytes)?;
    if !bytes.contains(&0) {
        return Ok(false);
    }
    loop {
        if RawLine::parse(&bytes).is_some_and(|line| line.synced > 0) {
            return Ok(false);
        }
        bytes.clear();
        if let ReadLine::End = read_line(&mut input, &mut bytes)? {
            return Ok(true);
        }
    }
}

enum ReadLine {
    /// Without its line feed.
    Complete,
    /// Without a line feed at the end of the file.
    Partial,
    /// The part of a line that was read so far. The next call continues with the rest.
    TooLong,
    End,
}

/// Reads a line in bounded memory.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<ReadLine> {
    let mut limited = io::Read::take(input, MAX_LINE as u64);
    limited.read_until(b'\n', line)?;
    Ok(match line.pop() {
        None => ReadLine::End,
        Some(b'\n') => ReadLine::Complete,
        Some(last) => {
            line.push(last);
            if line.len() >= MAX_LINE { ReadLine::TooLong } else { ReadLine::Partial }
        }
    })
}

/// Position before the first line of a journal.
pub(super) const START: Position = Position { epoch: 0, seq: 0, hash: Hash::START };
