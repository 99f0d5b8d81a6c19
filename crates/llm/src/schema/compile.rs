//! Compiles schemas for the small validator.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Number, Value};

use super::violation::ValueType;
use super::{Draft, SchemaError};

/// A schema whose keywords the small validator has.
#[derive(Debug)]
pub(super) struct SmallSchema {
    pub(super) root: Node,
    /// The schemas that are referred to.
    pub(super) targets: Vec<Node>,
}

/// A schema or a part of one: its checks in the order of its keywords.
#[derive(Debug)]
pub(super) struct Node {
    /// Its position in the schema, as a JSON pointer.
    pub(super) location: String,
    pub(super) checks: Vec<(&'static str, Check)>,
}

/// What one keyword checks.
#[derive(Debug)]
pub(super) enum Check {
    /// The schema `false`.
    Never,
    Type(Vec<ValueType>),
    Enum(Vec<Value>),
    Const(Value),
    Bound(Bound, Number),
    Size(Size, u64),
    Unique,
    Required(Vec<String>),
    Object(Members),
    /// The first items, one schema each.
    Prefix(Vec<Node>),
    /// The items from an index.
    Items(usize, Box<Node>),
    AllOf(Vec<Node>),
    AnyOf(Vec<Node>),
    OneOf(Vec<Node>),
    /// The schema, and its text.
    Not(Box<Node>, String),
    /// The index of a target.
    Reference(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Size {
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
}

/// The checks of the members of an object.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) named: BTreeMap<String, Node>,
    pub(super) integers: Vec<(IntegerKey, Node)>,
    /// All other members, if they are restricted.
    pub(super) others: Option<Box<Node>>,
}

/// A pattern of keys for maps with integers as keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IntegerKey {
    Unsigned,
    Signed,
}

/// The keywords that describe the members of an object. They are one check.
const MEMBERS: [&str; 3] = ["additionalProperties", "patternProperties", "properties"];

/// Returns whether a value is allowed for a keyword.
type ValueCheck = fn(&Value) -> bool;

/// Keywords without a check of instances.
const ANNOTATIONS: [(&str, ValueCheck); 10] = [
    ("$comment", Value::is_string),
    ("$schema", Value::is_string),
    ("default", |_| true),
    ("deprecated", Value::is_boolean),
    ("description", Value::is_string),
    ("examples", Value::is_array),
    ("format", Value::is_string),
    ("readOnly", Value::is_boolean),
    ("title", Value::is_string),
    ("writeOnly", Value::is_boolean),
];

impl SmallSchema {
    /// # Errors
    ///
    /// A value that is not a JSON Schema, a reference that leads nowhere, or a keyword that the small validator lacks.
    pub(super) fn compile(schema: &Value, draft: Draft) -> Result<Self, SchemaError> {
        let draft = draft_of(schema, draft)?;
        let mut compiler = Compiler { draft, pointers: Vec::new() };
        let root = compiler.node(schema, String::new())?;
        let mut targets = Vec::new();
        while let Some(pointer) = compiler.pointers.get(targets.len()).cloned() {
            let target = schema
                .pointer(&pointer)
                .ok_or_else(|| SchemaError::malformed(&pointer, "the schema that `$ref` names"))?;
            targets.push(compiler.node(target, pointer)?);
        }
        Ok(Self { root, targets })
    }
}

/// Returns the draft that a schema names.
fn draft_of(schema: &Value, draft: Draft) -> Result<Draft, SchemaError> {
    let Some(named) = schema.get("$schema") else { return Ok(draft) };
    let named = named.as_str().map(|named| named.trim_end_matches('#'));
    match (named, draft) {
        (Some("http://json-schema.org/draft-07/schema"), _) => Ok(Draft::Draft7),
        (Some("https://json-schema.org/draft/2020-12/schema"), Draft::Draft202012) => Ok(draft),
        _ => Err(SchemaError::unsupported("/$schema")),
    }
}

struct Compiler {
    draft: Draft,
    /// The positions that are referred to.
    pointers: Vec<String>,
}

impl Compiler {
    fn node(&mut self, schema: &Value, location: String) -> Result<Node, SchemaError> {
        let mut checks = Vec::new();
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => checks.push(("", Check::Never)),
            Value::Object(map) => {
                // Draft 7 ignores keywords beside a reference.
                if let (Some(reference), Draft::Draft7) = (map.get("$ref"), self.draft) {
                    checks.push(("$ref", self.reference(reference, &location)?));
                    return Ok(Node { location, checks });
                }
                let mut has_members = false;
                for (keyword, value) in map {
                    let at = format!("{location}/{}", escaped(keyword));
                    if MEMBERS.contains(&keyword.as_str()) {
                        if !std::mem::replace(&mut has_members, true) {
                            checks.push(("properties", self.members(map, &location)?));
                        }
                    } else if let Some(check) = self.check(map, keyword, value, &at)? {
                        checks.push(check);
                    }
                }
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(SchemaError::malformed(&location, "an object or a boolean"));
            }
        }
        Ok(Node { location, checks })
    }

