//! Server-sent events. `eventsource-stream` parses them; its input is bounded and split at line ends.

use std::fmt;
use std::pin::Pin;

use eventsource_stream::{Event, EventStream, EventStreamError};
use futures_util::{Stream, StreamExt as _};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;

use crate::error::ClientError;
use crate::lines::ResponseLines;
use crate::transport::Transport;

type ByteStream = Pin<Box<dyn Stream<Item = Result<Vec<u8>, ClientError>> + Send>>;

/// Events of one connection.
pub(crate) struct ServerMessages {
    events: EventStream<ByteStream>,
}

impl fmt::Debug for ServerMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerMessages").finish_non_exhaustive()
    }
}

/// Lines, with the length of the unfinished event.
struct GuardedLines {
    lines: ResponseLines,
    length: usize,
    limit: usize,
}

impl GuardedLines {
    async fn next(mut self) -> Result<Option<(Vec<u8>, Self)>, ClientError> {
        let Some(mut line) = self.lines.next().await? else { return Ok(None) };
        self.length = if line.is_empty() { 0 } else { self.length + line.len() };
        if self.length > self.limit {
            return Err(ClientError::TooLong(self.limit));
        }
        line.push(b'\n');
        Ok(Some((line, self)))
    }
}

impl ServerMessages {
    pub(crate) fn new(response: Response, transport: &Transport) -> Result<Self, ClientError> {
        let media_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        if !media_type.unwrap_or_default().starts_with("text/event-stream") {
            return Err(ClientError::Unexpected { expected: "a stream of events", source: None });
        }
        let limit = transport.options.max_bytes;
        let guarded =
            GuardedLines { lines: ResponseLines::new(response, transport.clone()), length: 0, limit };
        let pieces: ByteStream = Box::pin(futures_util::stream::try_unfold(guarded, GuardedLines::next));
        Ok(Self { events: EventStream::new(pieces) })
    }

    /// Returns the next event; `None` once the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        let expected = "a stream of events";
        match self.events.next().await {
            None => Ok(None),
            Some(Ok(event)) => Ok(Some(event)),
            Some(Err(EventStreamError::Transport(error))) => Err(error),
            Some(Err(EventStreamError::Utf8(error))) => Err(ClientError::unexpected(expected, error)),
            Some(Err(EventStreamError::Parser(_))) => Err(ClientError::Unexpected { expected, source: None }),
        }
    }
}
