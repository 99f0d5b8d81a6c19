//! How long a provider asks to wait (client specification, section 6.6): in a header, or in its words for people.

use std::time::{Duration, SystemTime};

use crate::dialect::Headers;

/// The delay that these headers name: `retry-after-ms` in milliseconds, or `retry-after` in seconds or as an
/// HTTP date. A date in the past is no delay; what cannot be read is none either.
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

/// The delay that a message asks for, as OpenAI and those who imitate it write it: "try again in 1m26.4s", "retry in
/// 34s", "retry after 26 seconds". Where a delay stands in a header too, that one is more precise.
pub(crate) fn from_words(message: &str) -> Option<Duration> {
    let lower = message.to_ascii_lowercase();
    let ways = ["try again in ", "retry in ", "retry after "];
    ways.iter().find_map(|way| amount(lower.split_once(way)?.1))
}

/// The sum of the numbers with units that the text begins with. A number without a unit, and a unit that is none, end
/// it.
fn amount(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = None;
    while let Some((seconds, tail)) = term(rest) {
        sum = Some(sum.unwrap_or(0.0) + seconds);
        rest = tail;
    }
    Duration::try_from_secs_f64(sum?).ok()
}

/// One number with its unit in seconds, and what follows it.
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

/// A number of which `per_second` make a second.
fn seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_parsed_from_messages() {
        let rows = [
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
        for (words, millis) in rows {
            assert_eq!(from_words(words), millis.map(Duration::from_millis), "{words}");
        }
    }

    #[test]
    fn delays_are_parsed_from_headers() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let rows = [
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
        for (pairs, expected) in rows {
            let headers: Headers = pairs.iter().copied().collect();
            assert_eq!(from_headers(&headers, now), expected, "{pairs:?}");
        }
    }
}
