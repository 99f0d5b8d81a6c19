//! Flags that set the budget of a run.

use std::time::Duration;

use clap::{Args, ValueEnum};
use pintle_agent::Money;
use pintle_governance::{AtLimit, ScopedLimits, UnknownPrice};
use pintle_host::failure::{Failure, OrFailure as _};
use pintle_host::timeout;

/// Limits on tokens, cost, calls and time, subagents included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub(crate) struct BudgetArgs {
    /// Stop after this many input and output tokens, subagents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,
    /// Stop after spending this many US dollars at catalog prices, subagents included (e.g. 0.50)
    #[arg(long, value_name = "DOLLARS", value_parser = parse_cost)]
    pub(crate) max_cost: Option<Money>,
    /// Stop after this many calls of tools, subagents included
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_calls: Option<u64>,
    /// Stop after this time, including waits for approval (e.g. 90s, 15m, 1h; a bare number is seconds)
    #[arg(long, value_name = "TIME", value_parser = timeout::parse)]
    pub(crate) max_time: Option<Duration>,
    /// Limit tokens, cost, calls or time of a run, of the session, or of all sessions of a day in UTC (e.g. day.cost=5)
    #[arg(long, value_name = "SCOPE.KEY=VALUE")]
    pub(crate) budget: Vec<String>,
    /// Action when a limit on tokens, cost or calls is reached [default: stop]
    #[arg(long, value_name = "ACTION", value_enum)]
    pub(crate) at_limit: Option<LimitAction>,
    /// Action when cost is limited and the price of the model is unknown [default: refuse]
    #[arg(long, value_name = "ACTION", value_enum)]
    pub(crate) unknown_price: Option<PriceAction>,
}

/// Action at a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LimitAction {
    /// Stop before the call that would exceed the limit
    Stop,
    /// Ask at the terminal to raise the limit; without a terminal, stop
    Ask,
}

/// Action without a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PriceAction {
    /// Do not call the model
    Refuse,
    /// Ask at the terminal whether to continue without the limit on cost; without a terminal, do not call the model
    Ask,
}

impl BudgetArgs {
    /// Returns the limits by scope; `None` without one.
    ///
    /// An invalid limit is a usage failure.
    pub(crate) fn limits(&self) -> Result<Option<ScopedLimits>, Failure> {
        let mut limits = ScopedLimits::default();
        let session = &mut limits.session;
        (session.tokens, session.cost) = (self.max_tokens, self.max_cost);
        session.tool_calls = self.max_calls;
        limits.run.wall_time = self.max_time;
        for text in &self.budget {
            limits.set_limit(text).or_usage("invalid --budget")?;
        }
        Ok((limits != ScopedLimits::default()).then_some(limits))
    }

    /// Returns the action at a limit.
    pub(crate) fn at_limit(&self) -> Option<AtLimit> {
        self.at_limit.map(|action| match action {
            LimitAction::Stop => AtLimit::Stop,
            LimitAction::Ask => AtLimit::Ask,
        })
    }

    /// Returns the action without a price.
    pub(crate) fn unknown_price(&self) -> Option<UnknownPrice> {
        self.unknown_price.map(|action| match action {
            PriceAction::Refuse => UnknownPrice::Refuse,
            PriceAction::Ask => UnknownPrice::Ask,
        })
    }
}

/// Parses decimal dollars.
fn parse_cost(text: &str) -> Result<Money, String> {
    let cost = text.parse::<Money>().ok().filter(|cost| *cost > Money::ZERO && !text.starts_with('$'));
    cost.ok_or_else(|| {
        "expected a positive dollar amount with at most six decimal places, such as 2 or 0.50".to_owned()
    })
}
