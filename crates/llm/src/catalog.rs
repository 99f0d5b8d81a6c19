//! What is known about models (client specification, section 2.9).
//!
//! The data is `catalog/models.json`, of which `catalog/README.md` tells the format and the sources.

mod cost;
mod entry;
mod file;
mod overlay;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use self::entry::Entry;
use crate::error::Error;

/// Facts about one model. What is unknown stays `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider's identifier.
    pub id: String,
    /// The provider that serves it.
    pub provider: String,
    /// For people.
    pub display_name: String,
    /// Input and output together, in tokens.
    pub context_window: u64,
    /// The most tokens it writes in one answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// Whether it calls tools.
    pub supports_tools: bool,
    /// Whether it sees images.
    pub supports_vision: bool,
    /// Whether it reasons before it answers.
    pub supports_reasoning: bool,
    /// Whether reasoning is set by an effort word rather than by a budget of tokens (Anthropic).
    #[serde(default)]
    pub supports_effort: bool,
    /// US dollars per million input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_cost_per_million: Option<f64>,
    /// US dollars per million output tokens, those of reasoning among them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_cost_per_million: Option<f64>,
    /// US dollars per million input tokens that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_cost_per_million: Option<f64>,
    /// US dollars per million input tokens that were written to a cache, for the shortest time that is offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_cost_per_million: Option<f64>,
    /// Other prices for long prompts, the shortest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_tiers: Vec<PriceTier>,
    /// Until when its training data reaches, as its maker words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// The day after which its maker no longer promises to serve it, as `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires_on: Option<String>,
    /// Short names, and names of the same model with a date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where the figures come from.
    #[serde(default)]
    pub sources: ModelSources,
}

/// The prices of calls with a long prompt, in US dollars per million tokens. They hold for the whole call; a price
/// that is not given is unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceTier {
    /// Applies to calls whose input has more tokens than this, cached tokens included.
    pub above_input_tokens: u64,
    /// As in [`ModelInfo`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_cost_per_million: Option<f64>,
    /// As in [`ModelInfo`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_cost_per_million: Option<f64>,
    /// As in [`ModelInfo`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_cost_per_million: Option<f64>,
    /// As in [`ModelInfo`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_cost_per_million: Option<f64>,
}

/// Where the figures of a model come from: a page of the provider, or a package and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelSources {
    /// Of the context window and the output limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Of what the model supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<String>,
    /// Of all prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// Of the knowledge cutoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// Of the day of retirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires_on: Option<String>,
}

/// What a model must be able to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Call tools.
    Tools,
    /// See images.
    Vision,
    /// Reason before it answers.
    Reasoning,
}

/// A list of models, within a provider the one to begin with first and older ones last. Advisory: unknown names are
/// passed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    entries: Vec<Entry>,
}

const SHIPPED: &str = include_str!("../catalog/models.json");

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| Catalog { entries: Entry::of_list(SHIPPED) });

impl ModelInfo {
    /// A model of which no more is known: it does nothing but write text, and its price is unknown.
    #[must_use]
    pub fn new(provider: impl Into<String>, id: impl Into<String>, context_window: u64) -> Self {
        let id = id.into();
        Self {
            display_name: id.clone(),
            id,
            provider: provider.into(),
            context_window,
            max_output: None,
            supports_tools: false,
            supports_vision: false,
            supports_reasoning: false,
            supports_effort: false,
            input_cost_per_million: None,
            output_cost_per_million: None,
            cache_read_cost_per_million: None,
            cache_write_cost_per_million: None,
            price_tiers: Vec::new(),
            knowledge_cutoff: None,
            retires_on: None,
            aliases: Vec::new(),
            sources: ModelSources::default(),
        }
    }

    /// Whether the model can do this.
    #[must_use]
    pub fn supports(&self, capability: Capability) -> bool {
        match capability {
            Capability::Tools => self.supports_tools,
            Capability::Vision => self.supports_vision,
            Capability::Reasoning => self.supports_reasoning,
        }
    }
}

impl Catalog {
    /// The models that this crate ships.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads a list of models that stands alone, in the format of `catalog/README.md`.
    ///
    /// # Errors
    ///
    /// Those of [`merged_with`](Self::merged_with).
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self { entries: Vec::new() }.merged_with(text)
    }

    /// The model of this id or alias.
    #[must_use]
    pub fn get(&self, model_id: &str) -> Option<&ModelInfo> {
        self.called(None, model_id)
    }

    /// The model of this id or alias at this provider, where several serve models of one name.
    #[must_use]
    pub fn find(&self, provider: &str, model_id: &str) -> Option<&ModelInfo> {
        self.called(Some(provider), model_id)
    }

    /// All models, or those of one provider.
    pub fn list(&self, provider: Option<&str>) -> impl Iterator<Item = &ModelInfo> {
        self.entries_of(provider).map(Entry::model)
    }

    fn entries_of(&self, provider: Option<&str>) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| provider.is_none_or(|provider| entry.provider() == provider))
    }

    /// That of the id, else that of the alias.
    fn called(&self, provider: Option<&str>, name: &str) -> Option<&ModelInfo> {
        let by_id = self.entries_of(provider).find(|entry| entry.id() == name);
        by_id.or_else(|| self.entries_of(provider).find(|entry| entry.is_called(name))).map(Entry::model)
    }

    /// The first model of a provider that can do this.
    #[must_use]
    pub fn latest(&self, provider: &str, capability: Option<Capability>) -> Option<&ModelInfo> {
        self.list(Some(provider)).find(|model| capability.is_none_or(|wanted| model.supports(wanted)))
    }
}

/// The shipped entry of this id or alias.
#[must_use]
pub fn get_model_info(model_id: &str) -> Option<&'static ModelInfo> {
    Catalog::built_in().get(model_id)
}

/// The shipped entries, or those of one provider.
pub fn list_models(provider: Option<&str>) -> impl Iterator<Item = &'static ModelInfo> {
    Catalog::built_in().list(provider)
}

/// The first shipped model of a provider that can do this.
#[must_use]
pub fn get_latest_model(provider: &str, capability: Option<Capability>) -> Option<&'static ModelInfo> {
    Catalog::built_in().latest(provider, capability)
}

#[cfg(test)]
mod tests;
