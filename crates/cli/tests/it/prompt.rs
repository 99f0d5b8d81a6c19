//! `pintle prompt`: in layers with their sizes, as a record, and as it would be sent.

use serde_json::Value;

use crate::lab::{pintle, say};

#[test]
fn a_prompt_is_shown_in_layers_in_a_record_and_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let skill = folder.path().join(".agents/skills/forms");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: forms\ndescription: Fill in forms.\n---\n").unwrap();
    std::fs::write(folder.path().join("AGENTS.md"), "Run `make test`.\n").unwrap();
    std::fs::create_dir(folder.path().join("CLAUDE.md")).unwrap();
    let shown = |output: &str| {
        let mut command = pintle(&["prompt", "--provider", "anthropic", "--output", output, "--dir"]);
        let said = say(command.arg(folder.path()));
        assert_eq!(said.code, Some(0), "{said:?}");
        said.out
    };
    let record: Value = serde_json::from_str(&shown("json")).unwrap();
    let text = shown("text");
    let plain = shown("plain");

    let kinds: Vec<&str> =
        record["layers"].as_array().unwrap().iter().map(|layer| layer["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["base_instructions", "environment", "tools", "project_documents", "skills"]);
    for layer in record["layers"].as_array().unwrap() {
        let content = layer["text"].as_str().unwrap();
        assert_eq!(layer["bytes"], content.len());
        let name = layer["kind"].as_str().unwrap().replace('_', " ");
        let section = format!("=== {name}: {} bytes ===\n{content}\n\n", content.len());
        assert!(text.contains(&section), "{section}");
        assert!(plain.contains(content), "{name}");
    }
    let whole = plain.strip_suffix('\n').unwrap();
    assert_eq!(record["bytes"], whole.len());
    assert!(text.ends_with(&format!("=== in all: {} bytes ===\n", whole.len())), "{text}");
    assert!(text.contains("/CLAUDE.md is a directory"), "{text}");
    assert_eq!(record["project"]["documents"][0]["bytes"], "Run `make test`.".len());
    assert_eq!(record["project"]["skipped"].as_array().unwrap().len(), 1);
}
