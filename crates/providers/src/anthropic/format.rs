//! Response formats: enforced by newer models, else an instruction.

use pintle_llm::{Request, ResponseFormat};
use serde_json::{Map, Value, json};

use super::reasoning::generation;

/// The first generation of models that enforces a schema.
const FIRST_GENERATION: (u32, u32) = (4, 5);

/// Keywords that the API refuses. The caller checks them in the response.
const REFUSED: &[&str] = &[
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "multipleOf",
    "pattern",
];

/// Formats of strings that the API accepts.
const STRING_FORMATS: &[&str] =
    &["date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"];

/// Returns the value of `output_config.format`; `None` if the model cannot enforce the format of the request.
pub(super) fn enforced(request: &Request) -> Option<Value> {
    let Some(ResponseFormat::JsonSchema { json_schema, strict: true }) = &request.response_format else {
        return None;
    };
    // Compatible servers have other models, and not this parameter.
    let is_new = generation(&request.model).is_some_and(|generation| generation >= FIRST_GENERATION);
    let is_known = request.model.contains("claude") && is_new;
    let schema = is_known.then(|| accepted(json_schema)).flatten()?;
    Some(json!({"type": "json_schema", "schema": schema}))
}

/// Returns the schema without the keywords that the API refuses; `None` if it is recursive or an object is not closed.
fn accepted(schema: &Value) -> Option<Value> {
    let Value::Object(map) = schema else { return None };
    if map.contains_key("$ref") || (describes_object(map) && !is_closed(map)) {
        return None;
    }
    let mut kept = Map::new();
    for (keyword, value) in map {
        let is_refused = REFUSED.contains(&keyword.as_str())
            || (keyword == "format" && !value.as_str().is_some_and(|name| STRING_FORMATS.contains(&name)));
        if is_refused {
            continue;
        }
        let value = match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let properties =
                    properties.iter().map(|(name, inner)| Some((name.clone(), accepted(inner)?)));
                Value::Object(properties.collect::<Option<_>>()?)
            }
            ("items", inner) => accepted(inner)?,
            ("anyOf", Value::Array(choices)) => {
                Value::Array(choices.iter().map(accepted).collect::<Option<_>>()?)
            }
            (_, value) => value.clone(),
        };
        kept.insert(keyword.clone(), value);
    }
    Some(Value::Object(kept))
}

fn describes_object(map: &Map<String, Value>) -> bool {
    let is_object = |kind: &Value| kind == "object";
    let by_type = map
        .get("type")
        .is_some_and(|kind| kind.as_array().map_or(is_object(kind), |kinds| kinds.iter().any(is_object)));
    by_type || map.contains_key("properties")
}

fn is_closed(map: &Map<String, Value>) -> bool {
    map.get("additionalProperties") == Some(&Value::Bool(false))
}

/// Returns the instruction for a format that is not enforced; the specification (section 4.5) allows one.
pub(super) fn instruction(request: &Request) -> Option<String> {
    const BARE: &str = "Answer with one JSON value and nothing else: no text around it, no Markdown fence.";
    if enforced(request).is_some() {
        return None;
    }
    match request.response_format.as_ref()? {
        ResponseFormat::Json => Some(BARE.to_owned()),
        ResponseFormat::JsonSchema { json_schema, .. } => {
            Some(format!("{BARE} The value must be valid against this JSON Schema:\n{json_schema}"))
        }
        ResponseFormat::Text | _ => None,
    }
}

#[cfg(test)]
mod tests {
    use pintle_llm::Message;

    use super::*;

    fn request(model: &str, json_schema: &Value, strict: bool) -> Request {
        let format = ResponseFormat::JsonSchema { json_schema: json_schema.clone(), strict };
        Request::new(model, [Message::user("x")]).with_response_format(format)
    }

    #[test]
    fn newer_models_enforce_closed_schemas() {
        let count = json!({"type": "integer", "format": "uint32", "minimum": 0});
        let schema = json!({"type": "object", "required": ["count", "minimum"], "additionalProperties": false,
            "properties": {"count": count, "minimum": {"type": "string", "format": "date"}}});
        let expected = json!({"type": "json_schema", "schema": {"type": "object", "required": ["count", "minimum"],
            "additionalProperties": false,
            "properties": {"count": {"type": "integer"}, "minimum": {"type": "string", "format": "date"}}}});
        for model in ["claude-sonnet-4-5", "claude-opus-4-6", "claude-haiku-4-5-20251001"] {
            let request = request(model, &schema, true);
            assert_eq!(
                (enforced(&request), instruction(&request)),
                (Some(expected.clone()), None),
                "{model}"
            );
        }
    }

    #[test]
    fn other_models_and_schemas_get_an_instruction() {
        let closed = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let recursive = json!({"type": "object", "additionalProperties": false, "required": ["next"],
            "properties": {"next": {"$ref": "#"}}});
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let cases = [
            ("claude-opus-4-1", &closed, true),
            ("claude-3-7-sonnet", &closed, true),
            ("deepseek-chat", &closed, true),
            ("claude-opus-4-6", &closed, false),
            ("claude-opus-4-6", &recursive, true),
            ("claude-opus-4-6", &open, true),
        ];
        for (model, schema, strict) in cases {
            let request = request(model, schema, strict);
            assert_eq!(enforced(&request), None, "{model} {schema}");
            assert!(instruction(&request).is_some_and(|text| text.ends_with(&schema.to_string())), "{model}");
        }
    }
}
