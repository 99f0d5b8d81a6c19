//! `cargo xtask smoke`: both smoke tests at the providers whose keys are in the environment.

use crate::{failure::Failure, metadata::Metadata, process};

/// Runs them; `--offline` has the scripted server play the providers.
pub(crate) fn run(metadata: &Metadata, arguments: &[String]) -> Result<(), Failure> {
    let mut command = process::cargo(&metadata.workspace_root);
    command.args(["run", "--locked", "--quiet", "--package", "pintle-tests", "--bin", "smoke", "--"]);
    process::run(command.args(arguments))
}
