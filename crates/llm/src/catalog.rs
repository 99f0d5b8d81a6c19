//! Model catalog (client specification, section 2.9).
//!
//! The data is in `catalog/models.json`; `catalog/README.md` describes format and sources.

mod cost;
mod entry;
mod file;
mod index;
mod overlay;
mod quirks;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use self::entry::CatalogEntry;
use self::index::MODELS;
pub use self::quirks::{CallIds, OutputLimit, ReasoningContent, ServerQuirks};
use crate::error::Error;

/// Data about one model. Unknown values are `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider's identifier for the model.
    pub id: String,
    /// Provider that serves the model.
    pub provider: String,
    /// Display name.
    pub display_name: String,
    /// Limit on input and output together, in tokens.
    pub context_window: u64,
    /// Limit on the output tokens of one response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
    /// The model calls tools.
    pub supports_tools: bool,
    /// The model accepts images.
    pub supports_vision: bool,
    /// The model reasons before it responds.
    pub supports_reasoning: bool,
    /// Reasoning is controlled by an effort level rather than by a token budget (Anthropic).
    #[serde(default)]
    pub supports_effort: bool,
    /// US dollars per million input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_cost_per_million: Option<f64>,
    /// US dollars per million output tokens, including reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_cost_per_million: Option<f64>,
    /// US dollars per million input tokens read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_cost_per_million: Option<f64>,
    /// US dollars per million input tokens written to a cache, for the shortest lifetime offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_cost_per_million: Option<f64>,
    /// Prices for long prompts, in ascending order of prompt length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_tiers: Vec<PriceTier>,
    /// End of the training data, in the words of the vendor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// Date after which the vendor no longer guarantees to serve the model, as `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires_on: Option<String>,
    /// Short names, and dated names of the same model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Sources of the data.
    #[serde(default)]
    pub sources: ModelSources,
}

/// Prices of calls with a long prompt, in US dollars per million tokens. They apply to the whole call; a missing price is
/// unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PriceTier {
    /// Applies to calls with more input tokens than this, including cached tokens.
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

/// Sources of a model's data: a page of the provider, or a package and its version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ModelSources {
    /// Source of the context window and the output limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// Source of the capabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<String>,
    /// Source of all prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<String>,
    /// Source of the knowledge cutoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// Source of the retirement date.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retires_on: Option<String>,
}

/// Capability of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Capability {
    /// Calls tools.
    Tools,
    /// Accepts images.
    Vision,
    /// Reasons before it responds.
    Reasoning,
}

/// List of models. The recommended model of a provider comes first, older ones last. Advisory: a client passes unknown
/// names on.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    entries: Vec<CatalogEntry>,
}

const SHIPPED: &str = include_str!("../catalog/models.json");

static BUILT_IN: LazyLock<Catalog> =
    LazyLock::new(|| Catalog { entries: MODELS.iter().map(CatalogEntry::from).collect() });

impl ModelInfo {
    /// Creates a model without capabilities and with unknown prices.
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

    /// Returns `true` if the model has this capability.
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
    /// Returns the catalog that is built into this crate.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Parses a list of models, in the format of `catalog/README.md`, without the built-in catalog.
    ///
    /// # Errors
    ///
    /// Those of [`merged_with`](Self::merged_with).
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self { entries: Vec::new() }.merged_with(text)
    }

    /// Returns the model with this id or alias.
    #[must_use]
    pub fn get(&self, model_id: &str) -> Option<&ModelInfo> {
        self.lookup(None, model_id)
    }

    /// Returns the model of this provider with this id or alias.
    #[must_use]
    pub fn find(&self, provider: &str, model_id: &str) -> Option<&ModelInfo> {
        self.lookup(Some(provider), model_id)
    }

    /// Lists all models, or the entries of one provider.
    pub fn list(&self, provider: Option<&str>) -> impl Iterator<Item = &ModelInfo> {
        self.entries_of(provider).map(CatalogEntry::model)
    }

    fn entries_of(&self, provider: Option<&str>) -> impl Iterator<Item = &CatalogEntry> {
        self.entries.iter().filter(move |entry| provider.is_none_or(|provider| entry.provider() == provider))
    }

    /// Searches by id, then by alias.
    fn lookup(&self, provider: Option<&str>, name: &str) -> Option<&ModelInfo> {
        let by_id = self.entries_of(provider).find(|entry| entry.id() == name);
        by_id
            .or_else(|| self.entries_of(provider).find(|entry| entry.is_named(name)))
            .map(CatalogEntry::model)
    }

    /// Returns the first model of a provider with this capability.
    #[must_use]
    pub fn latest(&self, provider: &str, capability: Option<Capability>) -> Option<&ModelInfo> {
        self.list(Some(provider)).find(|model| capability.is_none_or(|wanted| model.supports(wanted)))
    }
}

/// Returns the built-in entry with this id or alias.
#[must_use]
pub fn get_model_info(model_id: &str) -> Option<&'static ModelInfo> {
    Catalog::built_in().get(model_id)
}

/// Lists the built-in entries, or the entries of one provider.
pub fn list_models(provider: Option<&str>) -> impl Iterator<Item = &'static ModelInfo> {
    Catalog::built_in().list(provider)
}

/// Returns the first built-in model of a provider with this capability.
#[must_use]
pub fn get_latest_model(provider: &str, capability: Option<Capability>) -> Option<&'static ModelInfo> {
    Catalog::built_in().latest(provider, capability)
}

#[cfg(test)]
mod tests;
