//! Clocks of a session.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::protocol::Timestamp;

/// Source of a session's time. Tests and replays use their own.
///
/// It may go back, as a system clock does when it is set. The time of a session does not: it stops until the clock has
/// caught up.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Timestamp {
    /// Returns the time of the system clock. A session uses its [`Clock`].
    ///
    /// ```
    /// use pintle_agent::Timestamp;
    ///
    /// assert!(Timestamp::now() > "2025-01-01T00:00:00Z".parse()?);
    /// # Ok::<(), pintle_agent::InvalidTimestamp>(())
    /// ```
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock for a session")]
    pub fn now() -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Self::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Wrapper that never goes back. When the inner clock does, the time stops until it has caught up.
#[derive(Debug)]
pub(crate) struct SteadyClock {
    clock: Arc<dyn Clock>,
    /// In milliseconds.
    latest: AtomicI64,
}

impl SteadyClock {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, latest: AtomicI64::new(i64::MIN) }
    }

    /// Raises the earliest time that the clock returns from now on.
    pub(crate) fn advance_to(&self, time: Timestamp) {
        self.latest.fetch_max(time.as_millis(), Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp::from_millis(self.latest.fetch_max(now.as_millis(), Ordering::Relaxed)).max(now)
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.now()
    }
}
