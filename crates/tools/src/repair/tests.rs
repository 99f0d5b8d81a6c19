use std::time::Instant;

use pintle_test_conditions::cases;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{compile, mistakes};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "file_path": {"type": "string"},
            "limit": {"type": "integer"},
            "ratio": {"type": "number"},
            "all": {"type": "boolean"},
            "mode": {"type": "string", "enum": ["fast", "slow"]},
            "tags": {"type": "array", "items": {"type": "integer"}},
            "range": {
                "type": "object",
                "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
                "required": ["from"],
                "additionalProperties": false,
            },
        },
        "required": ["file_path"],
        "additionalProperties": false,
    })
}

/// Returns the arguments after repair, the repairs, and the remaining mistakes.
fn repaired(schema: &Value, arguments: &Value) -> (Value, Vec<String>, Vec<String>) {
    let validator = compile(schema).unwrap();
    let mut arguments = CallArguments::from(arguments.clone());
    let own = [("where".to_owned(), "file_path".to_owned())];
    let repairs = repair(&validator, schema, &own, &mut arguments);
    let left = mistakes(&validator, &arguments);
    (arguments.into_value(), repairs.iter().map(ToString::to_string).collect(), left)
}

#[test]
fn obvious_mistakes_are_repaired_and_reported() {
    let cases = [
        (json!({"limit": "5"}), json!({"limit": 5}), "`limit`: the number was taken from a text"),
        (json!({"limit": " 5.0 "}), json!({"limit": 5}), "`limit`: the number was taken from a text"),
        (json!({"ratio": "-1.5e3"}), json!({"ratio": -1500.0}), "`ratio`: the number was taken from a text"),
        (json!({"limit": 5.0}), json!({"limit": 5}), "`limit`: the fraction is a whole number"),
        (json!({"all": "True"}), json!({"all": true}), "`all`: true or false was taken from a text"),
        (json!({"limit": null}), json!({}), "`limit`: null was left out"),
        (json!({"mode": null}), json!({}), "`mode`: null was left out"),
        (json!({"tags": "[1, 2]"}), json!({"tags": [1, 2]}), "`tags`: the JSON was taken from a text"),
        (json!({"tags": [1, "2"]}), json!({"tags": [1, 2]}), "`tags.1`: the number was taken from a text"),
        (json!({"tags": [1.0]}), json!({"tags": [1]}), "`tags.0`: the fraction is a whole number"),
        (
            json!({"range": {"from": 1, "to": null}}),
            json!({"range": {"from": 1}}),
            "`range.to`: null was left out",
        ),
    ];
    for (given, expected, repair) in cases {
        let with_path = |mut value: Value| {
            value["file_path"] = json!("a");
            value
        };
        let (value, repairs, left) = repaired(&schema(), &with_path(given.clone()));
        assert_eq!((value, left), (with_path(expected), vec![]), "{given}");
        assert_eq!(repairs, [repair], "{given}");
    }
}

#[test]
fn names_of_other_agents_are_recognized() {
    for name in ["path", "filePath", "file-path", "FILE_PATH", "filename", "absolute_path", "where"] {
        let (value, repairs, left) = repaired(&schema(), &json!({name: "a", "limit": 1}));
        assert_eq!((value, left), (json!({"file_path": "a", "limit": 1}), vec![]), "{name}");
        assert_eq!(repairs, [format!("`file_path`: was called `{name}`")]);
    }
    // Nested ones, too.
    let (value, _, left) = repaired(&schema(), &json!({"file_path": "a", "range": {"From": "1"}}));
    assert_eq!((value, left), (json!({"file_path": "a", "range": {"from": 1}}), vec![]));
}

#[test]
fn a_missing_parameter_is_found_in_open_objects() {
    let open = json!({
        "type": "object",
        "properties": {"command": {"type": "string"}, "url": {"type": "string"}},
        "required": ["command"],
    });
    let (value, repairs, left) = repaired(&open, &json!({"cmd": "ls", "link": "x"}));
    assert_eq!((value, left), (json!({"command": "ls", "link": "x"}), vec![]));
    assert_eq!(repairs, ["`command`: was called `cmd`"]);
}

#[test]
fn ambiguous_arguments_stay_mistakes() {
    let cases = [
        (json!({"file_path": 5}), "`file_path`: expected string, got number 5"),
        (json!({"file_path": null}), "`file_path`: expected string, got null"),
        (json!({"file_path": "a", "limit": "five"}), "`limit`: expected integer, got string \"five\""),
        (json!({"file_path": "a", "limit": "5.5"}), "`limit`: expected integer, got string \"5.5\""),
        (json!({"file_path": "a", "limit": 5.5}), "`limit`: expected integer, got number 5.5"),
        (json!({"file_path": "a", "limit": "1e300"}), "`limit`: expected integer, got string \"1e300\""),
        (json!({"file_path": "a", "limit": ""}), "`limit`: expected integer, got string \"\""),
        (json!({"file_path": "a", "limit": true}), "`limit`: expected integer, got boolean true"),
        (json!({"file_path": "a", "all": "yes"}), "`all`: expected boolean, got string \"yes\""),
        (json!({"file_path": "a", "tags": "{}"}), "`tags`: expected array, got string \"{}\""),
        (json!({"file_path": "a", "tags": [null]}), "`tags.0`: expected integer, got null"),
        (json!({"file_path": "a", "range": {"from": null}}), "`range.from`: expected integer, got null"),
        (json!({"file_path": "a", "path": "b"}), "`path`: no such argument"),
        (json!({"file_path": "a", "colour": 1}), "`colour`: no such argument"),
        // Either could be the path.
        (json!({"path": "a", "filename": "b"}), "`filename`, `path`: no such argument"),
    ];
    for (given, expected) in cases {
        let (value, repairs, left) = repaired(&schema(), &given);
        assert_eq!((value, repairs), (given, vec![]), "{expected}");
        assert!(left.iter().any(|mistake| mistake == expected), "{left:?}, not {expected}");
    }
}

