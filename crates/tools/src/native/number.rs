//! Numbers as the reference agents' schemas have them: any number, where a whole one is meant.

use std::time::Duration;

/// A count. What is below zero is zero, and a fraction is dropped.
pub(super) fn count(number: f64) -> usize {
    number as usize
}

/// A time in milliseconds. What is below one is one.
pub(super) fn milliseconds(number: f64) -> Duration {
    Duration::from_millis((number as u64).max(1))
}
