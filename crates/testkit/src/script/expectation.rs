//! Expectations of a turn on its request.

use serde::Deserialize;

use crate::history::{History, ToolOutcome};

/// Maximum number of characters of a text quoted in a message.
const MAX_QUOTED: usize = 600;

/// A condition on the request of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawExpectation")]
#[non_exhaustive]
pub enum Expectation {
    /// The result of a call of the previous model turn.
    Result {
        /// Index of the call, from 0.
        call: usize,
        /// Text that the result must contain.
        contains: Option<String>,
        /// Text that the result must not contain.
        not_contains: Option<String>,
        /// Whether the result must be marked as an error. Not checked in the two OpenAI dialects, which cannot express it.
        is_error: Option<bool>,
    },
    /// Content of the system prompt or of any user message.
    Request {
        /// Text that one of them must contain.
        contains: String,
    },
}

impl Expectation {
    /// Expects text in the result of a call of the previous turn.
    #[must_use]
    pub fn result_contains(call: usize, text: impl Into<String>) -> Self {
        Self::Result { call, contains: Some(text.into()), not_contains: None, is_error: None }
    }

    /// Expects the result of a call of the previous turn to be, or not to be, marked as an error.
    #[must_use]
    pub fn result_is_error(call: usize, is_error: bool) -> Self {
        Self::Result { call, contains: None, not_contains: None, is_error: Some(is_error) }
    }

    /// Expects text in the system prompt or in a user message.
    #[must_use]
    pub fn request_contains(text: impl Into<String>) -> Self {
        Self::Request { contains: text.into() }
    }

    pub(super) fn call(&self) -> Option<usize> {
        match self {
            Self::Result { call, .. } => Some(*call),
            Self::Request { .. } => None,
        }
    }

    /// Checks a request; returns the problem with found and expected values, if any.
    pub(crate) fn check(&self, history: &History) -> Option<String> {
        match self {
            Self::Result { call, contains, not_contains, is_error } => {
                let Some(outcome) = history.last_outcome(*call) else {
                    return Some(format!("expected a result of call {call}, found none in the request"));
                };
                check_result(*call, outcome, contains.as_deref(), not_contains.as_deref(), *is_error)
            }
            Self::Request { contains } => {
                if history.prompts().any(|prompt| prompt.contains(contains.as_str())) {
                    return None;
                }
                let found: Vec<&str> = history.prompts().collect();
                Some(format!(
                    "expected the system prompt or a user message to contain {contains:?}, found {}",
                    quote(&found.join("\n"))
                ))
            }
        }
    }
}

fn check_result(
    call: usize,
    outcome: &ToolOutcome,
    contains: Option<&str>,
    not_contains: Option<&str>,
    is_error: Option<bool>,
) -> Option<String> {
    let found = || quote(&outcome.text);
    if let Some(text) = contains.filter(|text| !outcome.text.contains(text)) {
        return Some(format!("expected the result of call {call} to contain {text:?}, found {}", found()));
    }
    if let Some(text) = not_contains.filter(|text| outcome.text.contains(text)) {
        return Some(format!(
            "expected the result of call {call} not to contain {text:?}, found {}",
            found()
        ));
    }
    match (is_error, outcome.is_error) {
        (Some(true), Some(false)) => {
            Some(format!("expected the result of call {call} to be an error, found success: {}", found()))
        }
        (Some(false), Some(true)) => {
            Some(format!("expected the result of call {call} to be a success, found an error: {}", found()))
        }
        (None | Some(_), None | Some(_)) => None,
    }
}

fn quote(text: &str) -> String {
    let total = text.chars().count();
    if total <= MAX_QUOTED {
        return format!("{text:?}");
    }
    let head: String = text.chars().take(MAX_QUOTED / 2).collect();
    let tail: String = text.chars().skip(total - MAX_QUOTED / 2).collect();
    format!("{head:?} … {tail:?} ({total} characters)")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpectation {
    call: Option<usize>,
    contains: Option<String>,
    not_contains: Option<String>,
    is_error: Option<bool>,
    request_contains: Option<String>,
}

impl TryFrom<RawExpectation> for Expectation {
    type Error = String;

    fn try_from(raw: RawExpectation) -> Result<Self, String> {
        let checks_result = raw.contains.is_some() || raw.not_contains.is_some() || raw.is_error.is_some();
        match (raw.call, checks_result, raw.request_contains) {
            (Some(call), true, None) => Ok(Self::Result {
                call,
                contains: raw.contains,
                not_contains: raw.not_contains,
                is_error: raw.is_error,
            }),
            (None, false, Some(contains)) => Ok(Self::Request { contains }),
            _ => Err("expectation checks nothing or too much; expected either `call` with contains, not_contains or \
                      is_error, or request_contains alone"
                .to_owned()),
        }
    }
}
