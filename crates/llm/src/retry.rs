//! When to try again (client specification, section 6.6).

#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::error::{Error, ErrorKind, Retry};

/// How often and how long to wait before trying again: plain data, so that a caller can decide with it
/// ([`RetryPolicy::delay`]) or let [`retry`] do it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Attempts after the first. Default 2; 0 turns retries off.
    pub max_retries: u32,
    /// The first delay. Default 1 s.
    pub base_delay: Duration,
    /// The longest delay before jitter; a provider that asks for more is not asked again. Default 60 s.
    pub max_delay: Duration,
    /// Growth per attempt. Default 2.
    pub backoff_multiplier: f64,
    /// Whether delays are spread by a half either way. Default true.
    pub jitter: bool,
    /// Whether time-outs count as transient. Default false (section 6.3), also in sessions.
    pub retry_timeouts: bool,
    /// Told by [`retry`] before each retry; a caller that decides with [`RetryPolicy::delay`] tells whom it likes.
    /// Default: nobody.
    pub on_retry: Option<OnRetry>,
}

/// Who is told before an attempt is made again: of the error, of the number of the attempt that it ended (0 is the
/// first), and of the delay that follows.
#[derive(Clone)]
pub struct OnRetry(Arc<Listener>);

type Listener = dyn Fn(&Error, u32, Duration) + Send + Sync;

impl OnRetry {
    /// Tells this function, which must not block.
    pub fn new(listener: impl Fn(&Error, u32, Duration) + Send + Sync + 'static) -> Self {
        Self(Arc::new(listener))
    }

    /// Tells it.
    pub fn tell(&self, error: &Error, attempt: u32, delay: Duration) {
        (self.0)(error, attempt, delay);
    }
}

impl PartialEq for OnRetry {
    /// The same function object.
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
            on_retry: None,
        }
    }
}

impl RetryPolicy {
    /// The policy that never tries again.
    #[must_use]
    pub fn none() -> Self {
        Self { max_retries: 0, ..Self::default() }
    }

    /// With another number of attempts after the first.
    #[must_use]
    pub fn with_max_retries(mut self, max_retries: u32) -> Self {
        self.max_retries = max_retries;
        self
    }

    /// With another first delay.
    #[must_use]
    pub fn with_base_delay(mut self, base_delay: Duration) -> Self {
        self.base_delay = base_delay;
        self
    }

    /// With another longest delay.
    #[must_use]
    pub fn with_max_delay(mut self, max_delay: Duration) -> Self {
        self.max_delay = max_delay;
        self
    }

    /// With another growth per attempt; 1 or more, since a smaller one would shorten the delays.
    #[must_use]
    pub fn with_backoff_multiplier(mut self, multiplier: f64) -> Self {
        self.backoff_multiplier = multiplier;
        self
    }

    /// With delays spread or not.
    #[must_use]
    pub fn with_jitter(mut self, jitter: bool) -> Self {
        self.jitter = jitter;
        self
    }

    /// With a listener that is told before each retry.
    #[must_use]
    pub fn with_on_retry(mut self, listener: impl Fn(&Error, u32, Duration) + Send + Sync + 'static) -> Self {
        self.on_retry = Some(OnRetry::new(listener));
        self
    }

    /// With time-outs counted as transient or not.
    #[must_use]
    pub fn with_retry_timeouts(mut self, retry_timeouts: bool) -> Self {
        self.retry_timeouts = retry_timeouts;
        self
    }

    /// How long to wait before attempt `attempt + 1`, if `error` ended attempt `attempt` (0 is the first);
    /// `None` if there is to be no other. `spread` is a random number in 0..1 that the caller draws.
    #[must_use]
    pub fn delay(&self, attempt: u32, error: &Error, spread: f64) -> Option<Duration> {
        if attempt >= self.max_retries {
            return None;
        }
        let asked = match error.retry() {
            Retry::After(asked) => asked,
            Retry::Never if self.retry_timeouts && error.kind() == ErrorKind::RequestTimeout => None,
            Retry::Never => return None,
        };
        match asked {
            Some(asked) if asked > self.max_delay => None,
            Some(asked) => Some(asked),
            None => Some(self.backoff(attempt, spread)),
        }
    }

    fn backoff(&self, attempt: u32, spread: f64) -> Duration {
        let factor = self.backoff_multiplier.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
        let seconds = self.base_delay.as_secs_f64() * factor;
        // Nothing times infinity is no number, and stays nothing.
        let seconds = if seconds.is_nan() { 0.0 } else { seconds.min(self.max_delay.as_secs_f64()) };
        let seconds = if self.jitter { seconds * (0.5 + spread.clamp(0.0, 1.0)) } else { seconds };
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max_delay)
    }
}

/// Calls `call` until it succeeds or `policy` says no more. Dropping the future stops it. Delays are spread by chance
/// ([`spread`]) and waited for on tokio's clock.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn retry<T, F, Fut>(policy: &RetryPolicy, call: F) -> Result<T, Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, Error>>,
{
    retry_with_spread(policy, spread, call).await
}

/// As [`retry`], with delays spread by the numbers in 0..1 that `draw` gives, one for each failure.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn retry_with_spread<T, F, Fut>(
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

/// As [`retry_with_spread`], without waits that last until `end` or longer: nothing could follow them.
pub(crate) async fn retry_until<T, F, Fut>(
    end: Option<Instant>,
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
        let in_time = |end| Instant::now().checked_add(delay).is_some_and(|then| then < end);
        if !end.is_none_or(in_time) {
            return Err(error);
        }
        tracing::debug!(attempt, ?delay, kind = ?error.kind(), "trying again");
        if let Some(listener) = &policy.on_retry {
            listener.tell(&error, attempt, delay);
        }
        tokio::time::sleep(delay).await;
        attempt += 1;
    }
}

/// A number in 0..1 that differs from call to call; good enough to keep clients apart, and for nothing else.
#[must_use]
pub fn spread() -> f64 {
    use std::hash::{BuildHasher, RandomState};
    // Each `RandomState` has fresh keys, so the hash of nothing is already random.
    let bits = RandomState::new().hash_one(0_u8) >> 11;
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double exactly")]
    let fraction = bits as f64 / (1_u64 << 53) as f64;
    fraction
}
