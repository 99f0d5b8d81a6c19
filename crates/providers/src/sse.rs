//! Server-sent events: a framing guard below the grammar of `eventsource-stream`.
//!
//! The guard works on bytes, so that no read can split a character, and passes complete events to the parser, so that the
//! parser stays linear. It strips a byte-order mark, converts CRLF and CR to LF, limits the size of an event, and marks
//! invalid UTF-8 per event ([`repair`]), all of which the parser leaves to its caller.
//!
//! An event that lies completely in one read is borrowed from it; only events that span reads are copied.

mod frame;

use std::borrow::Cow;
use std::fmt;
use std::str;

use eventsource_stream::Event;
use memchr::memchr2;

use self::frame::SimpleFrame;
use crate::dialect::SseEvent;
use crate::repair;

/// Error for an event above the size limit. Nothing follows it.
#[derive(Debug)]
pub(crate) struct TooLarge(usize);

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is larger than {} bytes", self.0)
    }
}

/// Incremental parser of an event stream.
#[derive(Debug)]
pub(crate) struct SseReader {
    limit: usize,
    bom: ByteOrderMark,
    /// Event that spans reads, with LF as its only line ending.
    frame: Vec<u8>,
    /// Whether `frame` is complete and borrowed by the caller; it is cleared at the next call.
    borrowed: bool,
    /// Whether the current line is empty so far.
    line_is_empty: bool,
    /// Whether the last byte was a CR: an LF after it does not end another line.
    after_cr: bool,
    /// The last event that needed the parser.
    parsed: Event,
}

/// Progress in reading a leading byte-order mark.
#[derive(Clone, Copy, Debug)]
enum ByteOrderMark {
    /// Number of its bytes seen so far.
    Seen(usize),
    Done,
}

/// Capacity in bytes that the buffer keeps between events.
const KEPT_CAPACITY: usize = 1 << 20;

pub(crate) const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Result of taking one line from a read.
enum LineProgress {
    /// The read ended within the line.
    Incomplete,
    Complete,
    /// A blank line, which ends an event.
    Blank,
}

/// Location of the event that was read last.
enum EventLocation {
    /// In `frame`.
    Frame(SimpleFrame),
    /// In `parsed`.
    Parsed,
}