    /// Compiles a keyword at the location `at`; `None` for one without a check.
    fn check(
        &mut self,
        map: &Map<String, Value>,
        keyword: &str,
        value: &Value,
        at: &str,
    ) -> Result<Option<(&'static str, Check)>, SchemaError> {
        if let Some(check) = plain_check(keyword, value, at)? {
            return Ok(Some(check));
        }
        let is_draft_7 = self.draft == Draft::Draft7;
        Ok(match keyword {
            "$ref" => Some(("$ref", self.reference(value, at)?)),
            "allOf" => Some(("allOf", Check::AllOf(self.choices(value, at)?))),
            "anyOf" => Some(("anyOf", Check::AnyOf(self.choices(value, at)?))),
            "oneOf" => Some(("oneOf", Check::OneOf(self.choices(value, at)?))),
            "not" => {
                let node = self.node(value, at.to_owned())?;
                Some(("not", Check::Not(Box::new(node), value.to_string())))
            }
            "items" if is_draft_7 && value.is_array() => {
                Some(("items", Check::Prefix(self.list(value, at)?)))
            }
            "prefixItems" if !is_draft_7 => Some(("prefixItems", Check::Prefix(self.choices(value, at)?))),
            "items" => {
                let first = if is_draft_7 { None } else { map.get("prefixItems") };
                Some(("items", self.items(first, value, at)?))
            }
            "additionalItems" if is_draft_7 => match map.get("items") {
                Some(first @ Value::Array(_)) => {
                    Some(("additionalItems", self.items(Some(first), value, at)?))
                }
                // It has no effect.
                Some(_) | None => self.node(value, at.to_owned()).map(|_| None)?,
            },
            "$defs" | "definitions" => self.nodes(value, at).map(|_| None)?,
            // Draft 7 checks formats of texts. Formats of numbers are from Rust, and not checked.
            "format" if is_draft_7 && !value.as_str().is_some_and(is_number_format) => {
                return Err(SchemaError::unsupported(at));
            }
            // Only the root names a draft.
            "$schema" if at != "/$schema" => return Err(SchemaError::unsupported(at)),
            _ => match ANNOTATIONS.iter().find(|(known, _)| *known == keyword) {
                Some((_, is_value)) if is_value(value) => None,
                Some(_) => return Err(SchemaError::malformed(at, "another type of value")),
                None if keyword.starts_with("x-") => None,
                None => return Err(SchemaError::unsupported(at)),
            },
        })
    }

    fn items(&mut self, first: Option<&Value>, rest: &Value, at: &str) -> Result<Check, SchemaError> {
        let from = first.and_then(Value::as_array).map_or(0, Vec::len);
        Ok(Check::Items(from, Box::new(self.node(rest, at.to_owned())?)))
    }

    fn members(&mut self, map: &Map<String, Value>, location: &str) -> Result<Check, SchemaError> {
        let named = match map.get("properties") {
            Some(properties) => self.nodes(properties, &format!("{location}/properties"))?,
            None => BTreeMap::new(),
        };
        let mut integers = Vec::new();
        if let Some(patterns) = map.get("patternProperties") {
            for (pattern, node) in self.nodes(patterns, &format!("{location}/patternProperties"))? {
                let key = match pattern.as_str() {
                    r"^\d+$" => IntegerKey::Unsigned,
                    r"^-?\d+$" => IntegerKey::Signed,
                    _ => return Err(SchemaError::unsupported(&node.location)),
                };
                integers.push((key, node));
            }
        }
        let others = match map.get("additionalProperties") {
            Some(others) => Some(Box::new(self.node(others, format!("{location}/additionalProperties"))?)),
            None => None,
        };
        Ok(Check::Object(Members { named, integers, others }))
    }

    fn nodes(&mut self, schemas: &Value, at: &str) -> Result<BTreeMap<String, Node>, SchemaError> {
        let schemas =
            schemas.as_object().ok_or_else(|| SchemaError::malformed(at, "an object of schemas"))?;
        let mut nodes = BTreeMap::new();
        for (name, schema) in schemas {
            nodes.insert(name.clone(), self.node(schema, format!("{at}/{}", escaped(name)))?);
        }
        Ok(nodes)
    }

