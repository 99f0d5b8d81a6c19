//! Points in time, as events and records hold them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

const MILLIS_PER_DAY: i64 = 86_400_000;
/// Days of 400 years.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const DAYS_BEFORE_1970: i64 = 719_468;

/// A text that is not a time of RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid timestamp {text:?}: expected a date and a time as in RFC 3339")]
pub struct InvalidTimestamp {
    text: String,
}

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
        let (year, month, day) = civil_from_days(self.0.div_euclid(MILLIS_PER_DAY));
        if !(0..=9999).contains(&year) {
            // RFC 3339 has years of four digits.
            return write!(f, "{}", self.0);
        }
        let millis = self.0.rem_euclid(MILLIS_PER_DAY);
        let (minutes, millis) = (millis / 60_000, millis % 60_000);
        let (hour, minute) = (minutes / 60, minutes % 60);
        let (second, millis) = (millis / 1000, millis % 1000);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| InvalidTimestamp { text: text.to_owned() })
    }
}

impl TryFrom<String> for Timestamp {
    type Error = InvalidTimestamp;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Timestamp> for String {
    fn from(time: Timestamp) -> Self {
        time.to_string()
    }
}

/// Returns the proleptic Gregorian date, as year, month and day, of a number of days since 1970-01-01.
///
/// The calculation counts years from March, so that the leap day is the last day of a year, in eras of 400 years, which
/// have equal lengths.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_BEFORE_1970;
    let (era, day_of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Inverse of [`civil_from_days`]. A date that does not exist returns the number of another date.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_PER_ERA + day_of_era - DAYS_BEFORE_1970
}

/// Parses a date, a time and an offset as in RFC 3339. A leap second is the second before it, and digits after the
/// milliseconds are ignored.
fn parse(text: &str) -> Option<Timestamp> {
    let mut rest = Remainder(text.as_bytes());
    let year = rest.number(4)?;
    rest.one_of(b"-")?;
    let month = rest.number(2)?;
    rest.one_of(b"-")?;
    let day = rest.number(2)?;
    let days = days_from_civil(year, month, day);
    if civil_from_days(days) != (year, month, day) {
        return None;
    }
    rest.one_of(b"Tt ")?;
    let hour = rest.number_below(24)?;
    rest.one_of(b":")?;
    let minute = rest.number_below(60)?;
    rest.one_of(b":")?;
    let second = rest.number_below(61)?.min(59);
    let millis = rest.millis()?;
    let minutes = hour * 60 + minute - rest.offset_minutes()?;
    let is_complete = rest.0.is_empty();
    is_complete.then_some(Timestamp(days * MILLIS_PER_DAY + minutes * 60_000 + second * 1000 + millis))
}

/// Rest of a text that is being parsed. A method that returns `None` has found something else.
struct Remainder<'a>(&'a [u8]);

