//! Flags that set a budget for a run.

use std::time::Duration;

use clap::Args;
use pintle_agent::Budget;

use crate::timeout;

const MICROS_PER_DOLLAR: u64 = 1_000_000;

/// Limits on tokens, cost and time of a run, subagents included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct BudgetArgs {
    /// Stop after this many input and output tokens, subagents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after spending this many US dollars at catalog prices, subagents included (e.g. 0.50)
    #[arg(long, value_name = "DOLLARS", value_parser = micros)]
    pub(crate) max_cost: Option<u64>,
    /// Stop after this time, including waits for approval (e.g. 90s, 15m, 1h; a bare number is seconds)
    #[arg(long, value_name = "TIME", value_parser = timeout::parse)]
    pub(crate) max_time: Option<Duration>,
}

impl From<BudgetArgs> for Budget {
    fn from(args: BudgetArgs) -> Self {
        let mut budget = Self::default();
        budget.tokens = args.max_tokens;
        budget.cost_micros = args.max_cost;
        budget.wall_time = args.max_time;
        budget
    }
}

/// Parses decimal dollars into millionths of a dollar.
fn micros(text: &str) -> Result<u64, String> {
    let expected =
        || "expected a positive dollar amount with at most six decimal places, such as 2 or 0.50".to_owned();
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || whole.len() + fraction.len() == 0 || fraction.len() > 6 {
        return Err(expected());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| expected())? };
    let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| expected())?;
    let micros = whole.checked_mul(MICROS_PER_DOLLAR).and_then(|micros| micros.checked_add(fraction));
    micros.filter(|micros| *micros > 0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_parse_to_millionths() {
        for (text, expected) in [
            ("2", Some(2_000_000)),
            ("0.5", Some(500_000)),
            (".25", Some(250_000)),
            ("1.", Some(1_000_000)),
            ("0.000001", Some(1)),
            ("0.0000001", None),
            ("0", None),
            ("0.00", None),
            ("", None),
            (".", None),
            ("-1", None),
            ("1e3", None),
            ("$1", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(micros(text).ok(), expected, "{text:?}");
        }
    }
}
