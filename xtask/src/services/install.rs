//! Installs missing programs.

use std::{
    path::PathBuf,
    process::{Command, Stdio},
};

use super::find_program;
use crate::failure::Failure;

/// Finds `program`, and installs the Debian `packages` if it is missing.
pub(super) fn find_or_install(program: &str, packages: &[&str]) -> Result<PathBuf, Failure> {
    if let Some(found) = find_program(program) {
        return Ok(found);
    }
    install(program, packages)?;
    find_program(program).ok_or_else(|| Failure::new(advice(program, packages)))
}

/// Installs the Debian `packages` for the missing `program`.
pub(super) fn install(program: &str, packages: &[&str]) -> Result<(), Failure> {
    if find_program("apt-get").is_none() {
        return Err(Failure::new(advice(program, packages)));
    }
    eprintln!("installing {} for {program}", packages.join(" "));
    apt_get(&["update", "-qq"])?;
    apt_get(&[&["install", "-y", "-q", "--no-install-recommends"], packages].concat())
}

fn advice(program: &str, packages: &[&str]) -> String {
    format!("{program} was not found; install it (Debian: {})", packages.join(" "))
}

/// Runs apt-get. Waits for its lock if another process holds it.
fn apt_get(arguments: &[&str]) -> Result<(), Failure> {
    let mut command = Command::new("apt-get");
    command
        .args(["-o", "DPkg::Lock::Timeout=300"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .stdout(std::io::stderr());
    let line = format!("apt-get {}", arguments.join(" "));
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(format!("`{line}` ended with {status}"))),
        Err(cause) => Err(Failure::new(format!("`{line}` could not be started")).with_source(cause)),
    }
}
