//! Follows one call to its end, whichever way it ends, without delaying it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::error::Error;
use crate::middleware::Reply;
use crate::response::Response;
use crate::stream::{EventStream, StreamEvent};

/// Sees one call pass by. In either mode it is told the end exactly once.
pub(super) trait Follower: Send + Unpin + 'static {
    /// An event on its way to the consumer.
    fn event(&mut self, _event: &StreamEvent) {}

    /// The call is over.
    fn end(&mut self, end: End<'_>);
}

/// How a call ended.
#[derive(Debug)]
pub(super) enum End<'a> {
    /// With a complete answer.
    Answered(&'a Response),
    /// With an error.
    Failed(&'a Error),
    /// The stream stopped without its last event, against the adapters' contract.
    Cut,
    /// The caller dropped the call or its stream.
    Dropped,
}

/// Makes the call and tells `follower` of it. The events of a stream pass at once.
pub(super) async fn follow<F: Follower>(
    call: impl Future<Output = Result<Reply, Error>>,
    follower: F,
) -> Result<Reply, Error> {
    let mut open = Open { follower, ended: false };
    match call.await {
        Ok(Reply::Response(response)) => {
            open.end(End::Answered(&response));
            Ok(Reply::Response(response))
        }
        Ok(Reply::Stream(stream)) => Ok(Reply::Stream(Box::pin(Followed { stream, open }))),
        Err(error) => {
            open.end(End::Failed(&error));
            Err(error)
        }
    }
}

/// A call whose end has perhaps not been told yet.
struct Open<F: Follower> {
    follower: F,
    ended: bool,
}

impl<F: Follower> Open<F> {
    fn end(&mut self, end: End<'_>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.follower.end(end);
        }
    }
}

impl<F: Follower> Drop for Open<F> {
    fn drop(&mut self) {
        self.end(End::Dropped);
    }
}

struct Followed<F: Follower> {
    stream: EventStream,
    open: Open<F>,
}

impl<F: Follower> Stream for Followed<F> {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { stream, open } = self.get_mut();
        let item = ready!(stream.as_mut().poll_next(cx));
        match &item {
            Some(Ok(event)) => {
                open.follower.event(event);
                // A consumer may drop the stream after its last event without asking for the end.
                if let StreamEvent::Finish { response, .. } = event {
                    open.end(End::Answered(response));
                }
            }
            Some(Err(error)) => open.end(End::Failed(error)),
            None => open.end(End::Cut),
        }
        Poll::Ready(item)
    }
}
