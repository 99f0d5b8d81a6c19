//! Spending limits and spent amounts.

use std::time::Duration;

use pintle_env::setters;
use pintle_llm::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on tokens, cost, calls and time: of a session with its subagents, of a run, of a day or of a grant. All are off
/// (`None`) by default.
///
/// Limits are checked before each model call and each tool call. When a limit is reached, calls that have not started are
/// answered as not run, the run ends with [`OutcomeStatus::Budget`](super::OutcomeStatus::Budget), and the session is
/// idle. A raised limit applies from the next input on.
///
/// Under a limit on tokens or cost, each attempt of a model call reserves its maximum: its input as the provider counted
/// it last, an upper estimate of the new input, and its output limit, which is lowered to the remaining budget. If not
/// even the shortest response fits, the call is not made. The rest of a reservation returns when the response arrives. An
/// attempt that ends without a response, such as a broken stream, counts in full, unless its error reports the usage; an
/// attempt that the provider refused uses nothing. Subagents spend from slices that are reserved for them. A limit can
/// therefore be exceeded only by the error of the estimate, and a warning reports by how much.
///
/// ```
/// use std::time::Duration;
/// use pintle_agent::{Limits, Money, OutcomeStatus, ProviderProfile, Session, SessionConfig};
/// # use pintle_llm::{Client, testing::FakeAdapter};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let client = Client::builder().provider(FakeAdapter::new("anthropic")).build()?;
/// # let profile = ProviderProfile::anthropic("claude-opus-4-6");
/// # let env = pintle_env::MemoryEnvironment::new("/project");
/// let limits = Limits::default()
///     .with_cost(Money::from_dollars(0.000_1))
///     .with_wall_time(Duration::from_secs(600));
/// let session = Session::builder(client, profile, env)
///     .with_config(SessionConfig::default().with_budget(limits))
///     .build()?;
/// // The shortest response costs more, so no model is called.
/// let outcome = session.submit("Fix the tests.").await?;
/// assert_eq!((outcome.status, outcome.model_calls), (OutcomeStatus::Budget, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Limits {
    /// Input and output tokens over the whole session, as counted by the providers.
    pub tokens: Option<u64>,
    /// Cost over the whole session, at the prices of the profile's catalog.
    ///
    /// Under this limit, a model without a known price is not called, since the limit could not be enforced. The run
    /// fails with [`ErrorKind::InvalidRequest`](pintle_llm::ErrorKind::InvalidRequest), and the session stays usable with
    /// another model or without the limit.
    #[serde(rename = "cost_micros")]
    pub cost: Option<Money>,
    /// Time of one run, including the wait for approvals. When it has elapsed, the run is stopped as by an interrupt.
    pub wall_time: Option<Duration>,
    /// Started tool calls over the whole session. When the limit is reached, the model may still answer; the run pauses
    /// when it requests another call.
    pub tool_calls: Option<u64>,
}

/// Quantity that a budget limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetKind {
    /// Input and output tokens.
    Tokens,
    /// Cost, in millionths of a US dollar.
    CostMicros,
    /// Time of a run, in milliseconds.
    WallTimeMs,
    /// Number of tool calls.
    ToolCalls,
}

/// Scope of a budget limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BudgetScope {
    /// A session with its subagents.
    #[default]
    Session,
    /// One run of a session, with its subagents.
    Run,
    /// All sessions of a day.
    Day,
}

impl BudgetScope {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    pub(crate) fn is_session(&self) -> bool {
        *self == Self::Session
    }
}

impl std::fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Run => "run",
            Self::Day => "day",
        })
    }
}

/// Serialised form of the limits of a budget that a session requests in parts: an object with the field `limited`.
pub(super) mod on_demand {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Limits;

    #[derive(Serialize, Deserialize)]
    struct OnDemand {
        #[serde(default)]
        limited: Limits,
    }

    pub(in crate::protocol) fn serialize<S: Serializer>(
        limits: &Option<Limits>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        limits.map(|limited| OnDemand { limited }).serialize(serializer)
    }

    pub(in crate::protocol) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Limits>, D::Error> {
        Ok(Option::<OnDemand>::deserialize(deserializer)?.map(|on_demand| on_demand.limited))
    }
}

/// A limit because of which a session gets no more budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReachedBudget {
    /// Its scope.
    pub scope: BudgetScope,
    /// Limited quantity; its name includes the unit.
    pub budget: BudgetKind,
    /// Its value.
    pub limit: u64,
    /// Amount spent, or reserved, in this scope.
    pub spent: u64,
}

impl ReachedBudget {
    /// Creates the description of a limit.
    #[must_use]
    pub fn new(scope: BudgetScope, budget: BudgetKind, limit: u64, spent: u64) -> Self {
        Self { scope, budget, limit, spent }
    }
}

