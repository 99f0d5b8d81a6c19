//! Middleware around calls (client specification, section 2.3).

mod budget;
mod logging;
mod observe;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

pub use self::budget::{Budget, BudgetBuilder, BudgetTotals, UnknownPrice};
pub use self::logging::Logging;
pub use self::observe::{CallEnd, CallObserver, observe};
use crate::adapter::ProviderAdapter;
use crate::error::Error;
use crate::request::Request;
use crate::response::Response;
use crate::stream::EventStream;

/// Mode of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One complete response.
    Complete,
    /// A stream of events.
    Stream,
}

/// Result of a call.
pub enum Reply {
    /// For [`Mode::Complete`].
    Response(Box<Response>),
    /// For [`Mode::Stream`]; may be wrapped to observe or change events.
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
/// Layers run in registration order on the way to the provider and in reverse order on the way back. A layer may
/// change the request, respond without calling `next`, call `next` several times, or change the reply, whose variant
/// must fit the mode. The provider has already been chosen: changes to `provider` or `tool_choice` are neither routed
/// nor checked again.
///
/// [`observe`] is the building block for layers that only watch calls.
///
/// Recommended registration order: [`Logging`] sees every call; a response cache responds without spending;
/// a parser of tool calls in text gives both of them parsed calls; a rate limit delays; [`Budget`] checks a call when
/// it is sent, not when it starts to wait; a circuit breaker, innermost, sees the provider alone. The layers that are
/// not in this crate are in `pintle-middleware`.
#[async_trait]
pub trait Middleware: fmt::Debug + Send + Sync {
    /// Handles one call.
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error>;
}

const _: fn(&dyn Middleware) = |_| {};

/// The rest of the chain: the remaining layers, then the provider.
#[derive(Clone, Copy, Debug)]
pub struct Next<'a> {
    pub(crate) layers: &'a [Arc<dyn Middleware>],
    pub(crate) adapter: &'a dyn ProviderAdapter,
}

impl Next<'_> {
    /// Name of the provider that the request is routed to.
    #[must_use]
    pub fn provider(&self) -> &str {
        self.adapter.name()
    }

    /// Passes the request on.
    ///
    /// # Errors
    ///
    /// The error of an inner layer or of the provider.
    pub async fn run(self, request: Request, mode: Mode) -> Result<Reply, Error> {
        match self.layers.split_first() {
            Some((layer, rest)) => {
                layer.handle(request, mode, Next { layers: rest, adapter: self.adapter }).await
            }
            None => {
                let request = request.decode_urls()?;
                match mode {
                    Mode::Complete => {
                        let response = self.adapter.complete(&request).await?;
                        Ok(Reply::Response(Box::new(response)))
                    }
                    Mode::Stream => self.adapter.stream(&request).await.map(Reply::Stream),
                }
            }
        }
    }
}
