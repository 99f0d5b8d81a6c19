//! Cross-cutting concerns around calls (client specification, section 2.3).

mod budget;
mod circuit_breaker;
mod estimate;
mod follow;
mod logging;
mod rate_limit;
mod replay;
mod response_cache;
mod text_tool_calls;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

pub use self::budget::{Budget, BudgetBuilder, Spent, UnknownPrice};
pub use self::circuit_breaker::{CircuitBreaker, CircuitBreakerBuilder, CircuitState};
pub use self::logging::Logging;
pub use self::rate_limit::{RateLimit, RateLimitBuilder};
pub use self::response_cache::{CacheStats, ResponseCache, ResponseCacheBuilder};
pub use self::text_tool_calls::{TextToolCallForm, TextToolCalls};
use crate::adapter::ProviderAdapter;
use crate::error::Error;
use crate::request::Request;
use crate::response::Response;
use crate::stream::EventStream;

/// Which of the two calls passes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The whole answer at once.
    Complete,
    /// The answer as it forms.
    Stream,
}

/// What came back.
pub enum Reply {
    /// To [`Mode::Complete`].
    Response(Box<Response>),
    /// To [`Mode::Stream`]; may be wrapped to watch or change events.
    Stream(EventStream),
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Response(response) => f.debug_tuple("Response").field(response).finish(),
            Self::Stream(_) => f.write_str("Stream(..)"),
        }
    }
}

/// A layer around every call of a client.
///
/// Layers run in the order of their registration on the way to the provider and in reverse on the way back. A
/// layer may change the request, answer by itself without calling `next`, call it again, or change the reply,
/// whose variant must fit the mode. The provider has been chosen by then: a change of `provider` or `tool_choice` is
/// neither routed nor checked anew.
///
/// The layers of this crate are best registered in this order: [`Logging`] sees every call; [`ResponseCache`] answers
/// without spending; [`TextToolCalls`] gives both of them calls; [`RateLimit`] holds back; [`Budget`] judges a call when it is really sent, not when it begins to
/// wait; [`CircuitBreaker`], innermost, sees the provider alone.
#[async_trait]
pub trait Middleware: fmt::Debug + Send + Sync {
    /// Handles one call.
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error>;
}

const _: fn(&dyn Middleware) = |_| {};

/// The rest of the way: the remaining layers, then the provider.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    pub(crate) layers: &'a [Arc<dyn Middleware>],
    pub(crate) adapter: &'a dyn ProviderAdapter,
}

impl Next<'_> {
    /// The name of the provider that the request goes to.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.adapter.name()
    }

    /// Goes on with this request.
    ///
    /// # Errors
    ///
    /// Whatever the layers below or the provider report.
    pub async fn run(self, request: Request, mode: Mode) -> Result<Reply, Error> {
        match self.layers.split_first() {
            Some((layer, rest)) => {
                layer.handle(request, mode, Next { layers: rest, adapter: self.adapter }).await
            }
            None => match mode {
                Mode::Complete => self.adapter.complete(&request).await.map(|r| Reply::Response(Box::new(r))),
                Mode::Stream => self.adapter.stream(&request).await.map(Reply::Stream),
            },
        }
    }
}

#[cfg(test)]
mod bench;
