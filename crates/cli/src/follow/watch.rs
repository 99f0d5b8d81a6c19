//! Looks at the answers of a model while they are written: a session tells of a tool call when it runs.

use std::pin::Pin;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures_util::Stream;
use pintle_llm::{Error, EventStream, Middleware, Mode, Next, Reply, Request, StreamEvent};

use crate::render::Drafts;

/// A layer of a client that takes down the tool calls of its answers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// What it sees.
    pub(crate) drafts: Drafts,
}

#[async_trait]
impl Middleware for Watch {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        // Only streams tell how calls grow; a whole answer may be that of a search beside the session's own.
        if mode == Mode::Stream {
            self.drafts.begin();
        }
        Ok(match next.run(request, mode).await? {
            Reply::Stream(events) => Reply::Stream(Box::pin(Watched { events, drafts: self.drafts.clone() })),
            whole @ Reply::Response(_) => whole,
        })
    }
}

/// A stream whose events are seen on their way, and not held up.
struct Watched {
    events: EventStream,
    drafts: Drafts,
}

impl Stream for Watched {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.events.as_mut().poll_next(context);
        if let Poll::Ready(Some(Ok(event))) = &polled {
            self.drafts.event(event);
        }
        polled
    }
}
