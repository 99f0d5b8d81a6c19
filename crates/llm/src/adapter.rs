//! What a provider must be able to do (client specification, sections 2.4 and 7.1).

use std::fmt;

use async_trait::async_trait;

use crate::error::Error;
use crate::request::Request;
use crate::response::Response;
use crate::stream::EventStream;
use crate::tool::ToolChoice;

/// One provider behind the unified interface.
///
/// Implemented once per wire dialect, and by anyone who has a model to offer. An implementation must be safe for
/// concurrent calls, must not retry, must end a stream with [`StreamEvent::Finish`](crate::StreamEvent::Finish) or
/// with an error and never silently, and must set kind and retry of every error itself. Dropping a returned
/// future or stream must release its connection.
#[async_trait]
pub trait ProviderAdapter: fmt::Debug + Send + Sync {
    /// The name that requests route by, such as `openai`.
    fn name(&self) -> &str;

    /// Sends the request and returns the whole answer.
    async fn complete(&self, request: &Request) -> Result<Response, Error>;

    /// Sends the request and returns the answer as it forms.
    async fn stream(&self, request: &Request) -> Result<EventStream, Error>;

    /// Whether the provider has this tool choice mode.
    fn supports_tool_choice(&self, _choice: &ToolChoice) -> bool {
        true
    }

    /// Checks the configuration; called when the client is built.
    fn initialize(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Releases what it holds; called by [`Client::close`](crate::Client::close).
    async fn close(&self) {}
}

const _: fn(&dyn ProviderAdapter) = |_| {};
