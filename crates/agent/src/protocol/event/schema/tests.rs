#![expect(
    clippy::disallowed_methods,
    reason = "the checked-in schema is compared, and written when asked for"
)]

use serde_json::json;

use super::event_schema;
use crate::protocol::EventKind;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/events.json");

/// Returns the names of all kinds, as serde lists them.
fn kinds() -> Vec<String> {
    let error =
        serde_json::from_value::<EventKind>(json!({ "kind": "?", "data": {} })).unwrap_err().to_string();
    let (_, names) = error.split_once("one of ").expect("serde lists what it expected");
    names
        .split('`')
        .filter(|name| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
        .map(str::to_owned)
        .filter(|name| !name.is_empty())
        .collect()
}

#[test]
fn the_checked_in_schema_matches_the_types() {
    let now = event_schema();
    if std::env::var_os("WRITE_EVENT_SCHEMA").is_some() {
        std::fs::write(PATH, format!("{now:#}\n")).unwrap();
    }
    let checked_in = std::fs::read_to_string(PATH).unwrap_or_default();
    // The order of fields depends on the features of other crates in the build.
    let checked_in: serde_json::Value = serde_json::from_str(&checked_in).unwrap_or_default();
    assert!(
        checked_in == now,
        "crates/agent/schema/events.json does not match the types; regenerate it with\n    \
         cargo xtask generate"
    );
}

#[test]
fn every_kind_is_in_the_schema() {
    let schema = event_schema();
    let named: Vec<&str> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|kind| kind["properties"]["kind"]["const"].as_str())
        .collect();
    assert_eq!(named, kinds());
}