    fn list(&mut self, schemas: &Value, at: &str) -> Result<Vec<Node>, SchemaError> {
        let schemas = schemas.as_array().ok_or_else(|| SchemaError::malformed(at, "an array of schemas"))?;
        let numbered = schemas.iter().enumerate();
        numbered.map(|(index, schema)| self.node(schema, format!("{at}/{index}"))).collect()
    }

    /// As [`list`](Self::list), with at least one schema.
    fn choices(&mut self, schemas: &Value, at: &str) -> Result<Vec<Node>, SchemaError> {
        let nodes = self.list(schemas, at)?;
        if nodes.is_empty() { Err(SchemaError::malformed(at, "at least one schema")) } else { Ok(nodes) }
    }

    fn reference(&mut self, reference: &Value, at: &str) -> Result<Check, SchemaError> {
        let reference = reference.as_str().ok_or_else(|| SchemaError::malformed(at, "a text"))?;
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(SchemaError::malformed(at, "a reference within the schema"));
        };
        // Neither an anchor nor an escape.
        let is_pointer = pointer.is_empty() || pointer.starts_with('/');
        if !is_pointer || pointer.contains('%') {
            return Err(SchemaError::unsupported(at));
        }
        let known = self.pointers.iter().position(|known| known == pointer);
        Ok(Check::Reference(known.unwrap_or_else(|| {
            self.pointers.push(pointer.to_owned());
            self.pointers.len().saturating_sub(1)
        })))
    }
}

/// Compiles a keyword whose value is no schema; `None` for any other.
fn plain_check(keyword: &str, value: &Value, at: &str) -> Result<Option<(&'static str, Check)>, SchemaError> {
    let bound = |bound: Bound| match value {
        Value::Number(limit) => Ok(Check::Bound(bound, limit.clone())),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            Err(SchemaError::malformed(at, "a number"))
        }
    };
    let size = |size: Size| match value.as_u64() {
        Some(limit) => Ok(Check::Size(size, limit)),
        None => Err(SchemaError::malformed(at, "a count")),
    };
    Ok(Some(match keyword {
        "type" => ("type", Check::Type(types(value, at)?)),
        "enum" => {
            let options = value.as_array().ok_or_else(|| SchemaError::malformed(at, "an array"))?;
            ("enum", Check::Enum(options.clone()))
        }
        "const" => ("const", Check::Const(value.clone())),
        "minimum" => ("minimum", bound(Bound::Minimum)?),
        "maximum" => ("maximum", bound(Bound::Maximum)?),
        "exclusiveMinimum" => ("exclusiveMinimum", bound(Bound::ExclusiveMinimum)?),
        "exclusiveMaximum" => ("exclusiveMaximum", bound(Bound::ExclusiveMaximum)?),
        "minLength" => ("minLength", size(Size::MinLength)?),
        "maxLength" => ("maxLength", size(Size::MaxLength)?),
        "minItems" => ("minItems", size(Size::MinItems)?),
        "maxItems" => ("maxItems", size(Size::MaxItems)?),
        "minProperties" => ("minProperties", size(Size::MinProperties)?),
        "maxProperties" => ("maxProperties", size(Size::MaxProperties)?),
        "uniqueItems" => match value {
            Value::Bool(true) => ("uniqueItems", Check::Unique),
            Value::Bool(false) => ("uniqueItems", Check::AllOf(Vec::new())),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                return Err(SchemaError::malformed(at, "a boolean"));
            }
        },
        "required" => ("required", Check::Required(names(value, at)?)),
        _ => return Ok(None),
    }))
}

fn types(value: &Value, at: &str) -> Result<Vec<ValueType>, SchemaError> {
    let listed: Vec<&Value> = match value {
        Value::Array(types) => types.iter().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => vec![value],
    };
    let named = |name: &&Value| ValueType::ALL.into_iter().find(|known| *name == known.name());
    let types: Option<BTreeSet<ValueType>> = listed.iter().map(named).collect();
    match types {
        Some(types) if types.len() == listed.len() && !types.is_empty() => Ok(types.into_iter().collect()),
        Some(_) | None => Err(SchemaError::malformed(at, "types of JSON")),
    }
}

/// Returns names, each of which is listed once.
fn names(value: &Value, at: &str) -> Result<Vec<String>, SchemaError> {
    let names =
        value.as_array().and_then(|names| names.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    let names = names.ok_or_else(|| SchemaError::malformed(at, "an array of names"))?;
    if names.iter().collect::<BTreeSet<_>>().len() < names.len() {
        return Err(SchemaError::malformed(at, "each name once"));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// Returns whether a format is one of Rust's numbers, which no draft checks.
fn is_number_format(format: &str) -> bool {
    ["int", "uint", "float", "double"].iter().any(|kind| {
        format.strip_prefix(kind).is_some_and(|width| width.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// Escapes a name for a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
