//! Points in time as events and records carry them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A point in time, to the millisecond, in UTC. Serialised as RFC 3339.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// This many milliseconds after 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds after 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// The time since `earlier`; zero if the clock jumped back between the two.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// The day, as `YYYY-MM-DD`, in UTC.
    #[must_use]
    pub fn date(self) -> String {
        let text = self.to_string();
        text.get(..10).unwrap_or(&text).to_owned()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            // Beyond the year 9999 there is no such text; the number says it all the same.
            Err(_) => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse::<jiff::Timestamp>().map(|time| Self(time.as_millisecond()))
    }
}

impl TryFrom<String> for Timestamp {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

/// Tells the time. A session has one, so that tests and replays have theirs.
///
/// It may go back, as a system's clock does when it is set. A session's time does not: it stands still until the clock
/// has caught up.
pub trait Clock: fmt::Debug + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;
}

/// The system's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place where a session's time is drawn")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that never goes back: when the one below it does, the time stands still until that one has caught up.
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

    /// Says that it has been this late already.
    pub(crate) fn has_been(&self, time: Timestamp) {
        self.latest.fetch_max(time.0, Ordering::Relaxed);
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.clock.now();
        Timestamp(self.latest.fetch_max(now.0, Ordering::Relaxed)).max(now)
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_back_and_count() {
        let time = Timestamp::from_millis(1_790_000_000_123);
        assert_eq!(time.to_string(), "2026-09-21T14:13:20.123Z");
        assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        assert_eq!(time.date(), "2026-09-21");
        assert_eq!(time.since(Timestamp::from_millis(1_790_000_000_000)).as_millis(), 123);
        assert_eq!(Timestamp::from_millis(0).since(time).as_millis(), 0, "a clock that jumps back");
    }
}
