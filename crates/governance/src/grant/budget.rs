//! Serialised form of the budget of a grant.

use std::time::Duration;

use pintle_agent::{Limits, Money};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Spending limits. `None` is no limit.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GrantBudget {
    /// Input and output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// Cost in millionths of a US dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_micros: Option<u64>,
    /// Time of each run, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    wall_time_ms: Option<u64>,
    /// Calls of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<u64>,
}

pub(super) fn serialize<S: Serializer>(limits: &Limits, serializer: S) -> Result<S::Ok, S::Error> {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let form = GrantBudget {
        tokens: limits.tokens,
        cost_micros: limits.cost.map(Money::micros),
        wall_time_ms: limits.wall_time.map(millis),
        tool_calls: limits.tool_calls,
    };
    form.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Limits, D::Error> {
    let GrantBudget { tokens, cost_micros, wall_time_ms, tool_calls } =
        GrantBudget::deserialize(deserializer)?;
    let mut limits = Limits::default();
    (limits.tokens, limits.tool_calls) = (tokens, tool_calls);
    limits.cost = cost_micros.map(Money::from_micros);
    limits.wall_time = wall_time_ms.map(Duration::from_millis);
    Ok(limits)
}
