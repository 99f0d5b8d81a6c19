//! Amounts of money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MICROS_PER_DOLLAR: u64 = 1_000_000;

/// Amount of money: whole millionths of a US dollar, displayed as dollars.
///
/// Sums and differences saturate. The serialised form is the number of millionths; [`dollars`] is another one.
///
/// ```
/// use pintle_llm::Money;
///
/// let limit: Money = "2.50".parse()?;
/// assert_eq!(limit, Money::from_micros(2_500_000));
/// assert_eq!(limit.to_string(), "$2.50");
/// assert_eq!((limit + Money::from_dollars(0.000_5)).to_string(), "$2.5005");
/// # Ok::<_, pintle_llm::InvalidMoney>(())
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Money(u64);

/// A text is not an amount of money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a dollar amount with at most six decimal places, such as 2 or 0.50, not `{0}`")]
pub struct InvalidMoney(String);

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Creates an amount of millionths of a US dollar.
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Creates an amount of US dollars, rounded to millionths. A negative amount and one that is not a number are zero.
    #[must_use]
    pub fn from_dollars(dollars: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates, and an amount that is not a number is zero"
        )]
        let micros = (dollars * 1e6).round() as u64;
        Self(micros)
    }

    /// Returns the millionths of a US dollar.
    #[must_use]
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Returns the US dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53 millionths")]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the difference; zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Money {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// Writes dollars with the decimal places that the amount needs, at least two. A precision rounds to its number of places.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(places) = f.precision() {
            return write!(f, "${:.places$}", self.dollars());
        }
        let (whole, micros) = (self.0 / MICROS_PER_DOLLAR, self.0 % MICROS_PER_DOLLAR);
        let text = format!("${whole}.{micros:06}");
        let unneeded = text.bytes().rev().take(4).take_while(|digit| *digit == b'0').count();
        f.write_str(text.get(..text.len() - unneeded).unwrap_or(&text))
    }
}

impl FromStr for Money {
    type Err = InvalidMoney;

    /// Parses decimal dollars with at most six decimal places, with or without a dollar sign.
    fn from_str(text: &str) -> Result<Self, InvalidMoney> {
        parse_micros(text.strip_prefix('$').unwrap_or(text))
            .map(Self)
            .ok_or_else(|| InvalidMoney(text.to_owned()))
    }
}

fn parse_micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 || fraction.len() > 6 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(MICROS_PER_DOLLAR)?.checked_add(fraction)
}

/// Serialised form of an amount as a number of US dollars, for `#[serde(with = "…")]`.
pub mod dollars {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::Money;

    /// Serialises an amount.
    ///
    /// # Errors
    ///
    /// An error of the serializer.
    pub fn serialize<S: Serializer>(money: &Money, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(money.dollars())
    }

    /// Deserialises an amount, like [`Money::from_dollars`].
    ///
    /// # Errors
    ///
    /// An error of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        f64::deserialize(deserializer).map(Money::from_dollars)
    }

    /// The same form for an optional amount.
    pub mod option {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        use super::Money;

        /// Serialises an amount.
        ///
        /// # Errors
        ///
        /// An error of the serializer.
        pub fn serialize<S: Serializer>(money: &Option<Money>, serializer: S) -> Result<S::Ok, S::Error> {
            money.map(Money::dollars).serialize(serializer)
        }

        /// Deserialises an amount, like [`Money::from_dollars`].
        ///
        /// # Errors
        ///
        /// An error of the deserializer.
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Money>, D::Error> {
            Ok(Option::<f64>::deserialize(deserializer)?.map(Money::from_dollars))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn amounts_are_displayed_as_dollars_and_parsed_again() {
        for (micros, text) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (500, "$0.0005"),
            (2_500_000, "$2.50"),
            (12_345_678, "$12.345678"),
            (u64::MAX, "$18446744073709.551615"),
        ] {
            let money = Money::from_micros(micros);
            assert_eq!((money.to_string().as_str(), text.parse::<Money>()), (text, Ok(money)));
        }
        assert_eq!(format!("{:.4}", Money::from_micros(1_234_567)), "$1.2346");
        for text in ["", "$", ".", "-1", "1e3", "0.0000001", "1,5", "18446744073710"] {
            assert_eq!(text.parse::<Money>(), Err(InvalidMoney(text.to_owned())));
        }
    }

    #[test]
    fn dollars_are_rounded_and_sums_saturate() {
        for (dollars, micros) in [(0.001_05, 1_050), (-1.0, 0), (f64::NAN, 0), (f64::INFINITY, u64::MAX)] {
            assert_eq!(Money::from_dollars(dollars), Money::from_micros(micros), "{dollars}");
        }
        let (one, most) = (Money::from_micros(1), Money::from_micros(u64::MAX));
        assert_eq!([one, most].into_iter().sum::<Money>(), most);
        assert_eq!(one.saturating_sub(most), Money::ZERO);
    }

    #[test]
    fn both_serialised_forms_are_read_again() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Forms {
            micros: Money,
            #[serde(with = "dollars")]
            dollars: Money,
            #[serde(default, with = "dollars::option", skip_serializing_if = "Option::is_none")]
            option: Option<Money>,
        }
        let half = Money::from_micros(500_000);
        for (option, form) in [
            (Some(half), json!({"micros": 500_000, "dollars": 0.5, "option": 0.5})),
            (None, json!({"micros": 500_000, "dollars": 0.5})),
        ] {
            let forms = Forms { micros: half, dollars: half, option };
            assert_eq!(serde_json::to_value(&forms).unwrap(), form);
            assert_eq!(serde_json::from_value::<Forms>(form).unwrap(), forms);
        }
    }
}
