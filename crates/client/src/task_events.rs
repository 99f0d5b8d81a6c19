//! Inputs of one task.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use eventsource_stream::Event;
use futures_core::Stream;
use pintle_agent::SessionId;
use serde::Deserialize;
use serde_json::Value;

use crate::error::ClientError;
use crate::follow::{Disconnected, ItemStream, Subscription, follow};
use crate::operation::FOLLOW_TASK;
use crate::session_events::{EventId, json, parse_refusal, reason};
use crate::transport::{ServerRequest, Transport};

/// Item of the inputs of a task.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskItem {
    /// An input, in the form of `pintle task run --output stream-json`. Each input is received once, in journal order.
    Input {
        /// Id after which a stream continues.
        id: EventId,
        /// The input.
        input: Value,
    },
    /// Received inputs are missing from the record. Drop all of them: the first input of the task follows.
    Reset {
        /// Human-readable reason.
        reason: String,
    },
    /// All inputs from before the connection have been received. Also follows each reconnect.
    Ready,
    /// The task has ended, and the stream ends.
    End {
        /// State as text, such as `done`.
        state: String,
    },
    /// The connection was lost, and the stream is about to restore it.
    Disconnected(Disconnected),
}

/// Inputs of a task, across lost connections. Returned by [`Client::task_events`](crate::Client::task_events).
pub struct TaskEvents {
    items: ItemStream<TaskItem>,
}

impl TaskEvents {
    pub(crate) fn new(transport: Transport, task: SessionId, last: Option<EventId>) -> Self {
        Self { items: follow(transport, TaskSubscription { task, last, has_ended: false }) }
    }
}

impl fmt::Debug for TaskEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskEvents").finish_non_exhaustive()
    }
}

impl Stream for TaskEvents {
    type Item = Result<TaskItem, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.items.as_mut().poll_next(context)
    }
}

struct TaskSubscription {
    task: SessionId,
    /// Id of the last input that was received.
    last: Option<EventId>,
    has_ended: bool,
}

impl Subscription for TaskSubscription {
    type Item = TaskItem;

    fn request(&self, transport: &Transport) -> Result<ServerRequest, ClientError> {
        let request = transport.request(&FOLLOW_TASK, &[self.task.as_str()])?;
        Ok(request.query("after", self.last.as_ref().map(EventId::as_str)))
    }

    fn receive(&mut self, message: Event) -> Result<Option<TaskItem>, ClientError> {
        #[derive(Deserialize)]
        struct End {
            state: String,
        }
        Ok(Some(match message.event.as_str() {
            "message" => {
                let id = EventId::new(message.id);
                self.last = Some(id.clone());
                TaskItem::Input { id, input: json(&message.data)? }
            }
            "reset" => {
                self.last = None;
                TaskItem::Reset { reason: reason(&message.data)? }
            }
            "ready" => TaskItem::Ready,
            "end" => {
                self.has_ended = true;
                TaskItem::End { state: json::<End>(&message.data)?.state }
            }
            "problem" => return Err(parse_refusal(&message.data)?),
            // Heartbeats, and messages that later servers may send.
            _ => return Ok(None),
        }))
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn disconnect_item(disconnected: Disconnected) -> TaskItem {
        TaskItem::Disconnected(disconnected)
    }
}
