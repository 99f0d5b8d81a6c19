//! Server-sent events: a framing guard below the grammar of `eventsource-stream`.
//!
//! The guard works on bytes, so that no read can cut a character, and hands over whole events, so that the
//! parser behind it stays linear. It removes a byte-order mark, turns CRLF and CR into LF, limits an event's
//! size and checks UTF-8 per event, all of which that parser leaves to its caller.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::fmt;
use std::iter;
use std::string::FromUtf8Error;

use eventsource_stream::{Event, EventStream};
use futures_util::{FutureExt as _, StreamExt as _, stream};

/// The largest event that is taken, in bytes. The last event of an answer may repeat the whole answer.
pub(crate) const MAX_EVENT: usize = 16 * 1024 * 1024;

/// Why a stream cannot be framed; nothing follows it.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// An event is larger than this many bytes.
    TooLarge(usize),
    /// An event is not UTF-8.
    NotUtf8(FromUtf8Error),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(limit) => write!(f, "an event is larger than {limit} bytes"),
            Self::NotUtf8(_) => f.write_str("an event is not UTF-8"),
        }
    }
}

impl StdError for FrameError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Self::TooLarge(_) => None,
            Self::NotUtf8(source) => Some(source),
        }
    }
}

/// Takes the bytes of a stream as they are read and gives its events.
#[derive(Debug)]
pub(crate) struct SseReader {
    limit: usize,
    mark: Mark,
    /// The event that forms, with LF as its only line end.
    frame: Vec<u8>,
    /// Whether the line that forms is empty so far.
    line_is_empty: bool,
    /// Whether the last byte was a CR, so that an LF after it ends no second line.
    after_cr: bool,
}

/// How much of a leading byte-order mark has been seen.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Seen(usize),
    Done,
}

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

impl SseReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, mark: Mark::Seen(0), frame: Vec::new(), line_is_empty: true, after_cr: false }
    }

    /// Takes one read and pushes the events that are complete with it. What the read leaves unfinished is kept;
    /// an event that never sees its blank line is never handed over.
    ///
    /// # Errors
    ///
    /// [`FrameError`], after the events before it.
    pub(crate) fn push(&mut self, read: &[u8], out: &mut Vec<Event>) -> Result<(), FrameError> {
        let mut rest = self.skip_mark(read);
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, tail) = rest.split_at(end);
            self.extend(line)?;
            let lf_of_crlf = self.after_cr && line.is_empty() && tail.first() == Some(&b'\n');
            self.after_cr = tail.first() == Some(&b'\r');
            if !lf_of_crlf {
                self.end_line(out)?;
            }
            rest = tail.get(1..).unwrap_or_default();
        }
        if !rest.is_empty() {
            self.extend(rest)?;
            self.after_cr = false;
        }
        Ok(())
    }

    /// Whether the bytes so far end inside an event. The standard drops what lacks its blank line, so that something
    /// may be lost where they end for good; `[DONE]`, of which nothing is, may lack it.
    pub(crate) fn is_inside_event(&self) -> bool {
        let mut lines = self.frame.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let says_more = |line: &[u8]| !line.is_empty() && !line.starts_with(b":");
        let is_done = |line: &[u8]| matches!(line, b"data: [DONE]" | b"data:[DONE]");
        lines.clone().any(says_more) && !lines.any(is_done)
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), FrameError> {
        if self.frame.len().saturating_add(bytes.len()) > self.limit {
            return Err(FrameError::TooLarge(self.limit));
        }
        self.line_is_empty &= bytes.is_empty();
        self.frame.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, out: &mut Vec<Event>) -> Result<(), FrameError> {
        let blank = std::mem::replace(&mut self.line_is_empty, true);
        self.frame.push(b'\n');
        if !blank {
            return Ok(());
        }
        let frame = std::mem::take(&mut self.frame);
        if frame.len() > 1 {
            out.extend(parse(&String::from_utf8(frame).map_err(FrameError::NotUtf8)?));
        }
        Ok(())
    }

    /// What is left of a read after the part of a leading byte-order mark that it holds.
    fn skip_mark<'a>(&mut self, mut read: &'a [u8]) -> &'a [u8] {
        while let Mark::Seen(seen) = self.mark {
            match (BYTE_ORDER_MARK.get(seen), read.split_first()) {
                (Some(expected), Some((found, tail))) if expected == found => {
                    self.mark = Mark::Seen(seen + 1);
                    read = tail;
                }
                (Some(_), None) => break,
                (None, _) => self.mark = Mark::Done,
                (Some(_), Some(_)) => {
                    // No mark after all: what looked like one is the beginning of the first line.
                    self.mark = Mark::Done;
                    self.frame.extend(BYTE_ORDER_MARK.iter().take(seen));
                    self.line_is_empty = seen == 0;
                }
            }
        }
        read
    }
}

/// The event of one whole frame; none if it holds only comments.
///
/// Line by line, because the parser copies what is left of its buffer at each line; and after an empty comment,
/// because it panics if the first thing that it sees is a byte-order mark, which may stand in front of any event.
fn parse(frame: &str) -> Option<Event> {
    let lines = iter::once(":\n").chain(frame.split_inclusive('\n'));
    let lines = stream::iter(lines.map(Ok::<_, Infallible>));
    // Every line is there, so the stream never waits; whole lines of UTF-8 cannot fail to parse.
    EventStream::new(lines).next().now_or_never()??.ok()
}

#[cfg(test)]
mod tests;
