//! Arguments of a call that come in pieces, each under a JSON path.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The deepest path that is followed; a longer one is no argument list of a tool.
const DEEPEST: usize = 64;

/// One piece: a value, or more of a string, for the argument at a path such as `$.lines[0].text`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece {
    json_path: String,
    #[serde(default)]
    string_value: Option<String>,
    #[serde(default)]
    number_value: Option<Value>,
    #[serde(default)]
    bool_value: Option<bool>,
    // Nothing is left to say: null, which a fresh place is already. `nullValue` needs no field.
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// Puts a piece into its place. Strings grow, everything else is set.
///
/// `None` if the path is none, or leads elsewhere than the pieces before it.
pub(super) fn add(arguments: &mut Map<String, Value>, piece: Piece) -> Option<()> {
    let steps = steps(&piece.json_path)?;
    let ((Step::Key(first), rest), true) = (steps.split_first()?, steps.len() <= DEEPEST) else {
        return None;
    };
    let slot = descend(arguments.entry(first.clone()).or_insert(Value::Null), rest)?;
    let Piece { string_value, number_value, bool_value, .. } = piece;
    match (slot, string_value) {
        (Value::String(text), Some(more)) => text.push_str(&more),
        (slot, Some(text)) => *slot = Value::String(text),
        (slot, None) => *slot = number_value.or(bool_value.map(Value::Bool)).unwrap_or_default(),
    }
    Some(())
}

/// Walks from a value along a path and makes what is missing. A list grows by one element at a time.
fn descend<'a>(start: &'a mut Value, steps: &[Step]) -> Option<&'a mut Value> {
    let mut place = start;
    for step in steps {
        if place.is_null() {
            *place = match step {
                Step::Key(_) => Value::Object(Map::new()),
                Step::Index(_) => Value::Array(Vec::new()),
            };
        }
        place = match (place, step) {
            (Value::Object(map), Step::Key(key)) => map.entry(key.clone()).or_insert(Value::Null),
            (Value::Array(list), Step::Index(index)) => {
                if *index == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(*index)?
            }
            _ => return None,
        };
    }
    Some(place)
}

/// The steps of a path: `.name`, `['name']`, `["name"]` and `[0]` after a `$`.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(dotted) = rest.strip_prefix('.') {
            let end = dotted.find(['.', '[']).unwrap_or(dotted.len());
            let (name, after) = dotted.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Key(name.to_owned()));
            rest = after;
        } else {
            let bracketed = rest.strip_prefix('[')?;
            let quote = bracketed.chars().next().filter(|first| matches!(first, '\'' | '"'));
            let (step, after) = match quote {
                Some(quote) => {
                    let (name, after) = bracketed.get(1..)?.split_once(quote)?;
                    (Step::Key(name.to_owned()), after.strip_prefix(']')?)
                }
                None => {
                    let (index, after) = bracketed.split_once(']')?;
                    (Step::Index(index.parse().ok()?), after)
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
        for piece in serde_json::from_value::<Vec<Piece>>(pieces).unwrap() {
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
        let twisted =
            json!([{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.a.b", "stringValue": "y"}]);
        assert_eq!(added(twisted), None);
    }

    proptest! {
        #[test]
        fn arbitrary_paths_do_not_panic(paths in prop::collection::vec(r#"\$?([.\[\]'"a0-9]|é){0,8}"#, 0..6)) {
            let mut arguments = Map::new();
            for path in paths {
                let piece = json!({"jsonPath": path, "stringValue": "x"});
                let _ = add(&mut arguments, serde_json::from_value(piece).unwrap());
            }
        }
    }
}
