//! Files and flags that set budgets.

use std::time::Duration;

use pintle_agent::{BudgetScope, Limits, Money};
use serde::Deserialize;
use toml::Spanned;

use super::{AtLimit, BudgetPolicy, ScopedLimits, UnknownPrice};
use crate::rules::form_error;

/// Reason why a text sets no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BudgetError {
    /// The file is not TOML, or has other keys or values.
    #[error("{source_name}: line {line}: {message}")]
    Form {
        /// Name of the file.
        source_name: String,
        /// Number of the line.
        line: usize,
        /// The problem, with the key that may be meant.
        message: String,
    },
    /// The text is not a limit, such as `day.cost=5`.
    #[error("`{text}` is not a limit: {problem}")]
    Limit {
        /// The text.
        text: String,
        /// The problem.
        problem: String,
    },
}

/// Form of a file.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    at_limit: AtLimit,
    unknown_price: UnknownPrice,
    run: Table,
    session: Table,
    day: Table,
}

/// Limits of one scope.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Table {
    tokens: Option<Spanned<u64>>,
    cost: Option<Spanned<Number>>,
    calls: Option<Spanned<u64>>,
    time: Option<Spanned<String>>,
}

/// Amount of money as written in a file.
#[derive(Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(i64),
    Decimal(f64),
    Text(String),
}

const KEYS: [&str; 9] =
    ["at_limit", "unknown_price", "run", "session", "day", "tokens", "cost", "calls", "time"];

impl BudgetPolicy {
    /// Parses a file of budgets: TOML with a table for each of the scopes `run`, `session` and `day`, and
    ///
    /// | key | meaning |
    /// |---|---|
    /// | `tokens` | input and output tokens |
    /// | `cost` | US dollars at the prices of the catalog, with at most six decimal places |
    /// | `calls` | calls of tools |
    /// | `time` | for `run`: such as `90s`, `15m` or `2h` |
    /// | `at_limit` | of the file: `stop`, or `ask` for more |
    /// | `unknown_price` | of the file: `refuse` a model without a known price under a limit on cost, or `ask` |
    ///
    /// # Errors
    ///
    /// [`BudgetError::Form`] for the first mistake. A file with a mistake is rejected as a whole.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, BudgetError> {
        let line_of = |offset: usize| text.get(..offset).unwrap_or_default().matches('\n').count() + 1;
        let error = |line: usize, message: String| BudgetError::Form {
            source_name: source_name.to_owned(),
            line,
            message,
        };
        let file: File = toml::from_str(text).map_err(|wrong| {
            let (line, message) = form_error(&wrong, text, &KEYS);
            error(line, message)
        })?;
        let mut limits = ScopedLimits::default();
        let tables = [
            (BudgetScope::Run, file.run),
            (BudgetScope::Session, file.session),
            (BudgetScope::Day, file.day),
        ];
        for (scope, table) in tables {
            let Table { tokens, cost, calls, time } = table;
            let mut set = |key: &str, value: Option<(usize, String)>| {
                let Some((offset, value)) = value else { return Ok(()) };
                limits.set(scope, key, &value).map_err(|problem| error(line_of(offset), problem))
            };
            set("tokens", tokens.map(|of| (of.span().start, of.get_ref().to_string())))?;
            set("cost", cost.map(|of| (of.span().start, of.get_ref().to_text())))?;
            set("calls", calls.map(|of| (of.span().start, of.get_ref().to_string())))?;
            set("time", time.map(|of| (of.span().start, of.into_inner())))?;
        }
        Ok(Self { limits, at_limit: file.at_limit, unknown_price: file.unknown_price })
    }

    /// Returns this policy with each limit lowered to the limit in `other` if that is lower. The behaviour at a limit stays.
    #[must_use]
    pub fn lowered_to(mut self, other: &Self) -> Self {
        self.limits = self.limits.zip_with(&other.limits, Limits::lower);
        self
    }
}

impl ScopedLimits {
    /// Sets a limit from the text of a flag: `SCOPE.KEY=VALUE`, such as `day.cost=5` or `run.tokens=200000`.
    ///
    /// # Errors
    ///
    /// [`BudgetError::Limit`].
    pub fn set_limit(&mut self, text: &str) -> Result<(), BudgetError> {
        let wrong = |problem: String| BudgetError::Limit { text: text.to_owned(), problem };
        let parts = text.split_once('=').and_then(|(name, value)| Some((name.split_once('.')?, value)));
        let Some(((scope, key), value)) = parts else {
            return Err(wrong("expected SCOPE.KEY=VALUE, such as `day.cost=5`".to_owned()));
        };
        let scope = match scope.trim() {
            "run" => BudgetScope::Run,
            "session" => BudgetScope::Session,
            "day" => BudgetScope::Day,
            other => {
                return Err(wrong(format!(
                    "there is no scope `{other}`: expected `run`, `session` or `day`"
                )));
            }
        };
        self.set(scope, key.trim(), value.trim()).map_err(wrong)
    }

    fn set(&mut self, scope: BudgetScope, key: &str, value: &str) -> Result<(), String> {
        let budget = match scope {
            BudgetScope::Run => &mut self.run,
            BudgetScope::Day => &mut self.day,
            BudgetScope::Session | _ => &mut self.session,
        };
        let count = || {
            let number: Option<u64> = value.parse().ok().filter(|number| *number > 0);
            number.ok_or_else(|| format!("expected a whole number above 0 for `{key}`, not `{value}`"))
        };
        match key {
            "tokens" => budget.tokens = Some(count()?),
            "calls" => budget.tool_calls = Some(count()?),
            "cost" => budget.cost = Some(parse_cost(value)?),
            "time" if scope == BudgetScope::Run => budget.wall_time = Some(parse_time(value)?),
            "time" => return Err("time is limited for each run: expected it in `run`".to_owned()),
            other => {
                let meant =
                    pintle_tools::most_similar(other, ["tokens", "cost", "calls", "time"].into_iter());
                let meant = meant.first().map_or_else(String::new, |key| format!("; did you mean `{key}`?"));
                return Err(format!("there is no limit `{other}`{meant}"));
            }
        }
        Ok(())
    }
}

impl Number {
    fn to_text(&self) -> String {
        match self {
            Self::Whole(number) => number.to_string(),
            Self::Decimal(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

fn parse_cost(text: &str) -> Result<Money, String> {
    let cost = text.parse::<Money>().ok().filter(|cost| *cost > Money::ZERO && !text.starts_with('$'));
    cost.ok_or_else(|| {
        format!("expected a positive dollar amount with at most six decimal places, such as 2 or 0.50, not `{text}`")
    })
}

/// Parses a time such as `90s`, `15m` or `2h`.
fn parse_time(text: &str) -> Result<Duration, String> {
    let expected = || format!("expected a time such as `90s`, `15m` or `2h`, not `{text}`");
    let unit = text.chars().last().ok_or_else(expected)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        _ => return Err(expected()),
    };
    let number = text.trim_end_matches(unit);
    let number: u64 = number.parse().map_err(|_| expected())?;
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(expected)?;
    Ok(Duration::from_secs(seconds))
}
