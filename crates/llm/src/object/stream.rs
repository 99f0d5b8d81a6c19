//! An object as it forms (client specification, section 4.6).

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

/// The growing object, and at the end the whole of it.
///
/// Each item is the object so far ([`PartialJson`] says what that means); as long as it grows, it need not fit the schema.
/// [`ObjectStream::next`] lends it; as a [`Stream`] it is cloned at each step, which costs more the longer it is.
///
/// When the answer is complete and does not fit, an error of kind
/// [`NoObjectGenerated`](crate::ErrorKind::NoObjectGenerated) is the last item. Dropping it closes the connection.
pub struct ObjectStream<T = Value> {
    events: StreamResult,
    schema: ObjectSchema,
    partial: PartialJson,
    opening: Opening,
    checked: bool,
    output: PhantomData<fn() -> T>,
}

/// What stands before the object: with models that are only told of the schema, a Markdown fence at times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Opening {
    Outside,
    InFence,
    Past,
}

impl<T: DeserializeOwned> ObjectStream<T> {
    pub(super) fn new(events: StreamResult, schema: ObjectSchema) -> Self {
        let (partial, opening) = (PartialJson::new(), Opening::Outside);
        Self { events, schema, partial, opening, checked: false, output: PhantomData }
    }

    /// The object after it has grown again; `None` when it is complete and fits.
    pub async fn next(&mut self) -> Option<Result<&Value, Error>> {
        match poll_fn(|cx| self.poll_growth(cx)).await? {
            Ok(()) => self.partial.value().map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// The object so far; `None` before it begins.
    #[must_use]
    pub fn partial(&self) -> Option<&Value> {
        self.partial.value()
    }

    /// The complete, validated object; takes what has not come yet.
    ///
    /// # Errors
    ///
    /// As for [`ObjectStream::result`].
    pub async fn object(self) -> Result<T, Error> {
        self.result().await.map(|result| result.output)
    }

    /// The object with everything beside it: usage, raw text, steps. Takes what has not come yet.
    ///
    /// # Errors
    ///
    /// [`NoObjectGenerated`](crate::ErrorKind::NoObjectGenerated) if the answer is no such object, else the failure that
    /// ended the stream.
    pub async fn result(self) -> Result<GenerateResult<T>, Error> {
        super::read(&self.schema, self.events.result().await?)
    }

    fn poll_growth(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<(), Error>>> {
        loop {
            match std::task::ready!(Pin::new(&mut self.events).poll_next(cx)) {
                Some(Ok(StreamEvent::TextDelta { delta, .. })) => {
                    if self.take(&delta) {
                        return Poll::Ready(Some(Ok(())));
                    }
                }
                // Another step, another text.
                Some(Ok(StreamEvent::StepFinish { .. })) => {
                    (self.partial, self.opening) = (PartialJson::new(), Opening::Outside);
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
        let response = self.events.response()?;
        super::parse::<T>(&self.schema, response).map(drop)
    }

    /// Takes more text and says whether the object has grown.
    fn take(&mut self, delta: &str) -> bool {
        let mut rest = delta;
        if self.opening == Opening::Outside {
            rest = rest.trim_start();
            match rest.chars().next() {
                None => return false,
                Some('`' | '~') => self.opening = Opening::InFence,
                Some(_) => self.opening = Opening::Past,
            }
        }
        if self.opening == Opening::InFence {
            let Some((_, body)) = rest.split_once('\n') else { return false };
            self.opening = Opening::Past;
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
