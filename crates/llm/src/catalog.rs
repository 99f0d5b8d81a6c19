//! What is known about models (client specification, section 2.9).
//!
//! `catalog.json` was filled on 2026-11-21: windows, limits and prices from the Python packages `litellm` 1.109.1 and
//! `genai-prices` 0.2.3, knowledge cutoffs from the providers' model pages; prices are those of short prompts.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

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
    /// US dollars per million output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_cost_per_million: Option<f64>,
    /// US dollars per million input tokens that came from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_cost_per_million: Option<f64>,
    /// US dollars per million input tokens that were written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_cost_per_million: Option<f64>,
    /// Until when its training data reaches, as its maker words it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub knowledge_cutoff: Option<String>,
    /// Short names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
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

impl ModelInfo {
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

/// A list of models, best and newest first within a provider. Advisory: unknown names are passed on.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalog {
    models: Vec<ModelInfo>,
}

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(|| {
    // The file is part of the crate and a test reads it; an empty catalog is the only thing left to say otherwise.
    Catalog::from_json(include_str!("catalog.json")).unwrap_or(Catalog { models: Vec::new() })
});

impl Catalog {
    /// The models that this crate ships.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads a list of models.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] naming line and column of what does not fit.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        let models = serde_json::from_str(text).map_err(|error| {
            Error::new(
                ErrorKind::Configuration,
                format!("the model catalog is not a list of models: {error}"),
            )
            .with_source(error)
        })?;
        Ok(Self { models })
    }

    /// This catalog with the entries of `over` in the place of its own of the same id and provider; those that it
    /// does not have come first.
    #[must_use]
    pub fn overridden_by(&self, over: &Self) -> Self {
        let find = |list: &[ModelInfo], model: &ModelInfo| {
            list.iter().find(|other| other.id == model.id && other.provider == model.provider).cloned()
        };
        let added = over.models.iter().filter(|model| find(&self.models, model).is_none()).cloned();
        let kept = self.models.iter().map(|model| find(&over.models, model).unwrap_or_else(|| model.clone()));
        Self { models: added.chain(kept).collect() }
    }

    /// The model of this id or alias.
    #[must_use]
    pub fn get(&self, model_id: &str) -> Option<&ModelInfo> {
        let by_id = self.models.iter().find(|model| model.id == model_id);
        by_id.or_else(|| self.models.iter().find(|model| model.aliases.iter().any(|alias| alias == model_id)))
    }

    /// All models, or those of one provider.
    pub fn list(&self, provider: Option<&str>) -> impl Iterator<Item = &ModelInfo> {
        self.models.iter().filter(move |model| provider.is_none_or(|provider| model.provider == provider))
    }

    /// The best model of a provider that can do this.
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

/// The best shipped model of a provider that can do this.
#[must_use]
pub fn get_latest_model(provider: &str, capability: Option<Capability>) -> Option<&'static ModelInfo> {
    Catalog::built_in().latest(provider, capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_catalog_reads_and_answers() {
        let catalog =
            Catalog::from_json(include_str!("catalog.json")).expect("the shipped file fits the type");
        for (provider, best) in
            [("anthropic", "claude-opus-4-6"), ("openai", "gpt-5.2"), ("gemini", "gemini-3.1-pro-preview")]
        {
            assert_eq!(get_latest_model(provider, Some(Capability::Tools)).unwrap().id, best);
            assert!(list_models(Some(provider)).all(|model| model.provider == provider));
        }
        let mut ids: Vec<&str> = catalog.list(None).map(|model| model.id.as_str()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all, "no id twice");
        assert!(get_model_info("no-such-model").is_none());
    }

    #[test]
    fn an_override_wins_and_adds() {
        let one = |id: &str, window: u64| {
            format!(
                r#"[{{"id":"{id}","provider":"openai","display_name":"x","context_window":{window},"supports_tools":true,"supports_vision":false,"supports_reasoning":false}}]"#
            )
        };
        let base = Catalog::from_json(&one("a", 1)).unwrap();
        let both = base.overridden_by(&Catalog::from_json(&one("a", 2)).unwrap());
        assert_eq!((both.list(None).count(), both.get("a").unwrap().context_window), (1, 2));
        let both = both.overridden_by(&Catalog::from_json(&one("b", 3)).unwrap());
        assert_eq!(both.latest("openai", None).unwrap().id, "b", "what is new comes first");
        let again = both.overridden_by(&base);
        assert_eq!(again.latest("openai", None).unwrap().id, "b", "a correction changes no order");
        let error = Catalog::from_json(r#"[{"id": "a", "colour": 1}]"#).unwrap_err();
        assert!(error.message().contains("line 1"), "{error}");
    }
}
