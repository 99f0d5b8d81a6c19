//! What a run costs, where the catalog knows the price.

use pintle_llm::{Catalog, Usage};

use crate::provider::Provider;

/// Tokens of one price unit.
const UNIT: f64 = 1e6;

/// The price of these tokens in US dollars; `None` if any part of it is unknown.
pub(crate) fn in_dollars(provider: Provider, model: &str, usage: &Usage) -> Option<f64> {
    let info = Catalog::built_in().list(Some(provider.name())).find(|info| info.id == model)?;
    let cached = usage.cache_read_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    // Anthropic counts cached tokens apart from the input; the others count them in.
    let plain = match provider {
        Provider::Anthropic => usage.input_tokens,
        Provider::OpenAi | Provider::Gemini | Provider::OpenAiCompatible => {
            usage.input_tokens.saturating_sub(cached).saturating_sub(written)
        }
    };
    let parts = [
        (plain, info.input_cost_per_million),
        (usage.output_tokens, info.output_cost_per_million),
        (cached, info.cache_read_cost_per_million),
        (written, info.cache_write_cost_per_million),
    ];
    let prices = parts.into_iter().filter(|(tokens, _)| *tokens > 0);
    let prices: Option<Vec<f64>> = prices.map(|(tokens, price)| Some(dollars(tokens, price?))).collect();
    // A sum of nothing would be minus zero.
    prices.map(|prices| prices.iter().fold(0.0, |sum, price| sum + price))
}

#[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
fn dollars(tokens: u64, per_unit: f64) -> f64 {
    tokens as f64 / UNIT * per_unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_counted_once() {
        let mut usage = Usage::new(1_000_000, 100_000);
        usage.cache_read_tokens = Some(600_000);
        for provider in Provider::BY_KEY {
            let model = provider.default_model().unwrap();
            let info = pintle_llm::get_model_info(model).unwrap();
            let price = |price: Option<f64>| price.unwrap();
            let input = if provider == Provider::Anthropic { 1.0 } else { 0.4 };
            let expected = input * price(info.input_cost_per_million)
                + 0.1 * price(info.output_cost_per_million)
                + 0.6 * price(info.cache_read_cost_per_million);
            let cost = in_dollars(provider, model, &usage).unwrap();
            assert!((cost - expected).abs() < 1e-9, "{model}: {cost} instead of {expected}");
        }
    }

    #[test]
    fn an_unknown_price_stays_unknown() {
        assert_eq!(in_dollars(Provider::OpenAi, "no-such-model", &Usage::new(1, 1)), None);
        assert_eq!(in_dollars(Provider::OpenAiCompatible, "gpt-5.2", &Usage::new(1, 1)), None);
        let nothing = in_dollars(Provider::OpenAi, "gpt-5.2", &Usage::default());
        assert_eq!(nothing.map(|cost| format!("{cost:.2}")).as_deref(), Some("0.00"));
    }
}
