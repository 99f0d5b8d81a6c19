//! Tokens and cost of a session.

use pintle_agent::{BudgetUsage, Money};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens and cost of a session. A price that the record does not have makes a cost unknown, which is `None` and never 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct Spending {
    /// Responses of the session itself, by model.
    pub models: Vec<ModelSpending>,
    /// The session with its subagents, and with failed calls, as its budget counts them.
    pub total: TotalSpending,
}

/// Responses of one model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ModelSpending {
    /// Provider.
    pub provider: String,
    /// Model that responded.
    pub model: String,
    /// Number of responses, summaries included.
    pub responses: u64,
    /// All input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that were read from a cache.
    pub cache_read_tokens: u64,
    /// Input tokens that were written to a cache.
    pub cache_write_tokens: u64,
    /// Cost in US dollars, at the prices on record.
    #[serde(rename = "cost_usd", with = "pintle_agent::money::dollars::option")]
    #[schemars(with = "Option<f64>")]
    pub cost: Option<Money>,
}

/// Amounts that a budget counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct TotalSpending {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar.
    #[serde(rename = "cost_micros")]
    #[schemars(with = "Option<u64>")]
    pub cost: Option<Money>,
    /// Tool calls.
    pub tool_calls: u64,
}

/// Tokens and cost of one response.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResponseCost {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_tokens: u64,
    pub(super) cache_write_tokens: u64,
    pub(super) cost: Option<Money>,
}

impl Spending {
    pub(super) fn set_total(&mut self, spent: &BudgetUsage) {
        self.total = TotalSpending {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cost: spent.cost,
            tool_calls: spent.tool_calls,
        };
    }

    pub(super) fn add(&mut self, provider: &str, model: &str, response: &ResponseCost) {
        let is_same = |known: &&mut ModelSpending| known.provider == provider && known.model == model;
        if let Some(known) = self.models.iter_mut().find(is_same) {
            known.add(response);
            return;
        }
        let mut first = ModelSpending {
            provider: provider.to_owned(),
            model: model.to_owned(),
            responses: 0,
            input_tokens: 0,
            output_tokens: 0,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            cost: Some(Money::ZERO),
        };
        first.add(response);
        self.models.push(first);
    }
}

impl ModelSpending {
    fn add(&mut self, response: &ResponseCost) {
        self.responses += 1;
        self.input_tokens = self.input_tokens.saturating_add(response.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(response.output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(response.cache_read_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(response.cache_write_tokens);
        self.cost = self.cost.zip(response.cost).map(|(total, cost)| total + cost);
    }
}
