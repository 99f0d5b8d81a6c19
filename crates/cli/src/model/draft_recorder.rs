//! Middleware that records tool calls while the model streams them. Session events report a call only when it runs.

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use pintle_llm::{Error, EventStream, Middleware, Mode, Next, Reply, Request, StreamEvent};

use crate::render::Drafts;

/// Client middleware that records the tool calls of streamed responses.
#[derive(Clone, Debug, Default)]
pub(super) struct DraftRecorder {
    /// Calls of the current response.
    pub(super) drafts: Drafts,
}

#[async_trait]
impl Middleware for DraftRecorder {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        // Only streams report partial calls. A complete response may belong to a search made alongside the session.
        if mode == Mode::Stream {
            self.drafts.begin();
        }
        Ok(match next.run(request, mode).await? {
            Reply::Stream(events) => {
                Reply::Stream(Box::pin(RecordedStream { events, drafts: self.drafts.clone() }))
            }
            complete @ Reply::Response(_) => complete,
        })
    }
}

/// Stream that records events as they pass through.
struct RecordedStream {
    events: EventStream,
    drafts: Drafts,
}

impl Stream for RecordedStream {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.events.as_mut().poll_next(context);
        if let Poll::Ready(Some(Ok(event))) = &polled {
            self.drafts.event(event);
        }
        polled
    }
}
