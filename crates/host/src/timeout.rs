//! Durations on the command line, and the timeouts of model calls.

use std::time::Duration;

use pintle_llm::AdapterTimeout;

/// Maximum duration.
const MAX_DURATION: Duration = Duration::from_secs(24 * 60 * 60);

/// Parses a duration: a whole number with the unit `ms`, `s`, `m` or `h`, or of seconds without one.
///
/// It may be from 1 ms to 24 h.
pub fn parse(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let milliseconds = match unit {
        "ms" => 1,
        "" | "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err("expected a number of seconds, or one with a unit: 500ms, 90s, 15m, 1h".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number, such as 90 or 15m".to_owned())?;
    let limit = Duration::from_millis(number.saturating_mul(milliseconds));
    if limit.is_zero() || limit > MAX_DURATION {
        return Err("expected a time from 1ms to 24h".to_owned());
    }
    Ok(limit)
}

/// Parses an age: a whole number with the unit `m`, `h`, `d` or `w`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let seconds = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err("expected a number with a unit: 90m, 12h, 30d, 8w".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "expected a whole number, such as 30d".to_owned())?;
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

/// Returns the timeouts of a model call. A model may reason for minutes before its first token.
pub fn adapter_timeout(given: Option<Duration>) -> AdapterTimeout {
    let limits = AdapterTimeout::patient();
    given.map_or(limits, |limit| limits.with_each_wait(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_with_units_and_limits() {
        let cases = [
            ("90", Some(90_000)),
            ("90s", Some(90_000)),
            ("15m", Some(900_000)),
            ("24h", Some(86_400_000)),
            ("500ms", Some(500)),
            ("0", None),
            ("0m", None),
            ("25h", None),
            ("", None),
            ("m", None),
            ("1.5m", None),
            ("-1", None),
            ("1 m", None),
            ("1d", None),
            ("99999999999999999999", None),
            ("18446744073709551615h", None),
        ];
        for (text, millis) in cases {
            assert_eq!(parse(text).ok(), millis.map(Duration::from_millis), "{text:?}");
        }
    }

    #[test]
    fn explicit_limit_applies_to_each_wait() {
        let given = adapter_timeout(Some(Duration::from_secs(5)));
        assert_eq!(given.content, Some(Duration::from_secs(5)));
        assert_eq!(
            [given.connect, given.headers, given.first_byte, given.stream_read],
            [Duration::from_secs(5); 4]
        );
        let default = adapter_timeout(None);
        assert_eq!(
            (default.content, default.headers),
            (Some(Duration::from_secs(900)), Duration::from_secs(60))
        );
        assert_eq!(adapter_timeout(Some(Duration::from_secs(3600))).connect, default.connect);
    }
}
