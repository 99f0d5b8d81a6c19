//! Provider adapters (client specification, sections 2.4 and 7.1).

use std::fmt;

use async_trait::async_trait;

use crate::error::Error;
use crate::request::Request;
use crate::response::Response;
use crate::stream::EventStream;
use crate::tool::ToolChoice;

/// A provider behind the unified interface.
///
/// Implemented once per wire dialect, and by applications with a separate model. An implementation must
///
/// * be safe for concurrent calls;
/// * not retry;
/// * end every stream with [`StreamEvent::Finish`](crate::StreamEvent::Finish) or with an error;
/// * set the kind and the retry of every error;
/// * release the connection when a returned future or stream is dropped.
#[async_trait]
pub trait ProviderAdapter: fmt::Debug + Send + Sync {
    /// Name for routing, such as `openai`.
    fn name(&self) -> &str;

    /// Sends the request and returns the complete response.
    async fn complete(&self, request: &Request) -> Result<Response, Error>;

    /// Sends the request and returns the response as a stream of events.
    async fn stream(&self, request: &Request) -> Result<EventStream, Error>;

    /// Returns `true` if the provider supports this tool choice mode.
    fn supports_tool_choice(&self, _choice: &ToolChoice) -> bool {
        true
    }

    /// Checks the configuration; called when the client is built.
    fn initialize(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Releases resources; called by [`Client::close`](crate::Client::close).
    async fn close(&self) {}
}

const _: fn(&dyn ProviderAdapter) = |_| {};
