//! The build of everything that the tests need, with the lints of clippy.
//!
//! `cargo clippy` checks each crate, and `cargo test` would then read, check and compile it again. Here the compiler of our
//! crates is clippy's own, which also lints them; dependencies are compiled by rustc, as in every other build.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use nix::sys::resource::UsageWho;

use super::linker::LinkerLog;
use crate::{conformance::TestBinaries, failure::Failure, metadata::Metadata, process};

/// Result of the build.
pub(super) struct Build {
    pub(super) binaries: TestBinaries,
    pub(super) wall: Duration,
    /// Includes the CPU time of linkers.
    pub(super) cpu: Duration,
    /// Number of runs of the linker and their CPU time.
    pub(super) links: (usize, Duration),
}

impl Build {
    pub(super) fn run(metadata: &Metadata, program: &Path) -> Result<Self, Failure> {
        let links = LinkerLog::create(metadata, program)?;
        let (started, used_before) = (Instant::now(), process::cpu_time(UsageWho::RUSAGE_CHILDREN)?);
        let mut build = test_command(metadata)?;
        // `--locked` reports an outdated lock file.
        build.args(["--no-run", "--locked", TestBinaries::MESSAGES]);
        let messages = process::capture(links.measure(&mut build))?;
        // The README's first command builds the command with its default features, which no test uses.
        let mut default_command = linting_test_command(metadata)?;
        default_command.args(["--workspace", "--bin", "pintle", "--no-run", "--locked"]);
        process::run(links.measure(&mut default_command))?;
        Ok(Self {
            binaries: TestBinaries::from_messages(metadata, &messages)?,
            wall: started.elapsed(),
            cpu: process::cpu_time(UsageWho::RUSAGE_CHILDREN)?.saturating_sub(used_before),
            links: links.total(),
        })
    }
}

/// Returns the README's test command.
pub(super) fn test_command(metadata: &Metadata) -> Result<Command, Failure> {
    let mut command = linting_test_command(metadata)?;
    command.args(process::EVERYTHING);
    Ok(command)
}

/// Returns `cargo test`. Our crates are compiled with the lints of clippy, of which none may report anything.
fn linting_test_command(metadata: &Metadata) -> Result<Command, Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.arg("test");
    command.env("RUSTC_WORKSPACE_WRAPPER", clippy(metadata)?);
    // Encoded as by `cargo clippy -- -D warnings`.
    command.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    // Nothing is compiled twice here, so what incremental builds write would only take time.
    command.env("CARGO_INCREMENTAL", "0");
    Ok(command)
}

/// Returns the compiler with the lints of clippy, which is beside rustc.
fn clippy(metadata: &Metadata) -> Result<PathBuf, Failure> {
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let sysroot = process::capture(rustc.args(["--print", "sysroot"]).current_dir(&metadata.workspace_root))?;
    let driver = PathBuf::from(sysroot.trim()).join("bin/clippy-driver");
    match driver.is_file() {
        true => Ok(driver),
        false => Err(Failure::new("clippy is not installed; `rustup component add clippy`")),
    }
}
