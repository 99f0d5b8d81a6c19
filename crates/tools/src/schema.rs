//! Schemas of typed inputs, and validation errors as text for a model.

use pintle_llm::schema::{CompiledSchema, Draft, SchemaError, Violation, ViolationKind};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Returns the JSON Schema of `T` in the format that providers expect: an object with all definitions inline, without
/// titles, that allows no unknown properties.
pub(crate) fn parameters_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    as_parameters(settings.into_generator().into_root_schema_for::<T>().into())
}

/// Converts a schema to the format that providers expect. Separate from [`parameters_of`], so that it is compiled once.
fn as_parameters(mut schema: Value) -> Value {
    simplify(&mut schema);
    if let Value::Object(root) = &mut schema {
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        root.insert("additionalProperties".into(), Value::Bool(false));
    }
    schema
}

/// Removes parts that a model does not need: titles, number formats, and `null` as a value of an optional field.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            drop_null(map);
            // A property may be called "title". Only the keyword has a string as its value.
            if map.get("title").is_some_and(Value::is_string) {
                map.remove("title");
            }
            if map.get("format").is_some_and(Value::is_string) {
                map.remove("format");
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = unwrapped(text);
            }
            if map.get("default").is_some_and(Value::is_null) {
                map.remove("default");
            }
            map.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Joins the lines of each paragraph.
fn unwrapped(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|paragraph| paragraph.lines().collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n")
}

/// Removes `null` from the types of an optional field: a model should leave the field out instead.
fn drop_null(map: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = map.get_mut("type")
        && types.iter().any(|kind| kind == "null")
    {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".into(), only);
        }
        if let Some(Value::Array(values)) = map.get_mut("enum") {
            values.retain(|value| !value.is_null());
        }
    }
    let is_null = |schema: &Value| schema.get("type").is_some_and(|kind| kind == "null");
    if let Some(Value::Array(choices)) = map.get_mut("anyOf")
        && choices.iter().any(is_null)
    {
        choices.retain(|choice| !is_null(choice));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            map.remove("anyOf");
            // The keywords of the field take precedence over the keywords of its type.
            for (keyword, value) in only {
                map.entry(keyword).or_insert(value);
            }
        }
    }
}

/// Compiles a schema.
///
/// # Errors
///
/// An invalid schema, and without the feature `jsonschema` one with keywords that types do not need.
pub(crate) fn compile(schema: &Value) -> Result<CompiledSchema, SchemaError> {
    CompiledSchema::new(schema, Draft::Draft7)
}

/// Returns one line per mistake: the argument's name, the expected value, and the found value. Empty if the arguments
/// fit.
pub(crate) fn mistakes(schema: &CompiledSchema, arguments: &Value) -> Vec<String> {
    const MAX_MISTAKES: usize = 8;
    const MAX_CHARS: usize = 500;
    let violations = schema.violations(arguments, MAX_MISTAKES);
    violations.iter().map(|violation| shortened(mistake(violation), MAX_CHARS)).collect()
}

fn mistake(violation: &Violation<'_>) -> String {
    let path = violation.path().trim_start_matches('/').replace('/', ".");
    let argument = if path.is_empty() { "the arguments".to_owned() } else { format!("`{path}`") };
    // The value may be long, and the model knows it.
    let by_message = || format!("{argument}: {}", violation.message_with("the value"));
    match violation.kind() {
        ViolationKind::Required { property } => {
            let name = if path.is_empty() { property.clone() } else { format!("{path}.{property}") };
            format!("`{name}`: required, but missing")
        }
        ViolationKind::Unexpected { properties } => {
            let names: Vec<String> = properties.iter().map(|name| format!("`{name}`")).collect();
            format!("{}: no such argument", names.join(", "))
        }
        ViolationKind::Type { expected } => {
            let expected: Vec<&str> = expected.iter().map(|kind| kind.name()).collect();
            format!("{argument}: expected {}, got {}", expected.join(" or "), described(violation.value()))
        }
        ViolationKind::Enum { options } => {
            format!("{argument}: expected one of {options}, got {}", described(violation.value()))
        }
        ViolationKind::Other => by_message(),
        _ => by_message(),
    }
}

/// Returns the type of a value and the start of the value.
fn described(value: &Value) -> String {
    const MAX_CHARS: usize = 60;
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{kind} {}", shortened(value.to_string(), MAX_CHARS))
}

/// Cuts a text to `limit` characters, and adds an ellipsis if it was longer.
pub(crate) fn shortened(mut text: String, limit: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(limit) {
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    /// Not visible to the model.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Input {
        /// The file.
        path: String,
        /// The most
        /// lines.
        #[serde(default)]
        limit: Option<u32>,
        /// The speed.
        mode: Option<Mode>,
        /// A field named like the keyword.
        title: Option<String>,
        /// The first line.
        start: Option<Position>,
    }

    /// A position.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Position {
        line: usize,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        Fast,
        Slow,
    }

    #[test]
    fn a_typed_input_becomes_a_plain_schema() {
        assert_eq!(
            parameters_of::<Input>(),
            json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file."},
                    "limit": {"type": "integer", "minimum": 0, "description": "The most lines."},
                    "mode": {"type": "string", "enum": ["fast", "slow"], "description": "The speed."},
                    "title": {"type": "string", "description": "A field named like the keyword."},
                    "start": {
                        "type": "object",
                        "description": "The first line.",
                        "properties": {"line": {"type": "integer", "minimum": 0}},
                        "required": ["line"],
                    },
                },
                "required": ["path"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn a_mistake_does_not_repeat_a_long_value() {
        let schema = json!({
            "type": "object",
            "properties": {"text": {"type": "string", "maxLength": 3}},
            "additionalProperties": false,
        });
        let validator = compile(&schema).unwrap();
        let long = "x".repeat(100_000);
        let listed = mistakes(&validator, &json!({"text": long.as_str()}));
        assert_eq!(listed, ["`text`: the value is longer than 3 characters"]);
        let listed = mistakes(&validator, &json!({long.as_str(): 1}));
        assert!(listed[0].len() < 600 && listed[0].ends_with('…'), "{listed:?}");
    }

    #[test]
    fn mistakes_name_argument_expectation_and_value() {
        let validator = compile(&parameters_of::<Input>()).unwrap();
        let cases = [
            (json!({"path": "a", "limit": 3}), vec![]),
            (json!({}), vec!["`path`: required, but missing"]),
            (json!({"path": 5}), vec!["`path`: expected string, got number 5"]),
            (json!({"path": "a", "limit": "x"}), vec!["`limit`: expected integer, got string \"x\""]),
            (json!({"path": "a", "colour": 1}), vec!["`colour`: no such argument"]),
            (
                json!({"path": "a", "mode": "odd"}),
                vec!["`mode`: expected one of [\"fast\",\"slow\"], got string \"odd\""],
            ),
            (json!("text"), vec!["the arguments: expected object, got string \"text\""]),
        ];
        for (arguments, expected) in cases {
            assert_eq!(mistakes(&validator, &arguments), expected, "{arguments}");
        }
    }
}
