//! Streamed objects (client specification, section 4.6).

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::partial::PartialJson;
use super::schema::ObjectSchema;
use crate::error::Error;
use crate::generate::{GenerateResult, StreamResult};
use crate::stream::StreamEvent;

/// Stream of partial objects, and finally the complete one.
///
/// Each item is the object so far, in the sense of [`PartialJson`]; it need not match the schema yet.
/// [`ObjectStream::next`] borrows the object. As a [`Stream`] it is cloned for each item, at a cost that grows with it.
///
/// If the complete response does not match, the last item is an error of kind
/// [`NoObjectGenerated`](crate::ErrorKind::NoObjectGenerated). Dropping the stream closes the connection.
pub struct ObjectStream<T = Value> {
    events: StreamResult,
    schema: ObjectSchema,
    partial: PartialJson,
    fence: FenceState,
    checked: bool,
    output: PhantomData<fn() -> T>,
}

/// Position relative to a Markdown fence before the object, which some models add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FenceState {
    Start,
    InFence,
    Past,
}

impl<T: DeserializeOwned> ObjectStream<T> {
    pub(super) fn new(events: StreamResult, schema: ObjectSchema) -> Self {
        let (partial, fence) = (PartialJson::new(), FenceState::Start);
        Self { events, schema, partial, fence, checked: false, output: PhantomData }
    }

    /// Waits for the object to grow and returns it; `None` when it is complete and valid.
    pub async fn next(&mut self) -> Option<Result<&Value, Error>> {
        match poll_fn(|cx| self.poll_growth(cx)).await? {
            Ok(()) => self.partial.value().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// Returns the object so far; `None` before it starts.
    #[must_use]
    pub fn partial(&self) -> Option<&Value> {
        self.partial.value()
    }

    /// Reads to the end and returns the complete, validated object.
    ///
    /// # Errors
    ///
    /// As for [`ObjectStream::result`].
    pub async fn object(self) -> Result<T, Error> {
        self.result().await.map(|result| result.output)
    }

    /// Reads to the end and returns the object with usage, raw text and steps.
    ///
    /// # Errors
    ///
    /// [`NoObjectGenerated`](crate::ErrorKind::NoObjectGenerated) if the response does not match, else the error that
    /// ended the stream.
    pub async fn result(self) -> Result<GenerateResult<T>, Error> {
        super::with_object(&self.schema, self.events.result().await?)
    }

    fn poll_growth(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(), Error>>> {
        loop {
            match std::task::ready!(Pin::new(&mut self.events).poll_next(cx)) {
                Some(Ok(StreamEvent::TextDelta { delta, .. })) => {
                    if self.take(&delta) {
                        return Poll::Ready(Some(Ok(())));
                    }
                }
                // The next step has a separate text.
                Some(Ok(StreamEvent::StepFinish { .. })) => {
                    (self.partial, self.fence) = (PartialJson::new(), FenceState::Start);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    self.checked = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None if self.checked => return Poll::Ready(None),
                None => {
                    self.checked = true;
                    return Poll::Ready(self.check().err().map(Err));
                }
            }
        }
    }

    fn check(&self) -> Result<(), Error> {
        super::parse::<T>(&self.schema, self.events.outcome()?).map(drop)
    }

    /// Adds text. Returns `true` if the object has grown.
    fn take(&mut self, delta: &str) -> bool {
        let mut rest = delta;
        if self.fence == FenceState::Start {
            rest = rest.trim_start();
            match rest.chars().next() {
                None => return false,
                Some('`' | '~') => self.fence = FenceState::InFence,
                Some(_) => self.fence = FenceState::Past,
            }
        }
        if self.fence == FenceState::InFence {
            let Some((_, body)) = rest.split_once('\n') else { return false };
            self.fence = FenceState::Past;
            rest = body;
        }
        self.partial.push(rest)
    }
}

impl<T: DeserializeOwned> Stream for ObjectStream<T> {
    type Item = Result<Value, Error>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let grown = std::task::ready!(this.poll_growth(cx));
        Poll::Ready(grown.map(|grown| grown.map(|()| this.partial.value().cloned().unwrap_or_default())))
    }
}

impl<T> fmt::Debug for ObjectStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectStream")
            .field("events", &self.events)
            .field("partial", &self.partial.value())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
