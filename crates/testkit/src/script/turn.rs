//! One answer of the model.

use std::time::Duration;

use serde::Deserialize;

use super::{Call, Expectation, Failure};
use crate::dialect::Dialect;

/// The longest pause between two pieces of an answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// One model turn: what is said, and what must be true of the request that asks for it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Turn {
    /// The dialects that this turn is for; all four when absent.
    #[serde(default)]
    pub only: Option<Vec<Dialect>>,
    /// Reasoning, streamed before everything else, sealed with an opaque value that the client must send back.
    #[serde(default)]
    pub reasoning: Option<String>,
    /// The visible text, streamed in several pieces.
    #[serde(default)]
    pub text: Option<String>,
    /// Pause between two pieces in milliseconds; none by default, 60,000 at most.
    #[serde(default)]
    pub pause_ms: u64,
    /// Why the answer ends; by default `stop`, or the dialect's word for tool calls when there are some.
    #[serde(default)]
    pub finish: Option<Finish>,
    /// Tool calls; several are parallel calls of one turn.
    #[serde(default, rename = "call")]
    pub calls: Vec<Call>,
    /// Conditions on the request that asks for this turn.
    #[serde(default, rename = "expect")]
    pub expectations: Vec<Expectation>,
    /// Failures given first, in order, one per attempt of a conversation.
    #[serde(default, rename = "failure")]
    pub failures: Vec<Failure>,
}

/// Why a turn ends, where a script wants to say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model is done.
    Stop,
    /// The output limit cut the answer.
    Length,
    /// A filter stopped the answer.
    ContentFilter,
}

impl Turn {
    /// A turn that says nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A turn that says a text and ends.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Puts reasoning in front.
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

    /// Adds a condition on the request that asks for this turn.
    #[must_use]
    pub fn with_expectation(mut self, expectation: Expectation) -> Self {
        self.expectations.push(expectation);
        self
    }

    /// Adds a failure that comes before the turn itself.
    #[must_use]
    pub fn with_failure(mut self, failure: Failure) -> Self {
        self.failures.push(failure);
        self
    }

    /// Overrides why the turn ends.
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

    /// Pauses between two pieces of the answer.
    #[must_use]
    pub fn with_pause_ms(mut self, pause_ms: u64) -> Self {
        self.pause_ms = pause_ms;
        self
    }

    /// Whether this turn is given in a dialect.
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
        let silent = self.text.as_deref().is_none_or(str::is_empty) && self.calls.is_empty();
        if silent && matches!(self.finish, None | Some(Finish::Stop)) {
            return Err("says nothing: expected `text`, a [[turn.call]], or `finish = \"length\"`".to_owned());
        }
        if self.pause() > LONGEST_PAUSE {
            return Err(format!(
                "has pause_ms = {}; expected at most {}",
                self.pause_ms,
                LONGEST_PAUSE.as_millis()
            ));
        }
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
