//! Identifiers, as distinct types.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Id of a session: a UUID of version 7 unless the embedding application chose another text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Generates a new id.
    #[must_use]
    pub fn generate() -> Self {
        Self(uuid::Uuid::now_v7().to_string())
    }

    /// Creates an id from any text.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Number of a run, which is a submitted input with all its consequences. Counts up within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub u64);

/// Number of a model call. Counts up within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ModelCallId(pub u64);

/// Number of a load of the [context](super::TurnContext). Counts up within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoadId(pub u64);

/// Key of a tool call: the model call that requested it and its index in the response.
///
/// The model's own ids are not keys, since a model may use an id twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallKey {
    /// The model call.
    pub model_call: ModelCallId,
    /// Index among the calls of the response, from 0.
    pub index: usize,
}

/// Number of a streamed segment of a response: text, reasoning, or the arguments of a call. Counts up within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SegmentId(pub u64);
