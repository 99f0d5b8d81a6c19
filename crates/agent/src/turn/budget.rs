//! What a session may spend with everything below it, and what it has spent.

use std::time::Duration;

use pintle_llm::{Error, ErrorInfo, ErrorKind, ModelInfo, Usage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::action::Action;
use super::cycle::Progress;
use super::ending::Ending;
use super::input::{Timer, TurnContext};
use super::{Machine, Phase};
use crate::event::EventKind;
use crate::id::RunId;

/// What a session and its subagents may spend. Every limit is off (`None`) by default.
///
/// Limits are looked at before each call of a model and each call of a tool. Reaching one pauses: calls that have not
/// started are answered as not run, the run ends with [`OutcomeStatus::Budget`](crate::OutcomeStatus::Budget), and the
/// session is idle. What a call will cost is known when it ends, so that a limit on tokens or cost can be exceeded by
/// one answer, and by one more for each subagent at work. A raised limit holds from the next input on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens of prompts and answers together, as the providers count them, over the whole session. Calls that failed
    /// are not counted, since providers do not say what they took.
    pub tokens: Option<u64>,
    /// Millionths of a US dollar over the whole session, by the prices of the profile's catalog.
    ///
    /// A model without a known price is not called under this limit, since it could not be kept: the run fails with
    /// [`ErrorKind::InvalidRequest`], and the session is usable with another model or without the limit.
    pub cost_micros: Option<u64>,
    /// The time of one run, waiting for approvals included. What runs when it is over is stopped, as by an interrupt.
    pub wall_time: Option<Duration>,
    /// Calls of tools that were started, over the whole session. The model may still answer when it is reached; the
    /// run pauses when it asks for one call more.
    pub tool_calls: Option<u64>,
}

/// One of the limits of a [`Budget`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetKind {
    /// Tokens, in and out.
    Tokens,
    /// Money, in millionths of a US dollar.
    CostMicros,
    /// Time of a run, in milliseconds.
    WallTimeMs,
    /// Calls of tools.
    ToolCalls,
}

impl Budget {
    /// With a limit on tokens, in and out, over the session.
    #[must_use]
    pub fn with_tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// With a limit on cost over the session, in millionths of a US dollar.
    #[must_use]
    pub fn with_cost_micros(mut self, micros: u64) -> Self {
        self.cost_micros = Some(micros);
        self
    }

    /// With a limit on the time of each run.
    #[must_use]
    pub fn with_wall_time(mut self, time: Duration) -> Self {
        self.wall_time = Some(time);
        self
    }

    /// With a limit on calls of tools over the session.
    #[must_use]
    pub fn with_tool_calls(mut self, calls: u64) -> Self {
        self.tool_calls = Some(calls);
        self
    }

    /// What is left of it once this much is spent, as a budget for a subagent. Time is not handed on: who stops at the
    /// end of its time stops its subagents with it. A cost that is not known leaves nothing.
    #[must_use]
    pub fn left(&self, spent: &Spent) -> Self {
        Self {
            tokens: self.tokens.map(|limit| limit.saturating_sub(spent.tokens())),
            cost_micros: self
                .cost_micros
                .map(|limit| spent.cost_micros.map_or(0, |spent| limit.saturating_sub(spent))),
            wall_time: None,
            tool_calls: self.tool_calls.map(|limit| limit.saturating_sub(spent.tool_calls)),
        }
    }

    /// The first limit on tokens or cost that is met.
    fn met_by(&self, spent: &Spent) -> Option<Met> {
        let tokens = Met::of(BudgetKind::Tokens, self.tokens, Some(spent.tokens()));
        tokens.or_else(|| Met::of(BudgetKind::CostMicros, self.cost_micros, spent.cost_micros))
    }
}

/// What was spent on the way to an answer: tokens, money, and calls of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Spent {
    /// Tokens of prompts.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// Millionths of a US dollar; `None` as soon as the price of any call is unknown.
    pub cost_micros: Option<u64>,
    /// Calls of tools.
    pub tool_calls: u64,
}

impl Default for Spent {
    /// Nothing, which costs nothing.
    fn default() -> Self {
        Self { input_tokens: 0, output_tokens: 0, cost_micros: Some(0), tool_calls: 0 }
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost_micros =
            self.cost_micros.zip(more.cost_micros).map(|(ours, theirs)| ours.saturating_add(theirs));
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
    }
}

impl Spent {
    /// Tokens, in and out.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// What one answer took, at the prices of this model.
    pub(super) fn of_answer(usage: &Usage, pricing: Option<&ModelInfo>) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost_micros: pricing.and_then(|model| cost(usage, model)),
            tool_calls: 0,
        }
    }
}

