//! The small validator: cases with their messages, and the same verdicts as the crate for all schemas.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Returns path and message of each violation.
fn violations(schema: &Value, value: &Value, draft: Draft) -> Vec<String> {
    let schema = SmallSchema::compile(schema, draft).unwrap();
    schema.violations(value).iter().map(|found| format!("{} {found}", found.path())).collect()
}

fn reference(schema: &Value, draft: Draft) -> jsonschema::Validator {
    match draft {
        Draft::Draft7 => jsonschema::draft7::new(schema).unwrap(),
        Draft::Draft202012 => jsonschema::draft202012::new(schema).unwrap(),
    }
}

/// Schemas with values of which some fit.
fn cases() -> Vec<(Value, Vec<Value>)> {
    let point = json!({
        "type": "object",
        "properties": {"x": {"type": "integer", "minimum": 0}, "a/b": {"type": ["string", "null"]}},
        "required": ["x", "y"],
        "additionalProperties": false,
    });
    let tree = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "below": {"type": "array", "items": {"$ref": "#"}},
            "best": {"anyOf": [{"$ref": "#/definitions/leaf"}, {"type": "null"}]},
        },
        "required": ["name"],
        "definitions": {"leaf": {"type": "object", "properties": {"name": {"const": "leaf"}}}},
    });
    vec![
        (json!({"type": "integer"}), vec![json!(1), json!(1.0), json!(1.5), json!("1"), json!(u64::MAX)]),
        (json!({"type": ["number", "null"]}), vec![json!(1.5), json!(null), json!("a"), json!([])]),
        (json!({"enum": ["a", 1, null]}), vec![json!("a"), json!(1.0), json!(2)]),
        (json!({"enum": [1, 2, 3, 4, 5]}), vec![json!(5), json!(6)]),
        (json!({"enum": ["only"]}), vec![json!("only"), json!("other")]),
        (json!({"const": {"a": [1]}}), vec![json!({"a": [1.0]}), json!({"a": [2]})]),
        (json!({"minimum": 1, "maximum": 2.5}), vec![json!(0), json!(1), json!(2.5), json!(3), json!("3")]),
        (json!({"exclusiveMinimum": 1, "exclusiveMaximum": 3}), vec![json!(1), json!(2), json!(3)]),
        (
            json!({"maximum": 9_007_199_254_740_993_u64}),
            vec![json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_994_u64)],
        ),
        (json!({"minLength": 2, "maxLength": 3}), vec![json!("é"), json!("éé"), json!("éééé"), json!(1)]),
        (json!({"minLength": 1}), vec![json!(""), json!("a")]),
        (
            json!({"minItems": 1, "maxItems": 2, "uniqueItems": true}),
            vec![json!([]), json!([1, 1.0]), json!([1, 2, 3])],
        ),
        (
            json!({"minProperties": 1, "maxProperties": 1}),
            vec![json!({}), json!({"a": 1}), json!({"a": 1, "b": 2})],
        ),
        (
            point,
            vec![
                json!({"x": 1, "y": 2}),
                json!({"x": 1}),
                json!({"x": -1, "a/b": 5, "z": 1, "~": 2}),
                json!([]),
            ],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            vec![json!({"a": 1}), json!({"a": "b", "c": "d"})],
        ),
        (
            json!({"type": "object", "patternProperties": {r"^-?\d+$": {"type": "string"}}, "additionalProperties": false}),
            vec![json!({"-5": "a"}), json!({"5": 1}), json!({"a": "b"}), json!({"-": "b"})],
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}),
            vec![json!(1), json!(3), json!(1.5), json!(2.5)],
        ),
        (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), vec![json!(1), json!(null), json!("a")]),
        (json!({"allOf": [{"type": "integer"}, {"minimum": 2}]}), vec![json!(1), json!("a"), json!(2)]),
        (json!({"not": {"const": 0}}), vec![json!(0), json!(1)]),
        (
            tree,
            vec![
                json!({"name": "a", "below": [{"name": "b"}, {"name": 5}, {}]}),
                json!({"name": "a", "best": {"name": "leaf"}}),
                json!({"name": "a", "best": {"name": "root"}}),
            ],
        ),
        (json!({"$ref": "#"}), vec![json!(1)]),
        (
            json!({"title": "A", "description": "B", "x-note": 1, "default": 5, "format": "uint32"}),
            vec![json!(1)],
        ),
    ]
}

#[test]
fn violations_are_those_of_the_crate_for_all_schemas() {
    for draft in [Draft::Draft7, Draft::Draft202012] {
        for (schema, values) in cases() {
            let reference = reference(&schema, draft);
            for value in values {
                let mut expected: Vec<String> = reference
                    .iter_errors(&value)
                    .map(|error| format!("{} {error}", error.instance_path()))
                    .collect();
                let mut found = violations(&schema, &value, draft);
                expected.sort();
                found.sort();
                assert_eq!(found, expected, "{schema} {value}");
            }
        }
    }
}

