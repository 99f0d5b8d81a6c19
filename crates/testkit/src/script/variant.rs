//! Contents of a turn that depend on its request.

use serde::Deserialize;

use super::Call;
use crate::history::History;

/// Content of a turn for requests with certain texts, such as the messages of one of several sessions.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TurnVariant {
    /// Texts, each of which the system prompt or a user message must contain.
    pub request_contains: Vec<String>,
    /// Visible text.
    #[serde(default)]
    pub text: Option<String>,
    /// Tool calls.
    #[serde(default, rename = "call")]
    pub calls: Vec<Call>,
}

impl TurnVariant {
    /// Creates a variant with a text.
    #[must_use]
    pub fn text(request_contains: impl Into<Vec<String>>, text: impl Into<String>) -> Self {
        Self { request_contains: request_contains.into(), text: Some(text.into()), calls: Vec::new() }
    }

    pub(super) fn applies_to(&self, history: &History) -> bool {
        let is_contained = |text: &String| history.prompts().any(|prompt| prompt.contains(text.as_str()));
        self.request_contains.iter().all(is_contained)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.request_contains.is_empty() || self.request_contains.iter().any(String::is_empty) {
            return Err("has a variant for each request: expected texts in `request_contains`".to_owned());
        }
        if self.text.as_deref().is_none_or(str::is_empty) && self.calls.is_empty() {
            return Err("has a variant without content: expected `text` or a call".to_owned());
        }
        match self.calls.iter().find(|call| call.is_freeform()) {
            Some(call) => {
                Err(format!("has a variant that calls `{}` with `input`: expected arguments", call.tool))
            }
            None => Ok(()),
        }
    }
}
