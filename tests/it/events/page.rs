//! `docs/reference/events.md` documents every kind, with valid examples.

use pintle_agent::{SessionEvent, event_schema};
use serde_json::Value;

use super::described;

const PAGE: &str = include_str!("../../../docs/reference/events.md");

/// Returns every kind in the schema with the names of its fields.
fn kinds() -> Vec<(String, Vec<String>)> {
    let schema = event_schema();
    let fields = |kind: &Value| {
        let data = &kind["properties"]["data"];
        let target = data["$ref"].as_str().and_then(|path| schema.pointer(path.trim_start_matches('#')));
        let properties = target.unwrap_or(data)["properties"].as_object().cloned().unwrap_or_default();
        properties.keys().cloned().collect()
    };
    let kinds = schema["oneOf"].as_array().expect("the schema lists the kinds").clone();
    kinds
        .iter()
        .map(|kind| (kind["properties"]["kind"]["const"].as_str().unwrap().to_owned(), fields(kind)))
        .collect()
}

/// Returns the example lines of the page.
fn examples() -> Vec<Value> {
    PAGE.lines()
        .filter(|line| line.starts_with("{\""))
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

/// Returns the section of the page on a kind.
fn section<'a>(kind: &str) -> Option<&'a str> {
    let (_, rest) = PAGE.split_once(&format!("\n### `{kind}`\n"))?;
    Some(rest.split("\n#").next().unwrap_or(rest))
}

#[test]
fn every_kind_has_a_section_with_its_fields_and_an_example() {
    let examples = examples();
    for (kind, fields) in kinds() {
        let section = section(&kind).unwrap_or_else(|| {
            panic!("docs/reference/events.md has no section `{kind}`: add it, with an example line")
        });
        for field in fields {
            let named = section.contains(&format!("`{field}`"));
            assert!(named, "docs/reference/events.md, section `{kind}`, does not name the field `{field}`");
        }
        let has_example = examples.iter().any(|example| example["kind"] == kind.as_str());
        assert!(has_example, "docs/reference/events.md has no example line of `{kind}`");
    }
}

#[test]
fn every_section_documents_an_existing_kind() {
    let kinds: Vec<String> = kinds().into_iter().map(|(kind, _)| kind).collect();
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("### `")) {
        let kind = line.trim_end_matches('`');
        assert!(
            kinds.iter().any(|known| known == kind),
            "docs/reference/events.md tells of `{kind}`, which there is not"
        );
    }
}

#[test]
fn every_example_round_trips() {
    for example in examples() {
        described(&example).unwrap_or_else(|error| panic!("docs/reference/events.md: {error}: {example}"));
        let event: SessionEvent = serde_json::from_value(example.clone())
            .unwrap_or_else(|error| panic!("docs/reference/events.md: {error}: {example}"));
        assert_eq!(serde_json::to_value(event).unwrap(), example, "it is written as it was read");
    }
}
