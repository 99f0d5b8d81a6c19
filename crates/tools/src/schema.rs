//! Schemas of typed inputs, and mistakes in arguments told so that a model can mend them.

use jsonschema::Validator;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The JSON Schema of `T` as providers want it: an object, everything inline, no titles, nothing unknown allowed.
pub(crate) fn parameters_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = Value::from(settings.into_generator().into_root_schema_for::<T>());
    tidy(&mut schema);
    if let Value::Object(root) = &mut schema {
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        root.insert("additionalProperties".into(), Value::Bool(false));
    }
    schema
}

/// Takes out what says nothing to a model: titles, number formats, `null` as the other value of an optional field.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            drop_null(map);
            // A property may be called "title"; only the keyword, whose value is a text, goes.
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
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A text without the line breaks that only keep the source narrow; those between paragraphs stay.
fn unwrapped(text: &str) -> String {
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|paragraph| paragraph.lines().collect::<Vec<_>>().join(" ")).collect();
    paragraphs.join("\n\n")
}

/// An optional field is one that may be missing; that it may also be `null` is Rust's affair, not the model's.
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
            // What the field says of itself comes before what its type says.
            for (keyword, value) in only {
                map.entry(keyword).or_insert(value);
            }
        }
    }
}

/// A compiled schema.
///
/// # Errors
///
/// What is wrong with the schema.
pub(crate) fn compile(schema: &Value) -> Result<Validator, Box<jsonschema::ValidationError<'static>>> {
    jsonschema::draft7::new(schema).map_err(Box::new)
}

/// One line per mistake: the argument's name, what was expected and what came. Empty if the arguments fit.
pub(crate) fn mistakes(validator: &Validator, arguments: &Value) -> Vec<String> {
    const SHOWN: usize = 8;
    const LIMIT: usize = 500;
    validator.iter_errors(arguments).take(SHOWN).map(|error| shortened(mistake(&error), LIMIT)).collect()
}

fn mistake(error: &jsonschema::ValidationError<'_>) -> String {
    let path = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
    let place = if path.is_empty() { "the arguments".to_owned() } else { format!("`{path}`") };
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "for the rest the validator's own sentence is good enough"
    )]
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let name = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            format!("`{name}`: required, but missing")
        }
        ValidationErrorKind::AdditionalProperties { unexpected } => {
            let names: Vec<String> = unexpected.iter().map(|name| format!("`{name}`")).collect();
            format!("{}: no such argument", names.join(", "))
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            format!("{place}: expected {expected}, got {}", shown(error.instance()))
        }
        ValidationErrorKind::Enum { options } => {
            format!("{place}: expected one of {options}, got {}", shown(error.instance()))
        }
        // The value itself may be long, and the model knows it.
        _ => format!("{place}: {}", error.masked_with("the value")),
    }
}

/// A value with its type, short enough to read.
fn shown(value: &Value) -> String {
    const LIMIT: usize = 60;
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{kind} {}", shortened(value.to_string(), LIMIT))
}

/// A text of at most `limit` characters and, if it was longer, an ellipsis.
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

    /// Not for the model.
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is looked at")]
    struct Input {
        /// Where.
        path: String,
        /// How
        /// many.
        #[serde(default)]
        limit: Option<u32>,
        /// In which way.
        mode: Option<Mode>,
        /// A field that is called as the keyword.
        title: Option<String>,
        /// Where it begins.
        start: Option<Position>,
    }

    /// A place.
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
                    "path": {"type": "string", "description": "Where."},
                    "limit": {"type": "integer", "minimum": 0, "description": "How many."},
                    "mode": {"type": "string", "enum": ["fast", "slow"], "description": "In which way."},
                    "title": {"type": "string", "description": "A field that is called as the keyword."},
                    "start": {
                        "type": "object",
                        "description": "Where it begins.",
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
    fn a_mistake_does_not_repeat_what_is_long() {
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
    fn mistakes_name_the_argument_what_was_expected_and_what_came() {
        let validator = compile(&parameters_of::<Input>()).unwrap();
        let rows = [
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
        for (arguments, expected) in rows {
            assert_eq!(mistakes(&validator, &arguments), expected, "{arguments}");
        }
    }
}
