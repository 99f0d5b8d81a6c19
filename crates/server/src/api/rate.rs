//! Rate limit of each caller's requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Burst of an idle caller, in seconds: it may send this many times the rate at once.
const BURST: u32 = 4;

/// Maximum number of remembered callers. Beyond it, idle callers are forgotten.
const MAX_CALLERS: usize = 10_000;

/// Limits the request rate of callers by the generic cell rate algorithm, which stores one time for each caller.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    interval: Duration,
    /// Time at which the caller's full burst is available again.
    free_at: Mutex<HashMap<String, Instant>>,
}

impl RateLimiter {
    /// Creates a limit of this many requests per second, at least one.
    pub(crate) fn new(per_second: u32) -> Self {
        Self { interval: Duration::from_secs(1) / per_second.max(1), free_at: Mutex::default() }
    }

    /// Counts a request, or returns the time to wait.
    pub(crate) fn count(&self, caller: &str, now: Instant) -> Result<(), Duration> {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        if free_at.len() >= MAX_CALLERS {
            free_at.retain(|_, free_at| *free_at > now);
        }
        let free = free_at.get(caller).copied().unwrap_or(now).max(now);
        let burst = Duration::from_secs(BURST.into());
        let ahead = free.duration_since(now) + self.interval;
        if ahead > burst {
            return Err(ahead - burst);
        }
        free_at.insert(caller.to_owned(), now + ahead);
        Ok(())
    }

    /// Counts further requests that were allowed with an earlier request of the caller. They delay later requests.
    pub(crate) fn charge(&self, caller: &str, requests: u32, now: Instant) {
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        let free = free_at.get(caller).copied().unwrap_or(now).max(now);
        free_at.insert(caller.to_owned(), free + self.interval.saturating_mul(requests));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_the_rate() {
        let rates = RateLimiter::new(10);
        let start = Instant::now();
        for _ in 0..40 {
            assert_eq!(rates.count("ann", start), Ok(()));
        }
        assert_eq!(rates.count("ann", start), Err(Duration::from_millis(100)));
        assert_eq!(rates.count("ben", start), Ok(()), "others have a rate of their own");
        let later = start + Duration::from_millis(100);
        assert_eq!(rates.count("ann", later), Ok(()));
        assert_eq!(rates.count("ann", later), Err(Duration::from_millis(100)));
        let rested = start + Duration::from_secs(60);
        assert!((0..40).all(|_| rates.count("ann", rested).is_ok()), "rest is not saved up beyond the burst");
        assert!(rates.count("ann", rested).is_err());
    }

    #[test]
    fn further_requests_delay_later_ones() {
        let start = Instant::now();
        for (further, wait) in [(0, None), (38, None), (39, Some(100)), (99, Some(6_100))] {
            let rates = RateLimiter::new(10);
            assert_eq!(rates.count("ann", start), Ok(()));
            rates.charge("ann", further, start);
            let expected = wait.map_or(Ok(()), |wait| Err(Duration::from_millis(wait)));
            assert_eq!(rates.count("ann", start), expected, "{further}");
            assert_eq!(rates.count("ben", start), Ok(()), "{further}");
        }
    }

    #[test]
    fn callers_who_are_quiet_are_forgotten() {
        let rates = RateLimiter::new(10);
        let start = Instant::now();
        for caller in 0..MAX_CALLERS {
            rates.count(&caller.to_string(), start).unwrap();
        }
        rates.count("one more", start + Duration::from_secs(1)).unwrap();
        assert_eq!(rates.free_at.lock().unwrap().len(), 1);
    }
}
