//! Cost of calls.

use super::{Catalog, ModelInfo, PriceTier};
use crate::money::Money;
use crate::usage::Usage;

/// Tokens per unit of price.
const UNIT: f64 = 1e6;

/// US dollars per million tokens, by kind.
#[derive(Clone, Copy)]
struct Prices {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

impl ModelInfo {
    /// Returns the cost of one call; `None` if the price of any of its tokens is unknown.
    ///
    /// Input read from a cache costs the cache read price. Input written to a cache costs the cache write price, or the
    /// input price if the model has no price for writes. Other input costs the input price. `usage` must be the usage of a
    /// single call, since the price depends on the length of the input; add up the costs of several calls.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<Money> {
        let prices = self.prices(usage.input_tokens);
        let parts = [
            (usage.uncached_input_tokens(), prices.input),
            (usage.output_tokens, prices.output),
            (usage.cache_read_tokens.unwrap_or(0), prices.cache_read),
            (usage.cache_write_tokens.unwrap_or(0), prices.cache_write.or(prices.input)),
        ];
        // Unused kinds need no price.
        let used = parts.into_iter().filter(|(tokens, _)| *tokens > 0);
        let dollars = used
            .map(|(tokens, price)| Some(dollars(tokens, price?)))
            .try_fold(0.0, |sum, part| part.map(|part| sum + part))?;
        Some(Money::from_dollars(dollars))
    }

    /// Prices of a call with this many prompt tokens.
    fn prices(&self, prompt: u64) -> Prices {
        let tiers = self.price_tiers.iter().filter(|tier| tier.above_input_tokens < prompt);
        tiers
            .max_by_key(|tier| tier.above_input_tokens)
            .map_or_else(|| Prices::of_model(self), Prices::of_tier)
    }
}

impl Catalog {
    /// Returns the cost of one call, as [`ModelInfo::cost`]; `None` also for an unlisted model.
    #[must_use]
    pub fn cost(&self, provider: &str, model_id: &str, usage: &Usage) -> Option<Money> {
        self.find(provider, model_id)?.cost(usage)
    }
}

impl Prices {
    fn of_model(model: &ModelInfo) -> Self {
        Self {
            input: model.input_cost_per_million,
            output: model.output_cost_per_million,
            cache_read: model.cache_read_cost_per_million,
            cache_write: model.cache_write_cost_per_million,
        }
    }

    fn of_tier(tier: &PriceTier) -> Self {
        Self {
            input: tier.input_cost_per_million,
            output: tier.output_cost_per_million,
            cache_read: tier.cache_read_cost_per_million,
            cache_write: tier.cache_write_cost_per_million,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn dollars(tokens: u64, per_unit: f64) -> f64 {
    tokens as f64 / UNIT * per_unit
}
