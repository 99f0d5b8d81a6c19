//! Retry delays of providers (client specification, section 6.6), from headers and from error messages.

use std::time::{Duration, SystemTime};

use crate::dialect::Headers;

/// Returns the delay in these headers: `retry-after-ms` in milliseconds, or `retry-after` in seconds or as an HTTP date.
/// A date in the past is a delay of zero. Unparsable values are ignored.
pub(crate) fn from_headers(headers: &Headers, now: SystemTime) -> Option<Duration> {
    let exact = headers.get("retry-after-ms").and_then(|text| seconds(text, 1_000.0));
    exact.or_else(|| {
        let text = headers.get("retry-after")?.trim();
        seconds(text, 1.0).or_else(|| {
            let date = httpdate::parse_http_date(text).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        })
    })
}

/// Returns the delay in an error message of OpenAI or a compatible server: "try again in 1m26.4s", "retry in 34s",
/// "retry after 26 seconds". A delay in a header is more precise.
pub(crate) fn from_message(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    let phrases = ["try again in ", "retry in ", "retry after "];
    phrases.iter().find_map(|phrase| amount(lower.split_once(phrase)?.1))
}

/// Parses the numbers with units at the start of the text and returns their sum. It stops at a number without a known
/// unit.
fn amount(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = None;
    while let Some((seconds, tail)) = term(rest) {
        sum = Some(sum.unwrap_or(0.0) + seconds);
        rest = tail;
    }
    Duration::try_from_secs_f64(sum?).ok()
}

/// Parses one number with its unit; returns it in seconds, with the remaining text.
fn term(text: &str) -> Option<(f64, &str)> {
    let text = text.trim_start();
    let digits = text.find(|c: char| c != '.' && !c.is_ascii_digit())?;
    let (number, tail) = text.split_at_checked(digits)?;
    let tail = tail.trim_start();
    let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
    let (unit, tail) = tail.split_at_checked(letters)?;
    let seconds = match unit {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3_600.0,
        "d" | "day" | "days" => 86_400.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * seconds, tail))
}

/// Parses a number in units of `1 / per_second` seconds.
fn seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_parsed_from_messages() {
        let cases = [
            ("Rate limit reached. Please try again in 1.2s. Visit the page.", Some(1_200)),
            ("Please try again in 20ms.", Some(20)),
            ("Please try again in 6m0s.", Some(360_000)),
            ("Please try again in 1m26.4s. Need more tokens?", Some(86_400)),
            ("please retry in 34.07s.", Some(34_070)),
            ("Please retry after 26 seconds. Ask for more.", Some(26_000)),
            ("Retry after 1 second", Some(1_000)),
            ("Try again in 2 hours 5 minutes", Some(7_500_000)),
            ("try again in 1.5.2s", None),
            ("try again in 12", None),
            ("try again in a few seconds", None),
            ("try again in 3 apples", None),
            ("try again later", None),
            ("try again in ", None),
            ("try again in 1e400s", None),
            ("", None),
        ];
        for (message, millis) in cases {
            assert_eq!(from_message(message), millis.map(Duration::from_millis), "{message}");
        }
    }

    #[test]
    fn delays_are_parsed_from_headers() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let cases = [
            (vec![("retry-after", "7")], Some(Duration::from_secs(7))),
            (vec![("Retry-After", " 0.5 ")], Some(Duration::from_millis(500))),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], Some(Duration::from_secs(10))),
            (vec![("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT")], Some(Duration::ZERO)),
            (vec![("retry-after-ms", "1500"), ("retry-after", "2")], Some(Duration::from_millis(1500))),
            (vec![("retry-after-ms", "soon"), ("retry-after", "2")], Some(Duration::from_secs(2))),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "inf")], None),
            (vec![("retry-after", "soon")], None),
            (vec![], None),
        ];
        for (pairs, expected) in cases {
            let headers: Headers = pairs.iter().copied().collect();
            assert_eq!(from_headers(&headers, now), expected, "{pairs:?}");
        }
    }
}
