//! The text of an output without the whole of it in memory.

use std::io;

use pintle_env::Output;

/// The bytes of one read while the characters are counted.
const BLOCK: usize = 64 << 10;

/// How much text there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) chars: u64,
    pub(super) lines: u64,
}

/// Counts characters and lines in one pass.
pub(super) fn measure(output: &Output) -> io::Result<Extent> {
    let mut extent = Extent { chars: 0, lines: 1 };
    let mut pieces = Pieces::new(output);
    while let Some(piece) = pieces.next()? {
        extent.chars += piece.chars().count() as u64;
        extent.lines += line_feeds(&piece) as u64;
    }
    Ok(extent)
}

/// The first `chars` characters.
pub(super) fn head(output: &Output, chars: usize) -> io::Result<String> {
    let mut kept = String::new();
    let mut missing = chars;
    let mut pieces = Pieces::new(output);
    while missing > 0
        && let Some(piece) = pieces.next()?
    {
        let wanted = match piece.char_indices().nth(missing) {
            Some((end, _)) => piece.get(..end).unwrap_or_default(),
            None => piece.as_str(),
        };
        missing -= wanted.chars().count();
        kept.push_str(wanted);
    }
    Ok(kept)
}

/// The last `chars` characters.
pub(super) fn tail(output: &Output, chars: usize) -> io::Result<String> {
    let Some(before_last) = chars.checked_sub(1) else { return Ok(String::new()) };
    // A character has four bytes at most. The window may start inside one, and the stray bytes of that one are not
    // among the last characters, since there are four bytes to spare.
    let window = chars.saturating_mul(4).saturating_add(4);
    let offset = output.len().saturating_sub(window as u64);
    let text = lossy(output.read_at(offset, window)?);
    let start = text.char_indices().rev().nth(before_last).map_or(0, |(at, _)| at);
    Ok(text.get(start..).unwrap_or_default().to_owned())
}

/// How many lines a text has.
pub(super) fn count_lines(text: &str) -> usize {
    // The character pass may keep nothing at one side of the gap, and nothing is no line there.
    if text.is_empty() { 0 } else { line_feeds(text) + 1 }
}

/// The first `count` lines, without the last one's line feed.
pub(super) fn first_lines(text: &str, count: usize) -> &str {
    let Some(feeds) = count.checked_sub(1) else { return "" };
    match text.match_indices('\n').nth(feeds) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

/// The last `count` lines.
pub(super) fn last_lines(text: &str, count: usize) -> &str {
    let Some(feeds) = count.checked_sub(1) else { return "" };
    match text.rmatch_indices('\n').nth(feeds) {
        Some((feed, _)) => text.get(feed + 1..).unwrap_or_default(),
        None => text,
    }
}

/// The text of an output in order, in pieces that end between two characters.
struct Pieces<'a> {
    output: &'a Output,
    offset: u64,
    /// The beginning of a character whose end is in the next block.
    begun: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(output: &'a Output) -> Self {
        Self { output, offset: 0, begun: Vec::new() }
    }

    fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = std::mem::take(&mut self.begun);
        let block = self.output.read_at(self.offset, BLOCK)?;
        if block.is_empty() && bytes.is_empty() {
            return Ok(None);
        }
        self.offset += block.len() as u64;
        bytes.extend_from_slice(&block);
        if self.offset < self.output.len() {
            self.begun = bytes.split_off(bytes.len() - begun_character(&bytes));
        }
        Ok(Some(lossy(bytes)))
    }
}

/// How many bytes at the end of `bytes` begin a character that goes on behind it.
fn begun_character(bytes: &[u8]) -> usize {
    let is_continuation = |byte: u8| byte & 0b1100_0000 == 0b1000_0000;
    let Some(start) = bytes.iter().rev().take(3).position(|byte| !is_continuation(*byte)) else { return 0 };
    let length = start + 1;
    let last = bytes.get(bytes.len() - length..).unwrap_or_default();
    match std::str::from_utf8(last) {
        Err(error) if error.error_len().is_none() => length,
        Err(_) | Ok(_) => 0,
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

fn line_feeds(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}
