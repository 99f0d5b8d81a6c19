//! Every example runs, says what the file beside it holds, and ends well.
//!
//! After a change that is meant: `cargo run -p pintle-examples -- NAME > examples/NAME.stdout`.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test is a host, and fails by panicking"
)]

mod http;
mod killed;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// A test for each example, and the list of them.
macro_rules! examples {
    ($($name:ident),+ $(,)?) => {
        const EXAMPLES: &[&str] = &[$(stringify!($name)),+];

        $(
            #[test]
            fn $name() {
                runs_as_its_file_says(stringify!($name));
            }
        )+
    };
}

examples![
    approval,
    custom_environment,
    custom_tool,
    http_host,
    own_provider,
    replay,
    resume,
    steering,
    subagents
];

fn runs_as_its_file_says(name: &str) {
    let expected = std::fs::read_to_string(folder().join(format!("{name}.stdout"))).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pintle-examples")).arg(name).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}: {errors}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{name}");
    assert_eq!(errors, "", "{name}");
}

#[test]
fn every_file_is_an_example_with_a_test_a_snapshot_and_a_line_in_the_readme() {
    let tested: BTreeSet<String> = EXAMPLES.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(stems("rs"), tested);
    assert_eq!(stems("stdout"), tested);
    let readme = std::fs::read_to_string(folder().join("README.md")).unwrap();
    for name in EXAMPLES {
        assert!(readme.contains(&format!("[`{name}`]({name}.rs)")), "{name} has no line in the README");
    }
}

#[test]
fn an_unknown_name_is_answered_with_those_that_there_are() {
    let output = Command::new(env!("CARGO_BIN_EXE_pintle-examples")).arg("steer").output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(errors.contains("found no example `steer`, expected one of "), "{errors}");
    assert!(EXAMPLES.iter().all(|name| errors.contains(name)), "{errors}");
}

/// The names of the files of this kind, without that of the binary's own.
fn stems(extension: &str) -> BTreeSet<String> {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|stem| stem != "main")
        .collect()
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
