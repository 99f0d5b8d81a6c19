//! How long a provider asks to wait (client specification, section 6.6).

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

/// A number of which `per_second` make a second.
fn seconds(text: &str, per_second: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number / per_second).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
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
            let headers = Headers(pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
            assert_eq!(from_headers(&headers, now), expected, "{pairs:?}");
        }
    }
}
