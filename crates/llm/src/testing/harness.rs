//! Test harness for middleware.

use std::future::poll_fn;
use std::sync::Arc;

use super::FakeAdapter;
use crate::adapter::ProviderAdapter;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::middleware::{Middleware, Mode};
use crate::request::Request;
use crate::response::Response;
use crate::stream::{EventStream, StreamEvent};

/// Both modes of a call.
pub const MODES: [Mode; 2] = [Mode::Complete, Mode::Stream];

/// A fake provider behind one middleware.
#[derive(Debug)]
pub struct Harness {
    /// The provider, with the requests that reached it.
    pub adapter: Arc<FakeAdapter>,
    /// The client with the middleware.
    pub client: Client,
}

impl Harness {
    /// Puts `layer` in front of `adapter`.
    #[expect(clippy::expect_used, reason = "the only provider is the default, and it needs no configuration")]
    pub fn new(adapter: FakeAdapter, layer: impl Middleware + 'static) -> Self {
        let adapter = Arc::new(adapter);
        let provider = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
        let builder = Client::builder().shared_provider(provider).default_provider(adapter.name());
        let client = builder.middleware(layer).build().expect("a valid client");
        Self { adapter, client }
    }

    /// Number of calls that reached the provider.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.adapter.requests().len()
    }

    /// Makes a call in this mode; a stream is read to its end.
    ///
    /// # Errors
    ///
    /// The error of the call, or [`ErrorKind::Stream`] for a stream without a final event.
    pub async fn call(&self, request: Request, mode: Mode) -> Result<Response, Error> {
        match mode {
            Mode::Complete => self.client.complete(request).await,
            Mode::Stream => {
                let mut stream = self.client.stream(request).await?;
                let mut last = Err(Error::new(ErrorKind::Stream, "the stream has no final event"));
                while let Some(item) = next(&mut stream).await {
                    if let StreamEvent::Finish { response, .. } = item? {
                        last = Ok(*response);
                    }
                }
                last
            }
        }
    }

    /// Starts a stream, reads this many events and drops it.
    ///
    /// # Panics
    ///
    /// If the stream is refused or has fewer events.
    #[expect(clippy::expect_used, reason = "a script that does not fit the test must fail it")]
    pub async fn read_and_drop(&self, request: Request, events: usize) {
        let mut stream = self.client.stream(request).await.expect("a stream");
        for _ in 0..events {
            next(&mut stream).await.expect("another event").ok();
        }
    }
}

/// A request for the model `m` with one user message.
#[must_use]
pub fn user_request(text: &str) -> Request {
    Request::new("m", [Message::user(text)])
}

/// An error of this kind, for a [`FakeAdapter`] to fail with.
#[must_use]
pub fn scripted_error(kind: ErrorKind) -> Error {
    Error::new(kind, "scripted")
}

async fn next(stream: &mut EventStream) -> Option<Result<StreamEvent, Error>> {
    poll_fn(|cx| stream.as_mut().poll_next(cx)).await
}
