//! Flags that set the budget of a run.

use std::time::Duration;

use clap::{Args, ValueEnum};
use pintle_governance::{AtLimit, BudgetLimits, UnknownPrice, parse_dollars};

use crate::failure::{Failure, OrFailure as _};
use crate::timeout;

/// Limits on tokens, cost, calls and time, subagents included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct BudgetArgs {
    /// Stop after this many input and output tokens, subagents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after spending this many US dollars at catalog prices, subagents included (e.g. 0.50)
    #[arg(long, value_name = "DOLLARS", value_parser = micros)]
    pub(crate) max_cost: Option<u64>,
    /// Stop after this many calls of tools, subagents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// Stop after this time, including waits for approval (e.g. 90s, 15m, 1h; a bare number is seconds)
    #[arg(long, value_name = "TIME", value_parser = timeout::parse)]
    pub(crate) max_time: Option<Duration>,
    /// Limit tokens, cost, calls or time of a run, of the session, or of all sessions of a day in UTC (e.g. day.cost=5)
    #[arg(long, value_name = "SCOPE.KEY=VALUE")]
    pub(crate) budget: Vec<String>,
    /// What happens when a limit on tokens, cost or calls is reached [default: stop]
    #[arg(long, value_name = "ACTION", value_enum)]
    pub(crate) at_limit: Option<LimitAction>,
    /// What happens under a limit on cost with a model whose price is unknown [default: refuse]
    #[arg(long, value_name = "ACTION", value_enum)]
    pub(crate) unknown_price: Option<PriceAction>,
}

/// What happens at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitAction {
    /// The run stops before the call that would exceed it
    Stop,
    /// You are asked for more at the terminal; without one, the run stops
    Ask,
}

/// What happens without a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriceAction {
    /// The model is not called
    Refuse,
    /// You are asked at the terminal whether cost is not limited; without one, the model is not called
    Ask,
}

impl BudgetArgs {
    /// Replaces limits by the limits of the flags.
    pub(crate) fn apply(&self, limits: &mut BudgetLimits) -> Result<(), Failure> {
        let session = &mut limits.session;
        session.tokens = self.max_tokens.or(session.tokens);
        session.cost_micros = self.max_cost.or(session.cost_micros);
        session.tool_calls = self.max_calls.or(session.tool_calls);
        limits.run.wall_time = self.max_time.or(limits.run.wall_time);
        for text in &self.budget {
            limits.set_limit(text).or_usage("--budget is wrong")?;
        }
        match self.at_limit {
            Some(LimitAction::Stop) => limits.at_limit = AtLimit::Stop,
            Some(LimitAction::Ask) => limits.at_limit = AtLimit::Ask,
            None => {}
        }
        match self.unknown_price {
            Some(PriceAction::Refuse) => limits.unknown_price = UnknownPrice::Refuse,
            Some(PriceAction::Ask) => limits.unknown_price = UnknownPrice::Ask,
            None => {}
        }
        Ok(())
    }
}

/// Parses decimal dollars into millionths of a dollar.
fn micros(text: &str) -> Result<u64, String> {
    parse_dollars(text).ok_or_else(|| {
        "expected a positive dollar amount with at most six decimal places, such as 2 or 0.50".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use pintle_agent::Budget;

    use super::*;

    #[test]
    fn flags_replace_the_limits_of_the_file() {
        let mut limits =
            BudgetLimits::parse("f", "[session]\ntokens = 5\ncalls = 7\n[day]\ncost = 1\n").unwrap();
        let args = BudgetArgs {
            max_tokens: Some(9),
            max_time: Some(Duration::from_secs(3)),
            budget: vec!["day.cost=2".to_owned()],
            at_limit: Some(LimitAction::Ask),
            ..BudgetArgs::default()
        };
        args.apply(&mut limits).unwrap();
        assert_eq!(limits.session, Budget::default().with_tokens(9).with_tool_calls(7));
        assert_eq!(limits.run, Budget::default().with_wall_time(Duration::from_secs(3)));
        assert_eq!((limits.day.cost_micros, limits.at_limit), (Some(2_000_000), AtLimit::Ask));
        let wrong = BudgetArgs { budget: vec!["day.cots=2".to_owned()], ..BudgetArgs::default() };
        assert!(wrong.apply(&mut limits).unwrap_err().message().contains("cost"));
    }
}
