//! What a checker finds wrong with a request.

use std::fmt;

/// A way in which a request is not what its provider accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// What kind of answer the provider gives to it.
    pub kind: ViolationKind,
    /// The field, in the provider's notation: `input[2].call_id`, `messages.2.content.0`; a header or `path` else.
    pub field: String,
    /// What was found and what was expected.
    pub message: String,
}

/// What kind of answer a provider gives to a violation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// The path is none of the dialect's.
    NotFound,
    /// The method is not POST.
    Method,
    /// No key, or a key in a form that the provider does not read.
    Authentication,
    /// The request is not well formed.
    Invalid,
}

impl Violation {
    pub(crate) fn new(kind: ViolationKind, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind, field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return formatter.write_str(&self.message);
        }
        write!(formatter, "{}: {}", self.field, self.message)
    }
}
