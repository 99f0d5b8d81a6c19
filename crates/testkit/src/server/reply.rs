//! Replies of the server, before they are written.

use std::time::Duration;

use serde_json::Value;

use crate::response::Frame;

/// A reply with its scripted faults.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// Silence before anything is sent.
    pub(super) stall: Duration,
    /// Headers in addition to the headers of the framing.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: ReplyBody,
}

/// Body of a reply.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReplyBody {
    /// A complete body. With `cut`, half of it is sent and the connection is closed.
    Complete { status: u16, body: Vec<u8>, cut: bool },
    /// Events, one chunk each, with a pause between them.
    Stream(EventStream),
    /// No response: the connection is closed.
    Close,
}

/// Events of a stream and how it ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EventStream {
    pub(super) frames: Vec<Frame>,
    /// Silence between two events.
    pub(super) pause: Duration,
    /// Scripted fault, if any.
    pub(super) fault: Option<StreamFault>,
}

/// A fault within a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamFault {
    /// Number of events sent before it.
    pub(super) after: usize,
    /// Silence before it.
    pub(super) stall: Duration,
    /// Whether the connection is closed within the next event. Otherwise the stream continues to its end.
    pub(super) cut: bool,
}

impl Reply {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::complete(status, body.to_string().into_bytes())
    }

    pub(super) fn complete(status: u16, body: Vec<u8>) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        Self { stall: Duration::ZERO, headers, body: ReplyBody::Complete { status, body, cut: false } }
    }

    pub(super) fn stream(stream: EventStream) -> Self {
        let headers = [("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { stall: Duration::ZERO, headers: headers.into(), body: ReplyBody::Stream(stream) }
    }

    pub(super) fn close() -> Self {
        Self { stall: Duration::ZERO, headers: Vec::new(), body: ReplyBody::Close }
    }

    pub(super) fn with_header(mut self, name: &str, value: String) -> Self {
        self.headers.push((name.to_owned(), value));
        self
    }

    /// Returns the status that the client sees, if any.
    pub(super) fn status(&self) -> Option<u16> {
        match &self.body {
            ReplyBody::Complete { status, .. } => Some(*status),
            ReplyBody::Stream(_) => Some(200),
            ReplyBody::Close => None,
        }
    }
}
