//! Parsing of one complete frame.
//!
//! `eventsource-stream` defines the grammar. A simple frame, with one `data:` line, at most one `event:` line and
//! comments, is read in place with the same result. Every other frame goes through the library.

use std::convert::Infallible;
use std::iter;
use std::ops::Range;

use eventsource_stream::{Event, EventStream};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use memchr::memchr2;

use crate::dialect::SseEvent;

/// Byte ranges of the fields of a simple frame.
#[derive(Debug, Default)]
pub(super) struct SimpleFrame {
    name: Option<Range<usize>>,
    data: Option<Range<usize>>,
    /// Length of the frame in bytes, including its blank line.
    pub(super) length: usize,
}

impl SimpleFrame {
    /// Finds the frame at the start of `bytes`; `None` if it is incomplete or not simple.
    ///
    /// A CR is a line ending only with its LF, because the byte after a lone CR may not have been read yet.
    pub(super) fn find(bytes: &[u8]) -> Option<Self> {
        let mut found = Self::default();
        let mut start = 0;
        loop {
            let (line, next) = line(bytes, start)?;
            let (field, colon) = match bytes.get(line.clone())? {
                [] => {
                    found.length = next;
                    return Some(found);
                }
                [b':', ..] => {
                    start = next;
                    continue;
                }
                line if line.starts_with(b"data:") => (&mut found.data, "data".len()),
                line if line.starts_with(b"event:") => (&mut found.name, "event".len()),
                _ => return None,
            };
            let value = line.start + colon + 1;
            let value = value + usize::from(bytes.get(value) == Some(&b' '));
            if field.replace(value..line.end).is_some() {
                return None;
            }
            start = next;
        }
    }

    /// Returns whether the frame contains an event.
    pub(super) fn has_data(&self) -> bool {
        self.data.is_some()
    }

    /// Returns the event of the frame that this was found in; `None` without data.
    pub(super) fn event<'a>(&self, frame: &'a str) -> Option<SseEvent<'a>> {
        let field = |range: &Option<Range<usize>>| frame.get(range.clone()?);
        let name = field(&self.name).unwrap_or_default();
        field(&self.data).map(|data| SseEvent { name: without_default(name), data })
    }
}

/// Parses one complete frame with LF line endings; `None` if it has no data.
///
/// The parser is fed line by line, because it copies the rest of its buffer at each line. An empty comment comes first,
/// because it panics if its input starts with a byte-order mark, which may precede any event.
pub(super) fn parse(frame: &str) -> Option<Event> {
    let lines = iter::once(":\n").chain(frame.split_inclusive('\n'));
    let lines = stream::iter(lines.map(Ok::<_, Infallible>));
    // All lines are available, so the stream never waits, and complete lines of UTF-8 always parse.
    EventStream::new(lines).next().now_or_never()??.ok()
}

/// Returns the name, or an empty one for `message`, which is the default in the standard.
pub(super) fn without_default(name: &str) -> &str {
    if name == "message" { "" } else { name }
}

/// Returns the range of the line at `start` and the start of the next line.
fn line(bytes: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let end = start + memchr2(b'\n', b'\r', bytes.get(start..)?)?;
    match bytes.get(end..)? {
        [b'\n', ..] => Some((start..end, end + 1)),
        [b'\r', b'\n', ..] => Some((start..end, end + 2)),
        _ => None,
    }
}
