//! Times between the moment at which a text is sent, which it names, and its arrival.

use nix::time::{ClockId, clock_gettime};

/// Beginning of the text of each delta, before the time in nanoseconds.
const MARK: &str = "t=";

/// Digits of a time.
const DIGITS: usize = 20;

/// Text of a delta after its time.
const REST: &str = " and so on";

/// Times of some texts, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Times(Vec<u64>);

impl Times {
    /// Adds the times of all texts of an event that has just arrived.
    pub(super) fn arrived(&mut self, event: &str) {
        let now = now();
        let sent = event.split(MARK).skip(1).filter_map(|text| text.get(..DIGITS)?.parse::<u64>().ok());
        self.0.extend(sent.map(|sent| now.saturating_sub(sent)));
    }

    /// Returns the percentiles and forgets the times.
    pub(super) fn take(&mut self) -> Percentiles {
        let mut times = std::mem::take(&mut self.0);
        times.sort_unstable();
        let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
        Percentiles { p50: at(50), p99: at(99) }
    }
}

/// Percentiles of some times, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Percentiles {
    pub(super) p50: u64,
    pub(super) p99: u64,
}

impl Percentiles {
    pub(super) fn words(self) -> String {
        format!("{} {}", self.p50, self.p99)
    }

    pub(super) fn parse(words: &str) -> Self {
        let mut numbers = words.split_whitespace().map(|word| word.parse().expect("it is a number"));
        Self { p50: numbers.next().unwrap_or_default(), p99: numbers.next().unwrap_or_default() }
    }
}

/// Returns the time of a clock that all processes share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("the system has this clock");
    let (seconds, nanoseconds) = (time.tv_sec().unsigned_abs(), time.tv_nsec().unsigned_abs());
    seconds * 1_000_000_000 + nanoseconds
}

/// Returns the text of a delta that is sent now.
pub(super) fn stamped() -> String {
    format!("{MARK}{:0DIGITS$}{REST}", now())
}

/// Returns a recorded event with the present time in all of its texts, and the same number of bytes.
pub(crate) fn stamped_again(event: &str) -> String {
    let mut texts = event.split(MARK);
    let mut stamped = texts.next().unwrap_or_default().to_owned();
    for text in texts {
        stamped.push_str(&format!("{MARK}{:0DIGITS$}{}", now(), text.get(DIGITS..).unwrap_or_default()));
    }
    stamped
}
