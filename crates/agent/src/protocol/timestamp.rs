//! Points in time, as events and records hold them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Point in time in UTC, with millisecond precision. Serialised as RFC 3339.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Timestamp(i64);

impl Timestamp {
    /// Creates a timestamp from milliseconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns the milliseconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the time since `earlier`, or zero if the clock jumped back in between.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Returns the date in UTC, as `YYYY-MM-DD`.
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
            // RFC 3339 ends with the year 9999.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_round_trip_and_subtract() {
        let time = Timestamp::from_millis(1_790_000_000_123);
        assert_eq!(time.to_string(), "2026-09-21T14:13:20.123Z");
        assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        assert_eq!(time.date(), "2026-09-21");
        assert_eq!(time.since(Timestamp::from_millis(1_790_000_000_000)).as_millis(), 123);
        assert_eq!(Timestamp::from_millis(0).since(time).as_millis(), 0, "a clock that jumps back");
    }
}
