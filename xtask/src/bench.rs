//! `cargo xtask bench`: what things cost, as ratios of two measured in one run.

use crate::{failure::Failure, metadata::Metadata, process};

/// Builds the benchmarks in release and runs those that `arguments` name, or all.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["run", "--locked", "--release", "--package", "pintle-benches", "--"]).args(arguments);
    process::run(&mut command)
}
