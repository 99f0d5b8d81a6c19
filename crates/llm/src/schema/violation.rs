//! Violations of a schema.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

/// A type of JSON values, as schemas name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ValueType {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// A text.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

/// One violation of a schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation<'v> {
    pub(super) path: String,
    pub(super) schema_path: String,
    pub(super) value: Cow<'v, Value>,
    pub(super) kind: ViolationKind,
    /// The message up to the value, and its rest after the value. Without a rest, the message does not mention the value.
    pub(super) before: String,
    pub(super) after: Option<String>,
}

/// Kind of a violation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ViolationKind {
    /// An object lacks this property.
    Required {
        /// The name of the property.
        property: String,
    },
    /// An object has properties that the schema excludes.
    Unexpected {
        /// The names of the properties.
        properties: Vec<String>,
    },
    /// The value has another type.
    Type {
        /// The types that are allowed.
        expected: Vec<ValueType>,
    },
    /// The value is not in a list.
    Enum {
        /// The list.
        options: Value,
    },
    /// Anything else, which only the message describes.
    Other,
}

impl ValueType {
    pub(super) const ALL: [Self; 7] =
        [Self::Null, Self::Boolean, Self::Integer, Self::Number, Self::String, Self::Array, Self::Object];

    /// Returns the name of the type in a schema.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "boolean",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Violation<'_> {
    /// Returns the position of the value, as a JSON pointer.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the position of the violated keyword in the schema, as a JSON pointer.
    #[must_use]
    pub fn schema_path(&self) -> &str {
        &self.schema_path
    }

    /// Returns the value that violates the schema.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Returns the kind of the violation.
    #[must_use]
    pub fn kind(&self) -> &ViolationKind {
        &self.kind
    }

    /// Returns the message with another text in place of the value, which may be long.
    #[must_use]
    pub fn message_with(&self, value: &str) -> String {
        match &self.after {
            Some(after) => format!("{}{value}{after}", self.before),
            None => self.before.clone(),
        }
    }
}

/// The message, with the value.
impl fmt::Display for Violation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.after {
            Some(after) => write!(f, "{}{}{after}", self.before, self.value),
            None => f.write_str(&self.before),
        }
    }
}

/// Returns the message about properties that the schema excludes.
pub(super) fn unexpected(properties: &[String]) -> String {
    let names: Vec<String> = properties.iter().map(|name| format!("'{name}'")).collect();
    let verb = if properties.len() == 1 { "was" } else { "were" };
    format!("Additional properties are not allowed ({} {verb} unexpected)", names.join(", "))
}

/// Converts an error of the crate for all schemas.
#[cfg(feature = "jsonschema")]
pub(super) fn of_foreign(error: jsonschema::ValidationError<'_>) -> Violation<'_> {
    /// Stands for the value in a message. Values and names that a message quotes as JSON have it escaped.
    const PLACEHOLDER: &str = "\u{0}";
    let kind = foreign_kind(error.kind());
    let (before, after) = match &kind {
        ViolationKind::Unexpected { properties } => (unexpected(properties), None),
        ViolationKind::Required { .. }
        | ViolationKind::Type { .. }
        | ViolationKind::Enum { .. }
        | ViolationKind::Other => {
            let message = error.masked_with(PLACEHOLDER).to_string();
            match message.split_once(PLACEHOLDER) {
                Some((before, after)) => (before.to_owned(), Some(after.to_owned())),
                None => (message, None),
            }
        }
    };
    let path = error.instance_path().as_str().to_owned();
    let schema_path = error.schema_path().as_str().to_owned();
    let value = error.into_parts().instance;
    Violation { path, schema_path, value, kind, before, after }
}

#[cfg(feature = "jsonschema")]
fn foreign_kind(kind: &jsonschema::error::ValidationErrorKind) -> ViolationKind {
    use jsonschema::error::{TypeKind, ValidationErrorKind};

    let named = |name: &str| ValueType::ALL.into_iter().find(|known| known.name() == name);
    #[expect(clippy::wildcard_enum_match_arm, reason = "the message describes the others")]
    match kind {
        ValidationErrorKind::Required { property } => {
            ViolationKind::Required { property: property.as_str().unwrap_or_default().to_owned() }
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            ViolationKind::Unexpected { properties: unexpected.clone() }
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => {
            ViolationKind::Type { expected: named(kind.as_str()).into_iter().collect() }
        }
        ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
            ViolationKind::Type { expected: kinds.iter().filter_map(|kind| named(kind.as_str())).collect() }
        }
        ValidationErrorKind::Enum { options } => ViolationKind::Enum { options: Value::clone(options) },
        _ => ViolationKind::Other,
    }
}
