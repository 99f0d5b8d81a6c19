//! JSON Schemas of types, and validation against them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};
use crate::schema::{CompiledSchema, Draft};

/// Limits on the reported violations: their number, and the length of each in characters.
const MAX_VIOLATIONS: usize = 8;
const MAX_VIOLATION_LENGTH: usize = 300;

/// Returns the schema of a type. Everything is inlined except recursive types.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    normalize(&mut schema);
    schema
}

/// Returns the schema of a type as parameters of a tool, without title and description of the type itself.
pub(crate) fn parameters_of<T: JsonSchema>() -> Value {
    let mut schema = schema_of::<T>();
    if let Value::Object(root) = &mut schema {
        root.remove("title");
        root.remove("description");
        if root.get("type").is_some_and(|kind| kind == "object") {
            root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        }
    }
    schema
}

/// Compiles a schema.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] naming `of`, with the reason as its source.
pub(crate) fn compile(schema: &Value, of: &str) -> Result<CompiledSchema, Error> {
    CompiledSchema::new(schema, Draft::Draft202012).map_err(|error| {
        let what = if error.needs_feature() { "cannot be checked" } else { "is not a JSON Schema" };
        Error::new(ErrorKind::Configuration, format!("the schema of {of} {what}"))
            .with_source(error.to_string())
    })
}

/// Returns the violations of the schema in one line; `None` for a valid value.
pub(crate) fn violations(schema: &CompiledSchema, value: &Value) -> Option<String> {
    let violations = schema.violations(value, MAX_VIOLATIONS);
    let shown = violations.iter().map(|violation| {
        let path = violation.path();
        let location = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
        format!("{location}{}", shortened(&violation.to_string(), MAX_VIOLATION_LENGTH))
    });
    (!violations.is_empty()).then(|| shown.collect::<Vec<_>>().join("; "))
}

/// Truncates a text to `limit` characters and an ellipsis.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Replaces keywords that providers refuse: removes Rust's number formats, and turns `oneOf` into `anyOf`, which means the
/// same to a model.
fn normalize(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let mentions_number = map.get("type").is_some_and(is_numeric);
            if mentions_number && map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            // A property named like the keyword has a value that is not a list.
            if !map.contains_key("anyOf")
                && map.get("oneOf").is_some_and(Value::is_array)
                && let Some(choices) = map.remove("oneOf")
            {
                map.insert("anyOf".into(), choices);
            }
            map.values_mut().for_each(normalize);
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_numeric(kind: &Value) -> bool {
    match kind {
        Value::String(kind) => kind == "integer" || kind == "number",
        Value::Array(kinds) => kinds.iter().any(is_numeric),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}