impl Remainder<'_> {
    /// Reads a number of exactly this many decimal digits.
    fn number(&mut self, digits: usize) -> Option<i64> {
        let (number, rest) = self.0.split_at_checked(digits)?;
        self.0 = rest;
        number.iter().try_fold(0, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
        })
    }

    /// Reads a number of two decimal digits below the limit.
    fn number_below(&mut self, limit: i64) -> Option<i64> {
        self.number(2).filter(|number| *number < limit)
    }

    /// Reads one of these bytes.
    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// Reads the fraction of a second, if there is one, and returns its milliseconds.
    fn millis(&mut self) -> Option<i64> {
        if self.one_of(b".").is_none() {
            return Some(0);
        }
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let padded = digits.iter().chain(b"00").take(3);
        (length > 0).then(|| padded.fold(0, |millis, digit| millis * 10 + i64::from(digit - b'0')))
    }

    /// Reads the offset of the local time from UTC.
    fn offset_minutes(&mut self) -> Option<i64> {
        let sign = self.one_of(b"Zz+-")?;
        if matches!(sign, b'Z' | b'z') {
            return Some(0);
        }
        let hours = self.number_below(24)?;
        self.one_of(b":")?;
        let minutes = hours * 60 + self.number_below(60)?;
        Some(if sign == b'-' { -minutes } else { minutes })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Years 0 to 9999 that the reference has: it leaves out the last hours, which an offset could move to the year 10000.
    const REFERENCE_RANGE: std::ops::RangeInclusive<i64> = -62_167_219_200_000..=253_402_207_200_000;

    /// Texts of which many are valid. The reference also has offsets of 24 hours.
    const NEARLY_VALID: &str = concat!(
        "[0-8][0-9]{3}-[01][0-9]-[0-3][0-9][Tt ]",
        "[0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{1,3})?",
        "(Z|z|[+-]([01][0-9]|2[0-3]):[0-6][0-9])",
    );

    #[test]
    fn timestamps_round_trip_and_subtract() {
        let time = Timestamp::from_millis(1_790_000_000_123);
        assert_eq!(time.to_string(), "2026-09-21T14:13:20.123Z");
        assert_eq!(time.to_string().parse::<Timestamp>().unwrap(), time);
        assert_eq!(time.date(), "2026-09-21");
        assert_eq!(time.since(Timestamp::from_millis(1_790_000_000_000)).as_millis(), 123);
        assert_eq!(Timestamp::from_millis(0).since(time).as_millis(), 0, "a clock that jumps back");
    }

    #[test]
    fn times_of_rfc_3339_are_parsed() {
        for (text, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01 00:00:00.5z", 500),
            ("1969-12-31t23:59:59.999-00:00", -1),
            ("2026-09-21T16:13:20.123999+02:00", 1_790_000_000_123),
            ("2026-09-21T08:43:20.12-05:30", 1_790_000_000_120),
            ("2016-12-31T23:59:60Z", 1_483_228_799_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!(text.parse::<Timestamp>(), Ok(Timestamp::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn other_texts_are_rejected() {
        for text in [
            "",
            "2026-09-21",
            "2026-09-21T14:13:20",
            "2026-09-21T14:13Z",
            "2026-09-21T14:13:20.Z",
            "2026-09-21T14:13:20Z ",
            "2026-09-21T14:13:20+2:00",
            "2026-09-21T14:13:20+24:00",
            "2026-09-21T24:00:00Z",
            "2026-09-21T14:60:00Z",
            "2026-09-21T14:13:61Z",
            "2026-00-21T14:13:20Z",
            "2026-13-21T14:13:20Z",
            "2026-09-00T14:13:20Z",
            "2026-09-31T14:13:20Z",
            "1900-02-29T00:00:00Z",
            "+2026-09-21T14:13:20Z",
            "2026-09-21T1\u{664}:13:20Z",
        ] {
            let error = text.parse::<Timestamp>().unwrap_err();
            let message = format!("invalid timestamp {text:?}: expected a date and a time as in RFC 3339");
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn years_with_more_than_four_digits_are_milliseconds() {
        for millis in [i64::MIN, -62_167_219_200_001, 253_402_300_800_000, i64::MAX] {
            assert_eq!(Timestamp::from_millis(millis).to_string(), millis.to_string());
        }
    }

    proptest! {
        #[test]
        fn timestamps_are_written_and_parsed_like_the_reference(
            millis in REFERENCE_RANGE,
            offset_minutes in -1_439_i32..1_440,
        ) {
            let time = Timestamp::from_millis(millis);
            let reference = jiff::Timestamp::from_millisecond(millis).unwrap();
            prop_assert_eq!(time.to_string(), format!("{reference:.3}"));
            prop_assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
            let offset = jiff::tz::Offset::from_seconds(offset_minutes * 60).unwrap();
            let local = reference.display_with_offset(offset).to_string();
            // In the years before 0 the reference writes a sign.
            if !local.starts_with(['+', '-']) {
                prop_assert_eq!(local.parse::<Timestamp>(), Ok(time), "{}", local);
            }
        }

        #[test]
        fn dates_and_offsets_are_valid_where_the_reference_has_them(
            text in NEARLY_VALID,
        ) {
            let reference = text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond);
            prop_assert_eq!(text.parse::<Timestamp>().ok().map(Timestamp::as_millis), reference, "{}", text);
        }
    }
}
