//! `cargo xtask deny`: licences, bans and sources of the dependencies.

use std::process::{Command, Stdio};

use crate::{failure::Failure, metadata::Metadata, process};

/// Advice if the tool is missing.
pub(crate) const ADVICE: &str = "cargo-deny is not installed; `.ci/run` shows how to install it";

/// Runs `cargo deny`, which must be installed.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    crate::require_no_arguments("deny", arguments)?;
    if !is_installed() {
        return Err(Failure::new(ADVICE));
    }
    // The advisory database would be a download; licences, bans and sources need none.
    process::run(process::cargo(&metadata.workspace_root).args([
        "deny",
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

/// Returns whether cargo-deny is in the path.
pub(crate) fn is_installed() -> bool {
    Command::new("cargo-deny")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
