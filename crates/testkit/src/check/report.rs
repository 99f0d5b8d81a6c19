//! List of violations, and rules for fields that all dialects share.

use serde_json::{Map, Value};

use crate::dialect::Dialect;
use crate::violation::{Violation, ViolationKind};

/// Maximum number of reported violations: a large body may have millions.
const MAX_VIOLATIONS: usize = 100;

/// Kind of value that a field may have.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Text,
    Flag,
    /// A non-negative integer.
    Count,
    Number,
    Object,
    List,
    TextOrList,
    TextOrObject,
    OneOf(&'static [&'static str]),
    Any,
}

/// An optional or required field of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    name: &'static str,
    kind: Kind,
    required: bool,
    nullable: bool,
}

/// Returns a required field.
pub(super) const fn must(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true, nullable: false }
}

/// Returns an optional field.
pub(super) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false, nullable: false }
}

/// Returns an optional field that may be null even with Anthropic.
pub(super) const fn nullable(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false, nullable: true }
}

/// Violations found so far, and the path notation of the dialect.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) violations: Vec<Violation>,
    dialect: Dialect,
}

impl Report {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self { violations: Vec::new(), dialect }
    }

    pub(super) fn invalid(&mut self, field: impl Into<String>, message: impl Into<String>) {
        if self.violations.len() == MAX_VIOLATIONS {
            return;
        }
        self.violations.push(Violation::new(ViolationKind::Invalid, field, message));
    }

    /// Returns the path of an element: `messages.2` for Anthropic, `input[2]` for the others.
    pub(super) fn element_path(&self, path: &str, index: usize) -> String {
        match self.dialect {
            Dialect::AnthropicMessages => format!("{path}.{index}"),
            Dialect::OpenAiResponses | Dialect::Gemini | Dialect::ChatCompletions => {
                format!("{path}[{index}]")
            }
        }
    }

    /// Reports unknown fields, missing fields and fields of the wrong kind.
    ///
    /// An optional field may be null; with Anthropic only if its definition allows it.
    pub(super) fn fields(&mut self, path: &str, object: &Map<String, Value>, fields: &[Field]) {
        for name in object.keys() {
            if !fields.iter().any(|field| field.name == name) {
                let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
                self.invalid(
                    join(path, name),
                    format!("unknown field; expected one of {}", known.join(", ")),
                );
            }
        }
        for field in fields {
            let nullable = field.nullable || (!field.required && self.dialect != Dialect::AnthropicMessages);
            match object.get(field.name) {
                None if field.required => self.invalid(join(path, field.name), "field is required"),
                None => {}
                Some(Value::Null) if nullable => {}
                Some(value) => self.kind(&join(path, field.name), value, field.kind),
            }
        }
    }

    /// Reports a value of the wrong kind.
    pub(super) fn kind(&mut self, path: &str, value: &Value, kind: Kind) {
        let (fits, expected) = match kind {
            Kind::Text => (value.is_string(), "a string"),
            Kind::Flag => (value.is_boolean(), "a boolean"),
            Kind::Count => (value.is_u64(), "an integer of at least 0"),
            Kind::Number => (value.is_number(), "a number"),
            Kind::Object => (value.is_object(), "an object"),
            Kind::List => (value.is_array(), "a list"),
            Kind::TextOrList => (value.is_string() || value.is_array(), "a string or a list"),
            Kind::TextOrObject => (value.is_string() || value.is_object(), "a string or an object"),
            Kind::Any => (true, ""),
            Kind::OneOf(words) => {
                if !value.as_str().is_some_and(|word| words.contains(&word)) {
                    self.invalid(path, format!("found {value}, expected one of {}", words.join(", ")));
                }
                return;
            }
        };
        if !fits {
            self.invalid(path, format!("found {}, expected {expected}", kind_of(value)));
        }
    }

    /// Returns a value as an object, or reports it.
    pub(super) fn object<'a>(&mut self, path: &str, value: &'a Value) -> Option<&'a Map<String, Value>> {
        if value.as_object().is_none() {
            self.kind(path, value, Kind::Object);
        }
        value.as_object()
    }

    /// Returns the objects of a list member with their paths, and reports other elements.
    ///
    /// Returns nothing for a member that is absent or not a list; [`Report::fields`] reports that.
    pub(super) fn objects<'a>(
        &mut self,
        path: &str,
        object: &'a Map<String, Value>,
        name: &str,
    ) -> Vec<(String, &'a Map<String, Value>)> {
        let Some(Value::Array(elements)) = object.get(name) else {
            return Vec::new();
        };
        let list = join(path, name);
        let paths =
            elements.iter().enumerate().map(|(index, element)| (self.element_path(&list, index), element));
        let paths: Vec<_> = paths.collect();
        paths
            .into_iter()
            .filter_map(|(path, element)| self.object(&path, element).map(|object| (path, object)))
            .collect()
    }
}

/// Returns the path of a member.
pub(super) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns a string member, or an empty string.
pub(super) fn text<'a>(object: &'a Map<String, Value>, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the kind of a value as text.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
