//! What the tests of the layers share: a fake provider, and a client with one layer before it.

use std::sync::Arc;

use futures_util::StreamExt as _;

use crate::adapter::ProviderAdapter;
use crate::client::Client;
use crate::error::{Error, ErrorKind};
use crate::message::Message;
use crate::middleware::{Middleware, Mode};
use crate::request::Request;
use crate::response::Response;
use crate::stream::StreamEvent;
use crate::testing::FakeAdapter;

pub(super) const MODES: [Mode; 2] = [Mode::Complete, Mode::Stream];

/// A fake provider behind one layer.
pub(super) struct Bench {
    pub(super) adapter: Arc<FakeAdapter>,
    pub(super) client: Client,
}

impl Bench {
    pub(super) fn new(adapter: FakeAdapter, layer: impl Middleware + 'static) -> Self {
        let adapter = Arc::new(adapter);
        let provider = Arc::clone(&adapter) as Arc<dyn ProviderAdapter>;
        let client = Client::builder().shared_provider(provider).middleware(layer).build().unwrap();
        Self { adapter, client }
    }

    /// How many calls have reached the provider.
    pub(super) fn calls(&self) -> usize {
        self.adapter.requests().len()
    }

    /// Makes the call in this mode; a stream is read to its end.
    pub(super) async fn call(&self, request: Request, mode: Mode) -> Result<Response, Error> {
        match mode {
            Mode::Complete => self.client.complete(request).await,
            Mode::Stream => {
                let mut stream = self.client.stream(request).await?;
                let mut last = Err(Error::new(ErrorKind::Stream, "no answer at the end"));
                while let Some(item) = stream.next().await {
                    if let StreamEvent::Finish { response, .. } = item? {
                        last = Ok(*response);
                    }
                }
                last
            }
        }
    }

    /// Begins a stream, reads this many events and drops it.
    pub(super) async fn read_and_drop(&self, request: Request, events: usize) {
        let stream = self.client.stream(request).await.unwrap();
        let read: Vec<_> = stream.take(events).collect().await;
        assert_eq!(read.len(), events);
    }
}

pub(super) fn ask(text: &str) -> Request {
    Request::new("m", [Message::user(text)])
}

pub(super) fn failure(kind: ErrorKind) -> Error {
    Error::new(kind, "scripted")
}
