//! What one whole frame says.
//!
//! `eventsource-stream` is the judge of the grammar. The usual frame is read in place, to the same end: it has one
//! `data:` line, at most one `event:` line, and comments. Every other frame goes through the library.

use std::convert::Infallible;
use std::iter;
use std::ops::Range;

use eventsource_stream::{Event, EventStream};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use memchr::memchr2;

use crate::dialect::SseEvent;

/// Where the fields of a usual frame stand.
#[derive(Debug, Default)]
pub(super) struct Usual {
    name: Option<Range<usize>>,
    data: Option<Range<usize>>,
    /// The bytes of the frame, with its blank line.
    pub(super) length: usize,
}

impl Usual {
    /// The frame that these bytes begin with; `None` if its blank line is not among them, or if it takes the parser.
    ///
    /// A CR counts as a line end only with its LF: what follows a lone one may not have been read yet.
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

    /// Whether there is an event in it.
    pub(super) fn has_data(&self) -> bool {
        self.data.is_some()
    }

    /// The event of this frame, which is the one that was found; none without data.
    pub(super) fn event<'a>(&self, frame: &'a str) -> Option<SseEvent<'a>> {
        let field = |place: &Option<Range<usize>>| frame.get(place.clone()?);
        let name = field(&self.name).unwrap_or_default();
        field(&self.data).map(|data| SseEvent { name: without_default(name), data })
    }
}

/// The event of one whole frame that has LF as its only line end; none if it has no data.
///
/// Line by line, because the parser copies what is left of its buffer at each line; and after an empty comment,
/// because it panics if the first thing that it sees is a byte-order mark, which may stand in front of any event.
pub(super) fn parse(frame: &str) -> Option<Event> {
    let lines = iter::once(":\n").chain(frame.split_inclusive('\n'));
    let lines = stream::iter(lines.map(Ok::<_, Infallible>));
    // Every line is there, so the stream never waits; whole lines of UTF-8 cannot fail to parse.
    EventStream::new(lines).next().now_or_never()??.ok()
}

/// A name, or nothing for the one that an event without a name has in the standard.
pub(super) fn without_default(name: &str) -> &str {
    if name == "message" { "" } else { name }
}

/// The line that begins here, and where the next one begins.
fn line(bytes: &[u8], start: usize) -> Option<(Range<usize>, usize)> {
    let end = start + memchr2(b'\n', b'\r', bytes.get(start..)?)?;
    match bytes.get(end..)? {
        [b'\n', ..] => Some((start..end, end + 1)),
        [b'\r', b'\n', ..] => Some((start..end, end + 2)),
        _ => None,
    }
}
