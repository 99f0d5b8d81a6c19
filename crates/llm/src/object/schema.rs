//! The schema of an object that a model is to make (client specification, section 4.5).

use jsonschema::Validator;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::generate::schema;
use crate::request::ResponseFormat;

/// The keywords that strict decoding knows. Others are left to the check of the answer.
const STRICT: &[&str] = &[
    "$defs",
    "$ref",
    "additionalProperties",
    "anyOf",
    "const",
    "definitions",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// A schema that has been checked, and what is sent of it.
#[derive(Debug)]
pub(super) struct ObjectSchema {
    validator: Validator,
    format: ResponseFormat,
}

impl ObjectSchema {
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if it is no schema, or if its root is no object: no provider would take it.
    pub(super) fn new(schema: Value) -> Result<Self, Error> {
        let kind = schema.get("type");
        if kind.and_then(Value::as_str) != Some("object") {
            let found = kind.map_or_else(|| "no type".to_owned(), ToString::to_string);
            return Err(Error::new(
                ErrorKind::Configuration,
                format!("expected a schema with \"type\": \"object\" at its root, found {found}"),
            ));
        }
        let validator = schema::compile(&schema, "the object")?;
        let format = match strict_form(&schema) {
            Some(json_schema) => ResponseFormat::JsonSchema { json_schema, strict: true },
            None => ResponseFormat::JsonSchema { json_schema: schema, strict: false },
        };
        Ok(Self { validator, format })
    }

    pub(super) fn format(&self) -> &ResponseFormat {
        &self.format
    }

    /// What is wrong with an object, in one line; `None` if it fits.
    pub(super) fn mistakes(&self, object: &Value) -> Option<String> {
        schema::mistakes(&self.validator, object)
    }
}

/// The schema as strict decoding wants it: every object closed, every property required. `None` if it cannot be put so.
///
/// What fits this form fits the schema too. A property that may be left out is required only if it may be null instead,
/// so that the model need not make a value up.
fn strict_form(schema: &Value) -> Option<Value> {
    let Value::Object(map) = schema else { return None };
    if !map.keys().all(|keyword| STRICT.contains(&keyword.as_str())) {
        return None;
    }
    let refers = map.contains_key("$ref");
    let mut form = Map::new();
    for (keyword, value) in map {
        // Beside a reference nothing is taken, and these only describe.
        if refers && matches!(keyword.as_str(), "description" | "title") {
            continue;
        }
        let value = match keyword.as_str() {
            "properties" | "$defs" | "definitions" => {
                let inner = value.as_object()?.iter();
                Value::Object(
                    inner
                        .map(|(name, inner)| Some((name.clone(), strict_form(inner)?)))
                        .collect::<Option<_>>()?,
                )
            }
            "items" => strict_form(value)?,
            "anyOf" => Value::Array(value.as_array()?.iter().map(strict_form).collect::<Option<_>>()?),
            _ => value.clone(),
        };
        form.insert(keyword.clone(), value);
    }
    if refers && form.len() > 1 {
        return None;
    }
    if describes_object(map) {
        close(&mut form)?;
    }
    Some(Value::Object(form))
}

fn close(form: &mut Map<String, Value>) -> Option<()> {
    if form.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false)) {
        return None;
    }
    // An object of free keys would be closed to all of them.
    let properties = form.get("properties")?.as_object()?;
    let mut required = match form.get("required") {
        Some(names) => names.as_array()?.clone(),
        None => Vec::new(),
    };
    for (name, property) in properties {
        if !required.iter().any(|known| known == name) {
            if !may_be_null(property) {
                return None;
            }
            required.push(Value::from(name.as_str()));
        }
    }
    form.insert("required".into(), required.into());
    form.insert("additionalProperties".into(), Value::Bool(false));
    Some(())
}

fn describes_object(map: &Map<String, Value>) -> bool {
    map.contains_key("properties") || map.get("type").is_some_and(|kind| names(kind, "object"))
}

fn may_be_null(schema: &Value) -> bool {
    let by_type = schema.get("type").is_some_and(|kind| names(kind, "null"));
    let choices = schema.get("anyOf").and_then(Value::as_array);
    by_type || choices.is_some_and(|choices| choices.iter().any(may_be_null))
}

fn names(kind: &Value, wanted: &str) -> bool {
    kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_closed_where_that_takes_nothing_from_the_model() {
        let name = json!({"type": "string"});
        let maybe = json!({"type": ["integer", "null"]});
        let rows = [
            (
                json!({"type": "object", "properties": {"name": name}, "required": ["name"]}),
                Some(json!({"type": "object", "properties": {"name": name}, "required": ["name"],
                    "additionalProperties": false})),
            ),
            (
                json!({"type": "object", "properties": {"age": maybe, "name": name}, "required": ["name"]}),
                Some(json!({"type": "object", "properties": {"age": maybe, "name": name},
                    "required": ["name", "age"], "additionalProperties": false})),
            ),
            (
                json!({"type": "object", "properties": {"list": {"type": "array", "items":
                    {"type": "object", "properties": {}}}}, "required": ["list"]}),
                Some(json!({"type": "object", "properties": {"list": {"type": "array", "items":
                    {"type": "object", "properties": {}, "required": [], "additionalProperties": false}}},
                    "required": ["list"], "additionalProperties": false})),
            ),
            // A name that may be missing and may not be null would have to be made up.
            (json!({"type": "object", "properties": {"name": name}}), None),
            (json!({"type": "object", "properties": {}, "additionalProperties": true}), None),
            // A reference stands alone.
            (
                json!({"type": "object", "required": ["a"], "$defs": {"name": name},
                    "properties": {"a": {"$ref": "#/$defs/name", "description": "Whose."}}}),
                Some(json!({"type": "object", "required": ["a"], "$defs": {"name": name},
                    "properties": {"a": {"$ref": "#/$defs/name"}}, "additionalProperties": false})),
            ),
            (
                json!({"type": "object", "required": ["a"], "$defs": {"name": name},
                    "properties": {"a": {"$ref": "#/$defs/name", "pattern": "^A"}}}),
                None,
            ),
            (json!({"type": "object"}), None),
            (
                json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 1}},
                "required": ["a"]}),
                None,
            ),
            (json!({"type": "object", "properties": {"a": true}, "required": ["a"]}), None),
        ];
        for (schema, expected) in rows {
            assert_eq!(strict_form(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn what_is_no_object_schema_is_refused() {
        let rows = [
            (json!({"type": "array"}), "found \"array\""),
            (json!({"properties": {}}), "found no type"),
            (json!(true), "found no type"),
            (json!({"type": "object", "properties": {"a": {"type": "strnig"}}}), "no JSON Schema"),
        ];
        for (schema, part) in rows {
            let error = ObjectSchema::new(schema).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.message().contains(part), "{error}");
        }
    }
}
