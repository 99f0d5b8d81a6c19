//! Schemas of parameters for providers that refuse choices and references at the root.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

/// Keywords that these providers refuse at the root, although JSON Schema allows them.
const REFUSED: [&str; 5] = ["allOf", "anyOf", "enum", "not", "oneOf"];

const REFERENCE: &str = "$ref";

/// Most schemas that are read for the properties of one tool. References can lead back to a schema.
const MAX_SCHEMAS: usize = 256;

/// Returns the schema without the refused keywords at its root, and without a reference to one of its definitions. It has the
/// properties of all alternatives and of the definition; those that each alternative requires are required. A reference to
/// another document stays.
pub(super) fn without_choices(schema: &Value) -> Cow<'_, Value> {
    let is_reference = referenced(schema, schema).is_some();
    let is_refused =
        |map: &&Map<String, Value>| is_reference || REFUSED.iter().any(|keyword| map.contains_key(*keyword));
    let Some(map) = schema.as_object().filter(is_refused) else { return Cow::Borrowed(schema) };
    let Shape { properties, required } = Reader { root: schema, left: MAX_SCHEMAS }.shape(schema);
    let mut plain = map.clone();
    REFUSED.iter().for_each(|keyword| drop(plain.remove(*keyword)));
    if is_reference {
        plain.remove(REFERENCE);
        add_referenced(&mut plain, schema);
    }
    plain.insert("properties".to_owned(), Value::Object(properties));
    if required.is_empty() {
        plain.remove("required");
    } else {
        plain.insert("required".to_owned(), json!(required));
    }
    Cow::Owned(Value::Object(plain))
}

/// Returns the definition to which a schema in `root` refers.
fn referenced<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema.get(REFERENCE)?.as_str()?.strip_prefix('#')?)
}

/// Adds other keywords, such as the description, of the definition that the root refers to, and of those that it refers to in
/// turn. Keywords of the root take precedence.
fn add_referenced(plain: &mut Map<String, Value>, root: &Value) {
    let mut schema = root;
    for _ in 0..MAX_SCHEMAS {
        let Some(target) = referenced(root, schema) else { return };
        for (keyword, value) in target.as_object().into_iter().flatten() {
            let is_other = keyword != REFERENCE && !REFUSED.contains(&keyword.as_str());
            if is_other && !plain.contains_key(keyword) {
                plain.insert(keyword.clone(), value.clone());
            }
        }
        schema = target;
    }
}

/// Properties of an object, and the names of those that it must have.
#[derive(Default)]
struct Shape {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Shape {
    fn require(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if !self.required.contains(&name) {
                self.required.push(name);
            }
        }
    }

    /// Adds the properties of alternatives. One that several of them describe differently may have any of the forms.
    fn add_alternatives(&mut self, shapes: Vec<Map<String, Value>>) {
        let mut forms: Map<String, Value> = Map::new();
        for (name, property) in shapes.into_iter().flatten() {
            match forms.get_mut(&name).and_then(Value::as_array_mut) {
                Some(known) if known.contains(&property) => {}
                Some(known) => known.push(property),
                None => drop(forms.insert(name, json!([property]))),
            }
        }
        for (name, forms) in forms {
            let property = match forms.as_array().map(Vec::as_slice) {
                Some([only]) => only.clone(),
                Some(_) | None => json!({"anyOf": forms}),
            };
            self.properties.entry(name).or_insert(property);
        }
    }
}

struct Reader<'a> {
    root: &'a Value,
    /// Schemas that may still be read.
    left: usize,
}

