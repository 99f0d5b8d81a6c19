//! Repair of arguments with obvious mistakes.
//!
//! Only arguments that the schema refuses are changed, and each repair is reported to the application. Ambiguous
//! mistakes are reported to the model instead, such as a number for a string, or two names that could mean one
//! parameter.

mod alias;

use std::fmt;

use pintle_llm::CallArguments;
use pintle_llm::schema::{CompiledSchema, ValueType, ViolationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// One repair of the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct ArgumentRepair {
    /// The path of the argument, with dots between the names; empty for the arguments as a whole.
    pub argument: String,
    /// The kind of repair.
    pub kind: RepairKind,
}

/// The kind of a repair.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairKind {
    /// A string contained the number.
    NumberFromText,
    /// A string contained `true` or `false`.
    BooleanFromText,
    /// A string contained the object or array as JSON.
    JsonFromText,
    /// An integer was written with a fraction, such as `5.0`.
    IntegerFromFraction,
    /// An optional argument was `null` and was removed.
    NullLeftOut,
    /// The argument had the name of another parameter.
    Renamed {
        /// The other name.
        from: String,
    },
}

/// Repairs obvious mistakes and returns the repairs. `aliases` are the tool's aliases, each with its parameter.
pub(crate) fn repair(
    validator: &CompiledSchema,
    schema: &Value,
    aliases: &[(String, String)],
    arguments: &mut CallArguments,
) -> Vec<ArgumentRepair> {
    /// JSON that was taken from a string may contain further mistakes.
    const ROUNDS: usize = 4;
    let mut repairs = Vec::new();
    for _ in 0..ROUNDS {
        let faults = faults(validator, arguments);
        let before = repairs.len();
        for fault in &faults {
            repairs.extend(fault.repair(schema, aliases, arguments.to_mut()));
        }
        if repairs.len() == before {
            break;
        }
    }
    // A validator accepts 5.0 as an integer, serde does not.
    if has_fraction(arguments) {
        remove_fractions(schema, arguments.to_mut(), &mut Vec::new(), &mut repairs);
    }
    repairs
}

/// Returns whether any number is written with a fraction. Arguments without one stay shared.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// Parses a text as a JSON object.
pub(crate) fn object_in(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) | Err(_) => None,
    }
}

impl ArgumentRepair {
    /// Creates a repair of this argument.
    #[must_use]
    pub fn new(argument: impl Into<String>, kind: RepairKind) -> Self {
        Self { argument: argument.into(), kind }
    }
}

impl fmt::Display for ArgumentRepair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.argument.as_str() {
            "" => f.write_str("the arguments: ")?,
            argument => write!(f, "`{argument}`: ")?,
        }
        match &self.kind {
            RepairKind::NumberFromText => f.write_str("the number was taken from a text"),
            RepairKind::BooleanFromText => f.write_str("true or false was taken from a text"),
            RepairKind::JsonFromText => f.write_str("the JSON was taken from a text"),
            RepairKind::IntegerFromFraction => f.write_str("the fraction is a whole number"),
            RepairKind::NullLeftOut => f.write_str("null was left out"),
            RepairKind::Renamed { from } => write!(f, "was called `{from}`"),
        }
    }
}

/// A mistake that may be repairable.
struct Fault {
    /// The position in the arguments, as a JSON pointer.
    pointer: String,
    /// The position of the violated keyword in the schema, as a JSON pointer.
    schema_pointer: String,
    kind: FaultKind,
}

enum FaultKind {
    /// The value has a type that is not one of these.
    Type(Vec<ValueType>),
    /// The value is not in an `enum`.
    Enum,
    /// The object has names that the schema lacks.
    Unexpected,
    /// The object lacks this required name.
    Missing(String),
}

fn faults(validator: &CompiledSchema, arguments: &Value) -> Vec<Fault> {
    /// A call with more mistakes is refused.
    const MAX_FAULTS: usize = 64;
    let violations = validator.violations(arguments, MAX_FAULTS);
    violations
        .iter()
        .filter_map(|violation| {
            // Others cannot be repaired.
            let kind = match violation.kind() {
                ViolationKind::Type { expected } => FaultKind::Type(expected.clone()),
                ViolationKind::Enum { .. } => FaultKind::Enum,
                ViolationKind::Unexpected { .. } => FaultKind::Unexpected,
                ViolationKind::Required { property } => FaultKind::Missing(property.clone()),
                ViolationKind::Other => return None,
                _ => return None,
            };
            let pointer = violation.path().to_owned();
            let schema_pointer = violation.schema_path().to_owned();
            Some(Fault { pointer, schema_pointer, kind })
        })
        .collect()
}

impl Fault {
    fn repair(
        &self,
        schema: &Value,
        aliases: &[(String, String)],
        arguments: &mut Value,
    ) -> Vec<ArgumentRepair> {
        match &self.kind {
            FaultKind::Type(_) | FaultKind::Enum if self.is_null(arguments) => {
                self.remove_null(schema, arguments).into_iter().collect()
            }
            FaultKind::Type(expected) => self.retype(expected, arguments).into_iter().collect(),
            FaultKind::Enum => Vec::new(),
            FaultKind::Unexpected => self.rename(None, schema, aliases, arguments),
            FaultKind::Missing(property) => self.rename(Some(property), schema, aliases, arguments),
        }
    }

