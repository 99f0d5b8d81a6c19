//! `cargo xtask bench`: what things cost, as ratios of two measured in one run.

use std::process::Command;

use crate::{failure::Failure, metadata::Metadata, process};

/// Builds the benchmarks in release, with the command and the program that it is measured against, and runs those
/// that `arguments` name, or all.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let cargo = |words: &[&str]| {
        let mut command = process::cargo(&metadata.workspace_root);
        command.args(words).args(["--locked", "--release", "--package"]);
        command
    };
    process::run(cargo(&["build"]).arg("pintle"))?;
    process::run(cargo(&["build"]).args(["pintle-benches", "--bin", "pintle-benches"]))?;
    // Linked statically, since loading a library takes longer than all that it does.
    let floor = ["pintle-benches", "--bin", "floor-start", "--", "-C", "target-feature=+crt-static"];
    process::run(cargo(&["rustc"]).args(floor))?;
    let program = metadata.target_directory.join("release/pintle-benches");
    process::run(Command::new(program).current_dir(&metadata.workspace_root).args(arguments))
}
