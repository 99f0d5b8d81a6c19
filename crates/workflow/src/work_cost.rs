//! Costs.

use std::collections::BTreeMap;

use pintle_agent::Money;
use serde::{Deserialize, Serialize};

/// Costs of steps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Costs of each model, by its name. Earlier versions recorded none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, ModelCost>,
}

/// Costs of the calls of one model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCost {
    /// Cost, as far as prices are known.
    #[serde(default, rename = "usd", with = "pintle_agent::money::dollars")]
    pub cost: Money,
    /// Whether its price is unknown.
    #[serde(default)]
    pub is_price_unknown: bool,
    /// Input and output tokens.
    #[serde(default)]
    pub tokens: u64,
}

impl WorkCost {
    pub(crate) fn add(&mut self, other: &Self) {
        self.cost += other.cost;
        self.is_price_unknown |= other.is_price_unknown;
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.millis = self.millis.saturating_add(other.millis);
        for (model, cost) in &other.models {
            self.models.entry(model.clone()).or_default().add(cost);
        }
    }

    /// Adds the calls of a model.
    pub fn add_model(&mut self, model: impl Into<String>, cost: ModelCost) {
        self.cost += cost.cost;
        self.is_price_unknown |= cost.is_price_unknown;
        self.tokens = self.tokens.saturating_add(cost.tokens);
        self.models.entry(model.into()).or_default().add(&cost);
    }

    /// Returns whether a model was called.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.tokens > 0 || self.cost > Money::ZERO || self.is_price_unknown
    }

    /// Returns the cost, if all prices are known.
    #[must_use]
    pub fn known_cost(&self) -> Option<Money> {
        (!self.is_price_unknown).then_some(self.cost)
    }

    /// Returns the dollars as text, with `≥` if a price is unknown. Returns `unknown cost` if no price is known.
    #[must_use]
    pub fn dollars(&self) -> String {
        format_dollars(self.cost, self.is_price_unknown)
    }
}

impl ModelCost {
    fn add(&mut self, other: &Self) {
        self.cost += other.cost;
        self.is_price_unknown |= other.is_price_unknown;
        self.tokens = self.tokens.saturating_add(other.tokens);
    }

    /// Returns the dollars as text, like [`WorkCost::dollars`].
    #[must_use]
    pub fn dollars(&self) -> String {
        format_dollars(self.cost, self.is_price_unknown)
    }
}

fn format_dollars(cost: Money, is_price_unknown: bool) -> String {
    if is_price_unknown && cost == Money::ZERO {
        return "unknown cost".to_owned();
    }
    let at_least = if is_price_unknown { "≥ " } else { "" };
    let digits = format!("{cost:.4}");
    // Whole cents have no further digits. Others would not add up.
    let digits = digits.strip_suffix("00").unwrap_or(&digits);
    format!("{at_least}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_costs_add_up() {
        for (dollars, expected) in [
            (0.0, "$0.00"),
            (0.5, "$0.50"),
            (12.34, "$12.34"),
            (0.0042, "$0.0042"),
            (0.105, "$0.1050"),
            (100.0, "$100.00"),
        ] {
            assert_eq!(format_dollars(Money::from_dollars(dollars), false), expected);
        }
    }

    #[test]
    fn costs_of_models_are_parts_of_the_sum() {
        let priced = ModelCost { cost: Money::from_dollars(0.5), tokens: 10, ..ModelCost::default() };
        let unpriced = ModelCost { is_price_unknown: true, tokens: 3, ..ModelCost::default() };
        let mut one = WorkCost::default();
        assert!(!one.has_calls());
        one.add_model("large", priced);
        one.add_model("local", unpriced);
        let mut both = one.clone();
        both.add(&one);
        assert!(both.has_calls());
        assert_eq!((both.dollars(), both.tokens, both.known_cost()), ("≥ $1.00".to_owned(), 26, None));
        let models: Vec<_> =
            both.models.iter().map(|(name, cost)| (name.as_str(), cost.dollars(), cost.tokens)).collect();
        assert_eq!(models, [("large", "$1.00".to_owned(), 20), ("local", "unknown cost".to_owned(), 6)]);
        let old: WorkCost = serde_json::from_str(r#"{"usd": 0.25, "tokens": 7, "millis": 8}"#).unwrap();
        assert!(old.models.is_empty());
        assert!(!serde_json::to_string(&old).unwrap().contains("models"));
    }
}
