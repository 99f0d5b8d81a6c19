//! Costs.

use pintle_agent::Money;
use serde::{Deserialize, Serialize};

/// Costs of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkCost {
    /// Cost, as far as prices are known.
    #[serde(default, rename = "usd", with = "pintle_agent::money::dollars")]
    pub cost: Money,
    /// Whether a price is unknown.
    #[serde(default)]
    pub is_price_unknown: bool,
    /// Input and output tokens.
    #[serde(default)]
    pub tokens: u64,
    /// Milliseconds.
    #[serde(default)]
    pub millis: u64,
}

impl WorkCost {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cost += other.cost;
        self.is_price_unknown |= other.is_price_unknown;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.millis = self.millis.saturating_add(other.millis);
    }

    /// Returns the cost, if all prices are known.
    #[must_use]
    pub fn known_cost(&self) -> Option<Money> {
        (!self.is_price_unknown).then_some(self.cost)
    }

    /// Returns the dollars as text, with `≥` if a price is unknown. Returns `unknown cost` if no price is known.
    #[must_use]
    pub fn dollars(&self) -> String {
        if self.is_price_unknown && self.cost == Money::ZERO {
            return "unknown cost".to_owned();
        }
        let at_least = if self.is_price_unknown { "≥ " } else { "" };
        format!("{at_least}{:.2}", self.cost)
    }
}
