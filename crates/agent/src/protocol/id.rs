//! Identifiers, as distinct types.

use std::convert::Infallible;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

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

/// Implements the lossless conversions of a type that wraps a text.
macro_rules! text_conversions {
    ($type:ident) => {
        impl From<&str> for $type {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl From<String> for $type {
            fn from(text: String) -> Self {
                Self(text)
            }
        }

        impl FromStr for $type {
            type Err = Infallible;

            fn from_str(text: &str) -> Result<Self, Infallible> {
                Ok(Self(text.to_owned()))
            }
        }
    };
}

pub(super) use text_conversions;

text_conversions!(SessionId);

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

/// Implements the conversions of a type that wraps a number.
macro_rules! number_conversions {
    ($($type:ident)+) => {
        $(
            impl fmt::Display for $type {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }

            impl FromStr for $type {
                type Err = ParseIntError;

                fn from_str(text: &str) -> Result<Self, ParseIntError> {
                    text.parse().map(Self)
                }
            }
        )+
    };
}

number_conversions!(RunId ModelCallId LoadId SegmentId);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Principal;

    #[test]
    fn texts_are_ids_without_loss() {
        for text in ["", "s-1", "ü 2"] {
            assert_eq!([SessionId::from(text), text.parse().unwrap()], [text, text].map(SessionId::new));
            assert_eq!(SessionId::from(text).to_string(), text);
            assert_eq!(Principal::from(text.to_owned()).to_string(), text);
        }
    }

    #[test]
    fn numbers_are_ids() {
        let last = u64::MAX.to_string();
        assert_eq!(last.parse(), Ok(RunId(u64::MAX)));
        assert_eq!(RunId(u64::MAX).to_string(), last);
        assert_eq!("7".parse(), Ok(ModelCallId(7)));
        assert_eq!((LoadId(0).to_string(), SegmentId(1).to_string()), ("0".to_owned(), "1".to_owned()));
        for text in ["", "-1", "x", "18446744073709551616"] {
            assert!(text.parse::<RunId>().is_err(), "{text}");
        }
    }
}
