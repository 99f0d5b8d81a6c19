//! Conversion of numbers: the schemas of the reference agents use floating-point numbers for integers.

use std::time::Duration;

/// Converts a count. Negative numbers become zero, and fractions are dropped.
pub(super) fn count(number: f64) -> usize {
    number as usize
}

/// Converts a time in milliseconds. Numbers below one become one.
pub(super) fn milliseconds(number: f64) -> Duration {
    Duration::from_millis((number as u64).max(1))
}
