//! Numbers and values compared as JSON Schema compares them: `1` and `1.0` are the same.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Compares two numbers.
pub(super) fn compare(left: &Number, right: &Number) -> Ordering {
    match (integer(left), integer(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        // A number with a fraction is below 2^53, so that the other one is exact where it is close.
        _ => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Equal),
    }
}

/// Returns whether a number is whole.
pub(super) fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// Returns whether two values are the same.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare(left, right) == Ordering::Equal,
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(name, value)| right.get(name).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

/// Returns a whole number of up to 127 bits.
fn integer(number: &Number) -> Option<i128> {
    /// The integer type represents every whole number up to this value.
    const LIMIT: f64 = 1e38;
    if let Some(integer) = number.as_i64() {
        return Some(integer.into());
    }
    if let Some(integer) = number.as_u64() {
        return Some(integer.into());
    }
    let float = number.as_f64()?;
    if float.fract() != 0.0 || float.abs() > LIMIT {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in the range of the type")]
    let integer = float as i128;
    Some(integer)
}
