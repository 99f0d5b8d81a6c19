//! Schemas of generated objects (client specification, section 4.5).

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::generate::schema;
use crate::request::ResponseFormat;
use crate::schema::CompiledSchema;

/// Keywords supported by strict decoding. Others are left to the check of the response.
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

/// A checked schema and the response format that is sent.
#[derive(Debug)]
pub(super) struct ObjectSchema {
    validator: CompiledSchema,
    format: ResponseFormat,
}

impl ObjectSchema {
    /// # Errors
    ///
    /// [`ErrorKind::Configuration`] if it is not a schema, or if its root is not an object, which every provider refuses.
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

    /// Returns the violations of the schema in one line; `None` for a valid object.
    pub(super) fn violations(&self, object: &Value) -> Option<String> {
        schema::violations(&self.validator, object)
    }
}

/// Returns the response format by which a provider can enforce the schema without excluding values; `None` if it has no such form.
pub(super) fn enforceable_format(schema: &Value) -> Option<ResponseFormat> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return None;
    }
    Some(ResponseFormat::JsonSchema { json_schema: strict_form(schema)?, strict: true })
}

/// Converts a schema to the form for strict decoding: every object closed, every property required. `None` if that is
/// impossible.
///
/// Values that match this form match the schema. An optional property becomes required only if it may be null, so that
/// the model need not invent a value.
fn strict_form(schema: &Value) -> Option<Value> {
    let Value::Object(map) = schema else { return None };
    if !map.keys().all(|keyword| STRICT.contains(&keyword.as_str())) {
        return None;
    }
    let refers = map.contains_key("$ref");
    let mut form = Map::new();
    for (keyword, value) in map {
        // Nothing is allowed next to a reference; annotations can be dropped.
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
    // Closing an object of arbitrary keys would exclude all of them.
    let properties = form.get("properties")?.as_object()?;
    let mut required = match form.get("required") {
        Some(names) => names.as_array()?.clone(),
        None => Vec::new(),
    };
    for (name, property) in properties {
        if !required.iter().any(|known| known == name) {
            if !is_nullable(property) {
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

fn is_nullable(schema: &Value) -> bool {
    let by_type = schema.get("type").is_some_and(|kind| names(kind, "null"));
    let choices = schema.get("anyOf").and_then(Value::as_array);
    by_type || choices.is_some_and(|choices| choices.iter().any(is_nullable))
}

fn names(kind: &Value, wanted: &str) -> bool {
    kind == wanted || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == wanted))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_closed_where_no_value_is_lost() {
        let name = json!({"type": "string"});
        let maybe = json!({"type": ["integer", "null"]});
        let cases = [
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
            // An optional property that cannot be null would have to be invented.
            (json!({"type": "object", "properties": {"name": name}}), None),
            (json!({"type": "object", "properties": {}, "additionalProperties": true}), None),
            // Only annotations are dropped next to a reference.
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
        for (schema, expected) in cases {
            assert_eq!(strict_form(&schema), expected, "{schema}");
        }
    }

    #[test]
    fn other_schemas_are_refused() {
        let cases = [
            (json!({"type": "array"}), "found \"array\""),
            (json!({"properties": {}}), "found no type"),
            (json!(true), "found no type"),
            (json!({"type": "object", "properties": {"a": {"type": "strnig"}}}), "is not a JSON Schema"),
        ];
        for (schema, part) in cases {
            let error = ObjectSchema::new(schema).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Configuration);
            assert!(error.message().contains(part), "{error}");
        }
    }
}
