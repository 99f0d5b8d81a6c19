//! Leaving a provider alone that does not work.

mod circuit;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::circuit::{Admitted, Circuit, Limits, Refusal, Verdict};
use crate::error::{Error, ErrorKind, Retry};
use crate::middleware::follow::{End, Follower, follow};
use crate::middleware::{Middleware, Mode, Next, Reply};
use crate::request::Request;
use crate::stream::StreamEvent;

/// Refuses calls to a provider for a while after several in a row have failed.
///
/// Closed, it lets calls through and counts transient failures in a row: those that may be tried again, and time-outs.
/// Permanent errors say nothing about the provider's health and do not count. At the threshold it opens: calls are
/// refused before sending, with [`ErrorKind::Server`] and the code [`CircuitBreaker::OPEN`], and the error says when
/// to try again. After the cool-down it is half open: one call is let through as a probe. If the provider answers it,
/// and the first event of a stream is an answer, calls flow again, and until one of them ends well a single failure
/// opens it anew. If it fails, the cool-down begins anew; if its caller drops it, or nothing is heard of it for another
/// cool-down, the next call is the probe.
///
/// Each provider of a client has a circuit of its own. Calls that were sent before a circuit opened change nothing when
/// they end. Clones share their circuits. Time is tokio's.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("echo.txt")]
/// use std::time::Duration;
///
/// use pintle_llm::{CircuitBreaker, CircuitState};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let breaker = CircuitBreaker::builder().threshold(2).cool_down(Duration::from_secs(20)).build()?;
/// let client = Client::builder().provider(Echo).middleware(breaker.clone()).build()?;
/// let request = Request::new("any", [Message::user("hello")]);
/// for _ in 0..2 {
///     assert!(client.stream(request.clone()).await.is_err()); // this provider cannot stream
/// }
/// assert_eq!(breaker.state("openai"), CircuitState::Open);
/// let refused = client.complete(request).await.unwrap_err();
/// assert_eq!((refused.kind(), refused.error_code()), (ErrorKind::Server, Some(CircuitBreaker::OPEN)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    limits: Limits,
    /// By provider.
    circuits: Mutex<HashMap<String, Circuit>>,
}

/// Collects the limits of a [`CircuitBreaker`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CircuitBreakerBuilder {
    threshold: u32,
    cool_down: Duration,
}

/// What a circuit does with the next call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CircuitState {
    /// Lets it through.
    Closed,
    /// Refuses it.
    Open,
    /// Lets it through as a probe, or refuses it while a probe is on its way.
    HalfOpen,
}

impl CircuitBreaker {
    /// The [`error_code`](Error::error_code) of a call that is refused.
    pub const OPEN: &str = "circuit_open";

    /// Begins a breaker that opens after 5 failures in a row, for 30 s.
    pub fn builder() -> CircuitBreakerBuilder {
        CircuitBreakerBuilder { threshold: 5, cool_down: Duration::from_secs(30) }
    }

    /// The state of this provider's circuit; closed for one that was never called.
    #[must_use]
    pub fn state(&self, provider: &str) -> CircuitState {
        self.lock().get(provider).map_or(CircuitState::Closed, |circuit| circuit.state(Instant::now()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Circuit>> {
        self.inner.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, provider: &str) -> Result<Call, Error> {
        let mut circuits = self.lock();
        let circuit = circuits.entry(provider.to_owned()).or_default();
        let (message, wait) = match circuit.admit(self.inner.limits, Instant::now()) {
            Ok(admitted) => {
                let provider = provider.to_owned();
                return Ok(Call { breaker: self.clone(), provider, admitted, alive: false });
            }
            Err(Refusal::Open(left)) => {
                let count = self.inner.limits.threshold;
                (
                    format!("no call is made for {left:?}, since the last {count} that counted failed"),
                    Some(left),
                )
            }
            Err(Refusal::Probing) => {
                ("a single call finds out at this moment whether it works again".to_owned(), None)
            }
        };
        Err(Error::new(ErrorKind::Server, message)
            .with_provider(provider)
            .with_error_code(Self::OPEN)
            .with_retry(Retry::After(wait)))
    }
}

impl CircuitBreakerBuilder {
    /// How many transient failures in a row open the circuit; 1 at least. Default 5.
    pub fn threshold(mut self, failures: u32) -> Self {
        self.threshold = failures;
        self
    }

    /// How long it stays open; more than zero, a day at most. Default 30 s.
    pub fn cool_down(mut self, time: Duration) -> Self {
        self.cool_down = time;
        self
    }

    /// The breaker, with all circuits closed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] for a limit outside its range.
    pub fn build(self) -> Result<CircuitBreaker, Error> {
        const DAY: Duration = Duration::from_secs(24 * 60 * 60);
        if self.threshold == 0 || self.cool_down.is_zero() || self.cool_down > DAY {
            return Err(Error::new(
                ErrorKind::Configuration,
                format!(
                    "a circuit breaker of {} failures and {:?}; expected 1 failure at least, and a time above zero and of a day at most",
                    self.threshold, self.cool_down
                ),
            ));
        }
        let Self { threshold, cool_down } = self;
        let inner = Inner { limits: Limits { threshold, cool_down }, circuits: Mutex::default() };
        Ok(CircuitBreaker { inner: Arc::new(inner) })
    }
}

#[async_trait]
impl Middleware for CircuitBreaker {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let call = self.admit(next.provider())?;
        follow(next.run(request, mode), call).await
    }
}

/// A call that has been let through.
struct Call {
    breaker: CircuitBreaker,
    provider: String,
    admitted: Admitted,
    /// Whether an event has come.
    alive: bool,
}

impl Call {
    fn tell(&self, verdict: Verdict) {
        let limits = self.breaker.inner.limits;
        let opens = match self.breaker.lock().get_mut(&self.provider) {
            Some(circuit) => circuit.tell(self.admitted, verdict, limits, Instant::now()),
            None => false,
        };
        if opens {
            tracing::warn!(provider = self.provider, cool_down = ?limits.cool_down, "the circuit opens");
        }
    }
}

impl Follower for Call {
    fn event(&mut self, _event: &StreamEvent) {
        if !std::mem::replace(&mut self.alive, true) {
            self.tell(Verdict::Alive);
        }
    }

    fn end(&mut self, end: End<'_>) {
        self.tell(match end {
            End::Answered(_) => Verdict::Well,
            End::Failed(error) if is_transient(error) => Verdict::Failed,
            // A refusal with reasons is a sign of life.
            End::Failed(error) if error.status().is_some() => Verdict::Alive,
            End::Failed(_) | End::Dropped => Verdict::Unknown,
            End::Cut => Verdict::Failed,
        });
    }
}

fn is_transient(error: &Error) -> bool {
    error.is_retryable() || error.kind() == ErrorKind::RequestTimeout
}
