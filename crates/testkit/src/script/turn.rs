//! Model turns.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;

use super::{Call, Expectation, Failure, TurnVariant};
use crate::dialect::Dialect;
use crate::history::History;

/// Maximum pause between two pieces of a response.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// One model turn, with conditions on its request.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Turn {
    /// Dialects of this turn; all four if absent.
    #[serde(default)]
    pub only: Option<Vec<Dialect>>,
    /// Reasoning, streamed first and sealed with an opaque value that the client must return.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// Visible text, streamed in several pieces.
    #[serde(default)]
    pub text: Option<String>,
    /// Pause between two pieces in milliseconds; 0 by default, at most 60,000.
    #[serde(default)]
    pub pause_ms: u64,
    /// Finish reason; by default `stop`, or the dialect's reason for tool calls if there are any.
    #[serde(default)]
    pub finish: Option<Finish>,
    /// Tool calls. Several are parallel calls of one turn.
    #[serde(default, rename = "call")]
    pub calls: Vec<Call>,
    /// Conditions on the request of this turn.
    #[serde(default, rename = "expect")]
    pub expectations: Vec<Expectation>,
    /// Failures before the turn, in order, one per attempt of a conversation.
    #[serde(default, rename = "failure")]
    pub failures: Vec<Failure>,
    /// Other contents, for requests with certain texts. The first one that applies replaces text and calls.
    #[serde(default, rename = "when")]
    pub variants: Vec<TurnVariant>,
}

/// Finish reason of a turn.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model has finished.
    Stop,
    /// The output limit was reached.
    Length,
    /// A filter stopped the response.
    ContentFilter,
}

impl Turn {
    /// Creates an empty turn.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a turn with a text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Sets the reasoning.
    #[must_use]
    pub fn with_reasoning(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = Some(reasoning.into());
        self
    }

    /// Adds a tool call.
    #[must_use]
    pub fn with_call(mut self, call: Call) -> Self {
        self.calls.push(call);
        self
    }

    /// Adds a condition on the request of this turn.
    #[must_use]
    pub fn with_expectation(mut self, expectation: Expectation) -> Self {
        self.expectations.push(expectation);
        self
    }

    /// Adds a failure before the turn.
    #[must_use]
    pub fn with_failure(mut self, failure: Failure) -> Self {
        self.failures.push(failure);
        self
    }

    /// Sets the finish reason.
    #[must_use]
    pub fn with_finish(mut self, finish: Finish) -> Self {
        self.finish = Some(finish);
        self
    }

    /// Restricts the turn to some dialects.
    #[must_use]
    pub fn with_only(mut self, dialects: impl Into<Vec<Dialect>>) -> Self {
        self.only = Some(dialects.into());
        self
    }

    /// Sets the pause between two pieces of the response.
    #[must_use]
    pub fn with_pause_ms(mut self, pause_ms: u64) -> Self {
        self.pause_ms = pause_ms;
        self
    }

    /// Adds another content for requests with certain texts.
    #[must_use]
    pub fn with_variant(mut self, variant: TurnVariant) -> Self {
        self.variants.push(variant);
        self
    }

    /// Returns the turn with the content for a request.
    pub(crate) fn for_request(&self, history: &History) -> Cow<'_, Self> {
        match self.variants.iter().find(|variant| variant.applies_to(history)) {
            None => Cow::Borrowed(self),
            Some(variant) => {
                let (text, calls) = (variant.text.clone(), variant.calls.clone());
                Cow::Owned(Self { text, calls, ..self.clone() })
            }
        }
    }

    /// Returns whether this turn is part of a dialect.
    #[must_use]
    pub fn is_for(&self, dialect: Dialect) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(&dialect))
    }

    pub(crate) fn pause(&self) -> Duration {
        Duration::from_millis(self.pause_ms)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.only.as_ref().is_some_and(Vec::is_empty) {
            return Err("is for no dialect: expected `only` to name at least one".to_owned());
        }
        let is_empty = self.text.as_deref().is_none_or(str::is_empty) && self.calls.is_empty();
        if is_empty && matches!(self.finish, None | Some(Finish::Stop)) {
            return Err("says nothing: expected `text`, a [[turn.call]], or `finish = \"length\"`".to_owned());
        }
        if self.pause() > MAX_PAUSE {
            return Err(format!(
                "has pause_ms = {}; expected at most {}",
                self.pause_ms,
                MAX_PAUSE.as_millis()
            ));
        }
        self.variants.iter().try_for_each(TurnVariant::validate)?;
        let freeform = self.calls.iter().find(|call| call.is_freeform());
        if let Some(call) = freeform.filter(|_| self.only.as_deref() != Some(&[Dialect::OpenAiResponses])) {
            return Err(format!(
                "calls the custom tool `{}` with `input`, which only one dialect has: expected only = [\"openai\"]",
                call.tool
            ));
        }
        Ok(())
    }
}