    fn is_null(&self, arguments: &Value) -> bool {
        arguments.pointer(&self.pointer).is_some_and(Value::is_null)
    }

    fn retype(&self, expected: &[ValueType], arguments: &mut Value) -> Option<ArgumentRepair> {
        let value = arguments.pointer_mut(&self.pointer)?;
        let (parsed, kind) = value_in_text(value.as_str()?, expected)?;
        *value = parsed;
        Some(ArgumentRepair::new(dotted(&self.pointer), kind))
    }

    /// Removes a `null` for a property that is not required.
    fn remove_null(&self, schema: &Value, arguments: &mut Value) -> Option<ArgumentRepair> {
        let (property_schema, _keyword) = self.schema_pointer.rsplit_once('/')?;
        let (properties, _name) = property_schema.rsplit_once('/')?;
        let owner = schema.pointer(properties.strip_suffix("/properties")?)?;
        let (object, name) = self.pointer.rsplit_once('/')?;
        let name = unescaped(name);
        let required = owner.get("required").and_then(Value::as_array);
        if required.is_some_and(|required| required.iter().any(|known| known == name.as_str())) {
            return None;
        }
        arguments.pointer_mut(object)?.as_object_mut()?.remove(&name)?;
        Some(ArgumentRepair::new(dotted(&self.pointer), RepairKind::NullLeftOut))
    }

    /// Renames properties to the parameters that they mean: only to `only`, or to any if it is `None`.
    fn rename(
        &self,
        only: Option<&str>,
        schema: &Value,
        aliases: &[(String, String)],
        arguments: &mut Value,
    ) -> Vec<ArgumentRepair> {
        let owner = self.schema_pointer.rsplit_once('/').and_then(|(owner, _keyword)| schema.pointer(owner));
        let properties = owner.and_then(|owner| owner.get("properties")).and_then(Value::as_object);
        let object = arguments.pointer_mut(&self.pointer).and_then(Value::as_object_mut);
        let (Some(properties), Some(object)) = (properties, object) else { return Vec::new() };
        let renamed = alias::renamed(object, properties, aliases, only);
        let mut repairs = Vec::new();
        for (from, to) in renamed {
            if let Some(value) = object.remove(&from) {
                object.insert(to.clone(), value);
                let argument = dotted(&format!("{}/{to}", self.pointer));
                repairs.push(ArgumentRepair::new(argument, RepairKind::Renamed { from }));
            }
        }
        repairs
    }
}

/// Parses a text as a value of an expected type.
fn value_in_text(text: &str, expected: &[ValueType]) -> Option<(Value, RepairKind)> {
    let expects = |kind: ValueType| expected.contains(&kind);
    let value: Value = match text.trim() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        text => serde_json::from_str(text).ok()?,
    };
    match value {
        Value::Bool(_) if expects(ValueType::Boolean) => Some((value, RepairKind::BooleanFromText)),
        Value::Number(_) if expects(ValueType::Number) => Some((value, RepairKind::NumberFromText)),
        Value::Number(number) if expects(ValueType::Integer) => {
            let integer = if number.is_f64() { as_integer(&number)? } else { number };
            Some((Value::Number(integer), RepairKind::NumberFromText))
        }
        Value::Array(_) if expects(ValueType::Array) => Some((value, RepairKind::JsonFromText)),
        Value::Object(_) if expects(ValueType::Object) => Some((value, RepairKind::JsonFromText)),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

/// Removes the fraction of numbers such as `5.0` where the schema has integers.
fn remove_fractions(
    schema: &Value,
    value: &mut Value,
    path: &mut Vec<String>,
    repairs: &mut Vec<ArgumentRepair>,
) {
    match value {
        Value::Number(number) => {
            if schema.get("type").is_some_and(|kind| kind == "integer")
                && number.is_f64()
                && let Some(whole) = as_integer(number)
            {
                *number = whole;
                repairs.push(ArgumentRepair::new(path.join("."), RepairKind::IntegerFromFraction));
            }
        }
        Value::Object(map) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, value) in map {
                if let Some(schema) = properties.get(name) {
                    path.push(name.clone());
                    remove_fractions(schema, value, path, repairs);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push(index.to_string());
                remove_fractions(schema, item, path, repairs);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Returns the number as an integer, if it is an integer and is represented exactly.
fn as_integer(number: &Number) -> Option<Number> {
    /// Up to this value, a double represents every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64()?;
    if float.fract() != 0.0 || float.abs() > EXACT {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and in the range of both types")]
    let integer = float as i64;
    Some(Number::from(integer))
}

/// Converts a JSON pointer to names joined by dots.
fn dotted(pointer: &str) -> String {
    let names: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
    names.join(".")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests;
