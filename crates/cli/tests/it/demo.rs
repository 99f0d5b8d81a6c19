//! `pintle demo` in each dialect.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use pintle_test_conditions::is_full;

use crate::harness::{pintle, run};

/// Fake cargo: prints the test results that the script expects with the bug and without it.
const CARGO: &str = include_str!("demo/cargo.sh");

/// Whether the project is built: by default, in one dialect. A build takes seconds, and does not depend on the dialect.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Builds {
    Always,
    InTheLongRun,
}

fn fixes_the_bug(dialect: &str, editing_tool: &str, builds: Builds) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = pintle(&["demo", "--dialect", dialect, "--dir"]);
    if builds == Builds::InTheLongRun && !is_full() {
        let cargo = directory.path().join("cargo");
        std::fs::write(&cargo, CARGO).unwrap();
        std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", directory.path().display()));
    }
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
    fixes_the_bug("openai", "apply_patch", Builds::Always);
}

#[test]
fn anthropic() {
    fixes_the_bug("anthropic", "edit_file", Builds::InTheLongRun);
}

#[test]
fn gemini() {
    fixes_the_bug("gemini", "edit_file", Builds::InTheLongRun);
}

#[test]
fn compatible() {
    fixes_the_bug("openai-compatible", "edit_file", Builds::InTheLongRun);
}

#[test]
fn a_missing_cargo_is_named_with_the_demo_that_works_without_it() {
    let programs = tempfile::tempdir().unwrap();
    let cargo = programs.path().join("cargo");
    std::fs::write(&cargo, "#!/bin/sh\necho cargo: command not found >&2\nexit 127\n").unwrap();
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.path().display(), std::env::var("PATH").unwrap());
    let output = run(pintle(&["demo"]).env("PATH", path));
    assert_eq!(output.code, Some(1), "{output:?}");
    for part in
        ["the demo needs cargo", "https://rustup.rs", "`pintle demo --interactive` works without cargo"]
    {
        assert!(output.stderr.contains(part), "{part}: {output:?}");
    }
}
