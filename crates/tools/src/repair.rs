//! Mending arguments that are wrong in a way that leaves no doubt about what is meant.
//!
//! Only what the schema refuses is touched, and each repair is told to the host. What is not certain stays a mistake
//! that the model is told of: a number where a text is wanted, say, or two names that could mean one parameter.

mod alias;

use std::fmt;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, Validator};
use pintle_llm::CallArguments;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

/// One thing that was mended in the arguments of a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ArgumentRepair {
    /// The argument, with dots between the names of nested ones; empty for the arguments as a whole.
    pub argument: String,
    /// What was done.
    pub kind: RepairKind,
}

/// What was done to an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepairKind {
    /// A text held the number.
    NumberFromText,
    /// A text held `true` or `false`.
    BooleanFromText,
    /// A text held the object or the list as JSON.
    JsonFromText,
    /// A whole number was written as a fraction, such as `5.0`.
    IntegerFromFraction,
    /// An optional argument was `null`, and is left out.
    NullLeftOut,
    /// The parameter was given under another name.
    Renamed {
        /// That name.
        from: String,
    },
}

/// Mends what it can, and says what that was. `aliases` are the tool's own, each with the parameter that is meant.
pub(crate) fn repair(
    validator: &Validator,
    schema: &Value,
    aliases: &[(String, String)],
    arguments: &mut CallArguments,
) -> Vec<ArgumentRepair> {
    /// A text that held JSON may show mistakes inside it only then.
    const ROUNDS: usize = 4;
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        let faults = faults(validator, arguments);
        let before = done.len();
        for fault in &faults {
            done.extend(fault.mend(schema, aliases, arguments.to_mut()));
        }
        if done.len() == before {
            break;
        }
    }
    // A validator takes 5.0 for an integer; Rust's integers do not.
    if has_fraction(arguments) {
        whole_numbers(schema, arguments.to_mut(), &mut Vec::new(), &mut done);
    }
    done
}

/// Whether a number is written with a fraction. Arguments without one are left as they are, and so stay shared.
fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(items) => items.iter().any(has_fraction),
        Value::Object(fields) => fields.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}

/// The object that a text holds as JSON.
pub(crate) fn object_in(text: &str) -> Option<Map<String, Value>> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) | Err(_) => None,
    }
}

impl ArgumentRepair {
    /// A repair of this argument.
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

/// A mistake that may have a repair.
struct Fault {
    /// Where in the arguments, as a JSON pointer.
    place: String,
    /// The keyword in the schema that the arguments break, as a JSON pointer.
    rule: String,
    kind: FaultKind,
}

enum FaultKind {
    /// None of these types.
    Type(Vec<JsonType>),
    /// Not one of the values of an `enum`.
    Enum,
    /// Names that the schema does not have.
    Unexpected,
    /// A name that the object does not have.
    Missing(String),
}

fn faults(validator: &Validator, arguments: &Value) -> Vec<Fault> {
    /// Whoever makes more mistakes in one call is told, not mended.
    const MOST: usize = 64;
    let errors = validator.iter_errors(arguments).take(MOST);
    errors
        .filter_map(|error| {
            #[expect(clippy::wildcard_enum_match_arm, reason = "the rest has no repair")]
            let kind = match error.kind() {
                ValidationErrorKind::Type { kind: TypeKind::Single(kind) } => FaultKind::Type(vec![*kind]),
                ValidationErrorKind::Type { kind: TypeKind::Multiple(kinds) } => {
                    FaultKind::Type(kinds.iter().collect())
                }
                ValidationErrorKind::Enum { .. } => FaultKind::Enum,
                ValidationErrorKind::AdditionalProperties { .. } => FaultKind::Unexpected,
                ValidationErrorKind::Required { property } => {
                    FaultKind::Missing(property.as_str().unwrap_or_default().to_owned())
                }
                _ => return None,
            };
            let (place, rule) = (error.instance_path(), error.schema_path());
            Some(Fault { place: place.as_str().to_owned(), rule: rule.as_str().to_owned(), kind })
        })
        .collect()
}

impl Fault {
    fn mend(
        &self,
        schema: &Value,
        aliases: &[(String, String)],
        arguments: &mut Value,
    ) -> Vec<ArgumentRepair> {
        match &self.kind {
            FaultKind::Type(_) | FaultKind::Enum if self.is_null(arguments) => {
                self.leave_out(schema, arguments).into_iter().collect()
            }
            FaultKind::Type(expected) => self.retype(expected, arguments).into_iter().collect(),
            FaultKind::Enum => Vec::new(),
            FaultKind::Unexpected => self.rename(None, schema, aliases, arguments),
            FaultKind::Missing(property) => self.rename(Some(property), schema, aliases, arguments),
        }
    }

    fn is_null(&self, arguments: &Value) -> bool {
        arguments.pointer(&self.place).is_some_and(Value::is_null)
    }

