//! Restate, an engine of durable execution, from npm.
//!
//! It is only installed here: a test starts an engine of its own, since an engine has one newest worker, and kills it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Variables, cannot, install::find_or_install, write};
use crate::failure::Failure;

/// The released version that the tests were written against.
const VERSION: &str = "1.7.12";

/// Installs the engine, and returns where its program is.
pub(super) fn up(directory: &Path) -> Result<Variables, Failure> {
    let program = program(directory)?;
    if !program.exists() {
        install(directory)?;
    }
    Ok(vec![("PINTLE_TEST_RESTATE", program.display().to_string())])
}

/// Nothing of it runs here.
pub(super) fn down(_directory: &Path) -> Result<bool, Failure> {
    Ok(false)
}

/// Returns the package with the program for this machine.
fn package() -> Result<&'static str, Failure> {
    match std::env::consts::ARCH {
        "x86_64" => Ok("restate-server-linux-x64"),
        "aarch64" => Ok("restate-server-linux-arm64"),
        other => Err(Failure::new(format!("Restate has no program for {other}"))),
    }
}

fn program(directory: &Path) -> Result<PathBuf, Failure> {
    Ok(directory.join("node_modules/@restatedev").join(package()?).join("bin/restate-server"))
}

fn install(directory: &Path) -> Result<(), Failure> {
    let npm = find_or_install("npm", &["npm"])?;
    write(&directory.join("package.json"), "{\"private\": true}\n")?;
    let wanted = format!("@restatedev/{}@{VERSION}", package()?);
    let mut command = Command::new(npm);
    command
        .current_dir(directory)
        .args(["install", "--silent", "--no-audit", "--no-fund", "--no-save"])
        .arg(wanted);
    let status = command.status().map_err(|cause| cannot("run npm in", directory).with_source(cause))?;
    match status.success() {
        true => Ok(()),
        false => Err(Failure::new(format!("npm could not install Restate ({status})"))),
    }
}
