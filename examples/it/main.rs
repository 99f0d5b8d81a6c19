//! Runs every example and compares its output with the `.stdout` file next to it.
//!
//! To update a snapshot: `cargo run -p pintle-examples -- NAME > examples/NAME.stdout`.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests use files and processes, and fail by panicking"
)]

mod killed;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Defines the list of examples and a test for each.
macro_rules! examples {
    ($($name:ident),+ $(,)?) => {
        const EXAMPLES: &[&str] = &[$(stringify!($name)),+];

        $(
            #[test]
            fn $name() {
                matches_snapshot(stringify!($name));
            }
        )+
    };
}

examples![
    approval,
    complete,
    custom_environment,
    custom_tool,
    governed,
    host_session,
    images,
    mcp,
    minimal,
    mounted_server,
    object,
    observability,
    own_provider,
    passive_tools,
    persistence,
    replay,
    resume,
    session,
    stream,
    subagents,
    task
];

/// Tasks of an embedding application, and the example of each.
const TASKS: &[(&str, &str)] = &[
    ("Calls of a model", "complete"),
    ("Session with tools, approvals and steering", "session"),
    ("Wrapping environment", "custom_environment"),
    ("Persistence with kill, resume, rewind and fork", "persistence"),
    ("Governed session with a narrowed subagent", "governed"),
    ("Parallel subagents on a shared budget", "subagents"),
    ("MCP", "mcp"),
    ("Own axum server", "mounted_server"),
    ("Task with evidence", "task"),
    ("Replay as a test", "replay"),
    ("Tracing", "observability"),
    ("Minimal weight", "minimal"),
];

/// Limit on the lines of the example of a task, without comments and blank lines.
const MAX_LINES: usize = 60;

fn matches_snapshot(name: &str) {
    let expected = std::fs::read_to_string(directory().join(format!("{name}.stdout"))).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pintle-examples")).arg(name).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}: {errors}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}");
    assert_eq!(errors, "", "{name}");
}

#[test]
fn every_example_is_tested_and_documented() {
    let tested: BTreeSet<String> = EXAMPLES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(stems("rs"), tested);
    assert_eq!(stems("stdout"), tested);
    let readme = std::fs::read_to_string(directory().join("README.md")).unwrap();
    for name in EXAMPLES {
        assert!(readme.contains(&format!("[`{name}`]({name}.rs)")), "{name} is missing in the README");
    }
}

#[test]
fn the_example_of_each_task_is_short_and_its_lines_are_documented() {
    let readme = std::fs::read_to_string(directory().join("README.md")).unwrap();
    for (task, name) in TASKS {
        let lines = count_code_lines(name);
        assert!(lines <= MAX_LINES, "{name} has {lines} lines, expected at most {MAX_LINES}");
        let row = format!("| {task} | [`{name}`]({name}.rs) | {lines} |\n");
        assert!(readme.contains(&row), "expected in the README: {row}");
    }
}

#[test]
fn unknown_example_lists_all_names() {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle-examples")).arg("steer").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(errors.contains("no example named `steer`, expected one of "), "{errors}");
    assert!(EXAMPLES.iter().all(|name| errors.contains(name)), "{errors}");
}

/// Counts the lines of an example without comments and blank lines.
fn count_code_lines(name: &str) -> usize {
    let text = std::fs::read_to_string(directory().join(format!("{name}.rs"))).unwrap();
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("//")).count()
}

/// Returns the stems of the files with this extension, except for the binary's.
fn stems(extension: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|stem| stem != "main")
        .collect()
}

fn directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
