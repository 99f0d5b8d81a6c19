//! The four kinds of provider: what each is called, needs and offers.

use clap::ValueEnum;
use pintle_agent::ProviderProfile;
use pintle_testkit::Dialect;

/// A provider, which is also a wire dialect and a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Provider {
    /// OpenAI through the Responses API.
    #[value(name = "openai")]
    OpenAi,
    /// Anthropic through the Messages API.
    #[value(name = "anthropic")]
    Anthropic,
    /// The Gemini API.
    #[value(name = "gemini")]
    Gemini,
    /// A server that imitates OpenAI's Chat Completions.
    #[value(name = "openai-compatible")]
    OpenAiCompatible,
}

/// The environment variables of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variables {
    /// The first that is set holds the key.
    pub(crate) keys: &'static [&'static str],
    /// Where the API is.
    pub(crate) base_url: &'static str,
}

impl Provider {
    /// Those that are chosen by their key, in this order.
    pub(crate) const BY_KEY: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    /// The name, the same everywhere.
    pub(crate) fn name(self) -> &'static str {
        self.dialect().name()
    }

    /// The variables that official SDKs read, too.
    pub(crate) fn variables(self) -> Variables {
        match self {
            Self::OpenAi | Self::OpenAiCompatible => {
                Variables { keys: &["OPENAI_API_KEY"], base_url: "OPENAI_BASE_URL" }
            }
            Self::Anthropic => Variables { keys: &["ANTHROPIC_API_KEY"], base_url: "ANTHROPIC_BASE_URL" },
            Self::Gemini => {
                Variables { keys: &["GEMINI_API_KEY", "GOOGLE_API_KEY"], base_url: "GEMINI_BASE_URL" }
            }
        }
    }

    /// The best model of the catalog; none for a server whose models nobody knows.
    pub(crate) fn default_model(self) -> Option<&'static str> {
        ProviderProfile::default_model(self.name())
    }

    /// Prompt, tools and limits for a model.
    pub(crate) fn profile(self, model: &str) -> ProviderProfile {
        match self {
            Self::OpenAi => ProviderProfile::openai(model),
            Self::Anthropic => ProviderProfile::anthropic(model),
            Self::Gemini => ProviderProfile::gemini(model),
            Self::OpenAiCompatible => ProviderProfile::openai_compatible(model),
        }
    }

    /// The wire dialect of the scripted server.
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::OpenAi => Dialect::OpenAiResponses,
            Self::Anthropic => Dialect::AnthropicMessages,
            Self::Gemini => Dialect::Gemini,
            Self::OpenAiCompatible => Dialect::ChatCompletions,
        }
    }

    /// The provider of a wire dialect.
    pub(crate) fn of_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::OpenAiResponses => Self::OpenAi,
            Dialect::AnthropicMessages => Self::Anthropic,
            Dialect::Gemini => Self::Gemini,
            Dialect::ChatCompletions => Self::OpenAiCompatible,
        }
    }

    /// The first whose key is set.
    pub(crate) fn by_key(lookup: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Self::BY_KEY
            .into_iter()
            .find(|provider| provider.variables().keys.iter().any(|name| lookup(name).is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_everywhere() {
        for provider in Provider::value_variants() {
            assert_eq!(Provider::of_dialect(provider.dialect()), *provider);
            assert_eq!(provider.to_possible_value().unwrap().get_name(), provider.name());
            let profile = provider.profile("m");
            assert_eq!((profile.id.as_str(), profile.provider.as_str()), (provider.name(), provider.name()));
        }
    }
}
