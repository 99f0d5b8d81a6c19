//! Access to the text of an output without holding all of it in memory.

use std::io;

use pintle_env::Output;

/// Size of one read while counting characters, in bytes.
const BLOCK: usize = 64 << 10;

/// The size of a text.
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

/// Returns the first `chars` characters.
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

/// Returns the last `chars` characters.
pub(super) fn tail(output: &Output, chars: usize) -> io::Result<String> {
    let Some(before_last) = chars.checked_sub(1) else { return Ok(String::new()) };
    // A character has at most four bytes. The window may start inside a character; the four spare bytes make sure that
    // its stray bytes are not among the last characters.
    let window = chars.saturating_mul(4).saturating_add(4);
    let offset = output.len().saturating_sub(window as u64);
    let text = lossy(output.read_at(offset, window)?);
    let start = text.char_indices().rev().nth(before_last).map_or(0, |(at, _)| at);
    Ok(text.get(start..).unwrap_or_default().to_owned())
}

/// Counts the lines of a text.
pub(super) fn count_lines(text: &str) -> usize {
    // If the character limit keeps nothing on one side of the gap, that side has no line.
    if text.is_empty() { 0 } else { line_feeds(text) + 1 }
}

/// Returns the first `count` lines, without the last one's line feed.
pub(super) fn first_lines(text: &str, count: usize) -> &str {
    let Some(feeds) = count.checked_sub(1) else { return "" };
    match text.match_indices('\n').nth(feeds) {
        Some((end, _)) => text.get(..end).unwrap_or_default(),
        None => text,
    }
}

/// Returns the last `count` lines.
pub(super) fn last_lines(text: &str, count: usize) -> &str {
    let Some(feeds) = count.checked_sub(1) else { return "" };
    match text.rmatch_indices('\n').nth(feeds) {
        Some((feed, _)) => text.get(feed + 1..).unwrap_or_default(),
        None => text,
    }
}

/// Reads the text of an output in pieces that end at character boundaries.
struct Pieces<'a> {
    output: &'a Output,
    offset: u64,
    /// The first bytes of a character whose rest is in the next block.
    incomplete: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(output: &'a Output) -> Self {
        Self { output, offset: 0, incomplete: Vec::new() }
    }

    fn next(&mut self) -> io::Result<Option<String>> {
        let mut bytes = std::mem::take(&mut self.incomplete);
        let block = self.output.read_at(self.offset, BLOCK)?;
        if block.is_empty() && bytes.is_empty() {
            return Ok(None);
        }
        self.offset += block.len() as u64;
        bytes.extend_from_slice(&block);
        if self.offset < self.output.len() {
            self.incomplete = bytes.split_off(bytes.len() - incomplete_len(&bytes));
        }
        Ok(Some(lossy(bytes)))
    }
}

/// Counts the bytes at the end that are an incomplete character.
fn incomplete_len(bytes: &[u8]) -> usize {
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