#[test]
fn messages_name_what_is_expected() {
    let cases = [
        (json!({"type": "integer"}), json!("a"), r#" "a" is not of type "integer""#),
        (json!({"required": ["a"]}), json!({}), r#" "a" is a required property"#),
        (
            json!({"additionalProperties": false}),
            json!({"a": 1, "b": 2}),
            " Additional properties are not allowed ('a', 'b' were unexpected)",
        ),
        (json!({"items": {"maximum": 5}}), json!([1, 6]), "/1 6 is greater than the maximum of 5"),
        (json!({"properties": {"a": false}}), json!({"a": 1}), "/a False schema does not allow 1"),
    ];
    for (schema, value, expected) in cases {
        assert_eq!(violations(&schema, &value, Draft::Draft202012), [expected], "{schema}");
    }
}

#[test]
fn a_violation_names_the_positions_of_value_and_keyword() {
    let schema =
        json!({"properties": {"a": {"$ref": "#/$defs/b"}}, "$defs": {"b": {"items": {"type": "string"}}}});
    let compiled = CompiledSchema::new(&schema, Draft::Draft202012).unwrap();
    let value = json!({"a": ["x", 5]});
    let found = compiled.violations(&value, 8);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].path(), found[0].schema_path()), ("/a/1", "/$defs/b/items/type"));
    assert_eq!(found[0].value(), &json!(5));
    assert_eq!(found[0].kind(), &ViolationKind::Type { expected: vec![ValueType::String] });
    assert_eq!(found[0].message_with("the value"), "the value is not of type \"string\"");
    assert!(compiled.violations(&value, 0).is_empty() && !compiled.is_valid(&value));
}

