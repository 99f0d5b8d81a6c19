use serde_json::json;

use super::*;
use crate::tool::DynTool;

/// What a provider is told of a tool's parameters: names, with a star if required, and types.
fn parameters(tool: &dyn DynTool) -> String {
    let definition = tool.definition().unwrap();
    let required = definition.parameters["required"].as_array().unwrap_or(&Vec::new()).clone();
    let properties = definition.parameters["properties"].as_object().unwrap();
    let listed = properties.iter().map(|(name, schema)| {
        assert!(schema["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}: {schema}");
        let star = if required.contains(&json!(name)) { "*" } else { "" };
        format!("{name}{star}: {}", schema["type"].as_str().unwrap())
    });
    format!("{}({})", definition.name, listed.collect::<Vec<_>>().join(", "))
}

#[test]
fn names_and_parameters_are_those_of_the_specification() {
    let tools: [&dyn DynTool; 10] = [
        &ReadFile::new(),
        &WriteFile::new(),
        &EditFile::new(),
        &EditFile::gemini(),
        &ApplyPatch::new(),
        &Shell::new(),
        &Grep::new(),
        &Glob::new(),
        &ListDir::new(),
        &ReadManyFiles::new(),
    ];
    let listed: Vec<String> = tools.iter().map(|tool| parameters(*tool)).collect();
    insta::assert_snapshot!(listed.join("\n"), @"");
}

#[test]
fn a_schema_is_plain() {
    let definition = Grep::new().definition().unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&definition.parameters).unwrap(), @"");
}

#[test]
fn the_core_set_is_registered_in_order() {
    let mut registry = ToolRegistry::new();
    register_core(&mut registry).unwrap();
    let names: Vec<&str> = registry.names().collect();
    assert_eq!(names, ["read_file", "write_file", "edit_file", "shell", "grep", "glob"]);
}

#[test]
fn descriptions_are_texts_of_some_length() {
    let mut registry = ToolRegistry::new();
    register_core(&mut registry).unwrap();
    for definition in registry.definitions() {
        assert!((200..2000).contains(&definition.description.len()), "{}", definition.name);
        assert_eq!(definition.description.trim(), definition.description, "{}", definition.name);
    }
}
