//! What the server decided to answer, before any of it is written.

use std::time::Duration;

use serde_json::Value;

use crate::answer::Frame;

/// An answer with its faults.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Silence before anything is sent.
    pub(super) stall: Duration,
    /// Headers beside those of the framing.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: ReplyBody,
}

/// The body of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyBody {
    /// A whole body; `cut` sends half of it and closes.
    Whole { status: u16, body: Vec<u8>, cut: bool },
    /// Events, one chunk each, with a pause between them.
    Stream(EventStream),
    /// Nothing: the connection is closed.
    Nothing,
}

/// Events of a stream and how it ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventStream {
    pub(super) frames: Vec<Frame>,
    /// Silence between two events.
    pub(super) pause: Duration,
    /// Where a fault strikes, if one does.
    pub(super) fault: Option<StreamFault>,
}

/// A fault in the middle of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamFault {
    /// Events that are sent before it.
    pub(super) after: usize,
    /// Silence before it.
    pub(super) stall: Duration,
    /// Whether the connection is closed in the middle of the next event; else the stream goes on to its end.
    pub(super) cut: bool,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, body.to_string().into_bytes())
    }

    pub(super) fn whole(status: u16, body: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { stall: Duration::ZERO, headers, body: ReplyBody::Whole { status, body, cut: false } }
    }

    pub(super) fn stream(stream: EventStream) -> Self {
        let headers = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { stall: Duration::ZERO, headers: headers.into(), body: ReplyBody::Stream(stream) }
    }

    pub(super) fn nothing() -> Self {
        Self { stall: Duration::ZERO, headers: Vec::new(), body: ReplyBody::Nothing }
    }

    pub(super) fn with_header(mut self, name: &str, value: String) -> Self {
        self.headers.push((name.to_owned(), value));
        self
    }

    /// The status that the client sees, if it sees one.
    pub(super) fn status(&self) -> Option<u16> {
        match &self.body {
            ReplyBody::Whole { status, .. } => Some(*status),
            ReplyBody::Stream(_) => Some(200),
            ReplyBody::Nothing => None,
        }
    }
}
