//! Circuit breaker per provider.

mod circuit;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use pintle_llm::{
    CallEnd, CallObserver, Error, ErrorKind, Middleware, Mode, Next, Reply, Request, Retry, StreamEvent,
    observe,
};
use tokio::time::Instant;

use self::circuit::{CallPermit, CallVerdict, Circuit, CircuitLimits, CircuitRefusal};

/// Middleware that refuses calls to a provider for a while after repeated failures.
///
/// A *closed* circuit lets calls through and counts consecutive transient failures: retryable errors and time-outs.
/// Permanent errors say nothing about the provider's health and do not count. At the threshold the circuit *opens*:
/// calls are refused before sending, with [`ErrorKind::Server`] and the code [`CircuitBreaker::OPEN`]; the error says
/// when to retry. After the cool-down the circuit is *half open*: one call is let through as a probe.
///
/// If the provider responds to the probe (for a stream: with its first event), calls flow again. Until one of them
/// completes, a single failure opens the circuit again. If the probe fails, the cool-down restarts. If its caller
/// drops it, or it has no outcome within another cool-down, the next call is the probe.
///
/// Each provider of a client has its own circuit. Calls sent before a circuit opened do not affect it when they end.
/// Clones share their circuits. Time is tokio's.
///
/// ```
/// # use pintle_llm::{Client, Error, ErrorKind, Message, Request};
#[doc = include_str!("example_adapter.txt")]
/// use std::time::Duration;
///
/// use pintle_middleware::{CircuitBreaker, CircuitState};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Error> {
/// let breaker = CircuitBreaker::builder().with_threshold(2).with_cool_down(Duration::from_secs(20)).build()?;
/// let client = Client::builder().provider(Echo).default_provider("openai").middleware(breaker.clone()).build()?;
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
    inner: Arc<CircuitBreakerInner>,
}

#[derive(Debug)]
struct CircuitBreakerInner {
    limits: CircuitLimits,
    /// Keyed by provider.
    circuits: Mutex<HashMap<String, Circuit>>,
}

/// Builder for a [`CircuitBreaker`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct CircuitBreakerBuilder {
    threshold: u32,
    cool_down: Duration,
}

/// State of a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CircuitState {
    /// Lets calls through.
    Closed,
    /// Refuses calls.
    Open,
    /// Lets one call through as a probe and refuses others until it ends.
    HalfOpen,
}

impl CircuitBreaker {
    /// [`error_code`](Error::error_code) of a refused call.
    pub const OPEN: &str = "circuit_open";

    /// Starts a breaker that opens after 5 consecutive failures, for 30 s.
    pub fn builder() -> CircuitBreakerBuilder {
        CircuitBreakerBuilder { threshold: 5, cool_down: Duration::from_secs(30) }
    }

    /// Returns the state of this provider's circuit; closed for a provider that was never called.
    #[must_use]
    pub fn state(&self, provider: &str) -> CircuitState {
        self.lock().get(provider).map_or(CircuitState::Closed, |circuit| circuit.state(Instant::now()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Circuit>> {
        self.inner.circuits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, provider: &str) -> Result<AdmittedCall, Error> {
        let mut circuits = self.lock();
        let circuit = circuits.entry(provider.to_owned()).or_default();
        let (message, wait) = match circuit.admit(self.inner.limits, Instant::now()) {
            Ok(permit) => {
                let provider = provider.to_owned();
                return Ok(AdmittedCall { breaker: self.clone(), provider, permit, responded: false });
            }
            Err(CircuitRefusal::Open(left)) => {
                let count = self.inner.limits.threshold;
                (format!("the circuit is open for {left:?} after {count} consecutive failures"), Some(left))
            }
            Err(CircuitRefusal::Probing) => {
                ("the circuit is half open and a probe is in flight".to_owned(), None)
            }
        };
        Err(Error::new(ErrorKind::Server, message)
            .with_provider(provider)
            .with_error_code(Self::OPEN)
            .with_retry(Retry::After(wait)))
    }
}

impl CircuitBreakerBuilder {
    /// Number of consecutive transient failures that open the circuit; at least 1. Default 5.
    pub fn with_threshold(mut self, failures: u32) -> Self {
        self.threshold = failures;
        self
    }

    /// Time that the circuit stays open; above zero and at most a day. Default 30 s.
    pub fn with_cool_down(mut self, time: Duration) -> Self {
        self.cool_down = time;
        self
    }

    /// Builds the breaker, with all circuits closed.
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
                    "invalid circuit breaker: {} failures, cool-down {:?}; expected at least 1 failure and a cool-down above zero and of at most a day",
                    self.threshold, self.cool_down
                ),
            ));
        }
        let Self { threshold, cool_down } = self;
        let inner = CircuitBreakerInner {
            limits: CircuitLimits { threshold, cool_down },
            circuits: Mutex::default(),
        };
        Ok(CircuitBreaker { inner: Arc::new(inner) })
    }
}

#[async_trait]
impl Middleware for CircuitBreaker {
    async fn handle(&self, request: Request, mode: Mode, next: Next<'_>) -> Result<Reply, Error> {
        let call = self.admit(next.provider())?;
        observe(next.run(request, mode), call).await
    }
}

/// A call that was let through.
struct AdmittedCall {
    breaker: CircuitBreaker,
    provider: String,
    permit: CallPermit,
    /// The first event of a stream has arrived.
    responded: bool,
}

impl AdmittedCall {
    fn report(&self, verdict: CallVerdict) {
        let limits = self.breaker.inner.limits;
        let opens = match self.breaker.lock().get_mut(&self.provider) {
            Some(circuit) => circuit.report(self.permit, verdict, limits, Instant::now()),
            None => false,
        };
        if opens {
            tracing::warn!(provider = self.provider, cool_down = ?limits.cool_down, "circuit opened");
        }
    }
}

impl CallObserver for AdmittedCall {
    fn on_event(&mut self, _event: &StreamEvent) {
        if !std::mem::replace(&mut self.responded, true) {
            self.report(CallVerdict::Responded);
        }
    }

    fn on_end(&mut self, end: CallEnd<'_>) {
        self.report(match end {
            CallEnd::Completed(_) => CallVerdict::Completed,
            CallEnd::Failed(error) if is_transient(error) => CallVerdict::Failed,
            // Any other HTTP error shows that the provider is up.
            CallEnd::Failed(error) if error.status().is_some() => CallVerdict::Responded,
            CallEnd::Failed(_) | CallEnd::Dropped => CallVerdict::Unknown,
            CallEnd::Truncated => CallVerdict::Failed,
        });
    }
}

fn is_transient(error: &Error) -> bool {
    error.is_retryable() || error.kind() == ErrorKind::RequestTimeout
}
