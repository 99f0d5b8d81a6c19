//! Violations that a checker reports.

use std::fmt;

/// A rule of the provider that a request violates.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// Kind of error that the provider responds with.
    pub kind: ViolationKind,
    /// The field in the provider's notation, such as `input[2].call_id` or `messages.2.content.0`, or a header, or `path`.
    pub field: String,
    /// Found and expected values.
    pub message: String,
}

/// Kind of error that a provider responds with.
#[non_exhaustive]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ViolationKind {
    /// Unknown path.
    NotFound,
    /// Method other than POST.
    Method,
    /// Missing key, or a key in a form that the provider does not accept.
    Authentication,
    /// Invalid request.
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
