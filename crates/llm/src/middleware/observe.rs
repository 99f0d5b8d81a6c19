//! Observation of one call, whichever way it ends.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::error::Error;
use crate::middleware::Reply;
use crate::response::Response;
use crate::stream::{EventStream, StreamEvent};

/// Observer of a single call: the building block of a middleware that counts, limits or records.
///
/// [`observe`] calls [`on_end`](Self::on_end) exactly once, in both modes.
pub trait CallObserver: Send + Unpin + 'static {
    /// Called for each event of a stream, before the consumer gets it.
    fn on_event(&mut self, _event: &StreamEvent) {}

    /// Called when the call is over.
    fn on_end(&mut self, end: CallEnd<'_>);
}

/// How a call ended.
#[derive(Debug)]
pub enum CallEnd<'a> {
    /// With a complete response.
    Completed(&'a Response),
    /// With an error.
    Failed(&'a Error),
    /// The stream stopped without its final event, which violates the contract of adapters.
    Truncated,
    /// The caller dropped the future or the stream.
    Dropped,
}

/// Awaits `call` and reports it to `observer`. Events of a stream are passed on without delay.
///
/// # Errors
///
/// The error of `call`.
pub async fn observe<O: CallObserver>(
    call: impl Future<Output = Result<Reply, Error>>,
    observer: O,
) -> Result<Reply, Error> {
    let mut pending = PendingCall { observer, ended: false };
    match call.await {
        Ok(Reply::Response(response)) => {
            pending.end(CallEnd::Completed(&response));
            Ok(Reply::Response(response))
        }
        Ok(Reply::Stream(stream)) => Ok(Reply::Stream(Box::pin(ObservedStream { stream, pending }))),
        Err(error) => {
            pending.end(CallEnd::Failed(&error));
            Err(error)
        }
    }
}

/// Guarantees a single `on_end`, on drop at the latest.
struct PendingCall<O: CallObserver> {
    observer: O,
    ended: bool,
}

impl<O: CallObserver> PendingCall<O> {
    fn end(&mut self, end: CallEnd<'_>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.observer.on_end(end);
        }
    }
}

impl<O: CallObserver> Drop for PendingCall<O> {
    fn drop(&mut self) {
        self.end(CallEnd::Dropped);
    }
}

struct ObservedStream<O: CallObserver> {
    stream: EventStream,
    pending: PendingCall<O>,
}

impl<O: CallObserver> Stream for ObservedStream<O> {
    type Item = Result<StreamEvent, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { stream, pending } = self.get_mut();
        let item = ready!(stream.as_mut().poll_next(cx));
        match &item {
            Some(Ok(event)) => {
                pending.observer.on_event(event);
                // A consumer may drop the stream after its last event, without polling for the end.
                if let StreamEvent::Finish { response, .. } = event {
                    pending.end(CallEnd::Completed(response));
                }
            }
            Some(Err(error)) => pending.end(CallEnd::Failed(error)),
            None => pending.end(CallEnd::Truncated),
        }
        Poll::Ready(item)
    }
}
