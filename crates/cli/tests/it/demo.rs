//! `pintle demo` in each dialect.

use std::path::Path;

use crate::harness::{pintle, run};

fn fixes_the_bug(dialect: &str, editing_tool: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = pintle(&["demo", "--dialect", dialect, "--dir"]);
    let target = directory.path().join("copy");
    let output = run(command.arg(&target));
    assert_eq!(output.code, Some(0), "{output:?}");
    for part in ["test result: FAILED", editing_tool, "test result: ok. 9 passed", "Changes:", "<= 10"] {
        assert!(output.stdout.contains(part), "{dialect}: `{part}` in {}", output.stdout);
    }
    let fixed = std::fs::read_to_string(source(&target, "symbol.rs")).unwrap();
    assert!(fixed.contains("<= 10"));
}

fn source(directory: &Path, name: &str) -> std::path::PathBuf {
    directory.join("src").join(name)
}

#[test]
fn openai() {
    fixes_the_bug("openai", "apply_patch");
}

#[test]
fn anthropic() {
    fixes_the_bug("anthropic", "edit_file");
}

#[test]
fn gemini() {
    fixes_the_bug("gemini", "edit_file");
}

#[test]
fn compatible() {
    fixes_the_bug("openai-compatible", "edit_file");
}
