//! Changes of all sessions.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use eventsource_stream::Event;
use futures_core::Stream;
use pintle_agent::SessionId;
use serde::Deserialize;

use crate::error::{ClientError, ServerProblem};
use crate::follow::{Disconnected, ItemStream, Subscription, follow};
use crate::operation::FOLLOW_SESSIONS;
use crate::responses::SessionInfo;
use crate::session_events::{json, reason};
use crate::transport::{ServerRequest, Transport};

/// Item of the changes of all sessions.
#[derive(Debug)]
#[non_exhaustive]
pub enum Change {
    /// The current state of a session that was created or changed.
    Session(Box<SessionInfo>),
    /// The id of a session that was deleted.
    Deleted(SessionId),
    /// Changes may have been missed, as after each reconnect: read the list again.
    Reset {
        /// Human-readable reason.
        reason: String,
    },
    /// A session could not be read.
    Problem(ServerProblem),
    /// All open sessions have been received.
    Ready,
    /// The connection was lost, and the stream is about to restore it.
    Disconnected(Disconnected),
}

/// Changes of all sessions, across lost connections. Returned by [`Client::changes`](crate::Client::changes).
pub struct Changes {
    items: ItemStream<Change>,
}

impl Changes {
    pub(crate) fn new(transport: Transport) -> Self {
        Self { items: follow(transport, ChangeSubscription) }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

impl Stream for Changes {
    type Item = Result<Change, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(context)
    }
}

struct ChangeSubscription;

impl Subscription for ChangeSubscription {
    type Item = Change;

    fn request(&self, transport: &Transport) -> Result<ServerRequest, ClientError> {
        transport.request(&FOLLOW_SESSIONS, &[])
    }

    fn receive(&mut self, message: Event) -> Result<Option<Change>, ClientError> {
        #[derive(Deserialize)]
        struct Deleted {
            id: SessionId,
        }
        Ok(Some(match message.event.as_str() {
            "session" => Change::Session(json(&message.data)?),
            "deleted" => Change::Deleted(json::<Deleted>(&message.data)?.id),
            "reset" => Change::Reset { reason: reason(&message.data)? },
            "problem" => Change::Problem(json(&message.data)?),
            "ready" => Change::Ready,
            // Heartbeats, and messages that later servers may send.
            _ => return Ok(None),
        }))
    }

    fn reconnect_item(&mut self) -> Option<Change> {
        Some(Change::Reset { reason: "the connection was lost".to_owned() })
    }

    fn disconnect_item(disconnected: Disconnected) -> Change {
        Change::Disconnected(disconnected)
    }
}
