//! Model families with a built-in profile.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{ProviderProfile, anthropic, compatible, gemini, openai};
use crate::protocol::TokenBounds;

/// Model family with a built-in profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ModelFamily {
    /// OpenAI's models.
    #[serde(rename = "openai")]
    OpenAi,
    /// Claude.
    #[serde(rename = "anthropic")]
    Anthropic,
    /// Gemini.
    #[serde(rename = "gemini")]
    Gemini,
    /// Local and other models behind Chat Completions.
    #[serde(rename = "openai-compatible")]
    OpenAiCompatible,
}

/// Error for a name that no built-in profile has. The message lists the known names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider `{name}`, expected one of {}", ModelFamily::ALL.map(ModelFamily::name).join(", "))]
#[non_exhaustive]
pub struct UnknownFamily {
    /// The unknown name.
    pub name: String,
}

impl ModelFamily {
    /// All families.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::OpenAiCompatible];

    /// Returns the name of the family, its profile and its provider.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => openai::ID,
            Self::Anthropic => anthropic::ID,
            Self::Gemini => gemini::ID,
            Self::OpenAiCompatible => compatible::ID,
        }
    }

    /// Returns the built-in profile for a model, with the tools of the specification.
    #[must_use]
    pub fn profile(self, model: impl Into<String>) -> ProviderProfile {
        match self {
            Self::OpenAi => ProviderProfile::openai(model),
            Self::Anthropic => ProviderProfile::anthropic(model),
            Self::Gemini => ProviderProfile::gemini(model),
            Self::OpenAiCompatible => ProviderProfile::openai_compatible(model),
        }
    }
}

impl ModelFamily {
    /// Returns the token bounds for reservations under a budget.
    pub(crate) fn token_bounds(self) -> TokenBounds {
        let mut bounds = TokenBounds::default();
        match self {
            // The lowest limit that the Responses API accepts.
            Self::OpenAi => (bounds.least_output, bounds.least_output_reasoning) = (16, 16),
            // A thinking budget has at least 1,024 tokens, and the limit is above it.
            Self::Anthropic => bounds.least_output_reasoning = 1_025,
            // The lowest effort is a thinking budget of 1,024 tokens, which count as output.
            Self::Gemini => bounds.least_output_reasoning = 1_025,
            Self::OpenAiCompatible => {}
        }
        bounds
    }
}

impl fmt::Display for ModelFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ModelFamily {
    type Err = UnknownFamily;

    fn from_str(name: &str) -> Result<Self, UnknownFamily> {
        let known = Self::ALL.into_iter().find(|family| family.name() == name);
        known.ok_or_else(|| UnknownFamily { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_parsed_from_its_name() {
        for family in ModelFamily::ALL {
            assert_eq!(family.to_string().parse(), Ok(family));
            assert_eq!(serde_json::to_value(family).unwrap(), family.name());
        }
        for other in ["OpenAI", " openai", "azure", ""] {
            assert_eq!(other.parse::<ModelFamily>(), Err(UnknownFamily { name: other.to_owned() }));
        }
    }

    #[test]
    fn a_profile_is_built_by_provider_name() {
        for family in ModelFamily::ALL {
            let profile = ProviderProfile::for_provider(family.name(), "m").unwrap();
            assert_eq!((profile.id.as_str(), profile.model.as_str()), (family.name(), "m"));
            assert_eq!(profile.tools(), family.profile("m").tools());
        }
        assert_eq!(
            ProviderProfile::for_provider("azure", "m").unwrap_err().to_string(),
            "unknown provider `azure`, expected one of openai, anthropic, gemini, openai-compatible"
        );
    }
}
