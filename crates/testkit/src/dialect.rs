//! The four wire dialects, their names and their paths.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A wire dialect that the scripted server speaks.
///
/// All four share one listener and are distinguished by the request path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Dialect {
    /// OpenAI's Responses API: `POST /v1/responses`.
    #[serde(rename = "openai")]
    OpenAiResponses,
    /// Anthropic's Messages API: `POST /v1/messages`.
    #[serde(rename = "anthropic")]
    AnthropicMessages,
    /// The Gemini API: `POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent?alt=sse`,
    /// also under `/v1`.
    #[serde(rename = "gemini")]
    Gemini,
    /// Chat Completions as OpenAI-compatible servers speak it: `POST /v1/chat/completions`.
    #[serde(rename = "openai-compatible")]
    ChatCompletions,
}

impl Dialect {
    /// Every dialect, in the order in which the documentation names them.
    pub const ALL: [Self; 4] =
        [Self::OpenAiResponses, Self::AnthropicMessages, Self::Gemini, Self::ChatCompletions];

    /// Returns the name used in scripts: `openai`, `anthropic`, `gemini` or `openai-compatible`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenAiResponses => "openai",
            Self::AnthropicMessages => "anthropic",
            Self::Gemini => "gemini",
            Self::ChatCompletions => "openai-compatible",
        }
    }

    /// Returns the dialect of a request path. A query is ignored.
    ///
    /// ```
    /// use pintle_testkit::Dialect;
    ///
    /// assert_eq!(Dialect::of_path("/v1/messages?beta=true"), Some(Dialect::AnthropicMessages));
    /// assert_eq!(Dialect::of_path("/v1/unknown"), None);
    /// ```
    #[must_use]
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or(path);
        match path {
            "/v1/responses" => Some(Self::OpenAiResponses),
            "/v1/messages" => Some(Self::AnthropicMessages),
            "/v1/chat/completions" => Some(Self::ChatCompletions),
            _ => gemini_target(path).map(|_| Self::Gemini),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Error for an unknown dialect name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown dialect `{found}`; expected openai, anthropic, gemini or openai-compatible")]
pub struct UnknownDialect {
    /// The unknown name.
    pub found: String,
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|dialect| dialect.name() == name)
            .ok_or_else(|| UnknownDialect { found: name.to_owned() })
    }
}

/// Parses the model and whether a stream is requested from a Gemini path without query.
pub(crate) fn gemini_target(path: &str) -> Option<(&str, bool)> {
    // The newest official package uses v1, others use v1beta; the API has both.
    let target = path.strip_prefix("/v1beta/models/").or_else(|| path.strip_prefix("/v1/models/"))?;
    let (model, method) = target.split_once(':')?;
    if model.is_empty() || model.contains('/') {
        return None;
    }
    match method {
        "generateContent" => Some((model, false)),
        "streamGenerateContent" => Some((model, true)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        for dialect in Dialect::ALL {
            assert_eq!(dialect.name().parse(), Ok(dialect));
        }
        assert_eq!(
            "claude".parse::<Dialect>().unwrap_err().to_string(),
            "unknown dialect `claude`; expected openai, anthropic, gemini or openai-compatible"
        );
    }

    #[test]
    fn paths_determine_the_dialect() {
        let cases = [
            ("/v1/responses", Some(Dialect::OpenAiResponses)),
            ("/v1/messages", Some(Dialect::AnthropicMessages)),
            ("/v1/chat/completions", Some(Dialect::ChatCompletions)),
            ("/v1beta/models/gemini-3-pro:generateContent", Some(Dialect::Gemini)),
            ("/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", Some(Dialect::Gemini)),
            ("/v1/models/gemini-3-pro:generateContent", Some(Dialect::Gemini)),
            ("/v1beta/models/gemini-3-pro:countTokens", None),
            ("/v1beta/models/:generateContent", None),
            ("/responses", None),
            ("/v1/responses/", None),
        ];
        for (path, expected) in cases {
            assert_eq!(Dialect::of_path(path), expected, "{path}");
        }
    }
}
