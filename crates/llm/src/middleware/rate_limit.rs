//! Staying below a provider's limits.

#[cfg(test)]
mod tests;
mod window;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::window::Window;
use crate::error::{Error, ErrorKind, Retry};
use crate::middleware::budget::costs_nothing;
use crate::middleware::follow::{End, Follower, follow};
use crate::middleware::{Middleware, Mode, Next, Reply, estimate};
use crate::request::Request;
use crate::stream::StreamEvent;

/// Holds calls back so that no more than so many requests and tokens fall into any window of time.
///
/// The window slides: at each moment, what was sent within the last `window` counts. A call counts from the moment
/// it is let through, its tokens first by an estimate of its prompt, then, when it ends, as its usage says, its answer
/// included. One call larger than the whole limit of tokens is let through when the window is empty.
///
/// Calls are let through in the order in which they came. One that would have to wait for longer than `max_wait` fails
/// with [`ErrorKind::RateLimit`] and the code [`RateLimit::REACHED`], and says after how long it may be tried again.
/// Dropping a waiting call gives up its place and nothing else. Time is tokio's.
///
/// One limit covers all calls that pass, or those of one provider if it is given one. Clones share their window.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("echo.txt")]
/// use std::time::Duration;
///
/// use pintle_llm::RateLimit;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let limit = RateLimit::builder()
///     .requests(2)
///     .tokens(30_000)
///     .window(Duration::from_secs(60))
///     .max_wait(Duration::ZERO)
///     .build()?;
/// let client = Client::builder().provider(Echo).middleware(limit).build()?;
/// let request = Request::new("any", [Message::user("hello")]);
/// client.complete(request.clone()).await?;
/// client.complete(request.clone()).await?;
/// let held_back = client.complete(request).await.unwrap_err();
/// assert_eq!(held_back.kind(), ErrorKind::RateLimit);
/// assert!(held_back.retry_after() > Some(Duration::from_secs(50)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct RateLimit {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    provider: Option<String>,
    max_wait: Duration,
    window: Mutex<Window>,
    /// Whoever holds it is the next to be let through; it hands itself on in the order of asking.
    turn: tokio::sync::Mutex<()>,
    /// Tokens turned out to be fewer than was thought.
    freed: Notify,
}

/// Collects the limits of a [`RateLimit`].
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
    /// The [`error_code`](Error::error_code) of a call that would have to wait for too long.
    pub const REACHED: &str = "client_rate_limit";

    /// Begins a limit with a window of one minute and a wait of one minute at most.
    pub fn builder() -> RateLimitBuilder {
        let minute = Duration::from_secs(60);
        RateLimitBuilder { provider: None, requests: None, tokens: None, window: minute, max_wait: minute }
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.inner.window.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the call may be made and enters it into the window.
    async fn enter(&self, tokens: u64) -> Result<u64, Error> {
        let begun = Instant::now();
        let deadline = begun.checked_add(self.inner.max_wait).unwrap_or(begun + FAR);
        let Ok(_turn) = timeout_at(deadline, self.inner.turn.lock()).await else {
            return Err(self.full(None));
        };
        loop {
            let entered = self.window().enter(tokens, Instant::now());
            let free_at = match entered {
                Ok(entry) => return Ok(entry),
                Err(free_at) => free_at,
            };
            if free_at > deadline {
                return Err(self.full(Some(free_at.duration_since(Instant::now()))));
            }
            // Either the time has come or there is news; the window knows.
            let _ = timeout_at(free_at, self.inner.freed.notified()).await;
        }
    }

    fn full(&self, wait: Option<Duration>) -> Error {
        let message = format!(
            "the client's own limit of {} leaves no place within {:?}",
            self.window().limits(),
            self.inner.max_wait
        );
        Error::new(ErrorKind::RateLimit, message)
            .with_error_code(Self::REACHED)
            .with_retry(Retry::After(wait))
    }
}

/// As good as never, and still a point in time.
const FAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl RateLimitBuilder {
    /// The most requests per window; 1 at least. Default: no limit.
    pub fn requests(mut self, requests: u32) -> Self {
        self.requests = Some(requests);
        self
    }

    /// The most tokens per window, of prompts and answers together; 1 at least. Default: no limit.
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// How long a call counts; more than zero, a day at most. Default 60 s.
    pub fn window(mut self, window: Duration) -> Self {
        self.window = window;
        self
    }

    /// The longest that a call is held back; zero never waits. Default 60 s.
    pub fn max_wait(mut self, wait: Duration) -> Self {
        self.max_wait = wait;
        self
    }

    /// Only calls to the provider of this name count and wait. Default: all calls.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// The limit, with an empty window.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] without any limit, or for one outside its range.
    pub fn build(self) -> Result<RateLimit, Error> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        let wrong =
            |found: String| Err(Error::new(ErrorKind::Configuration, format!("a rate limit of {found}")));
        if self.requests.is_none() && self.tokens.is_none() {
            return wrong("nothing; expected a number of requests, of tokens, or both".to_owned());
        }
        if self.requests == Some(0) || self.tokens == Some(0) {
            return wrong("0 lets nothing through; expected 1 at least".to_owned());
        }
        if self.window.is_zero() || self.window > DAY {
            return wrong(format!("{:?}; expected a window above zero and of a day at most", self.window));
        }
        let window = Mutex::new(Window::new(self.requests, self.tokens, self.window));
        let inner = Inner {
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
        let tokens = estimate::prompt(&request);
        let entry = self.enter(tokens).await.map_err(|error| error.with_provider(next.provider()))?;
        let call = Call { limit: self.clone(), entry, tokens, answered: 0 };
        follow(next.run(request, mode), call).await
    }
}

/// A call that has been let through.
struct Call {
    limit: RateLimit,
    entry: u64,
    /// The tokens of the prompt, by estimate.
    tokens: u64,
    /// The bytes of text that have come.
    answered: usize,
}

impl Follower for Call {
    fn event(&mut self, event: &StreamEvent) {
        self.answered = self.answered.saturating_add(estimate::text_of(event));
    }

    fn end(&mut self, end: End<'_>) {
        let estimate = self.tokens.saturating_add(estimate::tokens(self.answered));
        let tokens = match end {
            End::Answered(response) => match response.usage.total_tokens {
                0 => estimate,
                total => total,
            },
            // The request counts all the same: the provider may have counted it.
            End::Failed(error) if costs_nothing(error) && self.answered == 0 => 0,
            End::Failed(_) | End::Cut | End::Dropped => estimate,
        };
        self.limit.window().correct(self.entry, tokens);
        self.limit.inner.freed.notify_one();
    }
}
