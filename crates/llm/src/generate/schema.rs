//! JSON Schemas: those of types, and what does not fit one.

use jsonschema::Validator;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind};

/// How many mistakes are told, and how long each may be, in characters.
const MISTAKES: usize = 8;
const MISTAKE: usize = 300;

/// The schema of a type, everything inline that is not recursive.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    tidy(&mut schema);
    schema
}

/// The schema of a type as a tool's parameters: title and description of the type itself are not for the model.
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

/// A schema ready to judge values.
///
/// # Errors
///
/// [`ErrorKind::Configuration`] naming `of`, with what is wrong as the source.
pub(crate) fn compile(schema: &Value, of: &str) -> Result<Validator, Error> {
    jsonschema::validator_for(schema).map_err(|error| {
        Error::new(ErrorKind::Configuration, format!("the schema of {of} is no JSON Schema"))
            .with_source(error.to_string())
    })
}

/// What is wrong with a value, in one line; `None` if it fits.
pub(crate) fn mistakes(validator: &Validator, value: &Value) -> Option<String> {
    let told: Vec<String> = validator
        .iter_errors(value)
        .take(MISTAKES)
        .map(|error| {
            let path = error.instance_path().as_str();
            let place = if path.is_empty() { String::new() } else { format!("`{path}`: ") };
            format!("{place}{}", shortened(&error.to_string(), MISTAKE))
        })
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// A text of at most `limit` characters and, if it was longer, an ellipsis.
pub(crate) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Takes out what providers refuse: Rust's formats of numbers, and `oneOf`, which is `anyOf` to whoever writes.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let mentions_number = map.get("type").is_some_and(is_numeric);
            if mentions_number && map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            // A property may have the keyword's name; its value is then no list.
            if !map.contains_key("anyOf")
                && map.get("oneOf").is_some_and(Value::is_array)
                && let Some(choices) = map.remove("oneOf")
            {
                map.insert("anyOf".into(), choices);
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
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
