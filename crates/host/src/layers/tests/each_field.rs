//! Every field of a specification takes the value of a layer, and has a default.

use pintle_governance::{Grant, GrantId};
use serde_json::{Value, json};

use super::layer;
use crate::layers::{FIELDS, FieldRetention, Layer, StoredSpec, ValueOrigin, merge};
use crate::spec::{Combine, PartialSpec, SessionSpec};

/// Returns the sections of a specification, with a value other than the default for each field.
fn values() -> Value {
    json!({
        "model": {
            "provider": "anthropic",
            "name": "m",
            "base_url": "https://h",
            "script": "/s.toml",
            "dialect": "gemini",
            "profile": {"name": "p"},
            "reasoning_effort": "high",
            "timeout": {"secs": 9, "nanos": 0},
            "catalog": "/c.json",
        },
        "environment": {
            "kind": "docker:c",
            "dir": "/w",
            "sandbox": "writes",
            "network": "on",
            "confine": true,
            "roots": ["/w"],
        },
        "policy": {
            "mode": "ask",
            "after_plan": "ask",
            "allow": ["shell(ls)"],
            "ask": ["@write"],
            "deny": ["shell(rm *)"],
            "hidden": ["keys"],
            "grant": Grant::none(GrantId::new("g")),
            "wait_approval": true,
            "read_before_write": true,
        },
        "limits": {
            "max_turns": 3,
            "max_tool_rounds": 4,
            "compact_at": 50,
            "budget": {"session": {"tool_calls": 5}},
            "at_limit": "ask",
            "unknown_price": "ask",
        },
        "tools": {
            "toolset": "spec",
            "only": ["shell"],
            "servers": [{"name": "s", "declaration": {"command": "x"}}],
            "server_files": ["/m.json"],
            "use_servers": false,
        },
        "instructions": {"base": "b", "extra": "e"},
        "persistence": {
            "keep": false,
            "id": "i",
            "properties": {"k": "v"},
            "worktree": "head",
        },
    })
}

/// Returns the value of a field.
fn field<'a>(spec: &'a Value, path: &str) -> &'a Value {
    let (section, name) = path.split_once('.').unwrap();
    &spec[section][name]
}

#[test]
fn each_field_has_the_value_of_its_layer() {
    let values = values();
    let sections = values.as_object().unwrap().values();
    let count: usize = sections.map(|section| section.as_object().unwrap().len()).sum();
    assert_eq!(count, SessionSpec::FIELDS.len());
    let default = serde_json::to_value(SessionSpec::default()).unwrap();
    for (path, _) in SessionSpec::FIELDS {
        let (section, name) = path.split_once('.').unwrap();
        let given: PartialSpec =
            serde_json::from_value(json!({ section: { name: field(&values, path) } })).unwrap();
        assert_eq!(given.set_paths(), [*path]);
        let merged = merge([layer(Layer::CommandLine, |spec| *spec = given.clone())]).unwrap();
        assert_eq!(merged.origins[path], [ValueOrigin::Flag("CommandLine".to_owned())], "{path}");
        let (given, merged) =
            (serde_json::to_value(given).unwrap(), serde_json::to_value(merged.spec).unwrap());
        assert_eq!(field(&merged, path), field(&given, path), "{path}");
        assert_ne!(field(&merged, path), field(&default, path), "{path}");
        for (other, _) in SessionSpec::FIELDS.iter().filter(|(other, _)| other != path) {
            assert_eq!(field(&merged, other), field(&default, other), "{path} sets {other}");
        }
    }
}

/// A process that can write to the store does not set other fields of a session of the user.
#[test]
fn stored_settings_have_only_the_fields_that_sessions_store() {
    let origins = json!({"policy.grant": {"flag": "--grant"}, "policy.mode": {"flag": "--mode"}});
    let text = json!({"given": values(), "origins": origins, "user": values()}).to_string();
    let stored = StoredSpec::parse(&text).unwrap();
    assert_eq!(stored.origins.keys().collect::<Vec<_>>(), ["policy.mode"]);
    let user = stored.user.unwrap();
    for row in FIELDS {
        let path = row.path;
        assert_eq!(stored.given.is_set(path), row.retention != FieldRetention::Never, "{path}");
        assert_eq!(user.is_set(path), row.combine == Combine::Bounded, "{path}");
    }
    assert!(StoredSpec::parse(r#"{"given": {"policy": {"forbid": ["shell"]}}}"#).is_err());
}