#[test]
fn a_name_for_two_parameters_is_ambiguous() {
    let two = json!({
        "type": "object",
        "properties": {"file_path": {"type": "string"}, "dir_path": {"type": "string"}},
        "additionalProperties": false,
    });
    let (_, repairs, left) = repaired(&two, &json!({"path": "a"}));
    assert_eq!((repairs, left), (vec![], vec!["`path`: no such argument".to_owned()]));
}

#[test]
fn mistakes_inside_json_text_are_repaired() {
    let given = json!({"path": "a", "range": "{\"from\": \"3\", \"to\": null}"});
    let (value, repairs, left) = repaired(&schema(), &given);
    assert_eq!((value, left), (json!({"file_path": "a", "range": {"from": 3}}), vec![]));
    assert_eq!(repairs.len(), 4, "{repairs:?}");
}

#[test]
fn a_repair_round_trips_as_json() {
    let cases = [
        (RepairKind::NumberFromText, json!({"argument": "a", "kind": "number_from_text"})),
        (
            RepairKind::Renamed { from: "b".into() },
            json!({"argument": "a", "kind": {"renamed": {"from": "b"}}}),
        ),
    ];
    for (kind, expected) in cases {
        let repair = ArgumentRepair::new("a", kind);
        assert_eq!(serde_json::to_value(&repair).unwrap(), expected);
        assert_eq!(serde_json::from_value::<ArgumentRepair>(expected).unwrap(), repair);
    }
}

/// Returns one of the 65,536 spellings of a name of eight letters, with variations of case and dashes.
fn spelling(name: &str, number: usize) -> String {
    let letters = name.chars().enumerate().map(|(at, letter)| {
        let letter = if number >> at & 1 == 1 { letter.to_ascii_uppercase() } else { letter };
        let dash = if number >> (at + 8) & 1 == 1 { "-" } else { "" };
        format!("{letter}{dash}")
    });
    letters.collect()
}

#[test]
fn megabytes_are_repaired_in_linear_time() {
    let scale = cases(1, 5);
    let long = "x".repeat(2_000_000 * scale);
    let numbers: Vec<Value> = (0..60_000 * scale).map(|_| json!("7")).collect();
    let names: Map<String, Value> = (0..100_000 * scale).map(|n| (format!("name{n}"), json!(1))).collect();
    let spellings: Map<String, Value> =
        (0..10_000 * scale).map(|n| (spelling("filepath", n), json!(1))).collect();
    let calls = [
        json!({"path": long.as_str()}),
        json!({"file_path": "a", "limit": long.as_str()}),
        json!({"file_path": "a", "tags": long.as_str()}),
        json!({long.as_str(): 1}),
        json!({"file_path": "a", "tags": numbers}),
        json!({"range": names}),
        Value::Object(names),
        Value::Object(spellings),
    ];
    for given in calls {
        let start = Instant::now();
        let (_, _, left) = repaired(&schema(), &given);
        assert!(left.iter().all(|mistake| mistake.len() < 1_000), "{}", left.len());
        assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z0-9{}\\[\\]\":,. ]{0,8}".prop_map(Value::from),
        any::<i16>().prop_map(|number| Value::from(number.to_string())),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop_oneof![
            Just("file_path"),
            Just("path"),
            Just("filePath"),
            Just("limit"),
            Just("tags"),
            Just("range"),
            Just("from"),
            Just("all"),
            Just("mode"),
            Just("other/~x"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|map| map.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn repair_is_idempotent_and_never_panics(given in value()) {
        let (once, repairs, left) = repaired(&schema(), &given);
        let (twice, again, _) = repaired(&schema(), &once);
        if left.is_empty() {
            prop_assert_eq!(&once, &twice);
            prop_assert!(again.is_empty(), "{:?}", again);
        }
        if repairs.is_empty() {
            prop_assert_eq!(&once, &given);
        }
    }

    #[test]
    fn valid_arguments_stay_unchanged(path in ".*", limit in any::<i64>(), ratio in any::<f64>(), all in any::<bool>()) {
        let given = json!({"file_path": path, "limit": limit, "ratio": ratio, "all": all, "tags": [limit]});
        prop_assume!(ratio.is_finite());
        let (value, repairs, left) = repaired(&schema(), &given);
        prop_assert_eq!(value, given);
        prop_assert!(repairs.is_empty() && left.is_empty());
    }
}
