//! Rules for tool definitions, shared by all providers.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::report::{Kind, Report, join, text};

/// Maximum length of a tool name, in characters.
const MAX_NAME: usize = 64;

/// Reports a name that is not 1 to 64 of `[a-zA-Z0-9_-]`.
pub(super) fn name(path: &str, tool: &Map<String, Value>, report: &mut Report) {
    let name = text(tool, "name");
    if tool.contains_key("name") && (name.is_empty() || name.len() > MAX_NAME || !name.chars().all(letters)) {
        let message = format!("found {name:?}, expected 1 to {MAX_NAME} of a-z, A-Z, 0-9, _ and -");
        report.invalid(join(path, "name"), message);
    }
}

/// Returns whether a character is legal in names of every dialect.
pub(super) fn letters(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == '-'
}

/// Reports the name of a call that is not 1 to `max_length` legal characters: models also call tools that do not exist.
pub(super) fn called(
    path: &str,
    call: &Map<String, Value>,
    max_length: usize,
    legal: fn(char) -> bool,
    report: &mut Report,
) {
    let name = text(call, "name");
    if call.contains_key("name") && (name.is_empty() || name.len() > max_length || !name.chars().all(legal)) {
        let message = format!("found {name:?}, expected 1 to {max_length} legal characters");
        report.invalid(join(path, "name"), message);
    }
}

/// Reports the id of a call, or of the call that a result answers, that is not 1 to `max_length` characters.
pub(super) fn call_id(
    path: &str,
    object: &Map<String, Value>,
    name: &str,
    max_length: usize,
    report: &mut Report,
) {
    let length = text(object, name).chars().count();
    if object.contains_key(name) && !(1..=max_length).contains(&length) {
        let message = format!("found {length} characters, expected 1 to {max_length}");
        report.invalid(join(path, name), message);
    }
}

/// Reports duplicate names. Server tools may have no name.
pub(super) fn unique<'a>(path: &str, names: impl Iterator<Item = &'a str>, report: &mut Report) {
    let mut seen = HashSet::new();
    for name in names.filter(|name| !name.is_empty()) {
        if !seen.insert(name) {
            report.invalid(path, format!("found the tool name {name:?} twice, expected unique names"));
        }
    }
}

/// Reports a JSON Schema whose root does not describe an object.
pub(super) fn schema(path: &str, tool: &Map<String, Value>, name: &str, report: &mut Report) {
    let path = join(path, name);
    let Some(schema) = tool.get(name).filter(|schema| !schema.is_null()) else {
        return;
    };
    let Some(schema) = report.object(&path, schema) else {
        return;
    };
    let root = schema.get("type").and_then(Value::as_str).map(str::to_lowercase);
    if root.as_deref() != Some("object") {
        let found = schema.get("type").map_or_else(|| "no type".to_owned(), Value::to_string);
        report.invalid(
            join(&path, "type"),
            format!("found {found}, expected \"object\" at the root of a schema"),
        );
    }
    if let Some(properties) = schema.get("properties") {
        report.kind(&join(&path, "properties"), properties, Kind::Object);
    }
    if let Some(required) = schema.get("required") {
        report.kind(&join(&path, "required"), required, Kind::List);
    }
}

/// Reports keywords at the root of a schema that some providers refuse, although JSON Schema allows them.
pub(super) fn choices(path: &str, tool: &Map<String, Value>, name: &str, report: &mut Report) {
    let path = join(path, name);
    for keyword in ["allOf", "anyOf", "enum", "not", "oneOf"] {
        if tool.get(name).and_then(|schema| schema.get(keyword)).is_some() {
            report.invalid(join(&path, keyword), "expected no such keyword at the root of a schema");
        }
    }
}

/// Reports names in `required` that are not properties: JSON Schema allows them, stricter subsets do not.
pub(super) fn required(path: &str, schema: &Map<String, Value>, report: &mut Report) {
    let path = join(path, "required");
    let Some(required) = schema.get("required") else {
        return;
    };
    for (index, name) in required.as_array().into_iter().flatten().enumerate() {
        let known = name.as_str().is_some_and(|name| {
            schema.get("properties").and_then(Value::as_object).is_some_and(|known| known.contains_key(name))
        });
        if !known {
            report.invalid(
                report.element_path(&path, index),
                format!("found {name}, expected the name of a property"),
            );
        }
    }
}
