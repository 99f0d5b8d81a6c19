//! `cargo xtask deny`: licences, bans and sources of the dependencies.

use std::process::{Command, Stdio};

use crate::{failure::Failure, metadata::Metadata, process};

/// Runs `cargo deny` where it is installed.
///
/// On a developer's machine without it the check is skipped and says so; in CI that is a failure.
pub(crate) fn run(metadata: &Metadata, _arguments: &[String]) -> Result<(), Failure> {
    if !is_installed() {
        let advice = "cargo-deny is not installed; `.ci/run` shows how to get it";
        if std::env::var_os("CI").is_some() {
            return Err(Failure::new(advice));
        }
        println!("SKIPPED: {advice}");
        return Ok(());
    }
    // The advisory database is a download; licences, bans and sources need none.
    process::run(process::cargo(&metadata.workspace_root).args([
        "deny",
        "--all-features",
        "check",
        "bans",
        "licenses",
        "sources",
    ]))
}

fn is_installed() -> bool {
    Command::new("cargo-deny")
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}
