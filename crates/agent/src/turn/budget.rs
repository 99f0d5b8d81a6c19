//! Enforcement of the [`Limits`].

use std::collections::BTreeMap;
use std::time::Duration;

use pintle_llm::{Error, ErrorInfo, ErrorKind, ModelInfo, Money, Usage};
use serde::{Deserialize, Serialize};

use super::ending::Ending;
use super::progress::Progress;
use super::{Machine, Phase};
use crate::protocol::{
    Action, BudgetKind, BudgetScope, BudgetUsage, EventKind, Limits, ReachedBudget, RunId, Timer, TurnContext,
};

/// A limit that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReachedLimit {
    budget: BudgetKind,
    limit: u64,
    spent: u64,
    /// Minimum that the next call needs, if less is left.
    #[serde(default)]
    needed: Option<u64>,
}

impl ReachedLimit {
    fn check(budget: BudgetKind, limit: Option<u64>, spent: Option<u64>) -> Option<Self> {
        let (limit, spent) = limit.zip(spent)?;
        (spent >= limit).then_some(Self { budget, limit, spent, needed: None })
    }

    /// Returns a limit on tokens or cost that a call would exceed.
    pub(super) fn before(
        budget: BudgetKind,
        limits: &Limits,
        committed: &BudgetUsage,
        needed: &BudgetUsage,
    ) -> Self {
        let of = |spent: &BudgetUsage| match budget {
            BudgetKind::Tokens => spent.tokens(),
            BudgetKind::CostMicros => spent.cost_micros().unwrap_or(u64::MAX),
            BudgetKind::WallTimeMs | BudgetKind::ToolCalls => 0,
        };
        let limit = match budget {
            BudgetKind::Tokens => limits.tokens,
            BudgetKind::CostMicros => limits.cost_micros(),
            BudgetKind::WallTimeMs | BudgetKind::ToolCalls => None,
        };
        Self { budget, limit: limit.unwrap_or(0), spent: of(committed), needed: Some(of(needed)) }
    }

    /// Returns the first limit on tokens or cost that is reached.
    fn first(limits: &Limits, spent: &BudgetUsage) -> Option<Self> {
        let tokens = Self::check(BudgetKind::Tokens, limits.tokens, Some(spent.tokens()));
        tokens.or_else(|| Self::check(BudgetKind::CostMicros, limits.cost_micros(), spent.cost_micros()))
    }

    fn event(self, wider: Option<ReachedBudget>) -> Action {
        let Self { budget, limit, spent, needed } = self;
        let scope = BudgetScope::Session;
        let own = ReachedBudget { scope, budget, limit, spent };
        let reached = wider.filter(|wider| wider.budget == budget).unwrap_or(own);
        let ReachedBudget { scope, budget, limit, spent } = reached;
        Action::emit(EventKind::BudgetReached { budget, limit, spent, needed, scope })
    }
}

/// Returns the usage and the cost of a response, at the prices of its model.
pub(super) fn spent_on(usage: &Usage, pricing: Option<&ModelInfo>) -> BudgetUsage {
    BudgetUsage {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cost: pricing.and_then(|model| cost(usage, model)),
        tool_calls: 0,
    }
}

impl Machine {
    /// Returns the event of the limit that stops the session: its own limit, or the limit of a wider scope that lowered
    /// it.
    pub(super) fn reached(&self, limit: ReachedLimit) -> Action {
        limit.event(self.reservations.short())
    }

    /// Returns the amounts spent by the session and its subagents.
    #[must_use]
    pub fn spent(&self) -> BudgetUsage {
        self.spent
    }

    /// Returns the amounts spent by the session's own model calls, by model.
    pub(crate) fn spent_by_model(&self) -> &BTreeMap<String, BudgetUsage> {
        &self.spent_by_model
    }

    /// Counts the usage of a call of the current model.
    pub(super) fn spend(&mut self, usage: &Usage) -> BudgetUsage {
        let context = self.context.as_ref();
        let spent = spent_on(usage, context.and_then(|context| context.pricing.as_deref()));
        if let Some(context) = context {
            *self.spent_by_model.entry(context.model.clone()).or_default() += spent;
        }
        self.spent += spent;
        spent
    }

