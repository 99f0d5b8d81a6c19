//! `pintle demo`: the main job, offline.

use std::path::Path;

use crate::lab::{pintle, say};

fn demonstrates(dialect: &str, editing_tool: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = pintle(&["demo", "--dialect", dialect, "--dir"]);
    let target = folder.path().join("copy");
    let said = say(command.arg(&target));
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in
        ["test result: FAILED", editing_tool, "test result: ok. 9 passed", "What has changed", "<= 10"]
    {
        assert!(said.out.contains(part), "{dialect}: `{part}` in {}", said.out);
    }
    let fixed = std::fs::read_to_string(find(&target, "symbol.rs")).unwrap();
    assert!(fixed.contains("<= 10"));
}

fn find(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join("src").join(name)
}

#[test]
fn openai() {
    demonstrates("openai", "apply_patch");
}

#[test]
fn anthropic() {
    demonstrates("anthropic", "edit_file");
}

#[test]
fn gemini() {
    demonstrates("gemini", "edit_file");
}

#[test]
fn compatible() {
    demonstrates("openai-compatible", "edit_file");
}
