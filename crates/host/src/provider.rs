//! Supported providers with their names, variables and defaults.

use std::str::FromStr;

use pintle_agent::ProviderProfile;
use pintle_llm::Catalog;

use crate::named_value::{self, NamedValue};

/// Provider, with its own wire dialect and profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// OpenAI, Responses API.
    OpenAi,
    /// Anthropic, Messages API.
    Anthropic,
    /// Google Gemini API.
    Gemini,
    /// Any server compatible with OpenAI's Chat Completions API.
    OpenAiCompatible,
}

/// Source of responses that the user can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderName {
    /// An API provider.
    Of(Provider),
    /// A script served in this process.
    Scripted,
}

/// Environment variables of a provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderVariables {
    /// Variables that may hold the key, in order of precedence.
    pub keys: &'static [&'static str],
    /// Variable with the base URL.
    pub base_url: &'static str,
}

impl Provider {
    /// All providers, in the order of help texts.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::OpenAiCompatible];

    /// Names of all providers, in the same order.
    pub const NAMES: &'static [&'static str] =
        &[Self::OpenAi.name(), Self::Anthropic.name(), Self::Gemini.name(), Self::OpenAiCompatible.name()];

    /// Providers selected by the presence of a key, in this order.
    pub const BY_KEY: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// Returns the name used in flags, profiles and the catalog.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAiCompatible => "openai-compatible",
        }
    }

    /// Returns the variables, which the official SDKs read as well.
    pub fn variables(self) -> ProviderVariables {
        match self {
            Self::OpenAi | Self::OpenAiCompatible => {
                ProviderVariables { keys: &["OPENAI_API_KEY"], base_url: "OPENAI_BASE_URL" }
            }
            Self::Anthropic => {
                ProviderVariables { keys: &["ANTHROPIC_API_KEY"], base_url: "ANTHROPIC_BASE_URL" }
            }
            Self::Gemini => {
                ProviderVariables { keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"], base_url: "GEMINI_BASE_URL" }
            }
        }
    }

    /// Returns the providers that serve a model according to the catalog. The list is empty for a model that the catalog does
    /// not contain.
    pub fn serving(model: &str, catalog: &Catalog) -> Vec<Self> {
        Self::ALL.into_iter().filter(|provider| catalog.find(provider.name(), model).is_some()).collect()
    }

    /// Returns whether this provider may serve a model that these providers serve according to the catalog. Models that
    /// the catalog does not contain stay with any provider, and compatible servers serve models of any name.
    pub(crate) fn may_serve(self, serving: &[Self]) -> bool {
        self == Self::OpenAiCompatible || serving.is_empty() || serving.contains(&self)
    }

    /// Returns the best model of the catalog, or `None` for compatible servers.
    pub fn default_model(self) -> Option<&'static str> {
        ProviderProfile::default_model(self.name())
    }

    /// Returns the profile for a model.
    pub fn profile(self, model: &str) -> ProviderProfile {
        match self {
            Self::OpenAi => ProviderProfile::openai(model),
            Self::Anthropic => ProviderProfile::anthropic(model),
            Self::Gemini => ProviderProfile::gemini(model),
            Self::OpenAiCompatible => ProviderProfile::openai_compatible(model),
        }
    }

    /// Returns the first provider whose key is set.
    pub(crate) fn first_with_key(lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Self::BY_KEY
            .into_iter()
            .find(|provider| provider.variables().keys.iter().any(|name| lookup(name).is_some()))
    }
}

impl NamedValue for Provider {
    const VALUES: &'static [Self] = &Self::ALL;

    fn value_name(self) -> &'static str {
        self.name()
    }

    fn meaning(self) -> Option<&'static str> {
        Some(match self {
            Self::OpenAi => "OpenAI, Responses API",
            Self::Anthropic => "Anthropic, Messages API",
            Self::Gemini => "Google Gemini API",
            Self::OpenAiCompatible => "Any server compatible with OpenAI's Chat Completions API",
        })
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named_value::parse(text)
    }
}

impl NamedValue for ProviderName {
    const VALUES: &'static [Self] = &[
        Self::Of(Provider::OpenAi),
        Self::Of(Provider::Anthropic),
        Self::Of(Provider::Gemini),
        Self::Of(Provider::OpenAiCompatible),
        Self::Scripted,
    ];

    fn value_name(self) -> &'static str {
        match self {
            Self::Of(provider) => provider.name(),
            Self::Scripted => "scripted",
        }
    }

    fn meaning(self) -> Option<&'static str> {
        match self {
            Self::Of(provider) => provider.meaning(),
            Self::Scripted => Some("A script served in this process"),
        }
    }
}

impl FromStr for ProviderName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named_value::parse(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_names_are_consistent() {
        for provider in Provider::ALL {
            let profile = provider.profile("m");
            assert_eq!((profile.id.as_str(), profile.provider.as_str()), (provider.name(), provider.name()));
        }
    }

    #[test]
    fn catalog_names_the_providers_of_a_model() {
        let catalog = Catalog::built_in();
        let cases: [(&str, &[Provider]); 5] = [
            ("claude-opus-4-6", &[Provider::Anthropic]),
            ("opus", &[Provider::Anthropic]),
            ("gpt-5.2", &[Provider::OpenAi]),
            ("gemini-2.5-pro", &[Provider::Gemini]),
            ("claude-of-tomorrow", &[]),
        ];
        for (model, expected) in cases {
            assert_eq!(Provider::serving(model, catalog), expected, "{model}");
        }
    }
}