impl SseReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            bom: ByteOrderMark::Seen(0),
            frame: Vec::new(),
            borrowed: false,
            line_is_empty: true,
            after_cr: false,
            parsed: Event::default(),
        }
    }

    /// Returns the next event that `read` completes and advances `read` past it; `None` once all of `read` is consumed. An
    /// incomplete event is kept for the next read. An event without its blank line is never returned.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], after all preceding events.
    pub(crate) fn next<'a, 'read: 'a>(
        &'a mut self,
        read: &mut &'read [u8],
    ) -> Result<Option<SseEvent<'a>>, TooLarge> {
        if std::mem::take(&mut self.borrowed) {
            self.frame.clear();
            // A single event may have been megabytes long.
            self.frame.shrink_to(KEPT_CAPACITY);
        }
        *read = self.skip_bom(read);
        let location = loop {
            if let Some((simple, frame)) = self.take_simple_frame(read) {
                match repair::mark_invalid_bytes(frame) {
                    Cow::Borrowed(text) => match simple.event(text) {
                        Some(event) => return Ok(Some(event)),
                        None => continue,
                    },
                    Cow::Owned(marked) => self.frame.extend_from_slice(marked.as_bytes()),
                }
                match self.locate_event() {
                    Some(location) => break location,
                    None => self.frame.clear(),
                }
                continue;
            }
            match self.take_line(read)? {
                LineProgress::Incomplete => return Ok(None),
                LineProgress::Complete => {}
                LineProgress::Blank => match self.locate_event() {
                    Some(location) => break location,
                    None => self.frame.clear(),
                },
            }
        };
        self.borrowed = true;
        match location {
            EventLocation::Frame(simple) => {
                Ok(str::from_utf8(&self.frame).ok().and_then(|frame| simple.event(frame)))
            }
            EventLocation::Parsed => {
                let name = frame::without_default(&self.parsed.event);
                Ok(Some(SseEvent { name, data: &self.parsed.data }))
            }
        }
    }

    /// Returns whether the bytes so far end inside an event. The standard drops an event without its blank line, so data
    /// is lost if the stream ends here; only `[DONE]` may lack it.
    pub(crate) fn is_inside_event(&self) -> bool {
        let incomplete = if self.borrowed { &[] } else { self.frame.as_slice() };
        let mut lines = incomplete.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let has_content = |line: &[u8]| !line.is_empty() && !line.starts_with(b":");
        let is_done = |line: &[u8]| matches!(line, b"data: [DONE]" | b"data:[DONE]");
        lines.clone().any(has_content) && !lines.any(is_done)
    }

    /// Takes the frame at the start of the read, if it needs neither earlier reads nor the parser.
    fn take_simple_frame<'read>(&self, read: &mut &'read [u8]) -> Option<(SimpleFrame, &'read [u8])> {
        let at_start = self.frame.is_empty() && self.line_is_empty && !self.after_cr;
        if !at_start || !matches!(self.bom, ByteOrderMark::Done) {
            return None;
        }
        let simple = SimpleFrame::find(read)?;
        let (frame, rest) = read.split_at_checked(simple.length).filter(|_| simple.length <= self.limit)?;
        *read = rest;
        Some((simple, frame))
    }

    /// Moves the next line of the read to the frame.
    fn take_line(&mut self, read: &mut &[u8]) -> Result<LineProgress, TooLarge> {
        let Some(end) = memchr2(b'\n', b'\r', read) else {
            if !read.is_empty() {
                self.extend(std::mem::take(read))?;
                self.after_cr = false;
            }
            return Ok(LineProgress::Incomplete);
        };
        let (line, tail) = read.split_at(end);
        *read = tail.get(1..).unwrap_or_default();
        self.extend(line)?;
        let lf_of_crlf = self.after_cr && line.is_empty() && tail.first() == Some(&b'\n');
        self.after_cr = tail.first() == Some(&b'\r');
        if lf_of_crlf {
            return Ok(LineProgress::Complete);
        }
        self.frame.push(b'\n');
        let blank = std::mem::replace(&mut self.line_is_empty, true);
        Ok(if blank { LineProgress::Blank } else { LineProgress::Complete })
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.frame.len().saturating_add(bytes.len()) > self.limit {
            return Err(TooLarge(self.limit));
        }
        self.line_is_empty &= bytes.is_empty();
        self.frame.extend_from_slice(bytes);
        Ok(())
    }

    /// Locates the event of the complete frame, after marking invalid UTF-8 in it.
    fn locate_event(&mut self) -> Option<EventLocation> {
        if let Cow::Owned(marked) = repair::mark_invalid_bytes(&self.frame) {
            self.frame = marked.into_bytes();
        }
        if let Some(simple) = SimpleFrame::find(&self.frame).filter(SimpleFrame::has_data) {
            return Some(EventLocation::Frame(simple));
        }
        self.parsed = frame::parse(str::from_utf8(&self.frame).ok()?)?;
        Some(EventLocation::Parsed)
    }

    /// Skips the part of a leading byte-order mark in a read; returns the remaining bytes.
    fn skip_bom<'a>(&mut self, mut read: &'a [u8]) -> &'a [u8] {
        while let ByteOrderMark::Seen(seen) = self.bom {
            match (BYTE_ORDER_MARK.get(seen), read.split_first()) {
                (Some(expected), Some((found, tail))) if expected == found => {
                    self.bom = ByteOrderMark::Seen(seen + 1);
                    read = tail;
                }
                (Some(_), None) => break,
                (None, _) => self.bom = ByteOrderMark::Done,
                (Some(_), Some(_)) => {
                    // Not a byte-order mark: the bytes seen start the first line.
                    self.bom = ByteOrderMark::Done;
                    self.frame.extend(BYTE_ORDER_MARK.iter().take(seen));
                    self.line_is_empty = seen == 0;
                }
            }
        }
        read
    }
}

#[cfg(test)]
mod tests;
