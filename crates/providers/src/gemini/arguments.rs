//! Call arguments that are streamed in parts, each with a JSON path.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Maximum depth of a path.
const MAX_DEPTH: usize = 64;

/// A value, or the continuation of a string, for the argument at a path such as `$.lines[0].text`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PartialArg {
    json_path: String,
    #[serde(default)]
    string_value: Option<String>,
    #[serde(default)]
    number_value: Option<Value>,
    #[serde(default)]
    bool_value: Option<bool>,
    // `nullValue` needs no field: without a value the argument becomes null.
}

#[derive(Debug, PartialEq, Eq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// Applies a partial argument: strings are appended, other values are set.
///
/// Returns `None` if the path is invalid or contradicts the structure so far.
pub(super) fn add(arguments: &mut Map<String, Value>, partial: PartialArg) -> Option<()> {
    let steps = steps(&partial.json_path)?;
    let ((PathStep::Key(first), rest), true) = (steps.split_first()?, steps.len() <= MAX_DEPTH) else {
        return None;
    };
    let slot = descend(arguments.entry(first.clone()).or_insert(Value::Null), rest)?;
    let PartialArg { string_value, number_value, bool_value, .. } = partial;
    match (slot, string_value) {
        (Value::String(text), Some(more)) => text.push_str(&more),
        (slot, Some(text)) => *slot = Value::String(text),
        (slot, None) => *slot = number_value.or(bool_value.map(Value::Bool)).unwrap_or_default(),
    }
    Some(())
}

/// Returns the value at a path, creating missing values. A list grows element by element.
fn descend<'a>(start: &'a mut Value, steps: &[PathStep]) -> Option<&'a mut Value> {
    let mut value = start;
    for step in steps {
        if value.is_null() {
            *value = match step {
                PathStep::Key(_) => Value::Object(Map::new()),
                PathStep::Index(_) => Value::Array(Vec::new()),
            };
        }
        value = match (value, step) {
            (Value::Object(map), PathStep::Key(key)) => map.entry(key.clone()).or_insert(Value::Null),
            (Value::Array(list), PathStep::Index(index)) => {
                if *index == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(*index)?
            }
            _ => return None,
        };
    }
    Some(value)
}

/// Parses a path: `$`, then steps such as `.name`, `['name']`, `["name"]` and `[0]`.
fn steps(path: &str) -> Option<Vec<PathStep>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(dotted) = rest.strip_prefix('.') {
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            let (name, after) = dotted.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(PathStep::Key(name.to_owned()));
            rest = after;
        } else {
            let bracketed = rest.strip_prefix('[')?;
            let quote = bracketed.chars().next().filter(|first| matches!(first, '\'' | '"'));
            let (step, after) = match quote {
                Some(quote) => {
                    let (name, after) = bracketed.get(1..)?.split_once(quote)?;
                    (PathStep::Key(name.to_owned()), after.strip_prefix(']')?)
                }
                None => {
                    let (index, after) = bracketed.split_once(']')?;
                    (PathStep::Index(index.parse().ok()?), after)
                }
            };
            steps.push(step);
            rest = after;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn added(pieces: Value) -> Option<Value> {
        let mut arguments = Map::new();
        for piece in serde_json::from_value::<Vec<PartialArg>>(pieces).unwrap() {
            add(&mut arguments, piece)?;
        }
        Some(Value::Object(arguments))
    }

    #[test]
    fn partial_arguments_build_the_object() {
        let pieces = json!([
            {"jsonPath": "$.path", "stringValue": "src/", "willContinue": true},
            {"jsonPath": "$.path", "stringValue": "lib.rs"},
            {"jsonPath": "$.lines[0].text", "stringValue": "a"},
            {"jsonPath": "$.lines[1]['te.xt']", "stringValue": "b"},
            {"jsonPath": "$[\"count\"]", "numberValue": 3},
            {"jsonPath": "$.all", "boolValue": false},
            {"jsonPath": "$.none", "nullValue": "NULL_VALUE"},
        ]);
        let expected = json!({
            "path": "src/lib.rs", "lines": [{"text": "a"}, {"te.xt": "b"}], "count": 3, "all": false, "none": null
        });
        assert_eq!(added(pieces), Some(expected));
    }

    #[test]
    fn invalid_paths_are_refused() {
        for path in [
            "",
            "$",
            "path",
            "$.",
            "$..a",
            "$[0]",
            "$.a[",
            "$.a[x]",
            "$.a['b",
            "$.a[5]",
            "$.a[18446744073709551616]",
        ] {
            assert_eq!(added(json!([{"jsonPath": path, "stringValue": "x"}])), None, "{path}");
        }
        let contradicting =
            json!([{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a.b", "stringValue": "y"}]);
        assert_eq!(added(contradicting), None);
    }

    proptest! {
        #[test]
        fn arbitrary_paths_do_not_panic(paths in prop::collection::vec(r#"\$?([.\[\]'"a0-9]|é){0,8}"#, 0..6)) {
            let mut arguments = Map::new();
            for path in paths {
                let partial = json!({"jsonPath": path, "stringValue": "x"});
                let _ = add(&mut arguments, serde_json::from_value(partial).unwrap());
            }
        }
    }
}
