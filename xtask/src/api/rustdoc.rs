//! The documentation of all libraries as JSON, and this program as the rustdoc that writes it.
//!
//! The JSON is an unstable output, which a variable enables in the pinned toolchain. Build scripts read the variable as well,
//! and cargo would rebuild everything that depends on them, so only rustdoc has it.

use std::{
    ffi::{OsStr, OsString},
    path::PathBuf,
    process::{Command, ExitCode},
};

use crate::{
    failure::{Context as _, Failure},
    metadata::Metadata,
    process,
};

/// Variable with the real rustdoc. If it is set, this program is rustdoc.
const REAL: &str = "PINTLE_API_RUSTDOC";

/// Flags of rustdoc for the JSON. Cargo distinguishes the output of other flags.
const FLAGS: &str = "-Z unstable-options --output-format json";

/// Runs the real rustdoc if this process is rustdoc, else returns `None`.
pub(crate) fn run_as_rustdoc() -> Option<Result<ExitCode, Failure>> {
    let rustdoc = std::env::var_os(REAL)?;
    Some(run(&rustdoc))
}

fn run(rustdoc: &OsStr) -> Result<ExitCode, Failure> {
    let status = Command::new(rustdoc)
        .args(std::env::args_os().skip(1))
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .with_context(|| format!("{} could not be started", rustdoc.display()))?;
    Ok(process::exit_code(status))
}

/// Documents each library with all of its features, and returns the directory with a file for each.
///
/// The selection is `process::EVERYTHING` with more features, so that units of the step `doc` are used again.
pub(super) fn document(metadata: &Metadata) -> Result<PathBuf, Failure> {
    let own = metadata.target_directory.join("api");
    std::fs::create_dir_all(&own).with_context(|| format!("{} could not be created", own.display()))?;
    let program = own.join("rustdoc");
    process::copy_own_program(&program)?;
    let real = std::env::var_os("RUSTDOC").unwrap_or_else(|| OsString::from("rustdoc"));
    let mut doc = process::cargo(&metadata.workspace_root);
    doc.args(["doc", "--locked", "--quiet", "--no-deps", "--lib"])
        .args(process::EVERYTHING)
        .args(["--features", &features(metadata).join(",")])
        .env("RUSTDOC", program)
        .env("RUSTDOCFLAGS", FLAGS)
        .env(REAL, real);
    process::run(&mut doc)?;
    Ok(metadata.target_directory.join("doc"))
}

/// Returns all features of all libraries as cargo's words.
fn features(metadata: &Metadata) -> Vec<String> {
    metadata
        .libraries()
        .flat_map(|library| library.features.keys().map(|feature| format!("{}/{feature}", library.name)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::features;
    use crate::metadata::Metadata;

    #[test]
    fn libraries_are_documented_with_all_features() {
        let package = |name: &str, kind: &str, publish: &str, features: &str| {
            format!(
                r#"{{"id": "{name}", "name": "{name}", "version": "1.0.0", "manifest_path": "Cargo.toml",
                     "dependencies": [], "rust_version": null, "publish": {publish}, "features": {features},
                     "targets": [{{"name": "{name}", "kind": ["{kind}"], "test": true, "doctest": true}}]}}"#
            )
        };
        let packages = [
            package("a", "lib", "null", r#"{"default": ["x"], "x": []}"#),
            package("command", "bin", "null", r#"{"y": []}"#),
            package("tests", "lib", "[]", r#"{"z": []}"#),
        ];
        let json = format!(
            r#"{{"packages": [{}], "workspace_root": "/", "target_directory": "/target"}}"#,
            packages.join(", ")
        );
        let metadata: Metadata = serde_json::from_str(&json).unwrap();
        assert_eq!(features(&metadata), ["a/default", "a/x"]);
    }
}