    /// Returns the remaining budget, without the reservations for calls and subagents.
    #[must_use]
    pub fn budget_left(&self) -> Limits {
        self.budget().remaining(&self.committed())
    }

    /// Returns the reached limit that forbids model calls of any size. If the session can ask for more, only the limit
    /// on time counts.
    pub(super) fn limit_on_model_call(&self) -> Option<ReachedLimit> {
        let budget = &self.budget();
        let progress = self.progress.as_ref();
        let elapsed = progress.map(|progress| millis(self.now.since(progress.since)));
        let time = ReachedLimit::check(BudgetKind::WallTimeMs, budget.wall_time.map(millis), elapsed);
        let spent = if self.may_ask() { None } else { ReachedLimit::first(budget, &self.charged()) };
        spent.or(time)
    }

    /// Returns the limit that forbids a tool call.
    pub(super) fn limit_on_tool_call(&self) -> Option<ReachedLimit> {
        let of_calls = || {
            let limit = self.budget().tool_calls.filter(|_| !self.may_ask())?;
            ReachedLimit::check(BudgetKind::ToolCalls, Some(limit), Some(self.committed().tool_calls))
        };
        self.limit_on_model_call().or_else(of_calls)
    }

    /// Returns the number of tool calls that may still start.
    pub(super) fn tool_calls_left(&self) -> usize {
        let left = self.budget().tool_calls.and_then(|_| self.budget_left().tool_calls);
        left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Returns an error if the limit on cost cannot be enforced for a call of this context's model.
    pub(super) fn unpriced(&self, context: &TurnContext) -> Option<ErrorInfo> {
        self.budget().cost?;
        let model = &context.model;
        let one = Usage::new(1, 1);
        let message = if context.pricing.as_ref().and_then(|pricing| cost(&one, pricing)).is_none() {
            format!(
                "the limit on cost cannot be enforced, since the price of `{model}` is unknown: add its price to the catalog, or limit tokens instead"
            )
        } else if self.charged().cost.is_none() {
            "the limit on cost cannot be enforced, since models without a known price were called before it was set: limit tokens instead".to_owned()
        } else {
            return None;
        };
        Some(Error::new(ErrorKind::InvalidRequest, message).info().clone())
    }

    /// Sets the timer for the current run if its time limit is new or has changed.
    pub(super) fn time_run(&mut self, out: &mut Vec<Action>) {
        let now = self.now;
        let limit = self.limits.budget.wall_time;
        let Some(progress) = &mut self.progress else { return };
        if progress.timed == limit {
            return;
        }
        progress.timed = limit;
        // A timer whose limit was removed fires without effect.
        if let Some(limit) = limit {
            let after = limit.saturating_sub(now.since(progress.since));
            out.push(Action::SetTimer { timer: Timer::Run(progress.run), after });
        }
    }

    /// Stops a run whose time is over. The timer decides, not the clock, which may have jumped back.
    pub(super) fn run_timed_out(&mut self, run: RunId, out: &mut Vec<Action>) {
        let Some(Progress { since, timed: Some(limit), .. }) =
            self.progress.as_ref().filter(|p| p.run == run)
        else {
            return;
        };
        let (limit, spent) = (millis(*limit), millis(self.now.since(*since)));
        if self.ending.is_none() {
            let reached =
                ReachedLimit { budget: BudgetKind::WallTimeMs, limit, spent: spent.max(limit), needed: None };
            self.stop(Ending::Budget(reached), out);
        }
    }

    /// Answers the calls that have not started, once a limit is reached.
    pub(super) fn hold_calls(&mut self, out: &mut Vec<Action>) {
        let Some(reached) = self.limit_on_tool_call() else { return };
        let Phase::RunningTools(round) = &mut self.phase else { return };
        if round.hold(out) {
            self.end_reasons.reach(reached);
        }
    }
}

/// Returns the price of one call. If only the price of cached tokens is unknown, they are billed like other input.
pub(super) fn cost(usage: &Usage, model: &ModelInfo) -> Option<Money> {
    model.cost(usage).or_else(|| {
        let mut uncached = usage.clone();
        (uncached.cache_read_tokens, uncached.cache_write_tokens) = (None, None);
        model.cost(&uncached)
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