#[test]
fn tuples_are_read_as_the_draft_has_them() {
    let old = json!({"items": [{"type": "string"}], "additionalItems": {"type": "integer"}});
    let new = json!({"prefixItems": [{"type": "string"}], "items": {"type": "integer"}});
    for (schema, draft) in [(old, Draft::Draft7), (new, Draft::Draft202012)] {
        assert!(violations(&schema, &json!(["a", 1]), draft).is_empty());
        let mut found = violations(&schema, &json!([1, "a"]), draft);
        found.sort();
        assert_eq!(found, [r#"/0 1 is not of type "string""#, r#"/1 "a" is not of type "integer""#]);
    }
}

#[test]
fn a_reference_hides_its_neighbours_in_draft_7_only() {
    let schema = json!({"$ref": "#/definitions/a", "minimum": 5, "definitions": {"a": {"type": "integer"}}});
    assert!(violations(&schema, &json!(1), Draft::Draft7).is_empty());
    assert_eq!(violations(&schema, &json!(1), Draft::Draft202012), [" 1 is less than the minimum of 5"]);
    let mut named = schema;
    named["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    assert!(violations(&named, &json!(1), Draft::Draft202012).is_empty());
}

#[test]
fn schemas_that_are_not_understood_are_refused() {
    let cases = [
        (json!(5), "expected an object or a boolean at the root"),
        (json!({"type": "strin"}), "expected types of JSON at /type"),
        (json!({"type": ["string", "string"]}), "expected types of JSON at /type"),
        (json!({"properties": {"a": 5}}), "expected an object or a boolean at /properties/a"),
        (json!({"properties": 5}), "expected an object of schemas at /properties"),
        (json!({"required": ["a", "a"]}), "expected each name once at /required"),
        (json!({"minLength": -1}), "expected a count at /minLength"),
        (json!({"maximum": "1"}), "expected a number at /maximum"),
        (json!({"anyOf": []}), "expected at least one schema at /anyOf"),
        (json!({"description": 5}), "expected another type of value at /description"),
        (json!({"$ref": "#/definitions/nowhere"}), "the schema that `$ref` names at /definitions/nowhere"),
        (
            json!({"$ref": "http://127.0.0.1:9/schema.json"}),
            "expected a reference within the schema at /$ref",
        ),
        (json!({"$ref": "#anchor"}), "/$ref is a keyword"),
        (json!({"items": {"pattern": "a"}}), "/items/pattern is a keyword"),
        (json!({"patternProperties": {"^a": {}}}), "/patternProperties/^a is a keyword"),
        (json!({"unevaluatedProperties": false}), "/unevaluatedProperties is a keyword"),
        (json!({"$schema": "http://json-schema.org/draft-04/schema#"}), "/$schema is a keyword"),
    ];
    for (schema, part) in cases {
        let error = SmallSchema::compile(&schema, Draft::Draft202012).unwrap_err().to_string();
        assert!(error.contains(part), "{schema}: {error}");
        assert_eq!(error.contains("feature `jsonschema`"), error.contains("is a keyword"), "{error}");
    }
    let format = json!({"format": "date-time"});
    assert!(SmallSchema::compile(&format, Draft::Draft202012).is_ok());
    assert!(SmallSchema::compile(&format, Draft::Draft7).is_err(), "draft 7 checks it");
}

#[test]
fn a_refused_schema_is_left_to_the_crate_with_the_feature() {
    let schema = json!({"type": "string", "pattern": "^a"});
    let compiled = CompiledSchema::new(&schema, Draft::Draft7);
    if cfg!(feature = "jsonschema") {
        let compiled = compiled.unwrap();
        assert!(compiled.is_valid(&json!("ab")) && !compiled.is_valid(&json!("b")));
        let value = json!("b");
        let found = compiled.violations(&value, 8);
        assert_eq!(found[0].to_string(), r#""b" does not match "^a""#);
        assert_eq!(found[0].message_with("the value"), r#"the value does not match "^a""#);
        assert_eq!((found[0].path(), found[0].schema_path()), ("", "/pattern"));
    } else {
        assert!(compiled.unwrap_err().to_string().contains("feature `jsonschema`"));
    }
    CompiledSchema::new(&json!({"type": "strin"}), Draft::Draft7).unwrap_err();
}

/// Small values, so that schemas and values often agree.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2_i64..4).prop_map(Value::from),
        prop_oneof![Just(1.0), Just(1.5), Just(-2.0), Just(1e20)].prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ab1]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A keyword without schemas within it.
fn plain_keyword() -> impl Strategy<Value = (String, Value)> {
    const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let counts = prop::sample::select(vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ]);
    let bounds = prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    let number = prop_oneof![(-2_i64..4).prop_map(Value::from), Just(json!(1.5)), Just(json!(1.0))];
    prop_oneof![
        prop::sample::subsequence(TYPES.to_vec(), 1..=4).prop_map(|types| ("type".to_owned(), json!(types))),
        prop::sample::select(TYPES.to_vec()).prop_map(|kind| ("type".to_owned(), json!(kind))),
        (counts, 0_u64..3).prop_map(|(name, limit)| (name.to_owned(), json!(limit))),
        (bounds, number).prop_map(|(name, limit)| (name.to_owned(), limit)),
        prop::collection::vec(value(), 1..4).prop_map(|options| ("enum".to_owned(), json!(options))),
        value().prop_map(|expected| ("const".to_owned(), expected)),
        any::<bool>().prop_map(|unique| ("uniqueItems".to_owned(), json!(unique))),
        prop::sample::subsequence(vec!["a", "b", "1"], 0..=2)
            .prop_map(|names| ("required".to_owned(), json!(names))),
    ]
}

/// A schema with the keywords of the small validator.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => prop::collection::vec(plain_keyword(), 0..3)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect())),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({"$ref": "#/definitions/own"})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..3);
        let named = || {
            prop::collection::btree_map("[ab]", inner.clone(), 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect()))
        };
        let keyword = prop_oneof![
            3 => plain_keyword(),
            1 => some().prop_map(|choices| ("anyOf".to_owned(), json!(choices))),
            1 => some().prop_map(|choices| ("oneOf".to_owned(), json!(choices))),
            1 => some().prop_map(|choices| ("allOf".to_owned(), json!(choices))),
            1 => inner.clone().prop_map(|inner| ("not".to_owned(), inner)),
            2 => inner.clone().prop_map(|inner| ("items".to_owned(), inner)),
            2 => inner.clone().prop_map(|inner| ("additionalProperties".to_owned(), inner)),
            2 => named().prop_map(|members| ("properties".to_owned(), members)),
            1 => inner.clone().prop_map(|inner| ("patternProperties".to_owned(), json!({r"^\d+$": inner}))),
        ];
        prop::collection::vec(keyword, 0..4)
            .prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
    })
}

proptest! {
    #[test]
    fn verdicts_are_those_of_the_crate_for_all_schemas(
        root in schema(),
        own in prop::collection::vec(plain_keyword(), 0..3),
        values in prop::collection::vec(value(), 1..6),
        is_old in any::<bool>(),
    ) {
        let draft = if is_old { Draft::Draft7 } else { Draft::Draft202012 };
        let own = Value::Object(own.into_iter().collect());
        let schema = json!({"allOf": [root], "definitions": {"own": own}});
        let small = SmallSchema::compile(&schema, draft).unwrap();
        let reference = reference(&schema, draft);
        for value in values {
            let found = small.violations(&value);
            prop_assert_eq!(found.is_empty(), reference.is_valid(&value), "{} {} {:?}", schema, value, found);
        }
    }
}
