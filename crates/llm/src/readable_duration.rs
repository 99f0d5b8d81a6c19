//! Durations for people.

use std::fmt;
use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Displays a duration in its two largest units: `200 ms`, `7.7 s`, `2 min 5 s`, `15 min`, `24 h`, `3 d 4 h`.
///
/// Fractions of seconds below one minute; days from two days on.
///
/// ```
/// use std::time::Duration;
/// use pintle_llm::ReadableDuration;
///
/// assert_eq!(ReadableDuration(Duration::from_secs(86_400)).to_string(), "24 h");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadableDuration(pub Duration);

impl fmt::Display for ReadableDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        match (seconds, millis) {
            (0, 0) => f.write_str("0 s"),
            (0, _) => write!(f, "{millis} ms"),
            // Truncated, so that 59.96 s does not become 60.0 s.
            (1..MINUTE, 100..) => write!(f, "{seconds}.{} s", millis / 100),
            (1..MINUTE, _) => write!(f, "{seconds} s"),
            (MINUTE..HOUR, _) => two(f, (seconds / MINUTE, "min"), (seconds % MINUTE, "s")),
            _ if seconds < 2 * DAY => two(f, (seconds / HOUR, "h"), (seconds % HOUR / MINUTE, "min")),
            _ => two(f, (seconds / DAY, "d"), (seconds % DAY / HOUR, "h")),
        }
    }
}

fn two(f: &mut fmt::Formatter<'_>, large: (u64, &str), small: (u64, &str)) -> fmt::Result {
    write!(f, "{} {}", large.0, large.1)?;
    if small.0 > 0 { write!(f, " {} {}", small.0, small.1) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_units_at_most() {
        let cases = [
            (0, "0 s"),
            (200, "200 ms"),
            (1_000, "1 s"),
            (7_660, "7.6 s"),
            (17_050, "17 s"),
            (59_960, "59.9 s"),
            (60_000, "1 min"),
            (125_900, "2 min 5 s"),
            (900_000, "15 min"),
            (3_600_000, "1 h"),
            (3_659_000, "1 h"),
            (5_400_000, "1 h 30 min"),
            (86_400_000, "24 h"),
            (172_800_000, "2 d"),
            (273_600_000, "3 d 4 h"),
        ];
        for (millis, expected) in cases {
            assert_eq!(ReadableDuration(Duration::from_millis(millis)).to_string(), expected, "{millis} ms");
        }
    }
}
