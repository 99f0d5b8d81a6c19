//! `cargo xtask smoke`: both smoke tests against the providers whose keys are in the environment.

use crate::{failure::Failure, metadata::Metadata, process};

/// Runs the smoke tests. With `--offline` the scripted server takes the place of the providers.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["run", "--locked", "--quiet", "--package", "pintle-tests", "--bin", "smoke", "--"]);
    process::run(command.args(arguments))
}
