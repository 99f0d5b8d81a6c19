//! Server-sent events: a framing guard below the grammar of `eventsource-stream`.
//!
//! The guard works on bytes, so that no read can cut a character, and hands over whole events, so that the
//! parser behind it stays linear. It removes a byte-order mark, turns CRLF and CR into LF, limits an event's
//! size and marks per event what is not UTF-8 ([`repair`]), all of which that parser leaves to its caller.
//!
//! An event that lies whole in one read is lent from it; only what is cut by the end of a read is copied.

mod frame;

use std::borrow::Cow;
use std::fmt;
use std::str;

use eventsource_stream::Event;
use memchr::memchr2;

use self::frame::Usual;
use crate::dialect::SseEvent;
use crate::repair;

/// An event is larger than so many bytes; nothing follows it.
#[derive(Debug)]
pub(crate) struct TooLarge(usize);

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an event is larger than {} bytes", self.0)
    }
}

/// Takes the bytes of a stream as they are read and gives its events.
#[derive(Debug)]
pub(crate) struct SseReader {
    limit: usize,
    mark: Mark,
    /// The event that forms across reads, with LF as its only line end.
    frame: Vec<u8>,
    /// Whether the frame is whole and has been lent: it goes at the next call.
    lent: bool,
    /// Whether the line that forms is empty so far.
    line_is_empty: bool,
    /// Whether the last byte was a CR, so that an LF after it ends no second line.
    after_cr: bool,
    /// The last event that took the parser.
    parsed: Event,
}

/// How much of a leading byte-order mark has been seen.
#[derive(Clone, Copy, Debug)]
enum Mark {
    Seen(usize),
    Done,
}

/// The bytes that the buffer of an event keeps for the next one.
const KEPT_CAPACITY: usize = 1 << 20;

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// How far the next line of a read went.
enum Line {
    /// The read has no more of it.
    Cut,
    Ended,
    /// It was blank, which ends an event.
    Blank,
}

/// Where the event of a frame that formed across reads is.
enum Place {
    Frame(Usual),
    Parsed,
}

impl SseReader {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            mark: Mark::Seen(0),
            frame: Vec::new(),
            lent: false,
            line_is_empty: true,
            after_cr: false,
            parsed: Event::default(),
        }
    }

    /// The next event that is complete with this read, and what is left of the read after it; `None` once all of it
    /// is taken. What the read leaves unfinished is kept; an event that never sees its blank line is never given.
    ///
    /// # Errors
    ///
    /// [`TooLarge`], after the events before it.
    pub(crate) fn next<'a, 'read: 'a>(
        &'a mut self,
        read: &mut &'read [u8],
    ) -> Result<Option<SseEvent<'a>>, TooLarge> {
        if std::mem::take(&mut self.lent) {
            self.frame.clear();
            // One event may have been megabytes long, and the others are not.
            self.frame.shrink_to(KEPT_CAPACITY);
        }
        *read = self.skip_mark(read);
        let place = loop {
            if let Some((usual, frame)) = self.whole(read) {
                match repair::mark_invalid_bytes(frame) {
                    Cow::Borrowed(text) => match usual.event(text) {
                        Some(event) => return Ok(Some(event)),
                        None => continue,
                    },
                    Cow::Owned(marked) => self.frame.extend_from_slice(marked.as_bytes()),
                }
                match self.look() {
                    Some(place) => break place,
                    None => self.frame.clear(),
                }
                continue;
            }
            match self.take_line(read)? {
                Line::Cut => return Ok(None),
                Line::Ended => {}
                Line::Blank => match self.look() {
                    Some(place) => break place,
                    None => self.frame.clear(),
                },
            }
        };
        self.lent = true;
        match place {
            Place::Frame(usual) => Ok(str::from_utf8(&self.frame).ok().and_then(|frame| usual.event(frame))),
            Place::Parsed => {
                let name = frame::without_default(&self.parsed.event);
                Ok(Some(SseEvent { name, data: &self.parsed.data }))
            }
        }
    }

    /// Whether the bytes so far end inside an event. The standard drops what lacks its blank line, so that something
    /// may be lost where they end for good; `[DONE]`, of which nothing is, may lack it.
    pub(crate) fn is_inside_event(&self) -> bool {
        let forming = if self.lent { &[] } else { self.frame.as_slice() };
        let mut lines = forming.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let says_more = |line: &[u8]| !line.is_empty() && !line.starts_with(b":");
        let is_done = |line: &[u8]| matches!(line, b"data: [DONE]" | b"data:[DONE]");
        lines.clone().any(says_more) && !lines.any(is_done)
    }

    /// The frame that the read begins with, if it needs neither what was read before nor the parser.
    fn whole<'read>(&self, read: &mut &'read [u8]) -> Option<(Usual, &'read [u8])> {
        let begins = self.frame.is_empty() && self.line_is_empty && !self.after_cr;
        if !begins || !matches!(self.mark, Mark::Done) {
            return None;
        }
        let usual = Usual::find(read)?;
        let (frame, rest) = read.split_at_checked(usual.length).filter(|_| usual.length <= self.limit)?;
        *read = rest;
        Some((usual, frame))
    }

    /// Moves the next line of the read to the frame.
    fn take_line(&mut self, read: &mut &[u8]) -> Result<Line, TooLarge> {
        let Some(end) = memchr2(b'\n', b'\r', read) else {
            if !read.is_empty() {
                self.extend(std::mem::take(read))?;
                self.after_cr = false;
            }
            return Ok(Line::Cut);
        };
        let (line, tail) = read.split_at(end);
        *read = tail.get(1..).unwrap_or_default();
        self.extend(line)?;
        let lf_of_crlf = self.after_cr && line.is_empty() && tail.first() == Some(&b'\n');
        self.after_cr = tail.first() == Some(&b'\r');
        if lf_of_crlf {
            return Ok(Line::Ended);
        }
        self.frame.push(b'\n');
        let blank = std::mem::replace(&mut self.line_is_empty, true);
        Ok(if blank { Line::Blank } else { Line::Ended })
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), TooLarge> {
        if self.frame.len().saturating_add(bytes.len()) > self.limit {
            return Err(TooLarge(self.limit));
        }
        self.line_is_empty &= bytes.is_empty();
        self.frame.extend_from_slice(bytes);
        Ok(())
    }

    /// Where the event of the frame is, which is whole. Marks what in it is not UTF-8.
    fn look(&mut self) -> Option<Place> {
        if let Cow::Owned(marked) = repair::mark_invalid_bytes(&self.frame) {
            self.frame = marked.into_bytes();
        }
        if let Some(usual) = Usual::find(&self.frame).filter(Usual::has_data) {
            return Some(Place::Frame(usual));
        }
        self.parsed = frame::parse(str::from_utf8(&self.frame).ok()?)?;
        Some(Place::Parsed)
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

#[cfg(test)]
mod tests;