/// A limit that is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Met {
    budget: BudgetKind,
    limit: u64,
    spent: u64,
}

impl Met {
    fn of(budget: BudgetKind, limit: Option<u64>, spent: Option<u64>) -> Option<Self> {
        let (limit, spent) = limit.zip(spent)?;
        (spent >= limit).then_some(Self { budget, limit, spent })
    }

    pub(super) fn event(self) -> Action {
        let Self { budget, limit, spent } = self;
        Action::emit(EventKind::BudgetReached { budget, limit, spent })
    }
}

impl Machine {
    /// What the session has spent with everything below it.
    #[must_use]
    pub fn spent(&self) -> Spent {
        self.spent
    }

    /// What is left to spend, as a budget for a subagent.
    #[must_use]
    pub fn budget_left(&self) -> Budget {
        self.limits.budget.left(&self.spent())
    }

    /// The limit that forbids a call of the model.
    pub(super) fn met_before_model(&self) -> Option<Met> {
        let budget = &self.limits.budget;
        let progress = self.progress.as_ref();
        let taken = progress.map(|progress| millis(self.now.since(progress.since)));
        let time = Met::of(BudgetKind::WallTimeMs, budget.wall_time.map(millis), taken);
        budget.met_by(&self.spent()).or(time)
    }

    /// The limit that forbids a call of a tool.
    pub(super) fn met_before_tool(&self) -> Option<Met> {
        let (limit, spent) = (self.limits.budget.tool_calls, self.spent().tool_calls);
        self.met_before_model().or_else(|| Met::of(BudgetKind::ToolCalls, limit, Some(spent)))
    }

    /// How many calls of tools may still start.
    pub(super) fn tool_calls_left(&self) -> usize {
        let left = self.budget_left().tool_calls;
        left.map_or(usize::MAX, |left| usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Why the limit on cost could not be kept if this context's model were called.
    pub(super) fn unpriced(&self, context: &TurnContext) -> Option<ErrorInfo> {
        self.limits.budget.cost_micros?;
        let model = &context.model;
        let one = Usage::new(1, 1);
        let message = if context.pricing.as_ref().and_then(|pricing| cost(&one, pricing)).is_none() {
            format!(
                "the limit on cost cannot be kept, since the price of `{model}` is unknown: give the catalog its price, or limit tokens instead"
            )
        } else if self.spent().cost_micros.is_none() {
            "the limit on cost cannot be kept, since models without a known price were called before it was set: limit tokens instead".to_owned()
        } else {
            return None;
        };
        Some(Error::new(ErrorKind::InvalidRequest, message).info().clone())
    }

    /// Begins to count the time of the run that is served, or counts on with another limit.
    pub(super) fn time_run(&mut self, out: &mut Vec<Action>) {
        let now = self.now;
        let limit = self.limits.budget.wall_time;
        let Some(progress) = &mut self.progress else { return };
        if progress.timed == limit {
            return;
        }
        progress.timed = limit;
        // A timer whose limit is gone fires and means nothing.
        if let Some(limit) = limit {
            let after = limit.saturating_sub(now.since(progress.since));
            out.push(Action::SetTimer { timer: Timer::Run(progress.run), after });
        }
    }

    /// The time of a run is over. The timer is believed, and not the clock, which may have jumped back meanwhile.
    pub(super) fn run_timed_out(&mut self, run: RunId, out: &mut Vec<Action>) {
        let Some(Progress { since, timed: Some(limit), .. }) =
            self.progress.as_ref().filter(|p| p.run == run)
        else {
            return;
        };
        let (limit, spent) = (millis(*limit), millis(self.now.since(*since)));
        if self.ending.is_none() {
            let met = Met { budget: BudgetKind::WallTimeMs, limit, spent: spent.max(limit) };
            self.stop(Ending::Budget(met), out);
        }
    }

    /// Calls that have not started do not start any more, once a limit is met.
    pub(super) fn hold_calls(&mut self, out: &mut Vec<Action>) {
        let Some(met) = self.met_before_tool() else { return };
        let Phase::RunningTools(round) = &mut self.phase else { return };
        if round.hold(out) {
            self.over_budget = self.over_budget.or(Some(met));
        }
    }
}

/// The price of one call in millionths of a US dollar. Where only the price of cached tokens is unknown, they cost what
/// the rest of the prompt costs.
fn cost(usage: &Usage, model: &ModelInfo) -> Option<u64> {
    let dollars = model.cost(usage).or_else(|| {
        let mut uncached = usage.clone();
        (uncached.cache_read_tokens, uncached.cache_write_tokens) = (None, None);
        model.cost(&uncached)
    })?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "prices are not negative, and a cast stops at the largest number"
    )]
    let micros = (dollars * 1e6).round() as u64;
    Some(micros)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