impl Reader<'_> {
    fn shape(&mut self, value: &Value) -> Shape {
        let mut shape = Shape::default();
        let Some(schema) = value.as_object().filter(|_| self.left > 0) else { return shape };
        self.left -= 1;
        if let Some(Value::Object(properties)) = schema.get("properties") {
            shape.properties = properties.clone();
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        shape.require(required.filter_map(Value::as_str).map(str::to_owned));
        let root = self.root;
        let referenced = referenced(root, value);
        let all = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        for part in referenced.into_iter().chain(all) {
            let part = self.shape(part);
            shape.add_alternatives(vec![part.properties]);
            shape.require(part.required);
        }
        for keyword in ["anyOf", "oneOf"] {
            let Some(Value::Array(choices)) = schema.get(keyword) else { continue };
            let choices: Vec<Shape> = choices.iter().map(|choice| self.shape(choice)).collect();
            let is_required = |name: &String| choices.iter().all(|choice| choice.required.contains(name));
            let first = choices.first().map(|choice| choice.required.as_slice()).unwrap_or_default();
            let common: Vec<String> = first.iter().filter(|name| is_required(name)).cloned().collect();
            shape.require(common);
            shape.add_alternatives(choices.into_iter().map(|choice| choice.properties).collect());
        }
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_become_one_object() {
        let text = json!({"type": "string"});
        let number = json!({"type": "number"});
        for (schema, plain) in [
            // At least one of two properties.
            (
                json!({"type": "object", "properties": {"title": text, "body": text},
                    "anyOf": [{"required": ["title"]}, {"required": ["body"]}]}),
                json!({"type": "object", "properties": {"title": text, "body": text}}),
            ),
            // Alternatives with their own properties.
            (
                json!({"type": "object", "oneOf": [
                    {"properties": {"kind": {"const": "a"}, "x": text}, "required": ["kind", "x"]},
                    {"properties": {"kind": {"const": "b"}, "x": text, "y": number}, "required": ["kind"]},
                ]}),
                json!({"type": "object", "required": ["kind"], "properties": {
                    "kind": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "x": text, "y": number,
                }}),
            ),
            // Parts that all hold, one of them by a reference.
            (
                json!({"type": "object", "properties": {"x": text}, "required": ["x"],
                    "allOf": [{"$ref": "#/$defs/more"}, {"properties": {"x": number}}],
                    "$defs": {"more": {"properties": {"y": number}, "required": ["x", "y"]}}}),
                json!({"type": "object", "properties": {"x": text, "y": number}, "required": ["x", "y"],
                    "$defs": {"more": {"properties": {"y": number}, "required": ["x", "y"]}}}),
            ),
            // References that never end, and keywords with other values.
            (
                json!({"type": "object", "anyOf": [{"$ref": "#"}, {"$ref": "#"}], "not": {"required": ["x"]}}),
                json!({"type": "object", "properties": {}}),
            ),
            (json!({"type": "object", "allOf": 7, "enum": []}), json!({"type": "object", "properties": {}})),
            // A definition as the root, as generators of schemas write it.
            (
                json!({"type": "object", "$ref": "#/$defs/args", "$defs": {
                    "args": {"type": "object", "description": "Takes.", "additionalProperties": false,
                        "properties": {"x": {"$ref": "#/$defs/more"}}, "required": ["x"]},
                    "more": text,
                }}),
                json!({"type": "object", "description": "Takes.", "additionalProperties": false,
                    "properties": {"x": {"$ref": "#/$defs/more"}}, "required": ["x"], "$defs": {
                    "args": {"type": "object", "description": "Takes.", "additionalProperties": false,
                        "properties": {"x": {"$ref": "#/$defs/more"}}, "required": ["x"]},
                    "more": text,
                }}),
            ),
            // By way of another definition, with choices in it.
            (
                json!({"type": "object", "description": "Own.", "$ref": "#/definitions/a", "definitions": {
                    "a": {"$ref": "#/definitions/b"},
                    "b": {"description": "Other.", "anyOf": [{"properties": {"x": text}}]},
                }}),
                json!({"type": "object", "description": "Own.", "properties": {"x": text}, "definitions": {
                    "a": {"$ref": "#/definitions/b"},
                    "b": {"description": "Other.", "anyOf": [{"properties": {"x": text}}]},
                }}),
            ),
            (json!({"type": "object", "$ref": "#"}), json!({"type": "object", "properties": {}})),
        ] {
            assert_eq!(*without_choices(&schema), plain, "{schema}");
        }
    }

    #[test]
    fn other_schemas_stay_as_they_are() {
        for schema in [
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"anyOf": {"anyOf": [{"type": "string"}]}}}),
            json!({"type": "object", "$ref": "#/$defs/missing"}),
            json!({"type": "object", "$ref": "https://example.com/schema.json"}),
        ] {
            assert!(matches!(without_choices(&schema), Cow::Borrowed(_)), "{schema}");
        }
    }
}
