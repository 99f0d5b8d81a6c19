//! Retry policy (client specification, section 6.6).

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind};

/// Number of retries and delays between them. Used by [`retry`], or directly through [`RetryPolicy::delay`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts after the first. Default 2; 0 disables retries.
    pub max_retries: u32,
    /// First delay. Default 1 s.
    pub base_delay: Duration,
    /// Longest delay before jitter. If a provider asks for a longer one, the call is not retried. Default 60 s.
    pub max_delay: Duration,
    /// Factor between consecutive delays. Default 2.
    pub backoff_multiplier: f64,
    /// Randomise delays by ±50 %. Default true.
    pub jitter: bool,
    /// Treat time-outs as transient. Default false (section 6.3), also in sessions.
    pub retry_timeouts: bool,
    /// Decides which errors are retried, instead of [`Error::retry`] and `retry_timeouts`. Limits and delays still
    /// apply. Default: none.
    pub should_retry: Option<ShouldRetry>,
    /// Called by [`retry`] before each retry. A caller of [`RetryPolicy::delay`] reports retries itself. Default: none.
    pub on_retry: Option<OnRetry>,
}

/// Predicate for errors that are retried.
#[derive(Clone)]
pub struct ShouldRetry(Arc<Predicate>);

type Predicate = dyn Fn(&Error) -> bool + Send + Sync;

impl ShouldRetry {
    /// Wraps a predicate, which must not block.
    pub fn new(predicate: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(predicate))
    }
}

impl PartialEq for ShouldRetry {
    /// Compares the identity of the functions.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for ShouldRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ShouldRetry(..)")
    }
}

/// Callback before a retry. Arguments: the error, the number of the failed attempt (0 is the first), and the delay before
/// the next one.
#[derive(Clone)]
pub struct OnRetry(Arc<Callback>);

type Callback = dyn Fn(&Error, u32, Duration) + Send + Sync;

impl OnRetry {
    /// Wraps a function, which must not block.
    pub fn new(callback: impl Fn(&Error, u32, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(callback))
    }

    /// Calls the function.
    pub fn call(&self, error: &Error, attempt: u32, delay: Duration) {
        (self.0)(error, attempt, delay);
    }
}

impl PartialEq for OnRetry {
    /// Compares the identity of the functions.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for OnRetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnRetry(..)")
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 2,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_secs(60),
            backoff_multiplier: 2.0,
            jitter: true,
            retry_timeouts: false,
            should_retry: None,
            on_retry: None,
        }
    }
}

impl RetryPolicy {
    /// Returns the policy without retries.
    #[must_use]
    pub fn none() -> Self {
        Self { max_retries: 0, ..Self::default() }
    }

    /// Sets the number of attempts after the first.
    #[must_use]
    pub fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// Sets the first delay.
    #[must_use]
    pub fn with_base_delay(mut self, base_delay: Duration) -> Self {
        self.base_delay = base_delay;
        self
    }

    /// Sets the longest delay.
    #[must_use]
    pub fn with_max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = max_delay;
        self
    }

    /// Sets the factor between consecutive delays; at least 1, since a smaller one would shorten the delays.
    #[must_use]
    pub fn with_backoff_multiplier(mut self, multiplier: f64) -> Self {
        self.backoff_multiplier = multiplier;
        self
    }

    /// Enables or disables jitter.
    #[must_use]
    pub fn with_jitter(mut self, jitter: bool) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets a callback before each retry.
    #[must_use]
    pub fn with_on_retry(mut self, callback: impl Fn(&Error, u32, Duration) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(OnRetry::new(callback));
        self
    }

    /// Sets the predicate for errors that are retried.
    #[must_use]
    pub fn with_should_retry(mut self, predicate: impl Fn(&Error) -> bool + Send + Sync + 'static) -> Self {
        self.should_retry = Some(ShouldRetry::new(predicate));
        self
    }

    /// Sets whether time-outs are transient.
    #[must_use]
    pub fn with_retry_timeouts(mut self, retry_timeouts: bool) -> Self {
        self.retry_timeouts = retry_timeouts;
        self
    }

    /// Returns `true` if an error is worth retrying, whatever the number of attempts so far.
    #[must_use]
    pub fn should_retry(&self, error: &Error) -> bool {
        match &self.should_retry {
            Some(ShouldRetry(predicate)) => predicate(error),
            None => error.is_retryable() || self.retry_timeouts && error.kind() == ErrorKind::RequestTimeout,
        }
    }

    /// Returns the delay before the next attempt after `error` ended attempt `attempt` (0 is the first); `None` for no
    /// further attempt. `jitter` is a random number in 0..1 drawn by the caller, for instance by [`jitter`].
    #[must_use]
    pub fn delay(&self, attempt: u32, error: &Error, jitter: f64) -> Option<Duration> {
        if attempt >= self.max_retries || !self.should_retry(error) {
            return None;
        }
        match error.retry_after() {
            Some(requested) if requested > self.max_delay => None,
            Some(requested) => Some(requested),
            None => Some(self.backoff(attempt, jitter)),
        }
    }

    fn backoff(&self, attempt: u32, jitter: f64) -> Duration {
        let factor = self.backoff_multiplier.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
        let seconds = self.base_delay.as_secs_f64() * factor;
        // Zero times infinity is NaN; the delay is zero.
        let seconds = if seconds.is_nan() { 0.0 } else { seconds.min(self.max_delay.as_secs_f64()) };
        let seconds = if self.jitter { seconds * (0.5 + jitter.clamp(0.0, 1.0)) } else { seconds };
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max_delay)
    }
}

/// Calls `call` until it succeeds or `policy` allows no further attempt. Dropping the future cancels it. Delays use
/// random jitter ([`jitter`]) and tokio's clock.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn retry<T, F, Fut>(policy: &RetryPolicy, call: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    retry_with_jitter(policy, jitter, call).await
}

/// As [`retry`], with the jitter from `draw`: a number in 0..1 per failure.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn retry_with_jitter<T, F, Fut>(
    policy: &RetryPolicy,
    draw: impl FnMut() -> f64,
    call: F,
) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    retry_until(None, policy, draw, call).await
}

/// As [`retry_with_jitter`], but returns the error instead of a wait that would reach `deadline`.
pub(crate) async fn retry_until<T, F, Fut>(
    deadline: Option<Instant>,
    policy: &RetryPolicy,
    mut draw: impl FnMut() -> f64,
    mut call: F,
) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    let mut attempt = 0;
    loop {
        let error = match call().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(delay) = policy.delay(attempt, &error, draw()) else { return Err(error) };
        let in_time = |deadline| Instant::now().checked_add(delay).is_some_and(|then| then < deadline);
        if !deadline.is_none_or(in_time) {
            return Err(error);
        }
        tracing::debug!(attempt, ?delay, kind = ?error.kind(), "retrying");
        if let Some(callback) = &policy.on_retry {
            callback.call(&error, attempt, delay);
        }
        tokio::time::sleep(delay).await;
        attempt += 1;
    }
}

/// Returns a random number in 0..1, good enough to desynchronise clients and for nothing else.
#[must_use]
pub fn jitter() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    // Each `RandomState` has fresh keys, so the hash of a constant is random.
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let fraction = bits as f64 / (1_u64 << 53) as f64;
    fraction
}
