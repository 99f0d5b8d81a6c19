//! Events of one session.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use eventsource_stream::Event;
use futures_core::Stream;
use pintle_agent::{EventKind, SessionEvent, SessionId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{ClientError, ServerProblem};
use crate::follow::{Disconnected, ItemStream, Subscription, follow};
use crate::operation::FOLLOW_SESSION;
use crate::segments::OpenSegments;
use crate::transport::{ServerRequest, Transport};

/// Id of an event of the record. A stream continues after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(String);

impl EventId {
    /// Creates an id from text that the server has sent.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the sequence number of the event.
    fn seq(&self) -> Option<u64> {
        self.0.split('-').next()?.parse().ok()
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for EventId {
    fn from(id: &str) -> Self {
        Self::new(id)
    }
}

impl From<String> for EventId {
    fn from(id: String) -> Self {
        Self(id)
    }
}

impl FromStr for EventId {
    type Err = Infallible;

    fn from_str(id: &str) -> Result<Self, Infallible> {
        Ok(Self::new(id))
    }
}

/// Item of the events of a session.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionItem {
    /// An event of the record. Each event is received once, in the order of the sequence numbers.
    Event {
        /// Id after which a stream continues.
        id: EventId,
        /// The event.
        event: Box<SessionEvent>,
    },
    /// An event of the record whose kind this version of the client does not know.
    Unknown {
        /// Id after which a stream continues.
        id: EventId,
        /// The event.
        event: Value,
    },
    /// More text of an open segment. It follows the previous text; a delta with the offset 0 replaces the text of its
    /// segment, for example after a call was restarted.
    Delta(Box<SessionEvent>),
    /// A part of a text was missed. The event that ends the segment contains the whole text.
    Gap(Box<SessionEvent>),
    /// Received events are missing from the record. Drop all of them: the first event of the session follows.
    Reset {
        /// Human-readable reason.
        reason: String,
    },
    /// All events from before the connection have been received. Also follows each reconnect.
    Ready,
    /// The connection was lost, and the stream is about to restore it.
    Disconnected(Disconnected),
}

/// Events of a session, across lost connections. Returned by [`Client::events`](crate::Client::events).
pub struct SessionEvents {
    items: ItemStream<SessionItem>,
}

impl SessionEvents {
    pub(crate) fn new(transport: Transport, session: SessionId, after: Option<EventId>) -> Self {
        let seq = after.as_ref().and_then(EventId::seq);
        let last = after.map(|id| LastEvent { id, seq });
        Self {
            items: follow(
                transport,
                SessionSubscription { session, last, segments: OpenSegments::default() },
            ),
        }
    }
}

impl fmt::Debug for SessionEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionEvents").finish_non_exhaustive()
    }
}

impl Stream for SessionEvents {
    type Item = Result<SessionItem, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(context)
    }
}

/// Last event that was received.
struct LastEvent {
    id: EventId,
    seq: Option<u64>,
}

struct SessionSubscription {
    session: SessionId,
    last: Option<LastEvent>,
    segments: OpenSegments,
}

/// Fields that every kind of event has.
#[derive(Deserialize)]
struct EventPosition {
    seq: u64,
    offset: Option<u64>,
}

impl Subscription for SessionSubscription {
    type Item = SessionItem;

    fn request(&self, transport: &Transport) -> Result<ServerRequest, ClientError> {
        let request = transport.request(&FOLLOW_SESSION, &[self.session.as_str()])?;
        Ok(request.query("after", self.last.as_ref().map(|last| last.id.as_str())))
    }

    fn receive(&mut self, message: Event) -> Result<Option<SessionItem>, ClientError> {
        match message.event.as_str() {
            "message" => self.event(&message),
            "reset" => {
                self.last = None;
                self.segments.clear();
                Ok(Some(SessionItem::Reset { reason: reason(&message.data)? }))
            }
            "ready" => Ok(Some(SessionItem::Ready)),
            "problem" => Err(parse_refusal(&message.data)?),
            // Heartbeats, and messages that later servers may send.
            _ => Ok(None),
        }
    }

    fn disconnect_item(disconnected: Disconnected) -> SessionItem {
        SessionItem::Disconnected(disconnected)
    }
}

impl SessionSubscription {
    fn event(&mut self, message: &Event) -> Result<Option<SessionItem>, ClientError> {
        let Ok(mut event) = serde_json::from_str::<SessionEvent>(&message.data) else {
            return self.unknown_event(message);
        };
        if matches!(event.kind, EventKind::Gap { .. }) {
            return Ok(Some(SessionItem::Gap(Box::new(event))));
        }
        if event.offset.is_some() {
            return Ok(self.segments.add(&mut event).then(|| SessionItem::Delta(Box::new(event))));
        }
        self.segments.end(&event.kind);
        let id = self.received(message, event.seq);
        Ok(id.map(|id| SessionItem::Event { id, event: Box::new(event) }))
    }

    /// Receives an event of a later server.
    fn unknown_event(&mut self, message: &Event) -> Result<Option<SessionItem>, ClientError> {
        let EventPosition { seq, offset } = json(&message.data)?;
        if offset.is_some() {
            return Ok(None);
        }
        let event = json(&message.data)?;
        Ok(self.received(message, seq).map(|id| SessionItem::Unknown { id, event }))
    }

    /// Returns the id of an event, unless the event was already received.
    fn received(&mut self, message: &Event, seq: u64) -> Option<EventId> {
        if self.last.as_ref().and_then(|last| last.seq).is_some_and(|last| seq <= last) {
            return None;
        }
        let id = if message.id.is_empty() { seq.to_string() } else { message.id.clone() };
        let id = EventId(id);
        self.last = Some(LastEvent { id: id.clone(), seq: Some(seq) });
        Some(id)
    }
}

pub(crate) fn json<T: DeserializeOwned>(data: &str) -> Result<T, ClientError> {
    serde_json::from_str(data).map_err(|error| ClientError::unexpected("JSON of the server", error))
}

/// Returns the reason in the data of a message.
pub(crate) fn reason(data: &str) -> Result<String, ClientError> {
    #[derive(Deserialize)]
    struct Reason {
        reason: String,
    }
    json::<Reason>(data).map(|data| data.reason)
}

/// Returns the error of a problem in a stream.
pub(crate) fn parse_refusal(data: &str) -> Result<ClientError, ClientError> {
    let problem: ServerProblem = json(data)?;
    Ok(ClientError::Refused { problem, retry_after: None })
}