impl Limits {
    setters! {
        /// Sets the limit on input and output tokens over the session.
        pub fn with_tokens(tokens: u64) => tokens = Some(tokens);
        /// Sets the limit on cost over the session.
        pub fn with_cost(cost: Money) => cost = Some(cost);
        /// Sets the time limit of each run.
        pub fn with_wall_time(time: Duration) => wall_time = Some(time);
        /// Sets the limit on tool calls over the session.
        pub fn with_tool_calls(calls: u64) => tool_calls = Some(calls);
    }

    /// Returns the remaining budget after `spent`, without a limit on time. An unknown cost leaves no remaining cost.
    #[must_use]
    pub fn remaining(&self, spent: &BudgetUsage) -> Self {
        Self {
            tokens: self.tokens.map(|limit| limit.saturating_sub(spent.tokens())),
            cost: self.cost.map(|limit| spent.cost.map_or(Money::ZERO, |spent| limit.saturating_sub(spent))),
            wall_time: None,
            tool_calls: self.tool_calls.map(|limit| limit.saturating_sub(spent.tool_calls)),
        }
    }

    /// Returns the limit on cost in millionths of a US dollar.
    pub(crate) fn cost_micros(&self) -> Option<u64> {
        self.cost.map(Money::micros)
    }

    /// Returns whether nothing is limited.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether tokens or cost are limited.
    pub(crate) fn limits_model_calls(&self) -> bool {
        self.tokens.is_some() || self.cost.is_some()
    }

    /// Returns the budget of exactly these amounts, for each quantity that this budget limits. Time is not limited.
    pub(crate) fn exactly(&self, spent: &BudgetUsage) -> Self {
        Self {
            tokens: self.tokens.map(|_| spent.tokens()),
            cost: self.cost.map(|_| spent.cost.unwrap_or_default()),
            wall_time: None,
            tool_calls: self.tool_calls.map(|_| spent.tool_calls),
        }
    }

    /// Returns these limits, and the limits of `other` on amounts that these do not limit. Time is not limited.
    pub(crate) fn or(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.or(other.tokens),
            cost: self.cost.or(other.cost),
            wall_time: None,
            tool_calls: self.tool_calls.or(other.tool_calls),
        }
    }

    /// Returns the lower of both limits on each amount.
    #[must_use]
    pub fn lower(&self, other: &Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            tokens: least(self.tokens, other.tokens),
            cost: least(self.cost, other.cost),
            wall_time: least(self.wall_time, other.wall_time),
            tool_calls: least(self.tool_calls, other.tool_calls),
        }
    }

    /// Combines each limit on tokens, cost and tool calls with the limit of `other`, or with 0 if `other` has none. Amounts
    /// that `self` does not limit stay unlimited.
    pub(crate) fn with_each(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let each =
            |ours: Option<u64>, theirs: Option<u64>| ours.map(|ours| combine(ours, theirs.unwrap_or(0)));
        Self {
            tokens: each(self.tokens, other.tokens),
            cost: each(self.cost_micros(), other.cost_micros()).map(Money::from_micros),
            wall_time: None,
            tool_calls: each(self.tool_calls, other.tool_calls),
        }
    }
}

/// Spending of a subagent from the budget of its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Account {
    /// Amounts spent by the subagent and its own subagents, in total.
    pub spent: BudgetUsage,
    /// Amounts that the subagent holds: for attempts that ended without usage, and for its own subagents.
    pub held: BudgetUsage,
    /// Whether the subagent is idle, so that it needs no more of its slice for now.
    pub rests: bool,
}

/// Tokens, cost and tool calls spent so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BudgetUsage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Cost; `None` after a call with an unknown price.
    #[serde(rename = "cost_micros")]
    pub cost: Option<Money>,
    /// Tool calls.
    pub tool_calls: u64,
}

impl Default for BudgetUsage {
    /// Nothing, at a known cost of zero.
    fn default() -> Self {
        Self { input_tokens: 0, output_tokens: 0, cost: Some(Money::ZERO), tool_calls: 0 }
    }
}

impl std::ops::AddAssign for BudgetUsage {
    fn add_assign(&mut self, more: Self) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
        self.cost = self.cost.zip(more.cost).map(|(ours, theirs)| ours + theirs);
        self.tool_calls = self.tool_calls.saturating_add(more.tool_calls);
    }
}

impl BudgetUsage {
    /// Returns the sum of input and output tokens.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Returns the cost in millionths of a US dollar.
    pub(crate) fn cost_micros(&self) -> Option<u64> {
        self.cost.map(Money::micros)
    }

    /// Returns the sum.
    pub(crate) fn and(mut self, more: Self) -> Self {
        self += more;
        self
    }

    /// Returns the difference to `before`, an earlier total of the same session.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(before.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(before.output_tokens),
            cost: self.cost.map(|now| now.saturating_sub(before.cost.unwrap_or_default())),
            tool_calls: self.tool_calls.saturating_sub(before.tool_calls),
        }
    }
}