    fn retype(&self, expected: &[JsonType], arguments: &mut Value) -> Option<ArgumentRepair> {
        let value = arguments.pointer_mut(&self.place)?;
        let (mended, kind) = read_text(value.as_str()?, expected)?;
        *value = mended;
        Some(ArgumentRepair::new(dotted(&self.place), kind))
    }

    /// Takes a `null` away from where nothing need be.
    fn leave_out(&self, schema: &Value, arguments: &mut Value) -> Option<ArgumentRepair> {
        let (property_schema, _keyword) = self.rule.rsplit_once('/')?;
        let (properties, _name) = property_schema.rsplit_once('/')?;
        let owner = schema.pointer(properties.strip_suffix("/properties")?)?;
        let (object, name) = self.place.rsplit_once('/')?;
        let name = unescaped(name);
        let required = owner.get("required").and_then(Value::as_array);
        if required.is_some_and(|required| required.iter().any(|known| known == name.as_str())) {
            return None;
        }
        arguments.pointer_mut(object)?.as_object_mut()?.remove(&name)?;
        Some(ArgumentRepair::new(dotted(&self.place), RepairKind::NullLeftOut))
    }

    /// Gives parameters their own names. `only` is the one that is missing; without it, any may be.
    fn rename(
        &self,
        only: Option<&str>,
        schema: &Value,
        aliases: &[(String, String)],
        arguments: &mut Value,
    ) -> Vec<ArgumentRepair> {
        let owner = self.rule.rsplit_once('/').and_then(|(owner, _keyword)| schema.pointer(owner));
        let properties = owner.and_then(|owner| owner.get("properties")).and_then(Value::as_object);
        let object = arguments.pointer_mut(&self.place).and_then(Value::as_object_mut);
        let (Some(properties), Some(object)) = (properties, object) else { return Vec::new() };
        let renamed = alias::renamed(object, properties, aliases, only);
        let mut done = Vec::new();
        for (from, to) in renamed {
            if let Some(value) = object.remove(&from) {
                object.insert(to.clone(), value);
                let argument = dotted(&format!("{}/{to}", self.place));
                done.push(ArgumentRepair::new(argument, RepairKind::Renamed { from }));
            }
        }
        done
    }
}

/// What a text says, if that is of an expected type beyond doubt.
fn read_text(text: &str, expected: &[JsonType]) -> Option<(Value, RepairKind)> {
    let expects = |kind: JsonType| expected.contains(&kind);
    let value: Value = match text.trim() {
        "True" => Value::Bool(true),
        "False" => Value::Bool(false),
        text => serde_json::from_str(text).ok()?,
    };
    match value {
        Value::Bool(_) if expects(JsonType::Boolean) => Some((value, RepairKind::BooleanFromText)),
        Value::Number(_) if expects(JsonType::Number) => Some((value, RepairKind::NumberFromText)),
        Value::Number(number) if expects(JsonType::Integer) => {
            let whole = if number.is_f64() { whole(&number)? } else { number };
            Some((Value::Number(whole), RepairKind::NumberFromText))
        }
        Value::Array(_) if expects(JsonType::Array) => Some((value, RepairKind::JsonFromText)),
        Value::Object(_) if expects(JsonType::Object) => Some((value, RepairKind::JsonFromText)),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

/// Writes whole numbers without a fraction where the schema wants integers.
fn whole_numbers(schema: &Value, value: &mut Value, path: &mut Vec<String>, done: &mut Vec<ArgumentRepair>) {
    match value {
        Value::Number(number) => {
            if schema.get("type").is_some_and(|kind| kind == "integer")
                && number.is_f64()
                && let Some(whole) = whole(number)
            {
                *number = whole;
                done.push(ArgumentRepair::new(path.join("."), RepairKind::IntegerFromFraction));
            }
        }
        Value::Object(map) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, value) in map {
                if let Some(schema) = properties.get(name) {
                    path.push(name.clone());
                    whole_numbers(schema, value, path, done);
                    path.pop();
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for (index, item) in items.iter_mut().enumerate() {
                path.push(index.to_string());
                whole_numbers(schema, item, path, done);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// The same number as an integer, if it is one and was written exactly.
fn whole(number: &Number) -> Option<Number> {
    /// Up to here a double holds every integer.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64()?;
    if float.fract() != 0.0 || float.abs() > EXACT {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole, and within what both types hold")]
    let integer = float as i64;
    Some(Number::from(integer))
}

/// A JSON pointer as the messages name an argument.
fn dotted(pointer: &str) -> String {
    let names: Vec<String> = pointer.split('/').skip(1).map(unescaped).collect();
    names.join(".")
}

fn unescaped(name: &str) -> String {
    name.replace("~1", "/").replace("~0", "~")
}

#[cfg(test)]
mod tests;
