//! Client-side rate limiting.

#[cfg(test)]
mod tests;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_llm::{
    CallEnd, CallObserver, Error, ErrorKind, Middleware, Mode, Next, Reply, Request, Retry, StreamEvent,
    estimate, observe,
};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::window::RateWindow;

/// Middleware that delays calls to keep requests and tokens per time window within limits.
///
/// The window slides: the calls started within the last `window` count. A call counts from the moment it is let
/// through, at first with the estimated tokens of its prompt, and after its end with the reported usage, response
/// included. A call larger than the token limit is let through when the window is empty.
///
/// Calls are let through in order of arrival. A call that would wait longer than `max_wait` fails at once with
/// [`ErrorKind::RateLimit`] and the code [`RateLimit::REACHED`]; the error says when to retry. Dropping a waiting call
/// gives up its turn and has no other effect. Time is tokio's.
///
/// A limit covers all calls, or those to one provider. Clones share their window.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("example_adapter.txt")]
/// use std::time::Duration;
///
/// use pintle_middleware::RateLimit;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let limit = RateLimit::builder()
///     .with_requests(2)
///     .with_tokens(30_000)
///     .with_window(Duration::from_secs(60))
///     .with_max_wait(Duration::ZERO)
///     .build()?;
/// let client = Client::builder().provider(Echo).default_provider("openai").middleware(limit).build()?;
/// let request = Request::new("any", [Message::user("hello")]);
/// client.complete(request.clone()).await?;
/// client.complete(request.clone()).await?;
/// let error = client.complete(request).await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::RateLimit);
/// assert!(error.retry_after() > Some(Duration::from_secs(50)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RateLimit {
    inner: Arc<RateLimitInner>,
}

#[derive(Debug)]
struct RateLimitInner {
    provider: Option<String>,
    max_wait: Duration,
    window: Mutex<RateWindow>,
    /// Held by the call that is next; a fair lock, so calls are let through in order of arrival.
    turn: tokio::sync::Mutex<()>,
    /// Notified when a call used fewer tokens than estimated.
    freed: Notify,
}

/// Builder for a [`RateLimit`].
#[derive(Clone, Debug)]
#[must_use]
pub struct RateLimitBuilder {
    provider: Option<String>,
    requests: Option<u32>,
    tokens: Option<u64>,
    window: Duration,
    max_wait: Duration,
}

impl RateLimit {
    /// [`error_code`](Error::error_code) of a call that would wait too long.
    pub const REACHED: &str = "client_rate_limit";

    /// Starts a limit with a window of one minute and a maximum wait of one minute.
    pub fn builder() -> RateLimitBuilder {
        let minute = Duration::from_secs(60);
        RateLimitBuilder { provider: None, requests: None, tokens: None, window: minute, max_wait: minute }
    }

    fn window(&self) -> MutexGuard<'_, RateWindow> {
        self.inner.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the call is allowed and adds it to the window. Returns its entry.
    async fn enter(&self, tokens: u64) -> Result<u64, Error> {
        let start = Instant::now();
        let deadline = start.checked_add(self.inner.max_wait).unwrap_or(start + YEAR);
        let Ok(_turn) = timeout_at(deadline, self.inner.turn.lock()).await else {
            return Err(self.limit_error(None));
        };
        loop {
            let entered = self.window().enter(tokens, Instant::now());
            let free_at = match entered {
                Ok(entry) => return Ok(entry),
                Err(free_at) => free_at,
            };
            if free_at > deadline {
                return Err(self.limit_error(Some(free_at.duration_since(Instant::now()))));
            }
            // Woken by the clock or by freed tokens; the next attempt finds out.
            let _ = timeout_at(free_at, self.inner.freed.notified()).await;
        }
    }

    fn limit_error(&self, wait: Option<Duration>) -> Error {
        let message = format!(
            "the client-side limit of {} allows no call within {:?}",
            self.window().limits(),
            self.inner.max_wait
        );
        Error::new(ErrorKind::RateLimit, message)
            .with_error_code(Self::REACHED)
            .with_retry(Retry::After(wait))
    }
}

/// Stand-in for waits too long to be added to an [`Instant`].
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl RateLimitBuilder {
    /// Limits the requests per window; at least 1. Default: no limit.
    pub fn with_requests(mut self, requests: u32) -> Self {
        self.requests = Some(requests);
        self
    }

    /// Limits the tokens per window, prompts and responses together; at least 1. Default: no limit.
    pub fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Length of the window; above zero and at most a day. Default 60 s.
    pub fn with_window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// Maximum delay of a call; zero never waits. Default 60 s.
    pub fn with_max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Restricts the limit to calls to this provider. Default: all calls.
    pub fn with_provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// Builds the limit, with an empty window.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] without any limit, or for a limit outside its range.
    pub fn build(self) -> Result<RateLimit, Error> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let invalid =
            |why: String| Err(Error::new(ErrorKind::Configuration, format!("invalid rate limit: {why}")));
        if self.requests.is_none() && self.tokens.is_none() {
            return invalid("expected a number of requests, of tokens, or both".to_owned());
        }
        if self.requests == Some(0) || self.tokens == Some(0) {
            return invalid("a limit of 0; expected at least 1".to_owned());
        }
        if self.window.is_zero() || self.window > DAY {
            return invalid(format!(
                "a window of {:?}; expected one above zero and of at most a day",
                self.window
            ));
        }
        let window = Mutex::new(RateWindow::new(self.requests, self.tokens, self.window));
        let inner = RateLimitInner {
            provider: self.provider,
            max_wait: self.max_wait,
            window,
            turn: tokio::sync::Mutex::new(()),
            freed: Notify::new(),
        };
        Ok(RateLimit { inner: Arc::new(inner) })
    }
}

#[async_trait]
impl Middleware for RateLimit {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        if self.inner.provider.as_deref().is_some_and(|only| only != next.provider()) {
            return next.run(request, mode).await;
        }
        let prompt_tokens = estimate::prompt_tokens(&request);
        let entry = self.enter(prompt_tokens).await.map_err(|error| error.with_provider(next.provider()))?;
        let call = CountedCall { limit: self.clone(), entry, prompt_tokens, received_bytes: 0 };
        observe(next.run(request, mode), call).await
    }
}

/// A call that was let through.
struct CountedCall {
    limit: RateLimit,
    entry: u64,
    /// Estimate.
    prompt_tokens: u64,
    received_bytes: usize,
}

impl CallObserver for CountedCall {
    fn on_event(&mut self, event: &StreamEvent) {
        self.received_bytes = self.received_bytes.saturating_add(estimate::event_bytes(event));
    }

    fn on_end(&mut self, end: CallEnd<'_>) {
        let estimate = self.prompt_tokens.saturating_add(estimate::tokens(self.received_bytes));
        let tokens = match end {
            CallEnd::Completed(response) => match response.usage.total_tokens {
                0 => estimate,
                total => total,
            },
            // The request still counts as one: the provider may have counted it.
            CallEnd::Failed(error) if !error.may_be_billed() && self.received_bytes == 0 => 0,
            CallEnd::Failed(_) | CallEnd::Truncated | CallEnd::Dropped => estimate,
        };
        self.limit.window().set_tokens(self.entry, tokens);
        self.limit.inner.freed.notify_one();
    }
}
