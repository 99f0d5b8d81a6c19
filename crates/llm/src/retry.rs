//! When to try again (client specification, section 6.6).

use std::future::Future;
use std::time::Duration;

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
    /// Whether time-outs count as transient. Default false (section 6.3); sessions turn it on.
    pub retry_timeouts: bool,
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
        let seconds = (self.base_delay.as_secs_f64() * factor).min(self.max_delay.as_secs_f64());
        let seconds = if self.jitter { seconds * (0.5 + spread.clamp(0.0, 1.0)) } else { seconds };
        Duration::try_from_secs_f64(seconds).unwrap_or(self.max_delay)
    }
}

/// Calls `call` until it succeeds or `policy` says no more. Dropping the future stops it.
///
/// # Errors
///
/// The error of the last attempt.
pub async fn retry<T, F, Fut>(policy: &RetryPolicy, mut call: F) -> Result<T, Error>
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
        let Some(delay) = policy.delay(attempt, &error, spread()) else { return Err(error) };
        tracing::debug!(attempt, ?delay, kind = ?error.kind(), "trying again");
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failure(kind: ErrorKind) -> Error {
        Error::new(kind, "x")
    }

    #[test]
    fn delays_grow_within_their_jitter() {
        let policy = RetryPolicy::default().with_max_retries(9);
        let error = failure(ErrorKind::Server);
        for (attempt, base) in [(0, 1.0), (1, 2.0), (2, 4.0), (3, 8.0), (6, 60.0), (8, 60.0)] {
            for (spread, factor) in [(0.0, 0.5), (0.5, 1.0), (1.0, 1.5)] {
                let delay = policy.delay(attempt, &error, spread).unwrap().as_secs_f64();
                assert!((delay - base * factor).abs() < 1e-9, "attempt {attempt}, spread {spread}: {delay}");
            }
        }
    }

    #[test]
    fn who_is_retried() {
        let policy = RetryPolicy::default();
        let after = |secs| Retry::After(Some(Duration::from_secs(secs)));
        let rows = [
            (failure(ErrorKind::RateLimit), true),
            (failure(ErrorKind::Network), true),
            (failure(ErrorKind::Stream), true),
            (failure(ErrorKind::Authentication), false),
            (failure(ErrorKind::NotFound), false),
            (failure(ErrorKind::RequestTimeout), false),
            (failure(ErrorKind::RateLimit).with_retry(after(7)), true),
            (failure(ErrorKind::RateLimit).with_retry(after(61)), false),
            (failure(ErrorKind::RateLimit).with_retry(Retry::Never), false),
        ];
        for (error, expected) in rows {
            assert_eq!(policy.delay(0, &error, 0.5).is_some(), expected, "{error:?}");
        }
        let asked = failure(ErrorKind::RateLimit).with_retry(after(7));
        assert_eq!(
            policy.delay(0, &asked, 0.9),
            Some(Duration::from_secs(7)),
            "no jitter on the provider's word"
        );
        let patient = policy.with_retry_timeouts(true);
        assert!(patient.delay(0, &failure(ErrorKind::RequestTimeout), 0.5).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn retry_stops_at_the_limit_and_at_once_for_permanent_errors() {
        for (kind, expected) in [(ErrorKind::Server, 3), (ErrorKind::AccessDenied, 1)] {
            let calls = Cell::new(0);
            let result: Result<(), Error> = retry(&RetryPolicy::default(), || {
                calls.set(calls.get() + 1);
                async move { Err(failure(kind)) }
            })
            .await;
            assert_eq!((result.unwrap_err().kind(), calls.get()), (kind, expected));
        }
    }

    #[test]
    fn spread_stays_in_range_and_varies() {
        let drawn: Vec<f64> = (0..50).map(|_| spread()).collect();
        assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)));
        assert!(drawn.windows(2).any(|pair| (pair[0] - pair[1]).abs() > 1e-6));
    }
}
