//! Rate limits in response headers (client specification, section 3.12).

use std::time::{Duration, SystemTime};

use pintle_llm::RateLimitInfo;

use crate::dialect::Headers;

/// Header names of one value: of OpenAI and compatible servers, and of Anthropic.
type Names = [&'static str; 2];

const REQUESTS_REMAINING: Names =
    ["x-ratelimit-remaining-requests", "anthropic-ratelimit-requests-remaining"];
const REQUESTS_LIMIT: Names = ["x-ratelimit-limit-requests", "anthropic-ratelimit-requests-limit"];
const REQUESTS_RESET: Names = ["x-ratelimit-reset-requests", "anthropic-ratelimit-requests-reset"];
const TOKENS_REMAINING: Names = ["x-ratelimit-remaining-tokens", "anthropic-ratelimit-tokens-remaining"];
const TOKENS_LIMIT: Names = ["x-ratelimit-limit-tokens", "anthropic-ratelimit-tokens-limit"];
const TOKENS_RESET: Names = ["x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"];

/// Returns the rate limits in these headers, if any.
///
/// Reads `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` (OpenAI and compatible servers) and
/// `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`. A reset is a duration such as `6m0s` or `12ms`, or an
/// RFC 3339 time. The later of the two resets counts, because only then all limits are reset.
pub(crate) fn from_headers(headers: &Headers, now: SystemTime) -> Option<RateLimitInfo> {
    let text = |names: Names| names.into_iter().find_map(|name| headers.get(name)).map(str::trim);
    let number = |names: Names| text(names).and_then(|found| found.parse().ok());
    let reset = |names: Names| text(names).and_then(|found| time(found, now));
    let mut info = RateLimitInfo::default();
    info.requests_remaining = number(REQUESTS_REMAINING);
    info.requests_limit = number(REQUESTS_LIMIT);
    info.tokens_remaining = number(TOKENS_REMAINING);
    info.tokens_limit = number(TOKENS_LIMIT);
    info.reset_at = reset(REQUESTS_RESET).max(reset(TOKENS_RESET));
    (info != RateLimitInfo::default()).then_some(info)
}

fn time(text: &str, now: SystemTime) -> Option<SystemTime> {
    match duration(text) {
        Some(after) => now.checked_add(after),
        None => rfc3339(text),
    }
}

/// Parses a sum of numbers with units, such as `1h2m3.5s`, `6m0s` or `12ms`. A bare number is in seconds.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(number).ok();
    }
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c != '.' && !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at_checked(letters)?;
        let seconds = match unit {
            "d" => 86_400.0,
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * seconds;
        rest = tail;
    }
    Duration::try_from_secs_f64(sum).ok()
}

/// Parses a time such as `2026-01-27T12:00:05Z`, the only form that Anthropic sends.
fn rfc3339(text: &str) -> Option<SystemTime> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let clock = clock.split_once('.').map_or(clock, |(whole, _)| whole);
    let mut fields = date.split('-').chain(clock.split(':')).map(|field| field.parse::<u64>().ok());
    let mut next = || fields.next().flatten();
    let (year, month, day) = (next()?, next()?, next()?);
    let (hour, minute, second) = (next()?, next()?, next()?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days since the epoch, in years that begin in March, so that a leap day is the last day of its year.
    let (shifted_year, shifted_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let days = shifted_year * 365 + leap_days + (153 * shifted_month + 2) / 5 + day - 1 - 719_468;
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> Headers {
        pairs.iter().copied().collect()
    }

    #[test]
    fn both_header_families_are_read() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
        let found = from_headers(
            &headers(&[
                ("x-ratelimit-limit-requests", "30000"),
                ("x-ratelimit-remaining-requests", "29999"),
                ("x-ratelimit-limit-tokens", "150000"),
                ("x-ratelimit-remaining-tokens", "149000"),
                ("x-ratelimit-reset-requests", "2ms"),
                ("x-ratelimit-reset-tokens", "1m30s"),
            ]),
            now,
        )
        .unwrap();
        assert_eq!((found.requests_limit, found.requests_remaining), (Some(30_000), Some(29_999)));
        assert_eq!((found.tokens_limit, found.tokens_remaining), (Some(150_000), Some(149_000)));
        assert_eq!(found.reset_at, Some(now + Duration::from_secs(90)));

        let found = from_headers(
            &headers(&[
                ("anthropic-ratelimit-tokens-remaining", "5"),
                ("anthropic-ratelimit-tokens-reset", "1970-01-02T00:00:01Z"),
            ]),
            now,
        )
        .unwrap();
        assert_eq!(found.tokens_remaining, Some(5));
        assert_eq!(found.reset_at, Some(SystemTime::UNIX_EPOCH + Duration::from_secs(86_401)));
        assert_eq!(from_headers(&headers(&[("x-ratelimit-limit-requests", "many")]), now), None);
    }

    #[test]
    fn durations_and_times_are_parsed() {
        let seconds = |text| duration(text).map(|found| found.as_secs_f64());
        assert_eq!(seconds("6m0s"), Some(360.0));
        assert_eq!(seconds("1h2m3.5s"), Some(3_723.5));
        assert_eq!(seconds("1d"), Some(86_400.0));
        assert_eq!(seconds("7"), Some(7.0));
        for bad in ["s", "1x", "1 s", "1s2", "-1s", "1.2.3s"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
        let at = |text| {
            rfc3339(text).and_then(|t| t.duration_since(SystemTime::UNIX_EPOCH).ok()).map(|d| d.as_secs())
        };
        assert_eq!(at("2024-02-29T12:30:15Z"), Some(1_709_209_815));
        assert_eq!(at("2026-01-27T12:00:05.25Z"), Some(1_769_515_205));
        for bad in [
            "2026-13-01T00:00:00Z",
            "2026-01-01",
            "yesterday",
            "0001-01-01T00:00:00Z",
            "2026-01-01T25:00:00Z",
        ] {
            assert_eq!(at(bad), None, "{bad}");
        }
    }
}
