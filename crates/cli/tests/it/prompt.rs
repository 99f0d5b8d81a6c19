//! `pintle prompt` in each output format.

use serde_json::Value;

use crate::harness::{pintle, run};

#[test]
fn formats_agree_on_the_layers() {
    let (directory, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let skill = directory.path().join(".agents/skills/forms");
    std::fs::create_dir_all(&skill).unwrap();
    std::fs::write(skill.join("SKILL.md"), "---\nname: forms\ndescription: Fill in forms.\n---\n").unwrap();
    std::fs::write(directory.path().join("AGENTS.md"), "Run `make test`.\n").unwrap();
    std::fs::create_dir(directory.path().join("CLAUDE.md")).unwrap();
    let print = |format: &str| {
        let mut command = pintle(&["prompt", "--provider", "anthropic", "--output", format, "--dir"]);
        let output = run(command.arg(directory.path()).env("HOME", home.path()));
        assert_eq!(output.code, Some(0), "{output:?}");
        output.stdout
    };
    let record: Value = serde_json::from_str(&print("json")).unwrap();
    let text = print("text");
    let plain = print("plain");

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
    let prompt = plain.strip_suffix('\n').unwrap();
    assert_eq!(record["bytes"], prompt.len());
    assert!(text.ends_with(&format!("=== total: {} bytes ===\n", prompt.len())), "{text}");
    assert!(text.contains("/CLAUDE.md is a directory"), "{text}");
    assert_eq!(record["project"]["documents"][0]["bytes"], "Run `make test`.".len());
    assert_eq!(record["project"]["skipped"].as_array().unwrap().len(), 1);
}
