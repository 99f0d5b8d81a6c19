//! JSON Schemas, and checks of values against them.
//!
//! A small validator checks the schemas that are derived from types, and most others. Its keywords are those for types, for
//! bounds of numbers, texts, arrays and objects, `enum`, `const`, `properties`, `patternProperties` for keys that are integers,
//! `required`, `additionalProperties`, `items`, `prefixItems`, `anyOf`, `oneOf`, `allOf`, `not`, and `$ref` within the schema.
//! A schema with other keywords, such as `pattern`, is checked by the crate `jsonschema`. That needs the feature `jsonschema`;
//! without it, such a schema is refused when it is compiled. No keyword is ignored silently.

mod check;
mod compile;
mod number;
#[cfg(test)]
mod tests;
mod violation;

use serde_json::Value;
use thiserror::Error;

use self::compile::SmallSchema;
pub use self::violation::{ValueType, Violation, ViolationKind};

/// The version of JSON Schema by which a schema is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Draft {
    /// Draft 7, in which keywords beside `$ref` are ignored and formats are checked.
    Draft7,
    /// Draft 2020-12, unless the schema names draft 7 in `$schema`.
    Draft202012,
}

/// A value that is not a JSON Schema, refers to another document, or needs the feature `jsonschema`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct SchemaError {
    message: String,
    needs_feature: bool,
}

/// A compiled JSON Schema.
#[derive(Debug)]
pub struct CompiledSchema {
    checker: Checker,
}

#[derive(Debug)]
enum Checker {
    Small(SmallSchema),
    #[cfg(feature = "jsonschema")]
    Foreign(Box<jsonschema::Validator>),
}

impl CompiledSchema {
    /// Compiles a schema. Documents that it refers to are never fetched.
    ///
    /// # Errors
    ///
    /// A value that is not a JSON Schema, a reference to another document or to nothing, and without the feature `jsonschema` a
    /// keyword that the small validator lacks.
    pub fn new(schema: &Value, draft: Draft) -> Result<Self, SchemaError> {
        match SmallSchema::compile(schema, draft) {
            Ok(small) => Ok(Self { checker: Checker::Small(small) }),
            Err(error) => Self::foreign(schema, draft, &error),
        }
    }

    #[cfg(feature = "jsonschema")]
    fn foreign(schema: &Value, draft: Draft, _error: &SchemaError) -> Result<Self, SchemaError> {
        let compiled = match draft {
            Draft::Draft7 => jsonschema::draft7::new(schema),
            Draft::Draft202012 => jsonschema::validator_for(schema),
        };
        match compiled {
            Ok(validator) => Ok(Self { checker: Checker::Foreign(Box::new(validator)) }),
            Err(error) => Err(SchemaError { message: error.to_string(), needs_feature: false }),
        }
    }

    #[cfg(not(feature = "jsonschema"))]
    fn foreign(_schema: &Value, _draft: Draft, error: &SchemaError) -> Result<Self, SchemaError> {
        Err(error.clone())
    }

    /// Returns the violations of the schema, at most `limit`; none for a valid value.
    #[must_use]
    pub fn violations<'v>(&'v self, value: &'v Value, limit: usize) -> Vec<Violation<'v>> {
        match &self.checker {
            Checker::Small(small) => {
                let mut violations = small.violations(value);
                violations.truncate(limit);
                violations
            }
            #[cfg(feature = "jsonschema")]
            Checker::Foreign(validator) => {
                validator.iter_errors(value).take(limit).map(violation::of_foreign).collect()
            }
        }
    }

    /// Returns whether the value has no violation.
    #[must_use]
    pub fn is_valid(&self, value: &Value) -> bool {
        match &self.checker {
            Checker::Small(small) => small.violations(value).is_empty(),
            #[cfg(feature = "jsonschema")]
            Checker::Foreign(validator) => validator.is_valid(value),
        }
    }
}

impl SchemaError {
    /// Returns whether the schema can be checked with the feature `jsonschema` only.
    #[must_use]
    pub fn needs_feature(&self) -> bool {
        self.needs_feature
    }

    /// Creates the error of a malformed part of the schema, at a JSON pointer.
    fn malformed(location: &str, expected: &str) -> Self {
        let location = if location.is_empty() { "the root" } else { location };
        Self { message: format!("expected {expected} at {location}"), needs_feature: false }
    }

    /// Creates the error of a keyword that the small validator lacks.
    fn unsupported(location: &str) -> Self {
        Self {
            message: format!(
                "{location} is a keyword of JSON Schema that is checked only with the feature `jsonschema` of pintle, pintle-tools \
                 or pintle-llm"
            ),
            needs_feature: true,
        }
    }
}
